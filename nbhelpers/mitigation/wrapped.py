"""Actions by a tool of the system that is started in the program's place, changes itself and
executes it: nice, chrt, setarch.

Owns the words of these tools, and what shows in the process that they acted; and what
no tool does: no huge pages.
"""

import ctypes
import os
import platform
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..machine import privileged
from ..workloads import Workload
from . import _proc
from .action import YES, Action, Possible

_POLICIES = ("SCHED_OTHER", "SCHED_BATCH", "SCHED_IDLE", "SCHED_FIFO", "SCHED_RR")
_ADDR_NO_RANDOMIZE = 0x0040000
_SET_THP_DISABLE, _GET_THP_DISABLE = 41, 42  # prctl(2)


class Wrapped(Action, ABC):
    """The program is started by a tool, which leaves its process to it.

    Attributes
    ----------
    what, wanted
        What the tool sets, in words, and its value.
    remedy
        What lets a user do it who may not.
    """

    what: str
    wanted: object
    remedy = "run as root"

    @property
    @abstractmethod
    def words(self) -> tuple[str, ...]:
        """The tool and its options."""

    @abstractmethod
    def seen(self, pid: int, task: int) -> object:
        """What a thread of the process has, to be compared with `wanted`."""

    def wrapper(self) -> tuple[str, ...]:
        return self.words

    def possible(self, workload: Workload | None = None) -> Possible:
        tool = self.words[0]
        if shutil.which(tool) is None:
            return Possible(False, f"{tool} is not installed", "apt-get install util-linux")
        done = subprocess.run([*self.words, "true"], capture_output=True, text=True, check=False)
        if done.returncode or done.stderr:  # nice goes on when it is refused
            reason = (done.stderr.strip().splitlines() or [f"{tool} failed"])[-1]
            return Possible(False, f"this user may not do that here: {reason}", self.remedy)
        return YES

    def check(self, pid: int) -> str | None:
        for task in _proc.tasks(pid):
            with suppress(ProcessLookupError, FileNotFoundError):
                if (has := self.seen(pid, task)) != self.wanted:
                    return f"thread {task} has {self.what} {has}, not {self.wanted}"
        return None


@dataclass(frozen=True)
class Niced(Wrapped):
    """The nice value of the process, −20 (most) to 19."""

    value: int
    what = "nice value"
    remedy = "sudo prlimit --pid $$ --nice=40"

    @property
    def wanted(self) -> int:  # type: ignore[override]
        return self.value

    @property
    def words(self) -> tuple[str, ...]:
        return "nice", "-n", str(self.value - os.nice(0))

    def seen(self, pid: int, task: int) -> int:
        return os.getpriority(os.PRIO_PROCESS, task)


@dataclass(frozen=True)
class Scheduled(Wrapped):
    """The scheduling policy of the process: SCHED_BATCH, SCHED_FIFO, …, with the real-time priority
    where there is one.
    """

    policy: str
    priority: int = 0
    what = "policy"
    remedy = "sudo prlimit --pid $$ --rtprio=99"

    @property
    def risk(self) -> str:
        """Above all ordinary tasks, a program that spins keeps others from running."""
        return "high" if self.policy in ("SCHED_FIFO", "SCHED_RR") else "none"

    @property
    def wanted(self) -> int:  # type: ignore[override]
        return int(getattr(os, self.policy))

    @property
    def words(self) -> tuple[str, ...]:
        return "chrt", f"--{self.policy[6:].lower()}", str(self.priority)

    def possible(self, workload: Workload | None = None) -> Possible:
        if self.policy not in _POLICIES:
            fix = f"choose one of {', '.join(_POLICIES)}"
            return Possible(False, f"there is no policy {self.policy}", fix)
        if self.risk == "high":
            privileged.allow_realtime()
        return super().possible(workload)

    def seen(self, pid: int, task: int) -> int:
        return os.sched_getscheduler(task)


class NoRandomisation(Wrapped):
    """The program lies at the same addresses in each run (personality(2), ADDR_NO_RANDOMIZE)."""

    needs_program = True
    what = "addresses"
    remedy = "allow personality(2) in the container's seccomp profile"
    wanted = "fixed"

    @property
    def words(self) -> tuple[str, ...]:
        return "setarch", platform.machine(), "-R"

    def seen(self, pid: int, task: int) -> str:
        personality = int(Path(f"/proc/{pid}/personality").read_text(), 16)
        return "fixed" if personality & _ADDR_NO_RANDOMIZE else "random"


class NoHugePages(Action):
    """The program gets no transparent huge pages (prctl(2), PR_SET_THP_DISABLE)."""

    needs_program = True

    def possible(self, workload: Workload | None = None) -> Possible:
        if _proc.status(os.getpid(), "THP_enabled") is None:
            return Possible(False, "this kernel does not tell whether a process gets huge pages")
        if not os.path.exists("/sys/kernel/mm/transparent_hugepage"):
            return Possible(False, "this kernel has no transparent huge pages")
        return YES

    @contextmanager
    def held(self, workload: Workload) -> Iterator[None]:
        """A child inherits it from this process."""
        libc = ctypes.CDLL(None)
        before = libc.prctl(_GET_THP_DISABLE, 0, 0, 0, 0)
        libc.prctl(_SET_THP_DISABLE, 1, 0, 0, 0)
        try:
            yield
        finally:
            libc.prctl(_SET_THP_DISABLE, before, 0, 0, 0)

    def check(self, pid: int) -> str | None:
        if _proc.status(pid, "THP_enabled") == "0":
            return None
        return "the process may get transparent huge pages"
