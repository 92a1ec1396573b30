"""Fixed work as the ruler of speed: by what factor a thread was slower, resolved in time.

Owns the comparison of calls of one function between runs (as in vSensor and VAPRO). A program
clocked its own chunks while a neighbour copied memory (24 runs, load 2.7, benchmarks/ruler.py).
r with its clock, piece by piece: 0.92 for a chain of operations, 0.88 for arrays. The plain rival,
the run's CPU time over its median, has 0.12 and 0.23. The truth is in 97 and 96 % of the intervals.
Few runs are too few: with 6 runs of 100 chunks the rival won on arrays (mean error 0.35 against
0.81). The probe's samples lost to the rival (12 runs, load 3.6: mean error 0.09 against 0.02, 0.27
against 0.26), so nothing is said of a program without marks.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ..outcomes import ordinary_runs
from .waits import read_calls

COLUMNS = ["run", "thread", "start_ns", "end_ns", "busy_ns", "factor", "low", "high"]
_NORMAL_95, _SD_OF_MAD = 1.96, 1.4826
_GRID = 64  # calls at which ordinary runs are compared


def slowness(
    folder: str | Path, runs: pd.DataFrame, taken: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Factor by which fixed work took longer than in ordinary runs.

    Parameters
    ----------
    folder
        Folder in which `SpeedProbe` stored its files.
    runs
        Finished runs of one configuration; all but the slowest quarter are ordinary.
    taken
        When threads were without their CPU: `run`, `thread`, `start_ns`, `end_ns`; that is no
        slowness, and is taken off the busy time. None: nothing is.

    Returns
    -------
    One row a piece of a thread, calls of one function that follow each other (`read_calls`):
    `run`, `thread`, `start_ns`, `end_ns` (from the begin of the timed region), `busy_ns` (of these
    calls), `factor` (1: as in ordinary runs), `low`, `high` (95 %). Pieces of nested functions may
    overlap. No rows: no run has marks.

    Raises
    ------
    InputError
        A file is missing or damaged.

    Notes
    -----
    The factor is the busy time of the calls over the median that ordinary runs took for the same
    calls (same function, same thread by its rank, same numbers of calls). The interval is the
    spread of single pieces in ordinary runs. Calls beyond the median number are more work, not
    slowness: they are compared with the median of a call. A call that does more in this run
    (another input) looks slower: nothing here tells the two apart.
    """
    fast = ordinary_runs(runs)["run"].to_numpy()
    return _of_regions(_without(read_calls(folder, runs), taken), fast)


# --- calls of functions ---------------------------------------------------------------------------


def _without(calls: pd.DataFrame, taken: pd.DataFrame | None) -> pd.DataFrame:
    """Busy time less what was taken of it; calls that wait too lose their busy share of it."""
    if taken is None or calls.empty:
        return calls
    lost_ns = np.zeros(len(calls))
    groups = dict(iter(taken.groupby(["run", "thread"])))
    for key, rows in calls.groupby(["run", "thread"]).indices.items():
        if key in groups:
            start, end = (calls[name].to_numpy(float)[rows] for name in ("start_ns", "end_ns"))
            lost_ns[rows] = _within(_apart(groups[key]), start, end)
    share = calls["busy_ns"] / (calls["end_ns"] - calls["start_ns"]).clip(lower=1)
    return calls.assign(busy_ns=(calls["busy_ns"] - lost_ns * share.clip(upper=1)).clip(lower=0))


def _apart(intervals: pd.DataFrame) -> pd.DataFrame:
    """Intervals that may overlap, each cut at the end of those before it, with `length_ns`."""
    intervals = intervals.sort_values("start_ns")
    before = intervals["end_ns"].cummax().shift(fill_value=0)
    start = intervals["start_ns"].clip(lower=before)
    own = intervals.assign(start_ns=start, length_ns=intervals["end_ns"] - start)
    return own[own["length_ns"] > 0]


def _within(intervals: pd.DataFrame, start_ns: np.ndarray, end_ns: np.ndarray) -> np.ndarray:
    """The ns of disjoint intervals, in order, that lie between each start and end."""
    at = intervals[["start_ns", "end_ns"]].to_numpy(float).ravel()
    after = intervals["length_ns"].cumsum().to_numpy(float)
    sums = np.column_stack([np.append(0.0, after[:-1]), after]).ravel()
    return np.interp(end_ns, at, sums) - np.interp(start_ns, at, sums)


def _of_regions(calls: pd.DataFrame, fast: np.ndarray) -> pd.DataFrame:
    if calls.empty:
        return pd.DataFrame(columns=COLUMNS)
    ranks = calls.groupby("run")["thread"].rank("dense").astype(int)
    parts = [_of_function(own, fast) for _, own in calls.groupby([calls["function"], ranks])]
    table = pd.concat([part for part in parts if part is not None], ignore_index=True)
    return table.sort_values(["run", "thread", "start_ns"], ignore_index=True)[COLUMNS]


def _of_function(calls: pd.DataFrame, fast: np.ndarray) -> pd.DataFrame | None:
    """The pieces of one function and thread in all runs."""
    usual = calls[calls["run"].isin(fast)]
    if usual.empty:
        return None
    until = calls.groupby("run")["calls"].cumsum().to_numpy()
    numbers, busy_ns = _reference(usual)
    end, begin = (np.interp(at, numbers, busy_ns) for at in (until, until - calls["calls"]))
    beyond = busy_ns[-1] / numbers[-1]
    expected = np.where(until > numbers[-1], calls["calls"] * beyond, end - begin)
    table = calls.assign(factor=calls["busy_ns"] / np.maximum(expected, 1.0))
    table = table[(table["factor"] > 0) & (expected > 0)]
    logs = np.log(table["factor"][table["run"].isin(fast)])
    wide = np.exp(_NORMAL_95 * (_SD_OF_MAD * (logs - logs.median()).abs().median()))
    return table.assign(low=table["factor"] / wide, high=table["factor"] * wide)


def _reference(usual: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of calls, and the median of the busy time that ordinary runs took until each."""
    total = float(usual.groupby("run")["calls"].sum().median())
    numbers = np.unique(np.linspace(0, total, min(_GRID, int(total) + 1)).round())
    curves = []
    for _, own in usual.groupby("run"):
        until = np.append(0, own["calls"].cumsum())
        if until[-1] >= total:
            curves.append(np.interp(numbers, until, np.append(0, own["busy_ns"].cumsum())))
    steps = np.median(np.diff(np.array(curves), axis=1), axis=0)
    return numbers, np.append(0.0, np.cumsum(steps))
