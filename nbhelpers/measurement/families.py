"""The threads of a run: those of its process, and of every process that it has started."""

import os
from contextlib import suppress
from pathlib import Path


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
            threads = [int(name) for name in os.listdir(f"/proc/{process}/task")]
            found.update(threads)
            for thread in threads:
                with suppress(OSError):
                    children = Path(f"/proc/{process}/task/{thread}/children").read_text()
                    waiting += map(int, children.split())
    return found
