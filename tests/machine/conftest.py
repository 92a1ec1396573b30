"""Recorded machines, written by hand after real ones, and processes of our own to kill."""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nbhelpers.machine import privileged

from ..trees import write_tree

REPOSITORY = Path(__file__).parents[2]
NOBODY = 65534


def cpu_files(
    layout: dict[int, tuple[int, int, int]],
    governor: str | None = None,
    driver: str = "intel_cpufreq",
) -> dict[str, str]:
    """sysfs files of CPUs, given as cpu: (package, core_id, node)."""
    files = {"/sys/devices/system/cpu/online": ",".join(map(str, sorted(layout)))}
    nodes: dict[int, list[int]] = {}
    for cpu, (package, core, node) in layout.items():
        folder = f"/sys/devices/system/cpu/cpu{cpu}"
        mates = [other for other, place in sorted(layout.items()) if place[:2] == (package, core)]
        files[f"{folder}/topology/core_id"] = str(core)
        files[f"{folder}/topology/physical_package_id"] = str(package)
        files[f"{folder}/topology/core_cpus_list"] = ",".join(map(str, mates))
        if governor:
            files[f"{folder}/cpufreq/scaling_governor"] = governor
            files[f"{folder}/cpufreq/scaling_driver"] = driver
        nodes.setdefault(node, []).append(cpu)
    return files | {
        f"/sys/devices/system/node/node{node}/cpulist": ",".join(map(str, cpus))
        for node, cpus in nodes.items()
    }


SERVER = cpu_files(
    {cpu: (cpu // 8 % 2, cpu % 8, cpu // 8 % 2) for cpu in range(32)}, governor="performance"
) | {
    "/proc/cpuinfo": (
        "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold 6134 CPU @ 3.20GHz\nflags\t\t: fpu vme"
        " ht constant_tsc"
    ),
    "/proc/meminfo": "MemTotal:       196608000 kB\nMemFree: 1 kB",
    "/proc/sys/kernel/osrelease": "6.8.0-45-generic",
    "/proc/sys/kernel/version": "#45-Ubuntu SMP PREEMPT_DYNAMIC Fri Aug 30 12:02:04 UTC 2024",
    "/boot/config-6.8.0-45-generic": (
        "CONFIG_HZ_250=y\nCONFIG_HZ=250\n# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_VOLUNTARY=y"
    ),
    "/proc/cmdline": (
        "BOOT_IMAGE=/vmlinuz root=UUID=1-2-3 ro nohz_full=1-7 isolcpus=domain,1-7 quiet"
        " mitigations=off -- nosmt"
    ),
    "/proc/self/status": "Name:\tpython\nCapEff:\t000001ffffffffff",
    "/proc/filesystems": "nodev\ttracefs\nnodev\tdebugfs\n\text4",
    "/proc/stat": "cpu  100 0 100 9800 0 0 0 0 0 0\ncpu0 1 0 1 98 0 0 0 0 0 0",
    "/proc/sys/kernel/sched_rt_runtime_us": "950000",
    "/sys/class/dmi/id/sys_vendor": "Dell Inc.",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    "/sys/devices/system/cpu/smt/active": "1",
    "/sys/devices/system/cpu/smt/control": "on",
    "/sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "/sys/kernel/tracing/available_tracers": (
        "timerlat osnoise hwlat blk function_graph function nop"
    ),
    "/sys/kernel/tracing/instances/.keep": "",
}

LAPTOP = cpu_files(
    {cpu: (0, cpu // 2 * 4, 0) for cpu in range(4)}, governor="powersave", driver="intel_pstate"
) | {
    "/proc/cpuinfo": (
        "processor\t: 0\nmodel name\t: Intel(R) Core(TM) i5-8250U CPU @ 1.60GHz\nflags\t\t: fpu"
        " vme ht"
    ),
    "/proc/meminfo": "MemTotal:        8000000 kB",
    "/proc/sys/kernel/osrelease": "6.12.9-arch1-1",
    "/proc/sys/kernel/version": "#1 SMP PREEMPT_RT Tue Jan 7",
    "/proc/cmdline": "root=/dev/sda1 quiet",
    "/proc/self/status": "Name:\tpython\nCapEff:\t0000000000000000",
    "/proc/filesystems": "nodev\ttracefs",
    "/proc/stat": "cpu  100 0 100 9800 0 0 0 0 0 0",
    "/proc/sys/kernel/sched_rt_runtime_us": "-1",
    "/sys/devices/system/cpu/smt/active": "1",
    "/sys/devices/system/cpu/smt/control": "on",
}


@pytest.fixture
def server(tmp_path):
    """Bare metal, two sockets of eight cores with SMT, the osnoise tracer, root."""
    return write_tree(tmp_path / "server", SERVER)


@pytest.fixture
def laptop(tmp_path):
    """A laptop with SMT and a new kernel, seen by a user without privilege."""
    return write_tree(tmp_path / "laptop", LAPTOP)


@pytest.fixture
def state(tmp_path, monkeypatch):
    """A state folder of the test's own, for this process and those it starts."""
    folder = tmp_path / "state"
    monkeypatch.setenv("NOISEBOOK_STATE", str(folder))
    return folder


@pytest.fixture
def python():
    """Start Python on a program text in a session of its own; what is left of it at the end is
    killed.
    """
    started = []

    def start(text: str, *arguments: object) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", text, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def eventually(condition, seconds: float = 20.0) -> bool:
    """Whether a condition comes true; the limit only ends a test that has failed."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(condition())


def as_nobody(action: Callable[[], object]) -> object:
    """What an action returns in a process of the user nobody, whose parent is this one."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            # as after an execution: /proc/PID belongs to the user again
            ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
            privileged._helper.cache_clear()
            answer = json.dumps(action()).encode()
        except BaseException as error:
            answer = json.dumps(f"{type(error).__name__}: {error}").encode()
        os.write(writer, answer)
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text)


@contextlib.contextmanager
def reached_by_all(mode: int) -> Iterator[Path]:
    """A folder that every user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="noisebook-test-", dir="/var/tmp"))
    folder.chmod(mode)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def open_folder():
    """A folder like /tmp."""
    with reached_by_all(0o1777) as folder:
        yield folder


@pytest.fixture
def knob(tmp_path):
    """A file that stands for a setting."""
    path = tmp_path / "knob"
    path.write_text("old\n")
    return path


def switches(pid: int) -> list[str]:
    """How often the threads of a process have been switched, as the kernel words it."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    texts = [(thread / "status").read_text() for thread in threads]
    return [line for text in texts for line in text.splitlines() if "ctxt_switches" in line]


def sleeps(pid: int, threads: int = 1, seconds: float = 0.7) -> bool:
    """Whether a process sleeps without waking up, as soon as it is on its way no more."""

    def quiet() -> bool:
        before = switches(pid)
        time.sleep(seconds)
        return len(before) == 2 * threads and switches(pid) == before

    return eventually(quiet)


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
