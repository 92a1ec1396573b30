"""The mark of a run in the limits of its processes, and how processes are ended.

Owns the mark: a number in RLIMIT_LOCKS, which the kernel has not used since Linux 2.4. Children
inherit it, whatever becomes of their environment, session and parent. Standard library only, as
`guardian.py` ends runs with this.
"""

import contextlib
import errno
import functools
import itertools
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from . import kernel
else:  # a script, and with -I its folder is not searched
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import kernel

_MAGIC, _PID_BITS, _START_BITS, _RUN_BITS = 0x4E, 22, 25, 8
_IN_LIMITS = b"\nMax file locks"
_numbers = itertools.count(1)


# ---- the mark ------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def _start_of(pid: int) -> int:
    return kernel.start_time(pid) or 0


def next_number() -> int:
    """The number of a further run of this process."""
    return next(_numbers)


def mark(number: int) -> int:
    """The mark of a run of this process: a number of 63 bits that names the process and the run."""
    pid = os.getpid()
    return _owner_bits(pid, _start_of(pid)) | number % (1 << _RUN_BITS)


def _owner_bits(pid: int, started: int) -> int:
    bits = (_MAGIC << _PID_BITS) | pid % (1 << _PID_BITS)
    return ((bits << _START_BITS) | started % (1 << _START_BITS)) << _RUN_BITS


def mark_of(pid: int | str) -> int:
    """The mark of a process, a zombie too; 0: it has none, or is gone."""
    try:
        handle = os.open(f"/proc/{pid}/limits", os.O_RDONLY | os.O_CLOEXEC)
        try:
            words = os.read(handle, 4096).partition(_IN_LIMITS)[2].split(None, 1)
        finally:
            os.close(handle)
    except OSError:
        return 0
    found = int(words[0]) if words and words[0].isdigit() else 0
    return found if found >> (_PID_BITS + _START_BITS + _RUN_BITS) == _MAGIC else 0


def belongs_to(found: int, pid: int, started: int) -> bool:
    """Whether a mark is of a run of that process."""
    return found >> _RUN_BITS == _owner_bits(pid, started) >> _RUN_BITS


def owner_is_dead(found: int) -> bool:
    """Whether the process that started the run of a mark is gone."""
    pid = (found >> (_RUN_BITS + _START_BITS)) % (1 << _PID_BITS)
    started = kernel.start_time(pid)
    return started is None or not belongs_to(found, pid, started)


# ---- ending processes ----------------------------------------------------------------------------


def end_marked(wanted: Callable[[int], bool], patience_s: float = kernel.BUSY_FOR_S) -> list[str]:
    """Kill the processes whose mark is wanted, until none is found; returns their names.

    Those of another pid namespace are left alone: their marks name other processes.

    Raises
    ------
    OSError
        EBUSY: some did not end.
    """
    return sorted(end(lambda: _marked(wanted), patience_s).values())


def _marked(wanted: Callable[[int], bool]) -> Iterator[int]:
    here = kernel.namespace()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        found = mark_of(pid)
        if found and wanted(found):
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{pid}/ns/pid").st_ino == here:
                    yield int(pid)


def end(find: Callable[[], Iterable[int]], patience_s: float = kernel.BUSY_FOR_S) -> dict[int, str]:
    """Kill what is found and wait for its end, until nothing living is found: a process may start
    another while we look. Those of other users are left alone.

    Returns
    -------
    dict of the name of each process that was found living.

    Raises
    ------
    OSError
        EBUSY: some did not end.
    """
    deadline = time.monotonic() + patience_s
    names: dict[int, str] = {}
    refused: set[int] = set()
    while found := set(living(find())) - refused:
        if time.monotonic() > deadline:
            raise OSError(errno.EBUSY, f"it did not end: {', '.join(map(name_of, found))}")
        names |= {pid: name_of(pid) for pid in found}
        refused |= _kill_and_wait(found, deadline)
    return names


def living(pids: Iterable[int]) -> list[int]:
    """Those that have not ended: zombies have."""
    return [pid for pid in pids if kernel.start_time(pid) is not None]


def name_of(pid: int) -> str:
    """What the kernel calls a process, or its number where it is gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return str(pid)


def _kill_and_wait(pids: Iterable[int], deadline: float) -> set[int]:
    """A pidfd shows the end of any process, not of children only, without asking again and again.

    Returns those that may not be killed.
    """
    watched: dict[int, int] = {}
    refused = set()
    try:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                watched[pid] = os.pidfd_open(pid)
                try:
                    signal.pidfd_send_signal(watched[pid], signal.SIGKILL)
                except PermissionError:
                    refused.add(pid)
        _wait((watched[pid] for pid in watched.keys() - refused), deadline)
    finally:
        for handle in watched.values():
            os.close(handle)
    return refused


def wait_for_ends(pids: Iterable[int], patience_s: float) -> None:
    """Return when all these processes have ended, or time has run out."""
    handles = []
    try:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                handles.append(os.pidfd_open(pid))
        _wait(handles, time.monotonic() + patience_s)
    finally:
        for handle in handles:
            os.close(handle)


def _wait(handles: Iterable[int], deadline: float) -> None:
    for handle in handles:
        watch = select.poll()
        watch.register(handle, select.POLLIN)
        watch.poll(max(0.0, deadline - time.monotonic()) * 1e3)
