"""What holds the processes of a run together: a control group of version 2, where one can be made.

Owns making, ending and removing a run's group, and the end of all runs of a process. Standard
library only, as `guardian.py` ends runs with this.
"""

import contextlib
import errno
import functools
import os
import select
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from . import kernel
    from .run_marks import belongs_to, end, end_marked, living, name_of
else:  # a script, and with -I its folder is not searched
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import kernel
    from run_marks import belongs_to, end, end_marked, living, name_of

KILL = "cgroup.kill"  # Linux 5.14
MOST_PROCESSES = 32768


# ---- control groups ------------------------------------------------------------------------------


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
    """Whether we may make a group there, and move a process from ours into it."""
    if not all(os.access(path, os.W_OK) for path in (folder, f"{folder}/cgroup.procs")):
        return False
    trial = os.path.join(folder, kernel.owned_name("trial"))
    try:
        os.mkdir(trial)
        try:
            return kernel.read_value(f"{trial}/cgroup.type") == "domain"
        finally:
            os.rmdir(trial)
    except OSError:
        return False


def base() -> str:
    """The folder in which groups for runs are made; empty: none can be."""
    return _base(os.getpid())


@functools.lru_cache(maxsize=1)
def _prefix(pid: int) -> str:
    return kernel.owned_name("run")


def prefix() -> str:
    """How the groups of this process's runs are named, before their number."""
    return _prefix(os.getpid())


def make(number: int) -> str:
    """Make the group of a run; its folder, or "" where there can be none.

    Where the controller of processes is handed on, there can be no more than 32768, or half of what
    the kernel has room for.
    """
    if not base():
        return ""
    path = f"{base()}/{prefix()}-{number}"
    try:
        os.mkdir(path)
    except OSError:
        return ""
    limit_processes(path)
    return path


def limit_processes(path: str) -> None:
    """Leave room for others in the kernel's table of processes, where the group can be limited."""
    if os.path.exists(f"{path}/pids.max"):
        with contextlib.suppress(OSError, ValueError):
            room = int(kernel.read_value("/proc/sys/kernel/threads-max"))
            kernel.write_value(f"{path}/pids.max", str(min(MOST_PROCESSES, room // 2)))


def is_group(path: str) -> bool:
    """Whether a folder is a control group, of either version."""
    return os.path.exists(f"{path}/cgroup.procs")


def members(path: str) -> list[int]:
    """The living processes in a group and in those below it."""
    pids: list[int] = []
    for folder, _, _ in os.walk(path):
        with contextlib.suppress(OSError), open(f"{folder}/cgroup.procs") as file:
            pids += map(int, file.read().split())
    return living(pids)


def is_empty(path: str) -> bool:
    """Whether no process lives in a group of version 2; True where it is gone."""
    try:
        handle = os.open(f"{path}/cgroup.events", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        return b"populated 0" in os.read(handle, 256)
    finally:
        os.close(handle)


def end_group(path: str, patience_s: float = kernel.BUSY_FOR_S) -> list[str]:
    """Kill all processes of a group and of those below it; returns their names.

    At one stroke by `cgroup.kill`; before Linux 5.14 frozen first, so that none starts another; in
    version 1 one by one, until none is left.

    Raises
    ------
    OSError
        EBUSY: some did not end.
    """
    names = [name_of(pid) for pid in members(path)]
    if os.path.exists(f"{path}/{KILL}"):
        kernel.write_value(f"{path}/{KILL}", "1")
        _await_empty(path, patience_s)
    elif names:
        with contextlib.suppress(OSError):
            kernel.write_value(f"{path}/cgroup.freeze", "1")
        return sorted(end(lambda: members(path), patience_s).values())
    return sorted(names)


def _await_empty(path: str, patience_s: float) -> None:
    """The kernel says by POLLPRI that `populated` has changed."""
    deadline = time.monotonic() + patience_s
    with open(f"{path}/cgroup.events") as events:
        watch = select.poll()
        watch.register(events, select.POLLPRI)
        while "populated 0" not in events.read():
            if time.monotonic() > deadline:
                names = ", ".join(map(name_of, members(path)))
                raise OSError(errno.EBUSY, f"it did not end: {names}")
            watch.poll(max(0.0, deadline - time.monotonic()) * 1e3)
            events.seek(0)


def remove(path: str) -> None:
    """Remove a group without processes, and those below it; it may be gone.

    Raises
    ------
    OSError
        A process came in meanwhile.
    """
    with contextlib.suppress(FileNotFoundError):
        try:
            os.rmdir(path)
        except OSError as error:
            below = [entry.path for entry in os.scandir(path) if entry.is_dir()]
            if error.errno != errno.EBUSY or not below:
                raise
            for folder in below:
                remove(folder)
            os.rmdir(path)


# ---- the runs of a process -----------------------------------------------------------------------


def end_runs(path: str, pid: int, started: int, patience_s: float) -> list[str]:
    """End what the runs of a process started; returns the names of what was killed.

    Parameters
    ----------
    path
        Of the groups, before their number.
    pid, started
        Of the process.
    patience_s
        How long each step may take.

    Raises
    ------
    OSError
        EBUSY: some did not end.
    """
    names = []
    folder, start = os.path.split(path)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for name in os.listdir(folder):
            if name.startswith(f"{start}-") and is_group(f"{folder}/{name}"):
                names += end_group(f"{folder}/{name}", patience_s)
                remove(f"{folder}/{name}")
    return names + end_marked(lambda found: belongs_to(found, pid, started), patience_s)
