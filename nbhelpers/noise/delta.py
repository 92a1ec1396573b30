"""The delta noise of a run: what it had beyond the average noise, and what is worth replaying.

Owns section 4.2 of Persson et al. (2025), second half, by its text (`paper`) and as its published
code computes it (`compat`).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import InputError
from ..outcomes import worst_first
from ._compat import compat_reduction
from ._tables import EVENT_COLUMNS, finished_seconds, group_sources, require_columns, whole_numbers

METHODS = ("paper", "compat")


@dataclass(frozen=True)
class Reduction:
    """What is taken from each event of the run (ns), and whether anything of it remains."""

    taken_ns: np.ndarray
    remains: np.ndarray


def delta_noise(
    events: pd.DataFrame,
    average: pd.DataFrame,
    runs: pd.DataFrame,
    run: int | None = None,
    method: str = "paper",
) -> pd.DataFrame:
    """Subtract the average noise from one run, so that a replay does not inject it twice.

    Of each source k = frequency × seconds of the run events are expected (rounded, half upwards).
    The k events whose durations are closest to the average duration are shortened by it (to whole
    ns). An event with nothing left is removed; the others keep their start. Of equally close events
    the earliest is shortened first (then: lowest CPU, shortest, lowest pid), so that the order of
    the rows does not matter.

    Parameters
    ----------
    events
        Noise events of one or more runs.
    average
        Table of `average_noise`, of these runs or of others.
    runs
        Runs table (run, seconds and, where there, status).
    run
        The run to take; None: the worst finished run by what the program is judged by, its length
        unless it reports another outcome (of equals the lowest number).
    method
        "paper": the text. "compat": what the published code computes, for comparison with published
        numbers. It takes the average *sum per run* in place of the average duration of an event,
        which removes recurring sources with all their outliers (`nbhelpers/noise/_compat.py`). It
        computes averages of `events` and `runs`; `average` is unused.

    Returns
    -------
    The events of the run that are left, in the order given, with all their columns; `duration_ns`
    and `end_ns` are reduced. `attrs` has `run`, `seconds`, `region_seconds` (its window, where the
    program reports another time), `method`, `removed_ns`, `remaining_ns` (together the noise of the
    run), `removed_events`, `remaining_events` (together the events of the run), `reduced_events`,
    and what `events.attrs` had.

    Raises
    ------
    InputError
        An unknown method, a run that did not finish or has no events, a missing column, an unusable
        value.

    Examples
    --------
    A timer that takes 2 µs strikes twice a second on average. In a run of one second it struck
    three times, once for 50 µs:

    >>> import pandas as pd
    >>> from nbhelpers import delta_noise
    >>> runs = pd.DataFrame({"run": [0], "seconds": [1.0], "status": "ok"})
    >>> events = pd.DataFrame(
    ...     {
    ...         "run": 0,
    ...         "cpu": 0,
    ...         "kind": "irq",
    ...         "source": "local_timer",
    ...         "start_ns": [0, 400_000, 800_000],
    ...         "duration_ns": [2000, 50_000, 2100],
    ...     }
    ... )
    >>> average = pd.DataFrame(
    ...     {
    ...         "kind": ["irq"],
    ...         "source": ["local_timer"],
    ...         "frequency_hz": [2.0],
    ...         "duration_ns": [2000.0],
    ...     }
    ... )
    >>> delta = delta_noise(events, average, runs)
    >>> delta[["start_ns", "duration_ns"]].values.tolist()
    [[400000, 50000], [800000, 100]]
    >>> delta.attrs["removed_ns"], delta.attrs["removed_events"], delta.attrs["remaining_events"]
    (4000, 1, 2)
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}", fix=f"method is one of {', '.join(METHODS)}")
    require_columns(events, EVENT_COLUMNS, "events")
    seconds = finished_seconds(runs)
    judged = finished_seconds(runs, "seconds")
    run = _chosen_run(runs, seconds, run)
    run_events = _events_of(events, run)
    if method == "paper":
        reduction = _paper_reduction(run_events, average, seconds[run])
    else:
        reduction = Reduction(*compat_reduction(events, run_events, seconds, run))
    window = {} if seconds[run] == judged[run] else {"region_seconds": float(seconds[run])}
    return _reduced(
        run_events,
        reduction,
        {"run": int(run), "seconds": float(judged[run]), **window, "method": method},
    )


def _chosen_run(runs: pd.DataFrame, seconds: pd.Series, run: int | None) -> int:
    if run is None:
        return int(worst_first(runs[runs["run"].isin(seconds.index)])["run"].iloc[0])
    if run not in seconds.index:
        raise InputError(
            f"run {run!r} is not a finished run",
            where="argument run",
            fix=(
                f"choose one of the {len(seconds)} finished runs, such as {seconds.idxmax()}, the"
                " longest"
            ),
        )
    return int(run)


def _events_of(events: pd.DataFrame, run: int) -> pd.DataFrame:
    run_events = events[whole_numbers(events, "run", "events", lowest=None) == run].reset_index(
        drop=True
    )
    if run_events.empty:
        raise InputError(
            f"run {run} has no noise events",
            where="events table",
            why="there is nothing to subtract from",
            fix="trace the run, or choose a traced one: delta_noise(…, run=NUMBER)",
        )
    return run_events


def _paper_reduction(run_events: pd.DataFrame, average: pd.DataFrame, seconds: float) -> Reduction:
    groups = group_sources(run_events["kind"], run_events["source"])
    mean_ns, expected = _expectations(average, groups.names, seconds)
    duration = whole_numbers(run_events, "duration_ns", "events")
    taken = np.zeros(len(run_events), np.int64)
    closest = _closest(run_events, groups.code, np.abs(duration - mean_ns[groups.code]), expected)
    taken[closest] = np.minimum(mean_ns[groups.code[closest]], duration[closest])
    return Reduction(taken, remains=taken < duration)


def _expectations(
    average: pd.DataFrame, names: pd.DataFrame, seconds: float
) -> tuple[np.ndarray, np.ndarray]:
    """Average duration (whole ns) and expected number of events in `seconds`, for each source; 0
    for one without average.
    """
    require_columns(average, ("kind", "source", "frequency_hz", "duration_ns"), "average noise")
    table = average.assign(kind=average["kind"].astype(str), source=average["source"].astype(str))
    table = table.set_index(["kind", "source"])[["frequency_hz", "duration_ns"]].astype(float)
    if not table.index.is_unique:
        raise InputError(
            f"the source {table.index[table.index.duplicated()][0]} occurs twice",
            where="average noise table",
        )
    numbers = table.to_numpy()
    if not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise InputError(
            "a frequency or duration is negative or not a number", where="average noise table"
        )
    wanted = table.reindex(pd.MultiIndex.from_frame(names)).fillna(0.0)
    expected = np.floor(wanted["frequency_hz"].to_numpy() * seconds + 0.5)
    mean_ns = np.floor(wanted["duration_ns"].to_numpy() + 0.5)
    return mean_ns.astype(np.int64), np.minimum(expected, np.iinfo(np.int64).max // 2).astype(
        np.int64
    )


def _closest(
    run_events: pd.DataFrame, code: np.ndarray, distance: np.ndarray, expected: np.ndarray
) -> np.ndarray:
    """Positions of the `expected[g]` events of each group g with the smallest distance, all in time
    linear in the events.
    """
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(np.bincount(code, minlength=len(expected)))
    smallest = [
        _smallest(run_events, order[end - size : end], distance, wanted)
        for end, size, wanted in zip(ends, np.diff(ends, prepend=0), expected)
        if wanted > 0
    ]
    return np.concatenate(smallest) if smallest else np.array([], np.int64)


def _smallest(
    run_events: pd.DataFrame, members: np.ndarray, distance: np.ndarray, wanted: int
) -> np.ndarray:
    """The `wanted` members with the smallest distance; ties only are sorted."""
    if wanted >= len(members):
        return members
    near = distance[members]
    limit = np.partition(near, wanted - 1)[wanted - 1]
    below, tied = members[near < limit], members[near == limit]
    return np.concatenate([below, tied[_tie_order(run_events, tied)][: wanted - len(below)]])


def _tie_order(run_events: pd.DataFrame, rows: np.ndarray) -> np.ndarray:
    keys = [
        run_events[column].to_numpy()[rows]
        for column in ("pid", "duration_ns", "cpu", "start_ns")
        if column in run_events.columns
    ]
    return np.lexsort(keys)


def _reduced(run_events: pd.DataFrame, reduction: Reduction, attrs: dict) -> pd.DataFrame:
    """Apply the reduction, and state what was removed and what remains."""
    duration = whole_numbers(run_events, "duration_ns", "events")
    left = (duration - reduction.taken_ns)[reduction.remains]
    delta = run_events[reduction.remains].reset_index(drop=True)
    delta["duration_ns"] = left
    if "end_ns" in delta.columns:
        delta["end_ns"] = delta["end_ns"].to_numpy() - reduction.taken_ns[reduction.remains]
    reduced = int((reduction.taken_ns[reduction.remains] > 0).sum())
    remaining_ns = int(left.sum())
    delta.attrs = {
        **run_events.attrs,
        **attrs,
        "removed_ns": int(duration.sum()) - remaining_ns,
        "remaining_ns": remaining_ns,
        "removed_events": len(run_events) - len(delta),
        "remaining_events": len(delta),
        "reduced_events": reduced,
    }
    return delta
