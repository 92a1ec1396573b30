"""GPU settings through the real calls of NVML, against a stand-in for the library where there is no
GPU: it keeps the state of one in a file.
"""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LONG = pytest.mark.long
RUN = """
    import os, sys
    from nbhelpers.measurement import Attachment, run_once
    from nbhelpers.mitigation import treat_workload
    from nbhelpers.workloads import program
    class Told(Attachment):
        def released(self, t0_ns):
            print("during", open(os.environ["FAKE_GPU"]).read(), flush=True)
    for name in NAMES:
        workload, attachments = treat_workload(name, program(["PROGRAM", "SECONDS"]))
        row = run_once(workload, (*attachments, Told()))
        print(row["status"], row["message"], flush=True)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nvml")
    subprocess.run(
        [
            "gcc",
            "-shared",
            "-fPIC",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
            folder / "libnvidia-ml.so.1",
            HERE / "settings.c",
        ],
        check=True,
    )
    cuda = folder / "libcuda.so.1"
    for command in (
        ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", cuda, HERE / "cuda.c"],
        ["-o", folder / "user", HERE / "uses_cuda.c", cuda],
    ):
        subprocess.run(["gcc", *command], check=True)
    return folder


@pytest.fixture
def gpu(library, tmp_path):
    (tmp_path / "gpu").write_text("-1 -1 0")
    return os.environ | {"LD_LIBRARY_PATH": str(library), "FAKE_GPU": str(tmp_path / "gpu")}


def started(
    names: list[str], env: dict, seconds: float = 0.05, program: str = "user"
) -> subprocess.Popen:
    path = f"{env['LD_LIBRARY_PATH']}/user" if program == "user" else program
    code = textwrap.dedent(RUN).replace("NAMES", repr(names)).replace("SECONDS", str(seconds))
    code = code.replace("PROGRAM", path)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def state(env: dict) -> str:
    return open(env["FAKE_GPU"]).read()


def test_is_set_during_the_run_verified_and_reset(gpu, binaries):
    said, complaint = started(["gpu-clock-cap", "gpu-fan", "gpu-persistence"], gpu).communicate(
        timeout=60
    )
    assert said.splitlines() == [
        "during 1600 -1 0",
        "ok ",
        "during -1 90 0",
        "ok ",
        "during -1 -1 1",
        "ok ",
    ], complaint
    assert state(gpu) == "-1 -1 0"


def test_is_reset_after_a_sigkill(gpu, binaries):
    child = started(["gpu-clock-cap"], gpu, 30)
    assert child.stdout.readline() == "during 1600 -1 0\n", child.stderr.read()
    child.kill()
    child.communicate()
    until = time.monotonic() + 20
    while state(gpu) != "-1 -1 0" and time.monotonic() < until:
        time.sleep(0.05)
    assert state(gpu) == "-1 -1 0"


@pytest.mark.parametrize(
    "variable, status",
    [
        ("FAKE_IDLE", "mitigation not proven gpu-clock-cap: GPU 0 is idle"),
        pytest.param(
            "FAKE_SLOW", "mitigation not proven gpu-clock-cap: GPU 0 runs at 345", marks=LONG
        ),
        pytest.param(
            "FAKE_FORGETS", "mitigation not in effect gpu-clock-cap: GPU 0 runs at", marks=LONG
        ),
    ],
)
def test_an_idle_gpu_shows_no_cap_and_one_above_it_none(variable, status, gpu, binaries):
    said, complaint = started(["gpu-clock-cap"], gpu | {variable: "1"}).communicate(timeout=60)
    assert said.splitlines()[1].startswith(status), said + complaint
    assert state(gpu) == "-1 -1 0"


def test_a_program_that_uses_no_gpu_is_not_counted(gpu, binaries):
    names = ["gpu-clock-cap", "gpu-persistence"]
    said, complaint = started(names, gpu, program="/bin/sleep").communicate(timeout=60)
    rows = [line for line in said.splitlines() if not line.startswith("during")]
    assert [row.split(": ")[0] for row in rows] == [f"mitigation not in effect {n}" for n in names]
    assert "uses no GPU" in rows[0], complaint


@pytest.mark.long
def test_a_fan_that_does_not_turn_is_not_counted(gpu, binaries):
    said, complaint = started(["gpu-fan"], gpu | {"FAKE_STUCK": "1"}).communicate(timeout=60)
    assert "a fan of GPU 0 runs at 30 %, not at 90 % yet" in said, complaint


@pytest.mark.long
@pytest.mark.parametrize(
    "name, variable, complaint",
    [
        ("gpu-clock-cap", "FAKE_REFUSES", "Insufficient Permissions"),
        ("gpu-fan", "FAKE_PASSIVE", "has no fan"),
    ],
)
def test_what_the_driver_refuses_is_told(name, variable, complaint, gpu, binaries):
    _, said = started([name], gpu | {variable: "1"}).communicate(timeout=60)
    assert "SettingError" in said and complaint in said and state(gpu) == "-1 -1 0"
