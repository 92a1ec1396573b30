"""The account of traced runs by owners, from the files that were recorded."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import pandas as pd

from ..measurement import region_seconds
from ..speed import read_waits
from ..speed.ruler import slowness
from ..tracing.campaign import EVENTS, OWNERS, STATES, STOLEN, each_recording
from .edges import Edges
from .losses import joined_losses, longer_calls, taken_times
from .owners import owners_of_path, with_speed, without_cpu
from .path import BARRIER, PROGRAM, UNSEEN, critical_path

TOGETHER = 20  # runs in memory at a time
FEWEST = 8  # runs, or the same calls of others say nothing


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
    edges: Edges | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Who had the time of each run, and when it was lost, from one reading of the recordings.

    Parameters
    ----------
    folder, runs, speed
        As for `owned_ms`.
    edges
        Length of the ways into the kernel and out (`measure_edges`); None: the second has no rows.

    Returns
    -------
    `owned_ms`, and one row an interval and CPU in which time was lost that a replay can take away
    again: `run`, `cpu`, `start_ns`, `end_ns`, `lost_ns`, `cause` (kernel, hypervisor, slower).
    Intervals without the CPU are lost whole, their ways in and out included. Calls that took longer
    lose what they took beyond ordinary runs' same calls. No rows where the runs were not recorded
    by tracepoints; no slower calls without marks, or with less than 8 runs.

    Raises
    ------
    LostEvents, InputError
        A recording has losses, is missing or damaged.
    """
    marked = speed if _has_marks(runs) else None
    waits = None if marked is None else read_waits(marked, runs)
    recordings, throttled_ns = each_recording(folder, runs), _throttled_ns(runs)
    found, lost, ran = [], [], []
    while batch := list(islice(recordings, TOGETHER)):
        states, events, stolen, had = (
            pd.concat([one[name] for one in batch], ignore_index=True)
            for name in (STATES, EVENTS, STOLEN, OWNERS)
        )
        found.append(_of_runs(states, events, stolen, had, waits, throttled_ns))
        if edges is not None:
            lost.append(taken_times(states, events, stolen, had, edges, runs))
            ran.append(states.query("state == 'running'")[["run", "thread", "start_ns", "cpu"]])
    if not found:
        nobody = pd.MultiIndex.from_arrays([[], []], names=["part", "owner"])
        nothing = pd.DataFrame(index=pd.Index(runs["run"], name="run"), columns=nobody, dtype=float)
        return nothing, joined_losses([])
    owned, path, without = (pd.concat(parts, ignore_index=True) for parts in zip(*found))
    if marked is not None and len(runs) >= FEWEST:
        slower = slowness(marked, runs, without)
        owned = with_speed(owned, path, slower)
        lost += [longer_calls(slower, pd.concat(ran))] if ran else []
    wide = owned.pivot_table("ns", "run", ["part", "owner"], "sum", fill_value=0.0) / 1e6
    return wide.reindex(runs["run"]).fillna(0.0), joined_losses(lost)


def _has_marks(runs: pd.DataFrame) -> bool:
    return "wait_marks" in runs and bool(runs["wait_marks"].gt(0).any())


def owned_by_threads(
    runs: pd.DataFrame, events: pd.DataFrame, speed: str | Path | None = None
) -> pd.DataFrame:
    """Who had the time of a run's threads, their mean, where no tracepoints were recorded.

    Parameters
    ----------
    runs, speed
        As for `owned_ms`.
    events
        Noise events of the runs (`read_traces`), of another source; may have no rows.

    Returns
    -------
    As `owned_ms`: what events took, what the scheduler counted as waiting for a CPU, waiting by the
    marks, and the rest, `computing`.
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


def _of_runs(
    of_threads: pd.DataFrame,
    events: pd.DataFrame,
    stolen: pd.DataFrame,
    had: pd.DataFrame,
    waits: pd.DataFrame | None,
    throttled_ns: Mapping[int, float],
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The owners of the runs' paths, the paths, and when their threads were without their CPU."""
    runs = of_threads["run"].unique()
    path = critical_path(of_threads, None if waits is None else waits[waits["run"].isin(runs)])
    quota_ns = {run: throttled_ns[run] for run in runs if run in throttled_ns}
    owned = owners_of_path(path, had, events, stolen, quota_ns)
    without = without_cpu(of_threads.head(0) if waits is None else of_threads, events, stolen)
    return owned, path, without


def _throttled_ns(runs: pd.DataFrame) -> dict[int, float]:
    """How long each run's quota had run out, by either version of control groups."""
    for name, unit_ns in (("cgroup_throttled_us", 1e3), ("cgroup_throttled_ns", 1.0)):
        if name in runs and runs[name].notna().any():
            return dict(zip(runs["run"], unit_ns * runs[name]))
    return {}
