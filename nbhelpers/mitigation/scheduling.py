"""Actions on the CPUs and threads of the program.

Owns the words for a choice of CPUs; priorities and policies are in `wrapped`.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..errors import InputError
from ..machine import topology
from ..workloads import Workload, format_cpu_list
from . import _proc
from .action import YES, Action, NotYet, Possible, with_variables
from .verification import openmp_missing


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


_CHOICES: dict[str, Callable[[tuple[int, ...]], tuple[int, ...]]] = {
    "one": lambda allowed: allowed[-1:],
    "one-per-core": _one_per_core,
    "housekeeping": _all_but_the_first_core,
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
