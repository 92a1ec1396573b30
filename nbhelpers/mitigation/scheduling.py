"""Actions on how the program is scheduled: its CPUs and threads, its priority and policy, of CPU
and of I/O.

What taskset, chrt, nice and ionice do, done on the waiting process, so that no further program is
executed inside the run.
"""

import os
import platform
import resource
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import InputError
from ..machine import privileged, topology
from ..workloads import Workload, format_cpu_list
from . import _proc
from ._calls import CALLS, allowed_here, system_call
from .action import YES, Action, NotYet, Possible, with_variables
from .verification import openmp_missing

_CLASSES = {"real-time": 1, "best-effort": 2, "idle": 3}  # linux/ioprio.h
_POLICIES = {
    "SCHED_OTHER": os.SCHED_OTHER,
    "SCHED_BATCH": os.SCHED_BATCH,
    "SCHED_IDLE": os.SCHED_IDLE,
    "SCHED_FIFO": os.SCHED_FIFO,
    "SCHED_RR": os.SCHED_RR,
}


# ---- which CPUs ----------------------------------------------------------------------------------


def choose_cpus(which: str | Sequence[int], workload: Workload | None = None) -> tuple[int, ...]:
    """CPUs of those that the workload may use.

    Parameters
    ----------
    which
        "one" (the last), "one-per-core", "housekeeping" (all but the first core), "node" (of the
        last CPU's NUMA node), or the CPUs.
    workload
        None: of those that this process may use.

    Raises
    ------
    InputError
        No such choice.
    """
    allowed = (
        workload.cpus
        if workload is not None and workload.cpus
        else tuple(sorted(os.sched_getaffinity(0)))
    )
    if not isinstance(which, str):
        return tuple(sorted(set(which)))
    if which not in _CHOICES:
        raise InputError(
            f"there is no choice of CPUs {which!r}",
            fix=f"choose one of {', '.join(_CHOICES)}, or give their numbers",
        )
    return _CHOICES[which](allowed)


def _one_per_core(allowed: tuple[int, ...]) -> tuple[int, ...]:
    core_of = {cpu.cpu: cpu.core for cpu in topology().cpus}
    first = {core_of.get(cpu, cpu): cpu for cpu in reversed(allowed)}
    return tuple(sorted(first.values()))


def _all_but_the_first_core(allowed: tuple[int, ...]) -> tuple[int, ...]:
    core_of = {cpu.cpu: cpu.core for cpu in topology().cpus}
    return tuple(
        cpu for cpu in allowed if core_of.get(cpu, cpu) != core_of.get(allowed[0], allowed[0])
    )


def _of_the_last_node(allowed: tuple[int, ...]) -> tuple[int, ...]:
    node_of = {cpu.cpu: cpu.numa for cpu in topology().cpus}
    return tuple(cpu for cpu in allowed if node_of.get(cpu, 0) == node_of.get(allowed[-1], 0))


_CHOICES: dict[str, Callable[[tuple[int, ...]], tuple[int, ...]]] = {
    "one": lambda allowed: allowed[-1:],
    "one-per-core": _one_per_core,
    "housekeeping": _all_but_the_first_core,
    "node": _of_the_last_node,
}


@dataclass(frozen=True)
class Confined(Action):
    """The process and all its threads may run on some CPUs only; `cpus` as in `choose_cpus`."""

    cpus: str | tuple[int, ...]

    def possible(self, workload: Workload | None = None) -> Possible:
        allowed = (
            workload.cpus
            if workload is not None and workload.cpus
            else tuple(sorted(os.sched_getaffinity(0)))
        )
        chosen = choose_cpus(self.cpus, workload)
        if not chosen or not set(chosen) <= set(allowed):
            return Possible(
                False, f"no CPU is left of {format_cpu_list(allowed)}", "a machine with more cores"
            )
        if set(chosen) == set(allowed):
            reasons = {
                "one-per-core": "each core has one hardware thread",
                "node": "there is one NUMA node only",
            }
            return Possible(
                False, reasons.get(str(self.cpus), "the workload may use no others anyway")
            )
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
        return (
            YES
            if self._threads(workload) >= 1
            else Possible(False, "no thread would be left", "a machine with more CPUs")
        )

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
        cpus = workload.cpus if workload is not None and workload.cpus else os.sched_getaffinity(0)
        variables = dict(workload.env) if workload is not None else {}
        wanted = variables.get("OMP_NUM_THREADS", "")
        threads = int(wanted) if wanted.isdigit() else len(cpus)
        return min(threads, len(cpus)) - self.leave


# ---- priority and policy: set on the threads of the waiting process ------------------------------


@dataclass(frozen=True)
class Niced(Action):
    """The nice value of the process, −20 (most) to 19."""

    value: int

    def possible(self, workload: Workload | None = None) -> Possible:
        if (
            self.value < os.getpriority(os.PRIO_PROCESS, 0)
            and os.geteuid()
            and not _may_nice(self.value)
        ):
            return Possible(
                False,
                f"this user may not go down to nice {self.value}",
                f"sudo prlimit --pid $$ --nice={20 - self.value}",
            )
        return YES

    def arm(self, pid: int) -> None:
        for task in _proc.tasks(pid):
            os.setpriority(os.PRIO_PROCESS, task, self.value)

    def check(self, pid: int) -> str | None:
        for task in _proc.tasks(pid):
            with suppress(ProcessLookupError):
                if (has := os.getpriority(os.PRIO_PROCESS, task)) != self.value:
                    return f"thread {task} has nice value {has}, not {self.value}"
        return None


def _may_nice(value: int) -> bool:
    return 20 - resource.getrlimit(resource.RLIMIT_NICE)[0] <= value


@dataclass(frozen=True)
class Scheduled(Action):
    """The scheduling policy of the process: SCHED_BATCH, SCHED_FIFO, …, with the real-time priority
    where there is one.
    """

    policy: str
    priority: int = 0

    @property
    def risk(self) -> str:
        """Above all ordinary tasks, a program that spins keeps others from running."""
        return "high" if self.policy in ("SCHED_FIFO", "SCHED_RR") else "none"

    def possible(self, workload: Workload | None = None) -> Possible:
        if self.policy not in _POLICIES:
            return Possible(
                False, f"there is no policy {self.policy}", f"choose one of {', '.join(_POLICIES)}"
            )
        if self.policy in ("SCHED_FIFO", "SCHED_RR"):
            privileged.allow_realtime()
            return allowed_here(
                lambda: os.sched_setscheduler(
                    0, _POLICIES[self.policy], os.sched_param(self.priority)
                ),
                "sudo prlimit --pid $$ --rtprio=99",
            )
        return YES

    def arm(self, pid: int) -> None:
        for task in _proc.tasks(pid):
            os.sched_setscheduler(task, _POLICIES[self.policy], os.sched_param(self.priority))

    def check(self, pid: int) -> str | None:
        for task in _proc.tasks(pid):
            with suppress(ProcessLookupError):
                if os.sched_getscheduler(task) != _POLICIES[self.policy]:
                    return f"thread {task} does not have the policy {self.policy}"
        return None


@dataclass(frozen=True)
class IoPriority(Action):
    """The process's I/O priority: class real-time, best-effort or idle; level 0 (most) to 7."""

    name: str = "best-effort"
    level: int = 0

    @property
    def risk(self) -> str:
        """The real-time class keeps others from the disk."""
        return "high" if self.name == "real-time" else "none"

    def possible(self, workload: Workload | None = None) -> Possible:
        if platform.machine() not in CALLS:
            return Possible(False, f"the system call's number on {platform.machine()} is not known")
        schedulers = [path.read_text() for path in Path("/sys/block").glob("*/queue/scheduler")]
        if not any(word in text for text in schedulers for word in ("[bfq]", "[mq-deadline]")):
            return Possible(
                False,
                "no disk has an I/O scheduler that knows priorities",
                "echo mq-deadline > /sys/block/DISK/queue/scheduler",
            )
        return YES

    def arm(self, pid: int) -> None:
        for task in _proc.tasks(pid):
            system_call("ioprio_set", 1, task, self._wanted)

    def check(self, pid: int) -> str | None:
        has = {system_call("ioprio_get", 1, task) for task in _proc.tasks(pid)}
        if not has <= {self._wanted}:
            return f"the I/O priority is {has}, not {self._wanted}"
        if not _proc.disk_bytes(pid):
            return NotYet("the process has read and written nothing on a disk")
        return None

    @property
    def _wanted(self) -> int:
        return _CLASSES[self.name] << 13 | self.level
