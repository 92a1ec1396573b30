"""Whether a configuration took effect: where the kernel runs the threads, not what was requested.

Owns the check of each thread's allowed CPUs: at the barrier, where the program's threads exist
there and are where its runtime put them; else as OpenMP's runtime prints them when they begin.
"""

import os
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ..machine import cpu_list
from ..workloads import Workload, format_cpu_list, sycl
from .attachment import Attachment

WRONG = "wrong placement"
_LAST_CPU = 36  # field 39 of /proc/PID/stat, counted after the parenthesis of the name
# OpenMP 5.0, 6.2.13: number of the thread in its team, and the CPUs that the kernel lets it use
_DISPLAY = {"OMP_DISPLAY_AFFINITY": "TRUE", "OMP_AFFINITY_FORMAT": "noisebook-affinity: %n %A"}
_DISPLAYED = re.compile(r"^noisebook-affinity: (\d+) ([\d,-]+)$", re.MULTILINE)
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "DPCPP_CPU_NUM_CUS")


@dataclass(frozen=True)
class Thread:
    """A running thread: the CPUs it may use, and the one it ran on last; −1: not known."""

    allowed: tuple[int, ...]
    last_cpu: int = -1


class PlacementCheck(Attachment):
    """Reads where each thread may run, and fails the run where that is not its configuration.

    Notes
    -----
    Adds the columns `placement_ok` (None: the threads did not exist yet, and only the confinement
    could be checked), `placement` (such as ``0+1``, a thread on each, or ``0,1*2``, two on either)
    and `last_cpus`. A run where it is False gets the status "wrong placement". It is read at the
    barrier only: the kernel promises that no thread is moved later, and our programs check it
    (`affinity_at_end`). An OpenMP program that waits before its threads exist has them printed by
    its runtime (OMP_DISPLAY_AFFINITY), which asks the kernel.
    """

    def __init__(self) -> None:
        self._workload: Workload | None = None
        self._threads: list[Thread] = []
        self._displayed: list[Thread] = []

    def before(self, workload: Workload) -> None:
        self._workload, self._threads, self._displayed = workload, [], []
        displays = workload.model == "omp" and workload.start != "mark"
        self.variables = MappingProxyType(_DISPLAY if displays else {})

    def armed(self, pid: int) -> None:
        self._threads = running_threads(pid)

    def printed(self, output: str, errors: str) -> None:
        # of each number the last, as teams come and go
        found = dict(_DISPLAYED.findall(f"{output}\n{errors}"))
        self._displayed = [Thread(cpu_list(cpus)) for cpus in found.values()]

    def after(self, run: dict) -> dict:
        assert self._workload is not None  # `before` was called
        threads = self._displayed or self._threads
        # a team of one is not displayed: it is the first thread, which waits already
        alone = bool(self.variables) and _wanted_threads(self._workload) == 1
        complete = bool(self._displayed) or alone or self._workload.start == "mark"
        wrong = misplaced(threads, self._workload, complete=complete)
        last = tuple(sorted({thread.last_cpu for thread in self._threads}))
        columns = {
            "placement_ok": (not wrong) if wrong or complete else None,
            "placement": placement_text(threads),
            "last_cpus": format_cpu_list(last),
        }
        if wrong and run.get("status") == "ok":
            columns |= {"status": WRONG, "message": wrong}
        return columns

    def __repr__(self) -> str:
        return "PlacementCheck()"


def running_threads(pid: int) -> list[Thread]:
    """The threads of a process; one that ends meanwhile is skipped."""
    threads, tasks = [], Path(f"/proc/{pid}/task")
    for name in sorted(os.listdir(tasks), key=int):
        try:
            status = (tasks / name / "status").read_text()
            stat = (tasks / name / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        allowed = status.partition("Cpus_allowed_list:")[2].splitlines()[0]
        threads.append(Thread(cpu_list(allowed), int(stat.rsplit(")", 1)[1].split()[_LAST_CPU])))
    return threads


def misplaced(threads: Collection[Thread], workload: Workload, complete: bool) -> str:
    """How the threads differ from the workload's configuration; empty where they do not.

    Parameters
    ----------
    threads
        Threads of the waiting process.
    complete
        Whether all its threads are there.
    """
    allowed = set(workload.cpus or os.sched_getaffinity(0))
    astray = [thread for thread in threads if not set(thread.allowed) <= allowed]
    if not threads:
        return "no thread was seen"
    if astray:
        limits = format_cpu_list(tuple(sorted(allowed)))
        return f"a thread may run on {format_cpu_list(astray[0].allowed)}, beyond {limits}"
    if not complete:
        return ""
    wanted = _wanted_threads(workload)
    # Intel's runtime has a thread that waits, besides those that work
    idle_too = workload.model == "sycl"
    if wanted is not None and (len(threads) < wanted if idle_too else len(threads) != wanted):
        return f"{len(threads)} threads run; {wanted} were requested"
    if not workload.config.startswith("TP"):
        # roaming threads may each use all of the workload's CPUs
        held = any(set(thread.allowed) != allowed for thread in threads)
        return f"threads that should roam are held: {placement_text(threads)}" if held else ""
    return _not_at(threads, workload) or _unpinned(threads, wanted or len(threads))


def _not_at(threads: Collection[Thread], workload: Workload) -> str:
    """The first promised place that no thread has for itself, in words; empty: each has one."""
    taken = {thread.allowed for thread in threads}
    empty = next((place for place in promised_places(workload) if place not in taken), None)
    if empty is None:
        return ""
    return f"no thread has the place {format_cpu_list(empty)} for itself: {placement_text(threads)}"


def _unpinned(threads: Collection[Thread], wanted: int) -> str:
    """Pinned threads have as many places as there are to work, and these do not overlap."""
    places = {thread.allowed for thread in threads}
    if len(places) < wanted:
        return f"threads share a place: {placement_text(threads)}"
    overlap = sum(map(len, places)) > len({cpu for place in places for cpu in place})
    return f"places overlap: {placement_text(threads)}" if overlap else ""


def _wanted_threads(workload: Workload) -> int | None:
    env = dict(workload.env)
    return next((int(env[name]) for name in _THREAD_VARIABLES if name in env), None)


def placement_text(threads: Collection[Thread]) -> str:
    """The allowed CPUs of all threads: ``0+1`` is a thread on each of two, ``0,1*2`` two threads on
    either.
    """
    counts = Counter(thread.allowed for thread in threads)
    return "+".join(
        format_cpu_list(allowed) + (f"*{count}" if count > 1 else "")
        for allowed, count in sorted(counts.items())
    )


def promised_places(workload: Workload) -> tuple[tuple[int, ...], ...]:
    """The CPUs of each pinned thread; empty where threads roam or the runtime chooses.

    Parameters
    ----------
    workload
        Placed by `Configuration.of` or `Workload.placed`.

    Examples
    --------
    >>> env = {"OMP_NUM_THREADS": "2", "OMP_PLACES": "{0},{4},{8}"}
    >>> promised_places(Workload("any", "omp", ("/bin/true",), config="TP", env=env))
    ((0,), (4,))
    """
    env = dict(workload.env)
    listed = re.findall(r"\{([\d,]+)\}", env.get("OMP_PLACES", ""))
    ours = env.get(sycl.PLACES, "")
    if ours and ours != sycl.ROAMING:
        listed = ours.split(":")
    places = tuple(tuple(sorted(int(cpu) for cpu in place.split(","))) for place in listed)
    threads = env.get("OMP_NUM_THREADS", env.get(sycl.THREADS, str(len(places))))
    return places[: int(threads)] if workload.config.startswith("TP") else ()
