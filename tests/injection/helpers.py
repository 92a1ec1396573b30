"""Configs and tables for the tests, what runs without privilege, and what is left of processes."""

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.injection.injector import THROTTLING
from nbhelpers.machine import guardian, kernel, state_folder
from nbhelpers.noise import NoiseConfig

from ..processes import REPOSITORY, run_python

CPU_COUNT = os.cpu_count()


def table_of(names: str, rows: list[tuple], unit_ns: float) -> pd.DataFrame:
    """Rows as a table with columns of these names; those that end in _ns are given in `unit_ns`."""
    table = pd.DataFrame(rows, columns=names.split())
    times = [name for name in table if name.endswith("_ns")]
    table[times] = (table[times] * unit_ns).round().astype(np.int64)
    return table


def make_config(rows: list[tuple]) -> NoiseConfig:
    """Rows (cpu, kind, start_ms, duration_ms[, policy, priority])."""
    names = ["cpu", "kind", "start_ns", "duration_ns", "policy", "priority"][: len(rows[0])]
    events = pd.DataFrame(rows, columns=names).assign(run=0)
    events["source"] = "test"
    for column in ("start_ns", "duration_ns"):
        events[column] = (events[column] * 1e6).round().astype(np.int64)
    return NoiseConfig.from_events(events)


def mixed_config(seed: int, count: int = 60, cpus=range(CPU_COUNT)) -> NoiseConfig:
    """`count` events on each CPU, in turn irq, thread and softirq, 10 to 400 us long, over about 1
    ms an event.
    """
    random = np.random.default_rng(seed)
    rows = []
    for cpu in cpus:
        starts = np.cumsum(random.uniform(0.5, 1.5, count))
        rows += [
            (cpu, ("irq", "thread", "softirq")[i % 3], start, random.uniform(0.01, 0.4))
            for i, start in enumerate(starts)
        ]
    return make_config(rows)


def state(pid: int) -> str:
    """R, S, Z, ... of a process; empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def gone_within(pids, seconds: float) -> bool:
    """Whether none of the processes runs any more (a zombie that nobody has reaped yet does not
    run).
    """
    limit = time.monotonic() + seconds
    while any(state(pid) not in ("", "Z") for pid in pids):
        if time.monotonic() > limit:
            return False
        time.sleep(0.01)
    return True


def run_unprivileged(code: str) -> subprocess.CompletedProcess:
    """Python on a program text that may not use real-time priorities.

    PR_CAPBSET_DROP of CAP_SYS_NICE, where this is root; another user has it not.
    """
    drop = (
        "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, 23); os.execv(sys.executable,"
        " [sys.executable, *sys.argv[1:]])"
    )
    return run_python(
        drop,
        "-c",
        code,
        cwd=REPOSITORY,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0)),
    )


def owner_and_pids(program: str, *arguments: str) -> tuple[subprocess.Popen, list[int]]:
    """A Python program that injects, and what it prints: the pids of its injector."""
    command = [sys.executable, "-c", program, *arguments]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    with owner.stdout as output:
        line = output.readline()
    assert line, "the owner did not start"
    return owner, json.loads(line)


def build_with_injector(main: Path, program: Path) -> None:
    """Compile a C program of the tests with the C core."""
    compiler, core = shutil.which(os.environ.get("CC", "cc")), REPOSITORY / "injector_c"
    if not compiler:
        pytest.skip("no C compiler")
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{core}"]
    sources = sorted(core.glob("[!_]*.c"))
    subprocess.run([compiler, *flags, "-o", program, main, *sources, "-lm"], check=True)


def descriptors() -> dict[str, str]:
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            pass  # the one that listdir used
    return found


def lifted() -> bool:
    """Whether real-time throttling is off."""
    with open(THROTTLING) as file:
        return file.read().strip() == "-1"


def put_back(seconds: float = 0) -> bool:
    """Whether real-time throttling is as it was for those who do not inject, or is so within a
    time; others may have lifted it meanwhile.
    """
    limit = time.monotonic() + seconds
    while lifted() and not (LIFTED_FOR_GOOD or lifted_by_others()):
        if time.monotonic() > limit:
            return False
        time.sleep(0.01)
    return True


def lifted_by_others() -> bool:
    """Whether another process on this machine injects now and has lifted real-time throttling: it
    puts it back, not we.
    """
    held = []
    for path in guardian.journals(str(state_folder())):
        with contextlib.suppress(OSError, ValueError):
            journal = guardian.read_journal(path)
            held += [journal] * (
                journal["pid"] != os.getpid()
                and any(change["path"] == THROTTLING for change in journal["changes"])
            )
    return any(map(kernel.alive, held))


LIFTED_FOR_GOOD = lifted() and not lifted_by_others()
