"""The account of traced runs by owners, from the files that were recorded."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from ..speed import read_waits
from ..speed.ruler import slowness
from ..tracing.campaign import EVENTS, OWNERS, STATES, STOLEN, each_recording
from .owners import owners_of_path, with_speed, without_cpu
from .path import critical_path

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
    marked = speed if "wait_marks" in runs and runs["wait_marks"].gt(0).any() else None
    waits = None if marked is None else read_waits(marked, runs)
    found = [_of_run(tables, waits, _throttled_ns(runs)) for tables in each_recording(folder, runs)]
    if not found:
        nobody = pd.MultiIndex.from_arrays([[], []], names=["part", "owner"])
        return pd.DataFrame(index=pd.Index(runs["run"], name="run"), columns=nobody, dtype=float)
    owned, path, without = (pd.concat(tables, ignore_index=True) for tables in zip(*found))
    if marked is not None and len(runs) >= FEWEST:
        owned = with_speed(owned, path, slowness(marked, runs, without))
    wide = owned.pivot_table("ns", "run", ["part", "owner"], "sum", fill_value=0.0) / 1e6
    return wide.reindex(runs["run"]).fillna(0.0)


def _of_run(
    tables: Mapping[str, pd.DataFrame], waits: pd.DataFrame | None, throttled_ns: dict[int, float]
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The owners of a run's path, the path, and when its threads were without their CPU."""
    of_threads, events, stolen = tables[STATES], tables[EVENTS], tables[STOLEN]
    run = of_threads["run"].head(1).tolist()
    own = None if waits is None else waits[waits["run"].isin(run)]
    path = critical_path(of_threads, own)
    quota_ns = {number: throttled_ns[number] for number in run if number in throttled_ns}
    owned = owners_of_path(path, tables[OWNERS], events, stolen, quota_ns)
    without = without_cpu(of_threads.head(0) if waits is None else of_threads, events, stolen)
    return owned, path, without


def _throttled_ns(runs: pd.DataFrame) -> dict[int, float]:
    """How long each run's quota had run out, by either version of control groups."""
    for name, unit_ns in (("cgroup_throttled_us", 1e3), ("cgroup_throttled_ns", 1.0)):
        if name in runs and runs[name].notna().any():
            return dict(zip(runs["run"], unit_ns * runs[name]))
    return {}
