"""The threads of a run: those of its process, and of every process that it has started."""

import os
from contextlib import suppress

from ..machine.kernel import passing_over


def threads_of(pid: int) -> set[int]:
    """Return the ids of all threads of a process and of its descendants.

    The program is not always the process that was started: `mpirun` starts ranks, a script its
    programs. Where the kernel does not list children (CONFIG_PROC_CHILDREN), the process alone.

    Parameters
    ----------
    pid
        Id of the process.

    Returns
    -------
    set of int
        Threads that end meanwhile may be missing.
    """
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        process = waiting.pop()
        with suppress(OSError):
            found.update(map(int, os.listdir(f"/proc/{process}/task")))
            waiting += children_of(process)
    return found


def children_of(process: int | str) -> set[int]:
    """The children of a process, zombies among them; of those of a thread that ends meanwhile some
    may be missing.
    """
    found: set[int] = set()
    for thread in os.listdir(f"/proc/{process}/task"):
        with passing_over(), open(f"/proc/{process}/task/{thread}/children") as file:
            found.update(map(int, file.read().split()))
    return found
