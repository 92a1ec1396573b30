"""The account of traced runs by owners, from the files that were recorded."""

from itertools import islice
from pathlib import Path

import pandas as pd

from ..measurement import region_seconds
from ..speed import read_waits
from ..speed.ruler import slowness
from ..tracing.campaign import EVENTS, OWNERS, STATES, STOLEN, each_recording
from .owners import LATENCY, owned_pieces, owners_of_path, with_speed, without_cpu
from .path import BARRIER, PROGRAM, UNSEEN, critical_path

TOGETHER = 20  # runs in memory at a time
FEWEST = 8  # runs, or the same calls of others say nothing
LOST = ["run", "cpu", "start_ns", "end_ns", "lost_ns", "cause"]
# part of the critical path -> cause of the losses that a replay can take away
CAUSE_OF = {
    "taken": "kernel",
    "runnable": "kernel",
    "hypervisor": "hypervisor",
    "slower": "slower",
}


def owned_ms(
    folder: str | Path, runs: pd.DataFrame, speed: str | Path | None = None
) -> pd.DataFrame:
    """Who had the time of each run's critical path, in ms.

    Parameters
    ----------
    folder
        Where `Tracer` put the traces.
    runs
        Finished runs.
    speed
        Where `SpeedProbe` put its files: when OpenMP threads worked and waited, and how long the
        calls of their functions took; None, or no marks: by wake-ups alone.

    Returns
    -------
    A row a run, columns (part, owner), see `owners_of_path` and, from 8 runs with marks on,
    `with_speed`; the sum of a row is the length of the run's timed region. No column where the runs
    were not recorded by tracepoints.

    Raises
    ------
    LostEvents, InputError
        A recording has losses, is missing or damaged.
    """
    return owned_and_lost(folder, runs, speed)[0]


def owned_and_lost(
    folder: str | Path,
    runs: pd.DataFrame,
    speed: str | Path | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Who had the time of each run, and when it was lost, from one reading of the recordings.

    Parameters
    ----------
    folder, runs, speed
        The arguments of `owned_ms`.

    Returns
    -------
    `owned_ms`, and its pieces that a replay can take away again: `run`, `cpu`, `start_ns`,
    `end_ns`, `lost_ns`, `cause` (kernel, hypervisor, slower). They are on the critical path, so
    that at a time one CPU loses, and their sum is that of the account; what calls took less than in
    ordinary runs is negative. No rows where the runs were not recorded by tracepoints; no slower
    calls without marks, or with less than 8 runs.

    Raises
    ------
    LostEvents, InputError
        A recording has losses, is missing or damaged.
    """
    marked = speed if _has_marks(runs) else None
    waits = None if marked is None else read_waits(marked, runs)
    recordings, found = each_recording(folder, runs), []
    while batch := list(islice(recordings, TOGETHER)):
        states, events, stolen, had = (
            pd.concat([one[name] for one in batch], ignore_index=True)
            for name in (STATES, EVENTS, STOLEN, OWNERS)
        )
        of_batch = None if waits is None else waits[waits["run"].isin(states["run"])]
        path = critical_path(states, of_batch)
        without = without_cpu(states.head(0) if waits is None else states, events, stolen)
        found.append((owned_pieces(path, had, events, stolen), without))
    if not found:
        nobody = pd.MultiIndex.from_arrays([[], []], names=["part", "owner"])
        nothing = pd.DataFrame(index=pd.Index(runs["run"], name="run"), columns=nobody, dtype=float)
        return nothing, pd.DataFrame(columns=LOST)
    pieces, without = (pd.concat(parts, ignore_index=True) for parts in zip(*found))
    if marked is not None and len(runs) >= FEWEST:
        pieces = with_speed(pieces, slowness(marked, runs, without))
    owned = owners_of_path(pieces, _throttled_ns(runs))
    wide = owned.pivot_table("ns", "run", ["part", "owner"], "sum", fill_value=0.0) / 1e6
    lost = pieces[pieces["part"].isin(CAUSE_OF) & (pieces["owner"] != LATENCY)]
    lost = lost.assign(lost_ns=lost["ns"].round(), cause=lost["part"].map(CAUSE_OF))
    return wide.reindex(runs["run"]).fillna(0.0), lost[LOST]


def _has_marks(runs: pd.DataFrame) -> bool:
    return "wait_marks" in runs and bool(runs["wait_marks"].gt(0).any())


def owned_by_threads(
    runs: pd.DataFrame, events: pd.DataFrame, speed: str | Path | None = None
) -> pd.DataFrame:
    """Who had the time of a run's threads, their mean, where no tracepoints were recorded.

    Parameters
    ----------
    runs, speed
        The arguments of `owned_ms`.
    events
        Noise events of the runs (`read_traces`), of another source; may have no rows.

    Returns
    -------
    The table of `owned_ms`: what events took, what the scheduler counted as waiting for a CPU,
    waiting by the marks, and the rest, `computing`.
    """
    runs = runs.set_index("run")
    region_ms, threads = 1e3 * region_seconds(runs), pd.Series(1.0, runs.index)
    parts = {}
    if speed is not None and _has_marks(runs):
        waits = read_waits(speed, runs.reset_index()).groupby("run")
        threads = waits["thread"].nunique().reindex(runs.index).fillna(1)
        busy_ms = waits["busy_ns"].sum().reindex(runs.index) / 1e6
        parts["waiting", BARRIER] = (region_ms - busy_ms / threads).fillna(0.0)
    hit = events[(events["interrupted"] == "workload").to_numpy()]
    took = hit.groupby(["run", "source"], observed=True)["duration_ns"].sum() / 1e6
    took = took.unstack(fill_value=0.0).reindex(runs.index, fill_value=0.0)
    parts |= {("taken", str(name)): took[name] / threads for name in took}
    if "process_runqueue_wait_ns" in runs:
        queued_ms = runs["process_runqueue_wait_ns"] / 1e6 / threads
        parts["runnable", UNSEEN] = (queued_ms - took.sum(axis=1) / threads).clip(lower=0)
    table = pd.DataFrame(parts, index=runs.index)
    table["computing", PROGRAM] = (region_ms - table.sum(axis=1)).clip(lower=0)
    return table.rename_axis(columns=["part", "owner"])


def _throttled_ns(runs: pd.DataFrame) -> dict[int, float]:
    """How long each run's quota had run out, by either version of control groups."""
    for name, unit_ns in (("cgroup_throttled_us", 1e3), ("cgroup_throttled_ns", 1.0)):
        if name in runs and runs[name].notna().any():
            return dict(zip(runs["run"], unit_ns * runs[name]))
    return {}
