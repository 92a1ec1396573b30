"""The group of one run: a control group where one can be made, and the mark in the limits
everywhere.

Owns what the launcher is told of them, and how the run's processes are found and ended by them.
"""

import os
from contextlib import suppress

from ..machine import kernel, run_groups, run_marks


class RunGroup:
    """What holds the processes of one run together, from before its start to `close`.

    Attributes
    ----------
    mark
        In the limits of every process of the run.
    path
        Folder of its control group; empty: there is none.
    """

    def __init__(self) -> None:
        number = run_marks.next_number()
        self.mark = run_marks.mark(number)
        self.path = run_groups.make(number)
        self._followed: list[str] = []

    @property
    def options(self) -> list[str]:
        """For the launcher."""
        group = ["--group", self.path] if self.path else []
        return ["--mark", str(self.mark), *group]

    def follow(self, pid: int) -> None:
        """Take in a group of ours that an attachment moved the process to: a process is in one
        group of version 2 only.
        """
        if not self.path:
            return
        with suppress(OSError), open(f"/proc/{pid}/cgroup") as file:
            own = [line[3:-1] for line in file if line.startswith("0::")]
            for name in filter(kernel.owner_of, map(os.path.basename, own)):
                if name != os.path.basename(self.path):
                    self._followed += _folders(own[0], self.path)

    def living(self) -> set[int]:
        """The processes of the run that still live, as far as its groups know."""
        return {
            pid
            for path in (self.path, *self._followed)
            if path and not run_groups.is_empty(path)
            for pid in run_groups.members(path)
        }

    def kill(self) -> None:
        """End all processes in its groups; what cannot be ended is left to `settings.repair`."""
        for path in (self.path, *self._followed):
            if path and not run_groups.is_empty(path):
                with suppress(OSError):
                    run_groups.end_group(path)

    def close(self) -> None:
        """Remove the control group; safe to call again."""
        if self.path:
            with suppress(OSError):
                run_groups.remove(self.path)
            self.path = ""


def _folders(group: str, known: str) -> list[str]:
    """Where a group lies in the hierarchy of a known one."""
    top = known
    while run_groups.is_group(os.path.dirname(top)):
        top = os.path.dirname(top)
    return [top + group] if os.path.isdir(top + group) else []
