"""Processes that a run leaves behind: found by the marks in their environment and in their limits,
killed and reaped.

Owns being the parent of orphans, and that SIGTERM ends this process only after the cleaning up.
"""

import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..machine import run_marks

MARK = "NOISEBOOK_RUN"
_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37
_libc = ctypes.CDLL(None, use_errno=True)


def children() -> frozenset[int]:
    """The children of this process, zombies among them; none where the kernel does not list them
    (CONFIG_PROC_CHILDREN).
    """
    try:  # without any, which one call says, there is nothing to list
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return frozenset()
    found: set[int] = set()
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):
            found.update(map(int, _content(f"/proc/self/task/{thread}/children").split()))
    return frozenset(found)


def _content(path: str) -> bytes:
    """A small file of the kernel, without the buffers and decoders of open(), which cost more than
    the reading.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(fd, 1 << 16), b""))
    finally:
        os.close(fd)


def kill_and_reap(pid: int) -> bool:
    """False: it belongs to another user (sudo) and cannot be killed, so it must not be waited for
    either.
    """
    with suppress(ProcessLookupError, ChildProcessError):
        try:
            os.kill(pid, signal.SIGKILL)
        except PermissionError:
            return False
        os.waitpid(pid, 0)
    return True


def belongs_to_run(pid: int, leader: int, mark: str, number: int) -> bool:
    """Whether an adopted child comes from a run: by its group, a mark, or, dead and with no mark to
    read, its foreign session.

    `mark` is that of the environment, `number` that of the limits.
    """
    try:
        with open(f"/proc/{pid}/stat") as file:
            state, _, group, session = file.read().rpartition(")")[2].split()[:4]
    except OSError:
        return False
    return (
        int(group) == leader
        or _is_in_run(pid, mark, number)
        or (state == "Z" and int(session) != os.getsid(0))
    )


def _is_in_run(pid: int | str, mark: str, number: int) -> bool:
    """A run within the run marks its processes anew; when its harness is dead, they are ours."""
    found = run_marks.mark_of(pid)
    if found and (found == number or run_marks.owner_is_dead(found)):
        return True
    return _is_marked(pid, mark, exact=True)


def find_run(mark: str, number: int) -> list[int]:
    """All processes that carry a mark of the run."""
    return [
        int(pid)
        for pid in os.listdir("/proc")
        if pid.isdigit() and (run_marks.mark_of(pid) == number or _is_marked(pid, mark, exact=True))
    ]


def _is_marked(pid: int | str, mark: str, exact: bool) -> bool:
    wanted = f"\0{MARK}={mark}".encode() + (b"\0" if exact else b"")
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return wanted in b"\0" + file.read() + b"\0"
    except OSError:
        return False


def kill_marked(mark: str) -> set[int]:
    """Kill every process that carries the mark of a campaign's runs in its environment; returns
    their pids.
    """
    killed: set[int] = set()
    for _ in range(20):
        living = {
            int(pid)
            for pid in os.listdir("/proc")
            if pid.isdigit() and _is_marked(pid, mark, exact=False)
        } - killed
        for pid in living:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= living
        if not living:
            break
    return killed


@contextmanager
def as_subreaper() -> Iterator[None]:
    """Orphans of a run become children of this process (prctl(2)), so that they can be found; what
    was set before is put back.
    """
    before = ctypes.c_int(0)
    _libc.prctl(_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        _libc.prctl(_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


class _Terminated(BaseException):
    """SIGTERM, on its way through the blocks that clean up."""


@contextmanager
def cleaned_up_on_sigterm() -> Iterator[None]:
    """SIGTERM unwinds the stack, so that everything is cleaned up, and then ends this process as it
    would have.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def unwind(*_):
        raise _Terminated

    signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
