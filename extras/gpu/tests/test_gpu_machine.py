"""On a machine with a GPU of NVIDIA: its metrics while it works, against
nvidia-smi; each mitigation proven under load and not without; the clock's lock undone.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from noisebook_gpu.readings import GpuReadings
from noisebook_gpu.why_not import why_not

from nbhelpers.errors import SettingError
from nbhelpers.measurement import metrics, run_once
from nbhelpers.mitigation import Treatment, mitigations, treat_workload
from nbhelpers.mitigation.treatment import NOT_IN_EFFECT, NOT_PROVEN
from nbhelpers.workloads import Workload, program
from tests.mitigation.programs import Looking

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())
LOAD = Path(__file__).with_name("load.py")
SECONDS = 4.0  # NVML's utilisation is a mean over up to a second


def load(seconds: float = SECONDS) -> Workload:
    return program([sys.executable, "-S", str(LOAD), str(seconds)])


def measured(workload: Workload) -> dict:
    layers = metrics("gpu")
    row = run_once(workload, layers)
    for layer in layers:
        layer.close()
    return row


@pytest.fixture(scope="module")
def busy():
    return measured(load())


@pytest.fixture(scope="module")
def idle():
    return measured(program(["sleep", str(SECONDS)]))


def test_a_busy_gpu_is_seen_busy_and_an_idle_one_idle(busy, idle):
    assert busy["status"] == idle["status"] == "ok", busy["message"]
    assert busy["gpu_utilisation_share"] > 0.5 > idle["gpu_utilisation_share"]
    assert busy["gpu_power_mean_w"] > idle["gpu_power_mean_w"]
    assert busy["gpu_energy_j"] == pytest.approx(
        busy["gpu_power_mean_w"] * busy["wall_seconds"], rel=0.3
    )


@pytest.mark.skipif(not shutil.which("nvidia-smi"), reason="nvidia-smi is not here")
def test_readings_are_those_of_nvidia_smi():
    names = "temperature.gpu,memory.used,clocks.max.sm"
    command = ["nvidia-smi", f"--query-gpu={names}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    gpus = GpuReadings()
    try:
        for device, line in zip(gpus.devices, done.stdout.splitlines(), strict=True):
            temperature, used, clock = (float(text) for text in line.split(","))
            now = gpus.now(device)
            assert now["temperature_c"] == pytest.approx(temperature, abs=3)
            assert now["memory_used_mb"] == pytest.approx(used, abs=600)
            assert now["clock_mhz"] <= clock
    finally:
        gpus.close()


def allowed(name: str) -> None:
    """Skip where this machine's driver, or this user, may not do it."""
    if not (answer := mitigations()[name].possible(load())):
        pytest.skip(f"{name}: {answer.reason}")


@pytest.mark.parametrize("name", ["gpu-clock-cap", "gpu-fan", "gpu-persistence"])
def test_a_mitigation_is_proven_under_load(name):
    allowed(name)
    try:
        row = run_once(*treat_workload(name, load()))
    except SettingError as error:
        pytest.skip(f"{name}: {error.what}")
    assert row["status"] == "ok", row["message"]


@pytest.mark.parametrize("name", ["gpu-clock-cap", "gpu-fan", "gpu-persistence"])
def test_a_program_that_uses_no_gpu_is_not_counted(name):
    allowed(name)
    try:
        row = run_once(*treat_workload(name, program("sleep 1")))
    except SettingError as error:
        pytest.skip(f"{name}: {error.what}")
    assert row["status"] in (NOT_IN_EFFECT, NOT_PROVEN), row["message"]


def test_a_busy_gpu_without_the_cap_is_above_it_and_a_lock_is_undone():
    """The proof alone, on the same load: a GPU that boosts is above 80 % of its highest clock."""
    allowed("gpu-clock-cap")
    actions = [Looking(action) for action in mitigations()["gpu-clock-cap"].actions]
    try:
        run_once(*treat_workload("gpu-clock-cap", load()))
    except SettingError as error:
        pytest.skip(error.what)
    time.sleep(1)
    row = run_once(load(), (Treatment("gpu-clock-cap", actions),))
    assert row["status"] == NOT_IN_EFFECT and "above" in row["message"], row["message"]
