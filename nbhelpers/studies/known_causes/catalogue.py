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
from ...mitigation.action import Action, with_variables
from ...mitigation.inherited import NoHugePages
from ...mitigation.treatment import treat_workload
from ...noise import NoiseConfig, stressor_noise
from ...workloads import Workload, binary_folder
from .planting import CpuQuota, DroppedFile, ShakenAffinity, Truth, VictimFile

UNDISTURBED = "none"
BLOCK = 4  # runs, one of which is disturbed
WINDOW_S = 3.0  # of the noise: longer than any run
_COMPETING = (
    "runqueue_wait_ns",
    "process_runqueue_wait_ns",
    "others_busy_s",
    "involuntary_switches",
    "context_switches",
    "timeslices",
    "process_timeslices",
    "pressure_cpu_*",
)
# columns that show a culprit's CPU time and its memory
CULPRIT = (
    "others_busy_s",
    "machine_busy_s",
    "anon_huge_machine_kb",
    "memory_free_kb",
    "memory_available_kb",
)


@dataclass(frozen=True)
class Cause:
    """Something that can be planted, and a program that suffers from it.

    Attributes
    ----------
    id, what
        For tables; for people.
    work, steps
        Of the program `victim`: its kind, and how many steps (about 0.1 s on the machine of the
        recorded campaign).
    shown_by
        Columns that show the cause itself, with * for any text. An attribution is right if its
        first factor has one of them.
    plant
        Plants the cause: makes the disturbed workload and its attachments.
    trail
        Columns that show only that another program was active. They count as right on a machine
        without a counter of the cause itself, and never in the strict score.
    file
        What the victim needs in the scratch folder: "map" (16 MiB to read) or "disk" (to be
        written).
    """

    id: str
    what: str
    work: str
    steps: int
    shown_by: tuple[str, ...]
    plant: Callable[["Place"], "Planted"]
    trail: tuple[str, ...] = ()
    file: str = ""

    def __repr__(self) -> str:
        return f"Cause({self.id}: {self.what})"

    @property
    def on_victim(self) -> tuple[str, ...]:
        """Columns that show what happened to the victim, and not what the culprit did meanwhile;
        the strict score needs one of them.
        """
        return tuple(pattern for pattern in self.shown_by if pattern not in CULPRIT)


Planted = tuple[Workload, Sequence[Attachment]]


@dataclass(frozen=True)
class Place:
    """Where a cause is planted.

    Attributes
    ----------
    workload, file
        The victim, and what it reads or writes.
    cpu, other_cpu
        The victim's, and another one.
    trial
        True: only find out whether the cause can be planted.
    """

    workload: Workload
    cpu: int
    other_cpu: int
    file: Path | None
    trial: bool = False


def _hog(priority: int) -> Callable[[Place], Planted]:
    def plant(at: Place) -> Planted:
        if priority and not may_realtime(priority):
            raise Unavailable(
                "this user may not use SCHED_FIFO", fix="run as root, or: ulimit -r 99"
            )
        blocks = [(5_000_000 + 18_000_000 * number, 6_000_000) for number in range(60)]
        return at.workload, [Hog({at.cpu: blocks}, priority=priority)]

    return plant


def _noise(kind: str, intensity: float, other_cpu: bool) -> Callable[[Place], Planted]:
    """Noise on the victim's CPU, or on the other one."""

    def plant(at: Place) -> Planted:
        cpu = _second_cpu(at) if other_cpu else at.cpu
        events = stressor_noise(kind, intensity, WINDOW_S, [cpu])
        if at.trial:  # an injector is calibrated, which takes the machine for a second
            return at.workload, []
        return at.workload, [Injector(NoiseConfig.from_events(events), placement="origin")]

    return plant


def _second_cpu(at: Place) -> int:
    if at.other_cpu == at.cpu:
        raise Unavailable(
            "this cause needs a second CPU", why="the culprit runs at the same time as the victim"
        )
    return at.other_cpu


def _move_between_cpus(at: Place) -> Planted:
    return at.workload, [ShakenAffinity((at.cpu, _second_cpu(at)), 0.0005)]


def _act(*actions: Action) -> Callable[[Place], Planted]:
    def plant(at: Place) -> Planted:
        treated = treat_workload(actions, at.workload)
        return treated.workload, treated.attachments

    return plant


def _return_memory(at: Place) -> Planted:
    variables = {"MALLOC_MMAP_THRESHOLD_": "65536"}
    return replace(at.workload, env=with_variables(at.workload, variables)), []


def _drop_file(at: Place) -> Planted:
    assert at.file  # the cause has a file
    return at.workload, [DroppedFile(at.file)]


def _take_slow_path(at: Place) -> Planted:
    return replace(at.workload, command=(*at.workload.command[:3], "5000")), []


_KNOWN = (
    Cause(
        "cpu-hog", "an ordinary program competes for the CPU", "compute", 15000, _COMPETING, _hog(0)
    ),
    Cause(
        "fifo-bursts",
        "a real-time program takes the CPU in bursts",
        "compute",
        15000,
        _COMPETING,
        _hog(40),
    ),
    Cause(
        "cpu-quota",
        "a control group's CPU quota of 70 %",
        "compute",
        15000,
        ("cgroup_*", "throttled_*"),
        _act(CpuQuota(0.7)),
    ),
    Cause(
        "slow-path",
        "the program takes a slow path",
        "compute",
        15000,
        ("retries",),
        _take_slow_path,
    ),
    Cause(
        "timer-storm",
        "30 000 timers a second expire on the CPU",
        "compute",
        15000,
        ("irq_LOC", "hit_local_timer", "softirq_TIMER", "softirq_HRTIMER"),
        _noise("timer", 30_000, other_cpu=False),
    ),
    Cause(
        "interrupt-storm",
        "another CPU interrupts this one",
        "compute",
        15000,
        ("irq_CAL", "hit_function_call*", "hit_reschedule", "irq_RES"),
        _noise("ipi", 1e6, other_cpu=True),
    ),
    Cause(
        "forced-migrations",
        "the affinity of the program is changed 2 000 times a second",
        "cache",
        4000,
        ("cpu_migrations", "hit_reschedule", "irq_RES"),
        _move_between_cpus,
    ),
    Cause(
        "cache-eviction",
        "the other CPU writes to all of the shared cache",
        "last_cache",
        200,
        ("cache_*", "llc_*", "l2_*", "l1d_*"),
        _noise("cache_l3", 1e12, other_cpu=True),
        trail=CULPRIT,
    ),
    Cause(
        "memory-bandwidth",
        "the other CPU streams through memory",
        "stream",
        20,
        ("llc_*", "memory_bandwidth*", "mbm_*", "cache_misses"),
        _noise("memory_stream", 1e12, other_cpu=True),
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
        _return_memory,
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
        _act(NoHugePages()),
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
        _drop_file,
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
        _noise("io_sync", 1e12, other_cpu=True),
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
    """A campaign in which one random run of each block of four has a cause.

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
    Campaign; its runs have the column `truth`: the cause's id, or "none".

    Raises
    ------
    InputError
        No such cause, or a number of runs that is no multiple of four.
    Unavailable
        It can't be planted here.
    """
    cause = cause if isinstance(cause, Cause) else known_cause(cause)
    if runs < BLOCK or runs % BLOCK:
        raise InputError(
            f"{runs} runs of '{cause.id}'",
            fix=f"a multiple of {BLOCK}: one run in {BLOCK} is disturbed",
        )
    at = _place(cause)
    workload, attachments = cause.plant(at)
    undisturbed = [
        Cell(f"undisturbed {number}", at.workload, attachments=(Truth(UNDISTURBED),))
        for number in range(1, BLOCK)
    ]
    cells = [
        *undisturbed,
        Cell("disturbed", workload, attachments=(Truth(cause.id, attachments),)),
    ]
    attached = (*_files(cause, at), *metrics(*layers))
    return Campaign(folder, cells, runs // BLOCK, seed, attachments=attached)


def known_cause(name: str) -> Cause:
    """The cause of an id.

    Raises
    ------
    InputError
        There is no such cause.
    """
    if name not in causes():
        raise InputError(f"there is no cause '{name}'", fix=f"one of {', '.join(causes())}")
    return causes()[name]


def _place(cause: Cause) -> Place:
    cpus = sorted(os.sched_getaffinity(0))
    file = leftovers.scratch_folder() / f"victim-{cause.file}" if cause.file else None
    command = [str(binary_folder() / "victim"), cause.work, str(cause.steps), "0"]
    if file:
        command.append(str(file))
    name, cpu = f"victim {cause.work}", cpus[-1]
    workload = Workload(name, "external", tuple(command), start="mark", cpus=(cpu,))
    return Place(workload, cpu, cpus[0], file)


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
        Ids; causes that cannot be planted here are not measured.
    runs, seed, layers
        Of each campaign.
    recorded_only
        True: use recorded data, plant nothing.

    Returns
    -------
    Cause id -> runs table with the column `truth`.

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
    """The victim of a cause, and the attachments that disturb every run of it.

    Mitigations are tried on it.

    Parameters
    ----------
    name
        Of the cause.

    Raises
    ------
    InputError
        There is no such cause.
    Unavailable
        It cannot be planted here.
    """
    cause = known_cause(name)
    at = _place(cause)
    workload, attachments = cause.plant(at)
    return workload, (*_files(cause, at), Truth(cause.id, attachments))


def _files(cause: Cause, at: Place) -> list[VictimFile]:
    return [VictimFile(at.file, cause.file == "disk")] if at.file else []


def planting_error(name: str) -> NoisebookError | None:
    """The error that planting a cause here would end in; None: it can be planted.

    Parameters
    ----------
    name
        Of the cause.
    """
    cause = known_cause(name)
    try:
        cause.plant(replace(_place(cause), trial=True))
    except NoisebookError as error:
        return error
    return None


def not_planted_sentences(names: Sequence[str], planted: Mapping[str, pd.DataFrame]) -> list[str]:
    """A sentence on each cause without runs: why, and the fix.

    Parameters
    ----------
    names
        Of causes, as passed to `cause_runs`.
    planted
        What it returned.
    """
    missing = {name: planting_error(name) for name in names if name not in planted}
    return [f"Not planted: {name}, {_reason(error)}." for name, error in missing.items()]


def _reason(error: NoisebookError | None) -> str:
    if error is None:
        return "which was not possible when the others were measured"
    return error.what + (f" ({error.fix})" if error.fix else "")


def describe_causes(names: Sequence[str] | None = None) -> pd.DataFrame:
    """What each cause is.

    Parameters
    ----------
    names
        Ids; None: all causes.

    Returns
    -------
    DataFrame, a row a cause; columns cause, what, victim, shown_by (columns), trail.
    """
    chosen = [known_cause(name) for name in names] if names is not None else list(_KNOWN)
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
