"""The delta noise of a run: what it had beyond the average noise, and what is worth replaying.

Owns two definitions. "paper" is section 4.2 of Persson et al. (2025), second half, by its text.
(The published code takes away a source's sum in a run instead of one event of it, and with it the
outliers that slow a run down.) "time" takes off the time that ordinary runs lose, source by source
and in sum, so that a replay adds none of the ordinary. Of the 5.7 ms of noise of an ordinary
recorded run (mean of the middle 100 of 200) "paper" leaves 1.6 ms, "time" 0.9 ms.
"""

import numpy as np
import pandas as pd

from ..errors import InputError
from ..outcomes import worst_first
from ._tables import EVENT_COLUMNS, categories, finished_seconds, require_columns, whole_numbers
from ._vocabulary import KINDS


def delta_noise(
    events: pd.DataFrame,
    average: pd.DataFrame,
    runs: pd.DataFrame,
    run: int | None = None,
    method: str = "paper",
) -> pd.DataFrame:
    """Subtract the average noise from one run, so that a replay does not inject it twice.

    By "paper", of each source k = frequency × seconds of the run events are expected (rounded,
    half upwards). The k events whose durations are closest to the average duration are shortened by
    it (to whole ns). An event with nothing left is removed; the others keep their start. Of equally
    close events the earliest is shortened first (then: lowest CPU, shortest, lowest pid), so that
    the order of the rows does not matter.

    By "time", each source loses frequency × duration × seconds of the run, its shortest events
    first. What a source had less than that is then taken off the other sources that ordinary runs
    have, in the same way. A source that none of them has is left whole.

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
        "paper" or "time". With "time", pass the average of `ordinary_runs`.

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
        A run that did not finish or has no events, a missing column, an unusable value, an unknown
        method.

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
        raise InputError(f"unknown method {method!r}", fix=f"use one of {', '.join(METHODS)}")
    require_columns(events, EVENT_COLUMNS, "events")
    seconds = finished_seconds(runs)
    judged = finished_seconds(runs, "seconds")
    run = _chosen_run(runs, seconds, run)
    run_events = _events_of(events, run)
    taken_ns = METHODS[method](run_events, average, seconds[run])
    window = {} if seconds[run] == judged[run] else {"region_seconds": float(seconds[run])}
    return _reduced(
        run_events,
        taken_ns,
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


def _taken_ns(run_events: pd.DataFrame, average: pd.DataFrame, seconds: float) -> np.ndarray:
    """What is taken from each event of the run: the average of its source, where it is one of the
    expected ones.
    """
    kind, source = categories(run_events, "kind", KINDS), categories(run_events, "source")
    sources = pd.DataFrame({"kind": kind, "source": source}).astype(str)
    usual = sources.merge(_expectations(average, seconds), "left", ["kind", "source"]).fillna(0)
    mean_ns, expected = (usual[name].to_numpy(np.int64) for name in ("mean_ns", "expected"))
    duration = whole_numbers(run_events, "duration_ns", "events")
    names = ("pid", "duration_ns", "cpu", "start_ns")  # the last decides first
    ties = [run_events[name].to_numpy() for name in names if name in run_events.columns]
    order = np.lexsort([*ties, np.abs(duration - mean_ns)])
    place = sources.iloc[order].groupby(["kind", "source"]).cumcount().to_numpy()
    closest = order[place < expected[order]]
    taken = np.zeros(len(run_events), np.int64)
    taken[closest] = np.minimum(mean_ns, duration)[closest]
    return taken


def _time_taken_ns(run_events: pd.DataFrame, average: pd.DataFrame, seconds: float) -> np.ndarray:
    """What is taken from each event of the run: of each source the time of ordinary runs, and then
    what some had less than theirs from the others that ordinary runs have.
    """
    usual_ns = average["frequency_hz"].to_numpy(float) * average["duration_ns"].to_numpy(float)
    usual = _expectations(average, seconds).assign(usual_ns=np.rint(usual_ns * seconds))
    kind, source = categories(run_events, "kind", KINDS), categories(run_events, "source")
    sources = pd.DataFrame({"kind": kind, "source": source}).astype(str)
    own_ns = sources.merge(usual, "left", ["kind", "source"])["usual_ns"]
    duration = pd.Series(whole_numbers(run_events, "duration_ns", "events"))
    names = [name for name in ("pid", "start_ns", "cpu") if name in run_events.columns]
    order = np.lexsort([*(run_events[name].to_numpy() for name in names), duration])
    ordered = duration.iloc[order]
    before = ordered.groupby([sources["kind"], sources["source"]]).cumsum() - ordered
    taken = (own_ns.fillna(0) - before).clip(0, duration)
    left = (duration - taken).where(own_ns.notna(), 0).iloc[order]
    spare_ns = usual["usual_ns"].sum() - taken.sum()
    return (taken + (spare_ns - left.cumsum() + left).clip(0, left)).to_numpy(np.int64)


METHODS = {"paper": _taken_ns, "time": _time_taken_ns}


def _expectations(average: pd.DataFrame, seconds: float) -> pd.DataFrame:
    """Average duration (whole ns) and expected number of events in `seconds`, a row a source."""
    require_columns(average, ("kind", "source", "frequency_hz", "duration_ns"), "average noise")
    table = average[["kind", "source"]].astype(str)
    if table.duplicated().any():
        raise InputError(
            f"the source {tuple(table[table.duplicated()].iloc[0])} occurs twice",
            where="average noise table",
        )
    numbers = average[["frequency_hz", "duration_ns"]].astype(float)
    if not (np.isfinite(numbers) & (numbers >= 0)).all(axis=None):
        raise InputError(
            "a frequency or duration is negative or not a number", where="average noise table"
        )
    expected = np.floor(numbers["frequency_hz"] * seconds + 0.5).clip(upper=2.0**52)
    return table.assign(expected=expected, mean_ns=np.floor(numbers["duration_ns"] + 0.5))


def _reduced(run_events: pd.DataFrame, taken_ns: np.ndarray, attrs: dict) -> pd.DataFrame:
    """Take it away, and state what was removed and what remains."""
    duration = whole_numbers(run_events, "duration_ns", "events")
    left_ns = duration - taken_ns
    remains = left_ns > 0
    delta = run_events[remains].reset_index(drop=True)
    delta["duration_ns"] = left_ns[remains]
    if "end_ns" in delta.columns:
        delta["end_ns"] = delta["end_ns"].to_numpy() - taken_ns[remains]
    remaining_ns = int(left_ns.sum())
    delta.attrs = {
        **run_events.attrs,
        **attrs,
        "removed_ns": int(duration.sum()) - remaining_ns,
        "remaining_ns": remaining_ns,
        "removed_events": len(run_events) - len(delta),
        "remaining_events": len(delta),
        "reduced_events": int((taken_ns[remains] > 0).sum()),
    }
    return delta
