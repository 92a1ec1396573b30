"""What a wait for the measuring lock says: who holds it, what for, since when; after a change, and
across users.
"""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nbhelpers.machine import _holders, lock
from nbhelpers.progress import reporting

from .conftest import REPOSITORY, as_root, eventually
from .test_lock import HOLDER, holder, outside  # noqa: F401  (a fixture)

WAITER = """
import os, sys, time
from nbhelpers.machine import lock
from nbhelpers.progress import reporting
if sys.argv[1:]:
    import pathlib
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    lock.lock_path = lambda: pathlib.Path(sys.argv[1])
class Said:
    after_s = 2.0
    def show(self, line, urgent=False): print(f"{time.monotonic():.3f} {line}", flush=True)
    def end(self, line): print("over", flush=True)
with reporting(Said()), lock.measuring(doing="the waiter"): pass
"""


def test_the_wait_names_the_holder_at_once_and_then_the_next(holder, python):  # noqa: F811
    """Three processes: the second gets the lock from the first while the third waits."""
    first = holder()
    second = python(HOLDER % "pass", "shared")
    third = python(WAITER)
    line = third.stdout.readline()
    assert (
        f"waiting: the machine is in use by process {first.pid} (30_injection)" in line
        and " since " in line
    )
    assert time.monotonic() - float(line.split()[0]) < 2
    assert eventually(lambda: _waits(third.pid))
    third.send_signal(signal.SIGSTOP)  # of two that wait the kernel lets any go first
    # a signal that is only sent would let it take the lock first, and stop with it
    os.waitid(os.P_PID, third.pid, os.WSTOPPED)
    first.stdin.close()
    assert second.stdout.readline() == "held\n"
    third.send_signal(signal.SIGCONT)
    line = third.stdout.readline()
    assert f"in use by process {second.pid} (30_injection)" in line
    assert time.monotonic() - float(line.split()[0]) < 2
    second.stdin.close()
    assert third.stdout.readline() == "over\n"
    assert third.wait(timeout=30) == 0


def test_a_wait_sleeps(holder, python):  # noqa: F811
    """A waiter that asked again and again would disturb the run that it waits for."""
    holder()
    waiting = python(WAITER)
    assert "waiting" in waiting.stdout.readline()
    time.sleep(0.3)
    before = _switches(waiting.pid)
    time.sleep(1.5)
    assert _switches(waiting.pid) == before


def _waits(pid: int) -> bool:
    """Whether the kernel's list of locks has a process among those who wait."""
    rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return any(row[1] == "->" and row[5] == str(pid) for row in rows)


def _switches(pid: int) -> int:
    threads = Path(f"/proc/{pid}/task").iterdir()
    rows = [
        line
        for thread in threads
        for line in (thread / "status").read_text().splitlines()
        if "ctxt_switches" in line
    ]
    return sum(int(row.split()[1]) for row in rows)


def test_several_analyses_are_counted(holder, python):  # noqa: F811
    first, second = holder("shared"), holder("shared")
    waiting = python(WAITER)
    line = waiting.stdout.readline()
    assert f"process {second.pid} (30_injection)" in line and "and 1 more" in line
    for process in (first, second):
        process.stdin.close()
    assert waiting.wait(timeout=30) == 0


@as_root
def test_another_user_is_told_who_holds_it_even_where_nobody_could_sign(tmp_path, monkeypatch):
    """root holds a file that nobody may only read: its name comes from the kernel's list."""
    path = tmp_path / "common" / "noisebook-measuring.lock"
    path.parent.mkdir()
    for parent in (tmp_path, *tmp_path.parents[:3]):
        parent.chmod(parent.stat().st_mode | 0o011)
    path.parent.chmod(0o755)
    path.write_text("process 1 (an older one) since 00:01\n")
    path.chmod(0o644)
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = subprocess.Popen(
            [sys.executable, "-c", WAITER, str(path)],
            stdout=subprocess.PIPE,
            text=True,
            env=outside() | {"PYTHONPATH": str(REPOSITORY)},
            cwd="/",
        )
        line = waiting.stdout.readline()
        assert f"process {os.getpid()} (" in line and "of root" in line and "older" not in line
    assert waiting.stdout.readline() == "over\n" and waiting.wait(timeout=30) == 0


def test_a_kernels_list_of_locks_is_read(tmp_path):
    """As Linux 6.1 prints it: holders of this file and of another, one who waits, one from another
    PID namespace.
    """
    path = tmp_path / "lock"
    path.write_text("process 700 (stage 30-injection) of root since 10:41\n")
    file = path.stat()
    place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    (tmp_path / "locks").write_text(
        f"1: POSIX  ADVISORY  WRITE 600 {place} 0 EOF\n2: FLOCK  ADVISORY  WRITE 700 {place} 0"
        f" EOF\n2: -> FLOCK  ADVISORY  WRITE 701 {place} 0 EOF\n3: FLOCK  ADVISORY  WRITE 800"
        f" fe:00:1 0 EOF\n4: FLOCK  ADVISORY  READ 0 {place} 0 EOF\n"
    )
    with open(path) as handle:
        assert (
            _holders.holder(handle.fileno(), tmp_path)
            == "process 700 (stage 30-injection) of root since 10:41"
        )
        path.write_text("process 699 (an older one) since 10:02\n")
        (tmp_path / "700").mkdir()
        (tmp_path / "700/cmdline").write_bytes(b"python\0-m\0nbhelpers.stages\0")
        assert _holders.holder(handle.fileno(), tmp_path).startswith(
            "process 700 (python -m nbhelpers.stages) of "
        )
        (tmp_path / "locks").write_text("")
        assert (
            _holders.holder(handle.fileno(), tmp_path) == "process 699 (an older one) since 10:02"
        )


@pytest.mark.usefixtures("state")
def test_an_own_callback_is_still_called_once(holder):  # noqa: F811
    process, told = holder(), []

    def end_the_holder(message: str) -> None:
        told.append(message)
        process.stdin.close()

    with reporting(None), lock.measuring(on_wait=end_the_holder):
        pass
    assert len(told) == 1 and f"process {process.pid} (30_injection)" in told[0]
