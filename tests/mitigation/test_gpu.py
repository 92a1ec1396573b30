"""GPU settings through the real calls of NVML, against a stand-in for the library where there is no
GPU: it keeps the state of one in a file.
"""

import os
import subprocess
import sys
import textwrap
import time

import pytest

from ..gpu.why_not import why_not
from ..trees import REPOSITORY

# A stand-in for libnvidia-ml.so.1: clock cap, fan, persistence of one GPU in the file $FAKE_GPU;
# the numbers -1 mean the driver's own control.
SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
struct state {
    int cap, fan, persistence;
};
static struct state get(void) {
    struct state state = {-1, -1, 0};
    FILE *file = fopen(getenv("FAKE_GPU"), "r");
    if (file) {
        if (fscanf(file, "%d %d %d", &state.cap, &state.fan, &state.persistence) != 3)
            abort();
        fclose(file);
    }
    return state;
}
static int put(struct state state) {
    FILE *file = fopen(getenv("FAKE_GPU"), "w");
    fprintf(file, "%d %d %d", state.cap, state.fan, state.persistence);
    return fclose(file);
}
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) {
    return code == 4 ? "Insufficient Permissions" : "Not Supported";
}
int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = 1;
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned number, void **gpu) {
    *gpu = (void *)(long)(number + 1);
    return 0;
}
int nvmlDeviceGetMaxClockInfo(void *gpu, int type, unsigned *mhz) {
    (void)gpu;
    (void)type;
    *mhz = 2000;
    return 0;
}
int nvmlDeviceGetClockInfo(void *gpu, int type, unsigned *mhz) {
    (void)gpu;
    (void)type;
    int cap = get().cap;
    *mhz = cap < 0 || getenv("FAKE_FORGETS") ? 1980 : (unsigned)cap;
    if (getenv("FAKE_IDLE") || getenv("FAKE_SLOW"))
        *mhz = 345;
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *gpu, unsigned *rates) {
    (void)gpu;
    rates[0] = getenv("FAKE_IDLE") ? 0 : 97;
    rates[1] = 20;
    return 0;
}
int nvmlSystemGetCudaDriverVersion(int *version) {
    *version = getenv("FAKE_CUDA") ? atoi(getenv("FAKE_CUDA")) : 12010;
    return 0;
}
int nvmlDeviceSetGpuLockedClocks(void *gpu, unsigned low, unsigned high) {
    (void)gpu;
    (void)low;
    if (getenv("FAKE_REFUSES"))
        return 4;
    struct state state = get();
    state.cap = (int)high;
    return put(state);
}
int nvmlDeviceResetGpuLockedClocks(void *gpu) {
    (void)gpu;
    struct state state = get();
    state.cap = -1;
    return put(state);
}
int nvmlDeviceGetNumFans(void *gpu, unsigned *count) {
    (void)gpu;
    *count = getenv("FAKE_PASSIVE") ? 0 : 1;
    return 0;
}
int nvmlDeviceSetFanSpeed_v2(void *gpu, unsigned fan, unsigned speed) {
    (void)gpu;
    (void)fan;
    struct state state = get();
    state.fan = (int)speed;
    return put(state);
}
int nvmlDeviceGetTargetFanSpeed(void *gpu, unsigned fan, unsigned *speed) {
    (void)gpu;
    (void)fan;
    *speed = (unsigned)get().fan;
    return 0;
}
int nvmlDeviceGetFanSpeed_v2(void *gpu, unsigned fan, unsigned *speed) {
    (void)gpu;
    (void)fan;
    *speed = getenv("FAKE_STUCK") ? 30 : (unsigned)get().fan;
    return 0;
}
int nvmlDeviceSetDefaultFanSpeed_v2(void *gpu, unsigned fan) {
    (void)gpu;
    (void)fan;
    struct state state = get();
    state.fan = -1;
    return put(state);
}
int nvmlDeviceGetPersistenceMode(void *gpu, unsigned *mode) {
    (void)gpu;
    *mode = (unsigned)get().persistence;
    return 0;
}
int nvmlDeviceSetPersistenceMode(void *gpu, unsigned mode) {
    (void)gpu;
    struct state state = get();
    state.persistence = (int)mode;
    return put(state);
}
"""
LONG = pytest.mark.long
USER = """
#include <stdlib.h>
#include <unistd.h>
int cuInit(void);
int main(int count, char **words) { return cuInit() || usleep(1e6 * atof(words[count - 1])); }
"""
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
    (folder / "nvml.c").write_text(SOURCE)
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
            folder / "nvml.c",
        ],
        check=True,
    )
    cuda = folder / "libcuda.so.1"
    (folder / "cuda.c").write_text("int cuInit(void) { return 0; }\n")
    (folder / "program.c").write_text(USER)
    for command in (
        ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", cuda, folder / "cuda.c"],
        ["-o", folder / "user", folder / "program.c", cuda],
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
    names = ["gpu-clock-cap", "gpu-persistence", "cuda-lazy"]
    said, complaint = started(names, gpu, program="/bin/sleep").communicate(timeout=60)
    rows = [line for line in said.splitlines() if not line.startswith("during")]
    assert [row.split(": ")[0] for row in rows] == [f"mitigation not in effect {n}" for n in names]
    assert "uses no GPU" in rows[0] and "CUDA is not loaded" in rows[2], complaint


@LONG
@pytest.mark.parametrize("version, said", [(12010, "ok "), (11040, "does not read it: 11.7")])
def test_lazy_loading_needs_a_driver_that_reads_the_variable(version, said, gpu, binaries):
    out, complaint = started(["cuda-lazy"], gpu | {"FAKE_CUDA": str(version)}).communicate()
    assert said in out.splitlines()[1], out + complaint


@LONG
def test_lazy_loading_is_nothing_new_to_a_newer_driver(gpu, binaries):
    _, complaint = started(["cuda-lazy"], gpu | {"FAKE_CUDA": "12040"}).communicate()
    assert "CUDA 12.4 loads modules when needed by itself" in complaint


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


def test_without_a_gpu_make_test_gpu_says_why_in_a_line():
    if not why_not():
        pytest.skip("there is a GPU: make test-gpu proves the mitigations on it")
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "test-gpu", f"PY={sys.executable}"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"make test-gpu: skipped: {why_not()}"
