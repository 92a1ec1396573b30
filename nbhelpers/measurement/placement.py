"""Whether a configuration took effect: where the kernel runs the threads, not what was requested.

Owns the check of each thread's allowed CPUs against what its configuration promises: at the barrier
where the program's threads exist there, while it runs otherwise.
"""

import os
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ..machine import cpu_list
from ..workloads import Workload, format_cpu_list
from ..workloads.promised import promise_of
from .attachment import Attachment
from .watching import Watch

WRONG = "wrong placement"
_LAST_CPU = 36  # field 39 of /proc/PID/stat, counted after the parenthesis of the name
_PLACED_MODELS = ("omp", "sycl")  # whose threads a configuration places


@dataclass(frozen=True)
class Thread:
    """A running thread: the CPUs it may use, and the one it ran on last."""

    allowed: tuple[int, ...]
    last_cpu: int


class PlacementCheck(Attachment):
    """Reads where each thread may run, and fails the run where that is not its configuration.

    Parameters
    ----------
    root
        Folder of a recorded tree of /proc; "/" is this machine.

    Notes
    -----
    Adds the columns `placement_ok` (None: several threads were never seen, and only the confinement
    could be checked), `placement` (such as ``0+1``, a thread on each, or ``0,1*2``, two on either)
    and `last_cpus`. A run where it is False gets the status "wrong placement". Programs that wait
    where their threads exist are read there: the kernel promises that no thread is moved later, and
    our programs check it (`affinity_at_end`). Others are looked at while they run, 2, 4, 8, … ms
    after the start: every look must find them on their CPUs, one of them as promised.
    """

    def __init__(self, root: str | Path = "/"):
        self._root = Path(root)
        self._workload: Workload | None = None
        self._threads: list[Thread] = []
        self._watch: Watch | None = None
        self._wrong, self._as_promised = "", False

    def before(self, workload: Workload) -> None:
        self.close()
        self._workload, self._threads = workload, []
        self._wrong, self._as_promised = "", False

    def armed(self, pid: int) -> None:
        assert self._workload is not None  # `before` was called
        self._look(pid)
        if self._workload.start != "mark" and self._workload.model in _PLACED_MODELS:
            self._watch = Watch(pid, self._look)

    def released(self, t0_ns: int) -> None:
        if self._watch:
            self._watch.begin(t0_ns)

    def ended(self, pid: int) -> None:
        self.close()

    def _look(self, pid: int) -> None:
        try:
            threads = running_threads(pid, self._root)
        except (FileNotFoundError, ProcessLookupError, StopIteration):
            return  # it has ended
        if not threads and self._threads:
            return
        assert self._workload is not None
        self._wrong = self._wrong or beyond(threads, self._workload)
        if len(threads) >= len(self._threads):
            self._threads = threads
        if self._workload.start == "mark" or len(threads) > 1:
            self._as_promised = self._as_promised or not misplaced(threads, self._workload)

    def after(self, run: dict) -> dict:
        self.close()
        assert self._workload is not None
        wrong = self._wrong or (
            "" if self._as_promised else misplaced(self._threads, self._workload)
        )
        known = wrong or self._workload.start == "mark" or len(self._threads) > 1
        columns = {
            "placement_ok": (not wrong) if known else None,
            "placement": placement_text(self._threads),
            "last_cpus": format_cpu_list(
                tuple(sorted({thread.last_cpu for thread in self._threads}))
            ),
        }
        if wrong and run.get("status") == "ok":
            columns |= {"status": WRONG, "message": wrong}
        return columns

    def close(self) -> None:
        watch, self._watch = self._watch, None
        if watch:
            watch.end()

    def __repr__(self) -> str:
        return "PlacementCheck()"


def running_threads(pid: int, root: str | Path = "/") -> list[Thread]:
    """The threads of a process; one that ends meanwhile is skipped."""
    threads, tasks = [], Path(root) / "proc" / str(pid) / "task"
    for name in sorted(os.listdir(tasks), key=int):
        try:
            status = (tasks / name / "status").read_text()
            stat = (tasks / name / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        allowed = next(
            line.split(":", 1)[1]
            for line in status.splitlines()
            if line.startswith("Cpus_allowed_list:")
        )
        threads.append(Thread(cpu_list(allowed), int(stat.rsplit(")", 1)[1].split()[_LAST_CPU])))
    return threads


def misplaced(
    threads: Collection[Thread], workload: Workload, usable: Collection[int] | None = None
) -> str:
    """How the threads differ from what the workload's configuration promises; empty where they do
    not.

    Parameters
    ----------
    threads
        Of the process, which waits; or runs, if nobody can wait where its threads exist.
    workload
        As it is placed.
    usable
        The CPUs of a workload that is not confined; None: those of this process.
    """
    if wrong := beyond(threads, workload, usable):
        return wrong
    promise, runs = promise_of(workload), workload.start != "mark"
    if runs and (len(threads) < 2 or workload.model not in _PLACED_MODELS):
        return ""
    # Intel's runtime has a thread that waits, besides those that work; others' programs may, too
    more_may = runs or workload.model == "sycl"
    count, wanted = len(threads), promise.threads
    if wanted is not None and (count < wanted if more_may else count != wanted):
        return f"{count} threads run; {wanted} were requested"
    if not promise.pinned:
        return _confined(threads, _allowed(workload, usable))
    return _not_at(threads, promise.places) or _unpinned(threads, wanted or count, runs)


def beyond(
    threads: Collection[Thread], workload: Workload, usable: Collection[int] | None = None
) -> str:
    """The first thread that may run beyond the workload's CPUs, in words; empty where none may."""
    allowed = _allowed(workload, usable)
    astray = [thread for thread in threads if not set(thread.allowed) <= allowed]
    if not threads:
        return "no thread was seen"
    if not astray:
        return ""
    return (
        f"a thread may run on {format_cpu_list(astray[0].allowed)}, beyond"
        f" {format_cpu_list(tuple(sorted(allowed)))}"
    )


def _allowed(workload: Workload, usable: Collection[int] | None) -> set[int]:
    return set(workload.cpus or usable or os.sched_getaffinity(0))


def _not_at(threads: Collection[Thread], places: Collection[tuple[int, ...]]) -> str:
    """The promised places without a thread, in words; empty where each has one."""
    taken = {thread.allowed for thread in threads}
    empty = [place for place in places if place not in taken]
    if not empty:
        return ""
    return (
        f"no thread has the place {format_cpu_list(empty[0])} for itself: {placement_text(threads)}"
    )


def _unpinned(threads: Collection[Thread], wanted: int, runs: bool) -> str:
    """Pinned threads have as many places as there are to work, and these do not overlap.

    Those of further threads of a running program may.
    """
    places = {thread.allowed for thread in threads}
    if len(places) < wanted:
        return f"threads share a place: {placement_text(threads)}"
    if runs:
        return ""
    overlap = sum(map(len, places)) > len({cpu for place in places for cpu in place})
    return f"places overlap: {placement_text(threads)}" if overlap else ""


def _confined(threads: Collection[Thread], allowed: set[int]) -> str:
    """Roaming threads may each use all of the workload's CPUs."""
    return (
        ""
        if all(set(thread.allowed) == allowed for thread in threads)
        else f"threads that should roam are held: {placement_text(threads)}"
    )


def placement_text(threads: Collection[Thread]) -> str:
    """The allowed CPUs of all threads: ``0+1`` is a thread on each of two, ``0,1*2`` two threads on
    either.
    """
    counts = Counter(thread.allowed for thread in threads)
    return "+".join(
        format_cpu_list(allowed) + (f"*{count}" if count > 1 else "")
        for allowed, count in sorted(counts.items())
    )
