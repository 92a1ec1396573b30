"""Actions on the process of the program: where it may run, its threads, its priority and policy,
its addresses and pages.

Owns the words for a choice of CPUs, and those of the tools that are started in the program's place,
change themselves and execute it: nice, chrt, setarch.
"""

import ctypes
import os
import platform
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import check_choice
from ..machine import privileged, topology
from ..workloads import Workload, format_cpu_list
from . import _proc
from .action import YES, Action, NotYet, Possible, with_variables
from .verification import openmp_missing

CHOICES = ("one", "one-per-core", "housekeeping")
_ADDR_NO_RANDOMIZE = 0x0040000
_SET_THP_DISABLE, _GET_THP_DISABLE = 41, 42  # prctl(2)


def _usable(workload: Workload | None) -> tuple[int, ...]:
    """The CPUs that a workload may use; None: those of this process."""
    own = workload.cpus if workload is not None else ()
    return tuple(own or sorted(os.sched_getaffinity(0)))


def choose_cpus(which: str | Sequence[int], workload: Workload | None = None) -> tuple[int, ...]:
    """CPUs of those that the workload may use.

    Parameters
    ----------
    which
        "one" (the last), "one-per-core", "housekeeping" (all but the first core), or the CPUs.
    workload
        None: of those that this process may use.

    Raises
    ------
    InputError
        No such choice.
    """
    allowed = _usable(workload)
    if not isinstance(which, str):
        return tuple(sorted(set(which)))
    check_choice("choice of CPUs", which, CHOICES, more="; or give their numbers")
    core_of = {cpu.cpu: cpu.core for cpu in topology().cpus}
    cores = {cpu: core_of.get(cpu, cpu) for cpu in allowed}
    if which == "one-per-core":
        return tuple(sorted({cores[cpu]: cpu for cpu in reversed(allowed)}.values()))
    others = tuple(cpu for cpu in allowed if cores[cpu] != cores[allowed[0]])
    return others if which == "housekeeping" else allowed[-1:]


@dataclass(frozen=True)
class Confined(Action):
    """The process and all its threads may run on some CPUs only; `cpus` as in `choose_cpus`."""

    cpus: str | tuple[int, ...]

    def possible(self, workload: Workload | None = None) -> Possible:
        allowed = _usable(workload)
        chosen = choose_cpus(self.cpus, workload)
        if not chosen or not set(chosen) <= set(allowed):
            return Possible(
                False, f"no CPU is left of {format_cpu_list(allowed)}", "a machine with more cores"
            )
        if set(chosen) == set(allowed):
            one = self.cpus == "one-per-core"
            reason = "each core has one hardware thread" if one else "it may use no others anyway"
            return Possible(False, reason)
        return YES

    def settled(self, workload: Workload) -> "Confined":
        return replace(self, cpus=choose_cpus(self.cpus, workload))

    def applied_to(self, workload: Workload) -> Workload:
        return replace(workload, cpus=choose_cpus(self.cpus, workload))

    def check(self, pid: int) -> str | None:
        wanted = frozenset(choose_cpus(self.cpus))
        for task in _proc.tasks(pid):
            has = _proc.allowed(pid, task)
            if has and not has <= wanted:
                return (
                    f"thread {task} may run on CPUs {format_cpu_list(tuple(sorted(has)))}, not only"
                    f" on {format_cpu_list(tuple(sorted(wanted)))}"
                )
        return None


@dataclass(frozen=True)
class PinnedThreads(Action):
    """The OpenMP runtime binds each thread to one core (OMP_PROC_BIND=close, OMP_PLACES=cores)."""

    needs_program = True

    def possible(self, workload: Workload | None = None) -> Possible:
        if len(os.sched_getaffinity(0)) < 2:
            return Possible(False, "there is one CPU only")
        return YES

    def applied_to(self, workload: Workload) -> Workload:
        variables = {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}
        return replace(workload, env=with_variables(workload, variables))

    def check(self, pid: int) -> str | None:
        whole, tasks = len(os.sched_getaffinity(0)), _proc.tasks(pid)
        if missing := openmp_missing(pid):
            return missing
        if len(tasks) < 2:
            return NotYet(
                "the process has one thread only, so there is nothing that OpenMP could have pinned"
            )
        places = [_proc.allowed(pid, task) for task in tasks]
        roaming = sum(len(place) >= whole for place in places)
        if roaming:
            return (
                f"{roaming} of {len(tasks)} threads may run on all CPUs: the program does not"
                " follow OMP_PROC_BIND"
            )
        return NotYet("all threads have one place") if len(set(places)) < 2 else None


@dataclass(frozen=True)
class FewerThreads(Action):
    """OMP_NUM_THREADS is the number of CPUs less `leave`."""

    leave: int = 1
    threads: int = 0  # decided for a workload
    needs_program = True

    def possible(self, workload: Workload | None = None) -> Possible:
        if self._threads(workload) < 1:
            return Possible(False, "no thread would be left", "a machine with more CPUs")
        return YES

    def applied_to(self, workload: Workload) -> Workload:
        variables = {"OMP_NUM_THREADS": str(self.threads or self._threads(workload))}
        return replace(workload, env=with_variables(workload, variables))

    def check(self, pid: int) -> str | None:
        has, wanted = _proc.environment(pid).get("OMP_NUM_THREADS", ""), self.threads
        if has != str(wanted):
            return NotYet(f"OMP_NUM_THREADS is {has or 'not set'} in the process, not {wanted}")
        if missing := openmp_missing(pid):
            return missing
        count = len(_proc.tasks(pid))
        if count > wanted:
            return f"the process has {count} threads, not at most {wanted}"
        if count < wanted:
            return NotYet(f"the process has {count} threads, fewer than OMP_NUM_THREADS={wanted}")
        return None

    def settled(self, workload: Workload) -> "FewerThreads":
        return replace(self, threads=self._threads(workload))

    def _threads(self, workload: Workload | None) -> int:
        cpus = _usable(workload)
        variables = dict(workload.env) if workload is not None else {}
        wanted = variables.get("OMP_NUM_THREADS", "")
        threads = int(wanted) if wanted.isdigit() else len(cpus)
        return min(threads, len(cpus)) - self.leave


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

    @abstractmethod
    def wrapper(self) -> tuple[str, ...]:
        """The tool and its options."""

    @abstractmethod
    def seen(self, task: int) -> object:
        """What a thread of the process has, to be compared with `wanted`."""

    def possible(self, workload: Workload | None = None) -> Possible:
        words = self.wrapper()
        if shutil.which(words[0]) is None:
            return Possible(False, f"{words[0]} is not installed", "apt-get install util-linux")
        done = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
        if done.returncode or done.stderr:  # nice goes on when it is refused
            reason = (done.stderr.strip().splitlines() or [f"{words[0]} failed"])[-1]
            return Possible(False, f"this user may not do that here: {reason}", self.remedy)
        return YES

    def check(self, pid: int) -> str | None:
        for task in _proc.tasks(pid):
            with suppress(ProcessLookupError, FileNotFoundError):
                if (has := self.seen(task)) != self.wanted:
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

    def wrapper(self) -> tuple[str, ...]:
        return "nice", "-n", str(self.value - os.nice(0))

    def seen(self, task: int) -> int:
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

    def wrapper(self) -> tuple[str, ...]:
        return "chrt", f"--{self.policy[6:].lower()}", str(self.priority)

    def possible(self, workload: Workload | None = None) -> Possible:
        if self.risk == "high":
            privileged.allow_realtime()
        return super().possible(workload)

    def seen(self, task: int) -> int:
        return os.sched_getscheduler(task)


class NoRandomisation(Wrapped):
    """The program lies at the same addresses in each run (personality(2), ADDR_NO_RANDOMIZE)."""

    needs_program = True
    what = "addresses"
    remedy = "allow personality(2) in the container's seccomp profile"
    wanted = "fixed"

    def wrapper(self) -> tuple[str, ...]:
        return "setarch", platform.machine(), "-R"

    def seen(self, task: int) -> str:
        personality = int(Path(f"/proc/{task}/personality").read_text(), 16)
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
