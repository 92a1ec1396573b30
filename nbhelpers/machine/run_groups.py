"""What holds the processes of a run together: a control group of version 2, where one can be made.

Owns making, ending and removing such a group.
"""

import contextlib
import errno
import functools
import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator

from . import kernel

KILL = "cgroup.kill"  # Linux 5.14
MOMENT_S = 0.1  # in which the children of a process that was killed close their files


@functools.lru_cache(maxsize=1)
def _base(pid: int) -> str:
    """Below the group of this process: there a run is scheduled as without a group, since no
    controller is handed on to it.
    """
    with open("/proc/self/cgroup") as file:
        own = [line[3:-1] for line in file if line.startswith("0::")]
    with open("/proc/self/mountinfo") as file:
        mounts = [line.split() for line in file]
    for words in mounts:
        if own and words[words.index("-") + 1] == "cgroup2" and own[0].startswith(words[3]):
            place = kernel.unescaped(words[4]) + "/" + os.path.relpath(own[0], words[3])
            if _takes_groups(os.path.normpath(place)):
                return os.path.normpath(place)
    return ""


def _takes_groups(folder: str) -> bool:
    """Whether we may make a group there, and move a process from ours into it; a group of threads
    takes none. The top has no type.
    """
    if not all(os.access(path, os.W_OK) for path in (folder, f"{folder}/cgroup.procs")):
        return False
    kind = f"{folder}/cgroup.type"
    return not os.path.exists(kind) or kernel.read_value(kind) == "domain"


def base() -> str:
    """The folder in which groups for runs are made; empty: none can be."""
    return _base(os.getpid())


def path(suffix: str) -> str:
    """Where a group for runs of this process is to be made; empty: there can be none."""
    return f"{base()}/{kernel.owned_name(suffix)}" if base() else ""


@contextlib.contextmanager
def group(suffix: str) -> Iterator[str]:
    """A group within the block, or "" where there can be none; its processes end with it."""
    place = path(suffix)
    try:
        if place:
            os.mkdir(place)
    except OSError:
        place = ""
    try:
        yield place
    finally:
        if place:
            with contextlib.suppress(OSError):  # what cannot be ended is left to `settings.repair`
                end_group(place)
                remove(place)


def is_group(path: str) -> bool:
    """Whether a folder is a control group, of either version."""
    return os.path.exists(f"{path}/cgroup.procs")


def members(path: str) -> list[int]:
    """The living processes in a group and in those below it."""
    pids: list[int] = []
    for folder, _, _ in os.walk(path):
        with kernel.passing_over(), open(f"{folder}/cgroup.procs") as file:
            pids += map(int, file.read().split())
    return living(pids)


def end_group(path: str, patience_s: float = kernel.BUSY_FOR_S) -> list[str]:
    """Kill all processes of a group and of those below it; returns their names.

    At one stroke by `cgroup.kill`; before Linux 5.14, and in version 1, one by one, until none is
    left.

    Raises
    ------
    OSError
        EBUSY: some did not end.
    """
    names = {pid: name_of(pid) for pid in members(path)}
    if not names:
        return []
    if os.path.exists(f"{path}/{KILL}"):
        kernel.write_value(f"{path}/{KILL}", "1")
    return sorted((names | end(lambda: members(path), patience_s)).values())


def remove(path: str) -> None:
    """Remove a group without processes, and those below it; it may be gone.

    A process that was killed may hold it for a moment after it counts as dead.

    Raises
    ------
    OSError
        A process came in meanwhile.
    """
    for folder, _, _ in os.walk(path, topdown=False):
        kernel.patiently(functools.partial(os.rmdir, folder), MOMENT_S)


# ---- ending processes ----------------------------------------------------------------------------


def end(find: Callable[[], Iterable[int]], patience_s: float = kernel.BUSY_FOR_S) -> dict[int, str]:
    """Kill what is found and wait for its end, until nothing living is found: a process may start
    another while we look. Returns the name of each process that was found living.

    Raises
    ------
    OSError
        EBUSY: some did not end. EPERM: one is another user's.
    """
    deadline = time.monotonic() + patience_s
    names: dict[int, str] = {}
    while found := living(find()):
        if time.monotonic() > deadline:
            raise OSError(errno.EBUSY, f"it did not end: {', '.join(map(name_of, found))}")
        names |= {pid: name_of(pid) for pid in found}
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for_ends(found, deadline - time.monotonic())
    return names


def wait_for_ends(pids: Iterable[int], patience_s: float) -> None:
    """Return when all these processes have ended, or time has run out.

    A pidfd shows the end of any process, not of children only, without asking again and again.
    """
    deadline = time.monotonic() + patience_s
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                watch = select.poll()
                watch.register(handle, select.POLLIN)
                watch.poll(max(0.0, deadline - time.monotonic()) * 1e3)
            finally:
                os.close(handle)


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
