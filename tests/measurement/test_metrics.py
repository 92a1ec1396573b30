"""Metric layers as data: every file is sound, and readers for machines that have more than this one
against recorded trees and a small library.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from nbhelpers.errors import InputError, Unavailable
from nbhelpers.measurement import (
    available_layers,
    consequences,
    describe_columns,
    finished,
    measure,
    metrics,
    rates,
    read_table,
)
from nbhelpers.measurement.__main__ import main
from nbhelpers.measurement._knowledge import (
    FOLDER,
    Metric,
    find_layer,
    layers,
    metric_of,
    read_layer,
)
from nbhelpers.measurement._perf import event_config, totals
from nbhelpers.measurement._readers_nsys import parse_api_summary
from nbhelpers.measurement._readers_nvml import NvmlReader
from nbhelpers.measurement._readers_program import by_pattern, from_csv, from_json
from nbhelpers.measurement.layers import MetricLayer, profile_with_nsys, reading
from nbhelpers.workloads import program

from ..trees import write_tree

pytestmark = pytest.mark.usefixtures("binaries", "nothing_left")


@pytest.fixture(scope="module", autouse=True)
def arrow_is_awake(tmp_path_factory):
    """pyarrow has file descriptors from its first use on."""
    path = tmp_path_factory.mktemp("arrow") / "a.csv"
    path.write_text("x\n1\n")
    read_table(path)


# The files
# --------------------------------------------------------------------------------------------------


def test_every_layer_file_is_read_and_no_two_share_a_column():
    assert len(layers()) == len(list(FOLDER.glob("*.yml"))) >= 20
    assert all(FOLDER / f"{name}.yml" in FOLDER.iterdir() for name in layers())
    ids = [metric.id for layer in layers().values() for metric in layer.metrics]
    assert len(ids) == len(set(ids)) > 150


def test_the_factor_of_every_metric_exists():
    known = {
        factor["id"]
        for path in (FOLDER.parent / "factors").glob("*.yml")
        for factor in yaml.safe_load(path.read_text())
    }
    assert {metric.factor for layer in layers().values() for metric in layer.metrics} - {
        ""
    } <= known


def test_every_column_that_a_layer_makes_here_has_an_entry():
    runs = measure("/bin/true", runs=1, metrics=list(layers()))
    made = [
        name
        for name in runs.columns[list(runs.columns).index("user_s") :]
        if name != "elapsed_seconds"
    ]
    assert len(made) > 60 and all(metric_of(name) for name in made), [
        name for name in made if not metric_of(name)
    ]
    described = describe_columns(rates(runs))
    assert not set(described.index[described.kind == "program"])


def test_consequences_are_known_as_such():
    known = consequences()
    assert {
        "cycles",
        "task_clock_ns",
        "user_s",
        "machine_busy_s",
        "temperature_rise_c",
        "energy_j",
    } <= set(known)
    assert not {
        "context_switches",
        "cache_misses",
        "steal_s",
        "others_busy_s",
        "instructions",
    } & set(known)
    assert all(len(reason) > 5 for reason in known.values())


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"layer": "Has Blanks"}, "does not match"),
        ({"sources": []}, "too short|non-empty"),
        ({"surplus": 1}, "surplus"),
        (
            {
                "sources": [
                    {
                        "reader": "file",
                        "path": "/proc/stat",
                        "metrics": [{"id": "a", "title": "what it is"}],
                    }
                ]
            },
            "'format' is a required",
        ),
        (
            {"sources": [{"reader": "perf", "metrics": [{"id": "a", "title": "what it is"}]}]},
            "valid under any|not valid",
        ),
        (
            {"sources": [{"reader": "shell", "metrics": [{"id": "a", "title": "what it is"}]}]},
            "'shell' is not one of",
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_place(tmp_path, change, complaint):
    good = {
        "layer": "mine",
        "title": "my layer",
        "sources": [
            {
                "reader": "file",
                "path": "/proc/stat",
                "format": "rows",
                "metrics": [{"id": "mine", "key": "ctxt", "title": "what it is"}],
            }
        ],
    }
    path = tmp_path / "mine.yml"
    path.write_text(yaml.safe_dump(good))
    assert read_layer(path).metric_of("mine").title == "what it is"
    path.write_text(yaml.safe_dump(good | change))
    with pytest.raises(InputError, match=complaint) as caught:
        read_layer(path)
    assert str(path) in str(caught.value)


def test_a_column_that_two_layers_have_is_refused(tmp_path):
    path = tmp_path / "mine.yml"
    path.write_text(
        "layer: mine\ntitle: my layer\nsources: [{reader: file, path: /proc/stat, format: rows,"
        " metrics: [{id: steal_s, key: cpu, title: again}]}]"
    )
    with pytest.raises(InputError, match="'steal_s'.*\n.*mine"):
        metrics("kernel", path)
    with pytest.raises(InputError, match="cannot read the metric layer"):
        metrics(tmp_path / "no.yml")
    path.write_text("layer: [")
    with pytest.raises(InputError, match="not YAML"):
        metrics(path)


# Recorded trees
# --------------------------------------------------------------------------------------------------


def of_tree(name: str, root: Path, before: dict[str, str], later: dict[str, str]) -> dict:
    """Columns of a layer when the files change from `before` to `later` during the run."""
    layer = MetricLayer(find_layer(name), write_tree(root, before))
    layer.armed(os.getpid())
    write_tree(root, later)
    layer.ended(os.getpid())
    columns = layer.after({"user_s": 0.0, "system_s": 0.0})
    layer.close()
    return columns


CPUS = "/sys/devices/system/cpu"


def test_clock_of_each_cpu(tmp_path):
    before = {
        f"{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq": str(khz)
        for cpu, khz in ((0, 1_000_000), (1, 2_000_000), (10, 3_000_000))
    }
    later = {
        f"{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq": str(khz)
        for cpu, khz in ((0, 3_000_000), (1, 2_400_000), (10, 3_000_000))
    }
    columns = of_tree("frequency", tmp_path, before, later)
    assert columns == {
        "cpu_mhz_mean": 2400,
        "cpu_mhz_least": 2400,
        "cpu_mhz_most": 3000,
        "cpu_mhz_start": 2000,
        "cpu_mhz_cpu0": 2000,
        "cpu_mhz_cpu1": 2200,
        "cpu_mhz_cpu10": 3000,
    }


def test_temperatures_fans_throttling_and_energy(tmp_path):
    before = {
        "/sys/class/hwmon/hwmon3/name": "coretemp",
        "/sys/class/hwmon/hwmon3/temp1_label": "Package id 0",
        "/sys/class/hwmon/hwmon3/temp1_input": "41000",
        "/sys/class/hwmon/hwmon3/temp2_input": "39000",
        "/sys/class/hwmon/hwmon4/name": "nct6775",
        "/sys/class/hwmon/hwmon4/fan1_input": "900",
        "/sys/class/hwmon/hwmon4/fan2_input": "1200",
        "/sys/class/thermal/thermal_zone0/type": "x86_pkg_temp",
        "/sys/class/thermal/thermal_zone0/temp": "41500",
        f"{CPUS}/cpu0/thermal_throttle/core_throttle_count": "5",
        f"{CPUS}/cpu1/thermal_throttle/core_throttle_count": "7",
        f"{CPUS}/cpu0/thermal_throttle/package_throttle_count": "9",
        f"{CPUS}/cpu1/thermal_throttle/package_throttle_count": "9",
        "/sys/class/powercap/intel-rapl:0/energy_uj": "1000000",
        "/sys/class/powercap/intel-rapl:0:0/energy_uj": "5",
    }
    later = {
        "/sys/class/hwmon/hwmon3/temp1_input": "58000",
        f"{CPUS}/cpu1/thermal_throttle/core_throttle_count": "17",
        f"{CPUS}/cpu0/thermal_throttle/package_throttle_count": "12",
        f"{CPUS}/cpu1/thermal_throttle/package_throttle_count": "12",
        "/sys/class/powercap/intel-rapl:0/energy_uj": "26000000",
    }
    columns = of_tree("thermal", tmp_path, before, later)
    expected = {
        "temperature_start_c": 41,
        "temperature_end_c": 58,
        "temperature_rise_c": 17,
        "temperature_c_coretemp_Package_id_0_3_1": 41,
        "temperature_c_coretemp_3_2": 39,
        "fan_rpm_least": 900,
        "thermal_zone_c_x86_pkg_temp_0": 41.5,
        "core_throttle_count": 10,
        "package_throttle_count": 3,
        "energy_j": 25,
    }
    assert columns == pytest.approx(expected)


def test_a_sensor_that_goes_away_leaves_a_gap_and_no_error(tmp_path):
    files = {
        "/sys/class/hwmon/hwmon0/name": "k10temp",
        "/sys/class/hwmon/hwmon0/temp1_input": "40000",
    }
    layer = MetricLayer(find_layer("thermal"), write_tree(tmp_path, files))
    layer.armed(os.getpid())
    layer.close()
    (tmp_path / "sys/class/hwmon/hwmon0/temp1_input").unlink()
    layer.ended(os.getpid())
    assert layer.after({}) == {}
    layer.close()


def test_a_file_that_is_not_in_its_format_leaves_a_gap_and_no_error(tmp_path):
    assert (
        of_tree(
            "network",
            tmp_path,
            {"/proc/net/softnet_stat": "no hexadecimal numbers", "/proc/net/dev": "eth0: x y"},
            {},
        )
        == {}
    )
    assert of_tree("softirqs", tmp_path, {"/proc/softirqs": "CPU0\nHI: many"}, {}) == {}


def test_idle_states_are_summed_over_cpus(tmp_path):
    names = {
        f"{CPUS}/cpu{cpu}/cpuidle/state{state}/name": name
        for cpu in (0, 1)
        for state, name in ((0, "POLL"), (1, "C1E"))
    }
    counts = {
        f"{CPUS}/cpu{cpu}/cpuidle/state{state}/{what}": "100"
        for cpu in (0, 1)
        for state in (0, 1)
        for what in ("time", "usage")
    }
    columns = of_tree(
        "idle",
        tmp_path,
        names | counts,
        {f"{CPUS}/cpu0/cpuidle/state1/time": "150", f"{CPUS}/cpu1/cpuidle/state1/time": "107"},
    )
    assert columns == {
        "idle_state_POLL_us": 0,
        "idle_state_C1E_us": 57,
        "idle_state_POLL_entries": 0,
        "idle_state_C1E_entries": 0,
    }


def test_pages_of_two_nodes(tmp_path):
    def text(*counts):
        return "\n".join(
            f"{name} {count}"
            for name, count in zip(
                (
                    "numa_hit",
                    "numa_miss",
                    "numa_foreign",
                    "interleave_hit",
                    "local_node",
                    "other_node",
                ),
                counts,
            )
        )

    node = "/sys/devices/system/node/node"
    before = {
        f"{node}0/numastat": text(100, 0, 0, 0, 90, 10),
        f"{node}1/numastat": text(50, 5, 5, 0, 50, 5),
    }
    columns = of_tree("numa", tmp_path, before, {f"{node}0/numastat": text(180, 0, 0, 0, 130, 50)})
    assert columns == {
        "numastat_hit": 80,
        "numastat_miss": 0,
        "numastat_local": 40,
        "numastat_other": 40,
        "remote_page_share": 0.5,
    }


@pytest.mark.parametrize("version", [1, 2, "2, in the group of a run"])
def test_quota_of_the_processs_own_control_group(tmp_path, version):
    pid = os.getpid()
    if version != 1:
        of_run = "/noisebook-12-345-678-run-9" if version != 2 else ""
        files = {
            f"/proc/{pid}/cgroup": f"0::/box/run{of_run}",
            f"/proc/{pid}/mountinfo": (
                "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
            ),
        }
        place = "/sys/fs/cgroup/box/run/cpu.stat"
        counts = "usage_usec 1\nnr_periods {}\nnr_throttled {}\nthrottled_usec {}"
    else:
        files = {
            f"/proc/{pid}/cgroup": "4:cpu,cpuacct:/box/run\n0::/",
            f"/proc/{pid}/mountinfo": (
                "33 25 0:29 /box /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n34"
                " 25 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"
            ),
        }
        place = "/sys/fs/cgroup/cpu,cpuacct/run/cpu.stat"
        counts = "nr_periods {}\nnr_throttled {}\nthrottled_time {}"
    columns = of_tree(
        "throttling",
        tmp_path,
        files | {place: counts.format(10, 1, 100)},
        {place: counts.format(30, 6, 900)},
    )
    assert columns == {
        "cgroup_periods": 20,
        "cgroup_nr_throttled": 5,
        "cgroup_throttled_us" if version != 1 else "cgroup_throttled_ns": 800,
    }


def test_network_counters(tmp_path):
    head = (
        "Inter-|   Receive                |  Transmit\n face |bytes    packets errs drop fifo frame"
        " compressed multicast|bytes    packets errs\n"
    )
    line = "{}:{} {} {} {} 0 0 0 0 {} {} 0 0 0 0 0 0\n"
    softnet = "{:08x} {:08x} {:08x} 0 0 0 0 0 0 0 0\n"
    before = (
        head
        + line.format("  lo", 5, 1, 0, 0, 5, 1)
        + line.format("eth0", 100, 10, 0, 0, 7, 1)
        + line.format("eth1", 100, 10, 0, 0, 7, 1)
    )
    later = (
        head
        + line.format("  lo", 50, 1, 0, 0, 5, 1)
        + line.format("eth0", 300, 12, 1, 2, 7, 1)
        + line.format("eth1", 150, 11, 0, 0, 17, 2)
    )
    columns = of_tree(
        "network",
        tmp_path,
        {
            "/proc/net/dev": before,
            "/proc/net/softnet_stat": (softnet * 2).format(1, 0, 255, 1, 1, 1).strip(),
        },
        {
            "/proc/net/dev": later,
            "/proc/net/softnet_stat": (softnet * 2).format(1, 0, 256, 1, 3, 1).strip(),
        },
    )
    assert columns == {
        "net_received_bytes": 250,
        "net_received_packets": 3,
        "net_received_lost": 3,
        "net_sent_bytes": 10,
        "net_sent_packets": 1,
        "net_loopback_bytes": 45,
        "net_backlog_dropped": 2,
        "net_squeezed": 1,
    }


# Hardware events
# --------------------------------------------------------------------------------------------------


def test_counts_of_counters_that_took_turns_are_scaled_and_their_share_is_said():
    """As recorded from counters on two threads: enabled 100 and 50 ms, those of the cache on for
    half of it.
    """

    def of(name):
        return layers()["hardware"].metric_of(name)

    ms = 1_000_000
    readings = [
        (of("cycles"), 300 * ms, 100 * ms, 100 * ms),
        (of("cycles"), 100 * ms, 50 * ms, 50 * ms),
        (of("cache_misses"), 4000, 100 * ms, 50 * ms),
        (of("cache_misses"), 500, 50 * ms, 20 * ms),
    ]
    shares = {
        "hardware_running_share": "",
        "hardware_core_running_share": "core",
        "hardware_cache_running_share": "cache",
        "hardware_stall_running_share": "stall",
    }
    columns = totals(readings, shares)
    assert columns == {
        "cycles": 400 * ms,
        "cycles@enabled_ns": 150 * ms,
        "cache_misses": 9250,
        "cache_misses@enabled_ns": 150 * ms,
        "hardware_running_share": 0.4,
        "hardware_core_running_share": 1.0,
        "hardware_cache_running_share": 0.4,
    }
    assert "cycles@enabled_ns" not in totals(readings, shares, user_only=True), (
        "cycles of user mode alone give no clock"
    )
    assert totals([(of("cycles"), 0, 5, 0)], {})["cycles"] == 0, (
        "a counter that never had its turn is no division by zero"
    )


def test_ratios_of_counters():
    layer = MetricLayer(find_layer("hardware"))
    layer.armed(os.getpid())
    layer._start = {}
    layer._end = {
        "cycles": 3000,
        "cycles@enabled_ns": 1000,
        "instructions": 6000,
        "branches": 0,
        "branch_misses": 0,
        "hardware_running_share": 0.5,
    }
    columns = layer.after({})
    layer.close()
    assert (
        columns["instructions_per_cycle"] == 2
        and columns["frequency_ghz"] == 3
        and columns["hardware_running_share"] == 0.5
    )
    assert "branch_miss_share" not in columns and not any("@" in name for name in columns)


def test_names_of_events():
    """The numbers of linux/perf_event.h, worked out by hand."""
    assert (
        event_config("branch-misses") == (0, 5)
        and event_config("emulation-faults") == (1, 8)
        and event_config("r01C2") == (4, 0x1C2)
    )
    assert event_config("dTLB-load-misses") == (3, 3 | 0 << 8 | 1 << 16) and event_config(
        "LLC-stores"
    ) == (3, 2 | 1 << 8)
    with pytest.raises(OSError):
        event_config("no-such-event")


# GPUs
# --------------------------------------------------------------------------------------------------

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


# What the program says
# --------------------------------------------------------------------------------------------------


def own_layer(folder: Path, **source) -> Path:
    path = folder / "own.yml"
    path.write_text(
        yaml.safe_dump(
            {
                "layer": "own",
                "title": "what my program says",
                "sources": [{"reader": "program", **source}],
            }
        )
    )
    return path


def said_by(script: str, path: Path) -> pd.DataFrame:
    return finished(measure([sys.executable, "-c", script], runs=2, metrics=[str(path)]))


def test_values_by_a_regular_expression(tmp_path):
    path = own_layer(
        tmp_path,
        format="regex",
        metrics=[
            {
                "id": "own_hits",
                "title": "hits of my cache",
                "pattern": r"hits: (\d+)",
                "combine": "sum",
            },
            {
                "id": "own_rate",
                "title": "its rate",
                "kind": "level",
                "pattern": r"rate=(?P<value>[\d.e+-]+)",
            },
            {"id": "own_never", "title": "never printed", "pattern": "no such (.)"},
        ],
    )
    runs = said_by("print('hits: 3\\nrate=1.5e-3\\nhits: 4\\nrate=2.5e-3')", path)
    assert (
        list(runs["own_hits"]) == [7, 7]
        and list(runs["own_rate"]) == [0.0025] * 2
        and "own_never" not in runs
    )
    assert (
        describe_columns(runs).loc["own_hits", "meaning"] == "hits of my cache"
        and "own_hits_per_s" in rates(runs)
        and "own_rate_per_s" not in rates(runs)
    )


def test_values_of_json_and_csv(tmp_path):
    path = own_layer(
        tmp_path,
        format="json",
        **{"from": "errors"},
        metrics=[{"id": "own_*", "key": "gc.*", "title": "collections"}],
    )
    assert list(
        said_by(
            'import sys; print(\'{bad} {"gc": {"minor": 5, "major": {"full": 1}, "ok": true}}'
            " end', file=sys.stderr)",
            path,
        )
        .filter(like="own")
        .iloc[0]
    ) == [5, 1, 1]
    file = tmp_path / "out.csv"
    path = own_layer(
        tmp_path,
        format="csv",
        **{"from": str(file)},
        metrics=[
            {"id": "own_worst", "key": "us", "combine": "max", "title": "slowest step"},
            {"id": "own_steps", "key": "step", "combine": "count", "title": "number of steps"},
        ],
    )
    runs = said_by(f"open({str(file)!r}, 'w').write('step,us\\n1,10\\n2,30.5\\n3,20\\n')", path)
    assert list(runs["own_worst"]) == [30.5] * 2 and list(runs["own_steps"]) == [3, 3]
    assert "own_worst" not in said_by("pass", path), "the file of an earlier run is not this run's"


def test_parsers_of_what_programs_print():
    assert (
        by_pattern("a 1\na 2", r"a (\d)") == 2
        and by_pattern("x", r"a (\d)") is None
        and by_pattern("a nan", r"a (\w+)") is None
    )
    assert from_json("no") == {} and from_json('{"a": [1, {"b": 2.5}], "c": "text"} {"d": 1') == {
        "a.0": 1,
        "a.1.b": 2.5,
    }
    assert from_csv("hello\nx, y\n1,2\nbye\n3,4\n") == {"x": ["1", "3"], "y": ["2", "4"]}


@pytest.mark.parametrize(
    "metric, complaint",
    [({"pattern": "("}, "not a regular expression"), ({"key": "a"}, "has no pattern")],
)
def test_patterns_that_cannot_be_used(tmp_path, metric, complaint):
    with pytest.raises(InputError, match=complaint):
        metrics(
            own_layer(
                tmp_path, format="regex", metrics=[{"id": "own_x", "title": "what it is"} | metric]
            )
        )


# What is here
# --------------------------------------------------------------------------------------------------


def test_layers_here_reads_each_of_them():
    table = available_layers()
    assert list(table.index) == list(layers()) and {
        "available",
        "reason",
        "columns",
        "cost_us",
    } <= set(table.columns)
    assert (
        table.loc[["kernel", "interrupts", "softirqs", "state"], "available"].all()
        and table.loc["kernel", "columns"] >= 15
    )
    assert (table["reason"][~table["available"]].str.len() > 5).all(), "what is not here says why"


def test_on_an_empty_machine_every_file_is_missed_and_nothing_fails(tmp_path):
    table = available_layers(tmp_path)
    assert (
        not table.loc[["kernel", "thermal", "numa", "io"], "available"].any()
        and "/proc/stat" in table.loc["kernel", "reason"]
    )


def test_the_command_prints_readings(capsys):
    assert main(["state"]) == 0
    assert "memory_available_kb" in capsys.readouterr().out
    assert main(["stat"]) == 1
    assert "did you mean 'state'" in capsys.readouterr().err


# Tables from elsewhere
# --------------------------------------------------------------------------------------------------


def test_wide_table_with_gaps(tmp_path):
    rng = np.random.default_rng(1)
    wide = pd.DataFrame(
        rng.integers(0, 1000, (20, 3000)), columns=[f"counter {at}" for at in range(3000)]
    )
    wide.insert(0, "host", ["a", "b"] * 10)
    text = wide.astype(object)
    text.loc[3, "counter 7"], text.loc[4, "counter 7"] = "<not counted>", "NA"
    path = tmp_path / "wide.csv"
    text.to_csv(path, index=False)
    got = read_table(path)
    assert (
        got.shape == (20, 3001)
        and got["counter 8"].dtype == "int64"
        and got["counter 7"].isna().sum() == 2
    )
    assert (
        (got.drop(columns=["counter 7", "host"]) == wide.drop(columns=["counter 7", "host"]))
        .all()
        .all()
    )
    text.to_csv(tmp_path / "wide.csv.gz", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / "wide.csv.gz"), got)
    assert list(read_table(path, columns=["counter 9", "host"]).columns) == ["counter 9", "host"]
    with pytest.raises(InputError, match="did you mean 'counter 2999'"):
        read_table(path, columns=["counter2999"])


def test_parquet_and_units_beside_it(tmp_path):
    frame = pd.DataFrame({"time": [1.5, 2.5], "misses": [3, 4]})
    frame.to_parquet(tmp_path / "runs.parquet")
    (tmp_path / "runs.units.json").write_text(json.dumps({"time": "ms"}))
    got = read_table(tmp_path / "runs.parquet")
    pd.testing.assert_frame_equal(got, frame, check_flags=False)
    assert got.attrs["units"] == {"time": "ms"} and list(
        read_table(tmp_path / "runs.parquet", columns=["misses"]).columns
    ) == ["misses"]
    (tmp_path / "runs.units.json").write_text("[]")
    with pytest.raises(InputError, match="not a table of units"):
        read_table(tmp_path / "runs.parquet")


@pytest.mark.parametrize(
    "name, content, complaint",
    [
        ("a.csv", "x,y\n1,2\n3\n", "not a readable table"),
        ("a.csv", "x,x\n1,2\n", "two columns are called 'x'"),
        ("a.xlsx", "", "unknown kind"),
        ("a.parquet", "no", "not a readable parquet"),
        ("a.csv", "", "not a readable table"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path, name, content, complaint):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=complaint):
        read_table(tmp_path / name)


def test_a_metric_covers_its_family():
    family = Metric("irq_*", "of a source")
    assert family.covers("irq_LOC") and not family.covers("irq_") and not family.covers("softirq_X")
