"""GPU settings through the real calls of NVML, against a stand-in for the library where there is no
GPU: it keeps the state of one in a file.
"""

import os
import subprocess
import sys
import textwrap
import time

import pytest

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
    *mhz = cap < 0 ? 1980 : (unsigned)cap;
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
RUN = """
    import os, sys
    from nbhelpers.measurement import Attachment, run_once
    from nbhelpers.mitigation import treat_workload
    from nbhelpers.workloads import program
    class Told(Attachment):
        def released(self, t0_ns):
            print("during", open(os.environ["FAKE_GPU"]).read(), flush=True)
    for name in NAMES:
        workload, attachments = treat_workload(name, program("sleep SECONDS"))
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
    return folder


@pytest.fixture
def gpu(library, tmp_path):
    (tmp_path / "gpu").write_text("-1 -1 0")
    return os.environ | {"LD_LIBRARY_PATH": str(library), "FAKE_GPU": str(tmp_path / "gpu")}


def started(names: list[str], env: dict, seconds: float = 0.05) -> subprocess.Popen:
    code = textwrap.dedent(RUN).replace("NAMES", repr(names)).replace("SECONDS", str(seconds))
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
