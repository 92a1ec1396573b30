"""Known causes: what can be planted in runs on purpose, with the truth recorded, to see whether an
attribution finds it.

Owns the table of causes, the victim program of each, and the campaigns in which a quarter of the
runs is disturbed; how well they are found is in `scores`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from ...errors import InputError, NoisebookError, Unavailable
from ...injection import Hog, Injector
from ...injection.rules import may_realtime
from ...machine import leftovers
from ...measurement import Attachment, Campaign, Cell, metrics, recorded_runs
from ...mitigation.action import Action
from ...mitigation.inherited import NoHugePages
from ...mitigation.treatment import treat_workload
from ...noise import NoiseConfig, stressor_noise
from ...workloads import Workload, binary_folder
from .planting import CpuQuota, DroppedFile, Planted, ShakenAffinity, VictimFile

UNDISTURBED = "none"
BLOCK = 4  # runs, one of which is disturbed
WINDOW_S = 3.0  # of the noise: longer than any run
_SHARED = (
    "runqueue_wait_ns",
    "process_runqueue_wait_ns",
    "others_busy_s",
    "involuntary_switches",
    "context_switches",
    "timeslices",
    "process_timeslices",
    "pressure_cpu_*",
)
CULPRIT = (
    "others_busy_s",
    "machine_busy_s",
    "anon_huge_machine_kb",
    "memory_free_kb",
    "memory_available_kb",
)  # of a culprit: its CPU time, its memory


@dataclass(frozen=True)
class Cause:
    """Something that can be planted, and a program that suffers from it.

    Attributes
    ----------
    id, what
        For tables; for people.
    work, steps
        Of the program `victim`: its kind, and how much of it (about 0.1 s on the machine of the
        recorded campaign).
    shown_by
        Columns that show the cause itself, with * for any text: an attribution is right if its
        first factor has one of them.
    trail
        Columns that show only that somebody else was at work; they count as right where this
        machine has no counter of the cause itself, and never in the strict score.
    disturbs
        What is planted, given the workload and the CPU of the victim and the other CPU: a changed
        workload, attachments, or both.
    file
        "map" (16 MiB to read) or "disk" (to be written): what the victim needs in the scratch
        folder.
    """

    id: str
    what: str
    work: str
    steps: int
    shown_by: tuple[str, ...]
    disturbs: Callable[["Planting"], tuple[Workload, Sequence[Attachment]]]
    trail: tuple[str, ...] = ()
    file: str = ""

    def __repr__(self) -> str:
        return f"Cause({self.id}: {self.what})"

    @property
    def own(self) -> tuple[str, ...]:
        """Columns that show what happened to the victim, and not merely what the culprit did
        meanwhile: the strict score asks for them.
        """
        return tuple(pattern for pattern in self.shown_by if pattern not in CULPRIT)


@dataclass(frozen=True)
class Planting:
    """Where a cause is planted: the workload, its CPU, another CPU, and its file; `asked`: it is
    only asked whether it can be.
    """

    workload: Workload
    cpu: int
    other: int
    file: Path | None
    asked: bool = False


def _hog(priority: int) -> Callable[[Planting], tuple]:
    def disturbs(at: Planting) -> tuple:
        if priority and not may_realtime(priority):
            raise Unavailable(
                "this user may not use SCHED_FIFO", fix="run as root, or: ulimit -r 99"
            )
        blocks = [(5_000_000 + 18_000_000 * number, 6_000_000) for number in range(60)]
        return at.workload, [Hog({at.cpu: blocks}, priority=priority)]

    return disturbs


def _noise(kind: str, intensity: float, beside: bool) -> Callable[[Planting], tuple]:
    """Noise on the victim's CPU, or on the one beside it."""

    def disturbs(at: Planting) -> tuple:
        events = stressor_noise(kind, intensity, WINDOW_S, [_beside(at) if beside else at.cpu])
        if at.asked:  # an injector is calibrated, which takes the machine for a second
            return at.workload, []
        return at.workload, [Injector(NoiseConfig.from_events(events), placement="origin")]

    return disturbs


def _beside(at: Planting) -> int:
    if at.other == at.cpu:
        raise Unavailable(
            "this cause needs a second CPU", why="the culprit works beside the victim"
        )
    return at.other


def _shaken(at: Planting) -> tuple:
    return at.workload, [ShakenAffinity((at.cpu, _beside(at)), 0.0005)]


def _acts(*actions: Action) -> Callable[[Planting], tuple]:
    return lambda at: tuple(treat_workload(actions, at.workload))


def _returned_memory(at: Planting) -> tuple:
    return replace(at.workload, env=dict(at.workload.env) | {"MALLOC_MMAP_THRESHOLD_": "65536"}), []


def _slow_path(at: Planting) -> tuple:
    return replace(at.workload, command=(*at.workload.command[:3], "5000")), []


_KNOWN = (
    Cause(
        "cpu-hog", "an ordinary program competes for the CPU", "compute", 15000, _SHARED, _hog(0)
    ),
    Cause(
        "fifo-bursts",
        "a real-time program takes the CPU in bursts",
        "compute",
        15000,
        _SHARED,
        _hog(40),
    ),
    Cause(
        "cpu-quota",
        "a control group's CPU quota of 70 %",
        "compute",
        15000,
        ("cgroup_*", "throttled_*"),
        _acts(CpuQuota(0.7)),
    ),
    Cause("slow-path", "the program takes a slow path", "compute", 15000, ("retries",), _slow_path),
    Cause(
        "timer-storm",
        "30 000 timers a second expire on the CPU",
        "compute",
        15000,
        ("irq_LOC", "hit_local_timer", "softirq_TIMER", "softirq_HRTIMER"),
        _noise("timer", 30_000, beside=False),
    ),
    Cause(
        "interrupt-storm",
        "another CPU interrupts this one",
        "compute",
        15000,
        ("irq_CAL", "hit_function_call*", "hit_reschedule", "irq_RES"),
        _noise("ipi", 1e6, beside=True),
    ),
    Cause(
        "forced-migrations",
        "the affinity of the program is changed 2 000 times a second",
        "cache",
        4000,
        ("cpu_migrations", "hit_reschedule", "irq_RES"),
        _shaken,
    ),
    Cause(
        "cache-eviction",
        "the other CPU writes to all of the shared cache",
        "last_cache",
        200,
        ("cache_*", "llc_*", "l2_*", "l1d_*"),
        _noise("cache_l3", 1e12, beside=True),
        trail=CULPRIT,
    ),
    Cause(
        "memory-bandwidth",
        "the other CPU streams through memory",
        "stream",
        20,
        ("llc_*", "memory_bandwidth*", "mbm_*", "cache_misses"),
        _noise("memory_stream", 1e12, beside=True),
        trail=CULPRIT,
    ),
    Cause(
        "returned-memory",
        "the allocator gives memory back at once, and the program faults it in again",
        "allocate",
        230,
        (
            "minor_faults",
            "page_faults",
            "minor_faults_perf",
            "vm_pgfault",
            "vm_pgalloc_*",
            "vm_pgfree",
            "own_pages_given",
        ),
        _returned_memory,
    ),
    Cause(
        "small-pages",
        "no huge pages for the program",
        "huge",
        4,
        (
            "minor_faults",
            "page_faults",
            "minor_faults_perf",
            "vm_pgfault",
            "vm_thp_*",
            "vm_pgalloc_*",
            "vm_pgfree",
            "own_pages_given",
        ),
        _acts(NoHugePages()),
    ),
    Cause(
        "dropped-cache",
        "the file to be read is not in the page cache",
        "map",
        50,
        (
            "major_faults",
            "major_faults_perf",
            "vm_pgmajfault",
            "vm_pgpgin",
            "read_bytes",
            "disk_read_*",
            "block_io_delay_ns",
            "vm_workingset_*",
            "vm_filemap*",
        ),
        lambda at: (at.workload, [DroppedFile(at.file)]),
        file="map",
    ),
    Cause(
        "disk-contention",
        "somebody else writes and flushes to the same disk",
        "disk",
        20,
        (
            "disk_write_*",
            "disk_busy_ms",
            "block_io_delay_ns",
            "pressure_io_*",
            "vm_pgpgout",
            "vm_nr_written",
            "vm_nr_dirtied",
        ),
        _noise("io_sync", 1e12, beside=True),
        file="disk",
    ),
)


def causes() -> dict[str, Cause]:
    """All causes by id."""
    return {cause.id: cause for cause in _KNOWN}


def cause_campaign(
    folder: str | os.PathLike | None,
    cause: str | Cause,
    runs: int,
    seed: int = 1,
    layers: Sequence[str] = ("all",),
) -> Campaign:
    """A campaign in which a random quarter of the runs has a cause: in each block of four, one.

    Parameters
    ----------
    folder
        Of the campaign; None: in memory only. The victim's file lies in a private folder for
        temporary files, and is removed at the end.
    cause
        Its id.
    runs
        All runs, a multiple of four.
    seed
        Of the order.
    layers
        Metric layers that accompany every run.

    Returns
    -------
    Campaign, whose runs have the column `truth`: the cause's id, or "none".

    Raises
    ------
    InputError
        No such cause, or a number of runs that is no multiple of four.
    Unavailable
        It can't be planted here.
    """
    cause = cause if isinstance(cause, Cause) else _known(cause)
    if runs < BLOCK or runs % BLOCK:
        raise InputError(
            f"{runs} runs of '{cause.id}'",
            fix=f"a multiple of {BLOCK}: one run in {BLOCK} is disturbed",
        )
    at = _place(cause)
    workload, attachments = cause.disturbs(at)
    undisturbed = [
        Cell(f"undisturbed {number}", at.workload, attachments=(Planted(UNDISTURBED),))
        for number in range(1, BLOCK)
    ]
    cells = [
        *undisturbed,
        Cell("disturbed", workload, attachments=(Planted(cause.id, attachments),)),
    ]
    files = [VictimFile(at.file, cause.file == "disk")] if at.file else []
    return Campaign(folder, cells, runs // BLOCK, seed, attachments=(*files, *metrics(*layers)))


def _known(name: str) -> Cause:
    if name not in causes():
        raise InputError(f"there is no cause '{name}'", fix=f"one of {', '.join(causes())}")
    return causes()[name]


def _place(cause: Cause) -> Planting:
    cpus = sorted(os.sched_getaffinity(0))
    file = leftovers.scratch_folder() / f"victim-{cause.file}" if cause.file else None
    words = [
        str(binary_folder() / "victim"),
        cause.work,
        str(cause.steps),
        "0",
        *([str(file)] if file else []),
    ]
    return Planting(
        Workload(f"victim {cause.work}", "external", tuple(words), start="mark", cpus=(cpus[-1],)),
        cpus[-1],
        cpus[0],
        file,
    )


def cause_runs(
    folder: str | os.PathLike,
    names: Sequence[str],
    runs: int,
    seed: int = 1,
    recorded_only: bool = False,
    layers: Sequence[str] = ("all",),
) -> dict[str, pd.DataFrame]:
    """The runs of several causes: measured, as far as they are missing, or as they were recorded.

    Parameters
    ----------
    folder
        Holds a campaign a cause.
    names
        Ids; causes that cannot be planted here are left out of what is measured.
    runs, seed, layers
        Of each campaign.
    recorded_only
        True: nothing is planted.

    Returns
    -------
    cause id -> runs table with the column `truth`.

    Raises
    ------
    InputError
        There is no such cause, or nothing was recorded.
    """
    if recorded_only:
        return {name: recorded_runs(Path(folder) / name) for name in names}
    return {
        name: cause_campaign(Path(folder) / name, name, runs, seed, layers).run()
        for name in names
        if planting_error(name) is None
    }


def disturbed_victim(name: str) -> tuple[Workload, tuple[Attachment, ...]]:
    """The victim of a cause and the attachments that disturb every run of it: something to try
    mitigations on.

    Raises
    ------
    InputError
        There is no such cause. Unavailable : it cannot be planted here.
    """
    cause = _known(name)
    at = _place(cause)
    workload, attachments = cause.disturbs(at)
    return workload, (
        *([VictimFile(at.file, cause.file == "disk")] if at.file else []),
        Planted(cause.id, attachments),
    )


def planting_error(name: str) -> NoisebookError | None:
    """The error that planting a cause here would end in; None: it can be planted."""
    cause = _known(name)
    try:
        cause.disturbs(replace(_place(cause), asked=True))
    except NoisebookError as error:
        return error
    return None


def not_planted_sentences(names: Sequence[str], planted: Mapping[str, pd.DataFrame]) -> list[str]:
    """A sentence on each cause of which there are no runs: why, and the command that would change
    that.

    Parameters
    ----------
    names
        As given to `cause_runs`.
    planted
        What it returned.
    """
    missing = {name: planting_error(name) for name in names if name not in planted}
    return [f"Not planted: {name}, {_told(refusal)}." for name, refusal in missing.items()]


def _told(refusal: NoisebookError | None) -> str:
    if refusal is None:
        return "which was not possible when the others were measured"
    return refusal.what + (f" ({refusal.fix})" if refusal.fix else "")


def describe_causes(names: Sequence[str] | None = None) -> pd.DataFrame:
    """What each cause is: cause, what, victim, shown_by (columns), trail."""
    chosen = [_known(name) for name in names] if names is not None else list(_KNOWN)
    rows = [
        {
            "cause": cause.id,
            "what": cause.what,
            "victim": cause.work,
            "shown_by": " ".join(cause.shown_by),
            "trail": " ".join(cause.trail),
        }
        for cause in chosen
    ]
    return pd.DataFrame(rows)
