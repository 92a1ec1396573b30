"""Readings of GPUs against a small library that answers as recorded, and summaries of nsys."""

import os
import subprocess
from pathlib import Path

import pytest
from noisebook_gpu import profile_with_nsys
from noisebook_gpu.nsys import parse_api_summary
from noisebook_gpu.readings import NvmlReader

from nbhelpers.errors import InputError, Unavailable
from nbhelpers.measurement._knowledge import find_layer
from nbhelpers.measurement.layers import MetricLayer, reading
from nbhelpers.mitigation._kinds import action_of
from nbhelpers.workloads import program

NVML = Path(__file__).with_name("nvml.c")


def test_gpus_by_a_library_that_answers_as_recorded(tmp_path):
    """Two GPUs; no fans, no memory information, the older name of the clock's reasons, 32-bit
    samples in a union that is not cleared.
    """
    library = tmp_path / "libnvml.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-Wall", "-Werror", NVML, "-o", library],
        check=True,
    )
    layer = MetricLayer(find_layer("gpu"))
    layer.readers = [NvmlReader(layer.layer.sources[0], library=str(library))]
    assert layer.notes == ()
    layer.armed(os.getpid())
    layer.ended(os.getpid())
    columns = layer.after({})
    layer.close()
    expected = {
        "gpu_clock_start_mhz": 1500,
        "gpu_clock_end_mhz": 1500,
        "gpu_memory_clock_mhz": 2619,
        "gpu0_clock_mhz": 1000,
        "gpu1_clock_mhz": 2000,
        "gpu_temperature_start_c": 32,
        "gpu_temperature_end_c": 44,
        "gpu_temperature_rise_c": 12,
        "gpu0_temperature_c": 31,
        "gpu1_temperature_c": 32,
        "gpu_power_start_w": 151,
        "gpu_energy_j": 3,
        "gpu_throttle_power_ns": 4000,
        "gpu_thermal_limited_ns": 0,
        "gpu_throttle_power_cap": 1,
        "gpu_thermal_software": 1,
        "gpu_thermal_hardware": 0,
        "gpu_slowed_by_idle": 0,
        "gpu_utilisation_share": 0.5,
    }
    assert {name: columns[name] for name in expected} == pytest.approx(expected)
    assert not {
        "gpu_fan_share",
        "gpu_memory_used_mb",
        "gpu_power_mean_w",
        "gpu_clock_mean_mhz",
    } & set(columns)


def test_gpus_of_this_machine_or_why_not():
    columns, _, attachment = reading(find_layer("gpu"))
    if attachment.notes:
        assert not columns and "NVML" in attachment.notes[0]
    else:
        assert 0 < columns["gpu_temperature_start_c"] < 120 and columns["gpu_clock_end_mhz"] > 0


NSYS = """Generating SQLite file report.sqlite from report.nsys-rep
Processing [report.sqlite] with [cuda_api_sum.py]...
Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
62.0,124000000,2,62000000.0,62000000.0,4000,123996000,1.0,cudaFree
20.0,40000000,1000,40000.0,40000.0,30000,90000,1.0,cudaLaunchKernel
5.0,10000000,10,1000000.0,1000000.0,1,2,1.0,cuLaunchKernelEx_ptsz
8.0,16000000,4,4000000.0,4000000.0,1,2,1.0,cudaMemcpyAsync
4.0,8000000,5,1600000.0,1600000.0,1,2,1.0,cuStreamSynchronize
1.0,2000000,1,2000000.0,2000000.0,1,2,1.0,cuModuleGetLoadingMode
"""


def test_summary_of_nsys():
    columns = parse_api_summary(NSYS)
    assert columns == {
        "cuda_api_ns": 200_000_000,
        "cuda_initialisation_ns": 124_000_000,
        "cuda_initialisation_calls": 2,
        "cuda_launch_ns": 50_000_000,
        "cuda_launch_calls": 1010,
        "cuda_copy_ns": 16_000_000,
        "cuda_copy_calls": 4,
        "cuda_synchronisation_ns": 8_000_000,
        "cuda_synchronisation_calls": 5,
    }
    assert (
        set(columns) <= {metric.id for metric in find_layer("cuda").metrics}
        and parse_api_summary("nothing\n") == {}
    )


def test_nsys_wraps_the_program_or_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="no nsys"):
        profile_with_nsys(program("/bin/true"), tmp_path)
    (tmp_path / "nsys").write_text("#!/bin/sh\n")
    (tmp_path / "nsys").chmod(0o755)
    workload, layer = profile_with_nsys(program("/bin/true"), tmp_path)
    assert (
        workload.command[0] == str(tmp_path / "nsys")
        and workload.command[-1] == "/bin/true"
        and workload.start == "exec"
        and layer.notes == ()
    )


@pytest.mark.parametrize(
    "fields",
    [{"what": "__init__"}, {"what": "fan", "share": 7}, {"what": "fan", "share": float("nan")}],
)
def test_a_setting_that_is_none_is_refused(fields):
    with pytest.raises(InputError, match="no setting of a GPU"):
        action_of({"kind": "gpu", **fields}, "mine.yml", foreign=True)
