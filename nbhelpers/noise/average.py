"""The average noise of a set of runs: how often each source strikes, and for how long.

Owns section 4.1/4.2 of Persson et al. (2025), first half: frequency and duration per unique source.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from ..errors import InputError
from ._tables import (
    EVENT_COLUMNS,
    finished_seconds,
    group_sources,
    renumbered,
    require_columns,
    whole_numbers,
)


def average_noise(
    events: pd.DataFrame | Iterable[pd.DataFrame], runs: pd.DataFrame
) -> pd.DataFrame:
    """Compute the average frequency and duration of an event, source by source.

    Parameters
    ----------
    events
        Noise events of any number of runs (columns run, kind, source, duration_ns; the machine's
        CPUs together). Events of runs that did not finish, or that are not in `runs`, are ignored.
        More than fit into memory: an iterable of such tables, as `tracing.each_trace` gives them.
        However the events are divided among tables, the result is the same, bit by bit.
    runs
        Runs table (run, seconds and, where there, status). Every finished run counts, one without
        any event as zero: pass traced runs only.

    Returns
    -------
    One row a source, the largest share of time first: `kind`, `source`; `frequency_hz` (mean over
    the runs of events in the run / its seconds, all CPUs together); `duration_ns` (mean duration of
    an event); `events` (how many these are means of); `runs` (in how many the source appeared).
    `attrs["runs"]` is the number of finished runs.

    Raises
    ------
    InputError
        No finished run, a column is missing, or a value is not usable.

    Notes
    -----
    Persson et al. (2025), section 4.2. The published code computes another duration, the sum per
    run: see `delta_noise(method="compat")`.

    Examples
    --------
    Two runs of half a second; the timer struck 3 and 1 times: (3 / 0.5 + 1 / 0.5) / 2 = 4 Hz.

    >>> import pandas as pd
    >>> from nbhelpers import average_noise
    >>> runs = pd.DataFrame({"run": [0, 1], "seconds": [0.5, 0.5], "status": "ok"})
    >>> events = pd.DataFrame(
    ...     {
    ...         "run": [0, 0, 0, 1],
    ...         "cpu": 0,
    ...         "kind": "irq",
    ...         "source": "local_timer",
    ...         "start_ns": [0, 10_000, 20_000, 0],
    ...         "duration_ns": [2000, 2000, 3000, 1000],
    ...     }
    ... )
    >>> average_noise(events, runs)[
    ...     ["source", "frequency_hz", "duration_ns", "events"]
    ... ].values.tolist()
    [['local_timer', 4.0, 2000.0, 4]]
    """
    if isinstance(events, pd.DataFrame):
        require_columns(events, EVENT_COLUMNS, "events")
    seconds = finished_seconds(runs)
    tables = [events] if isinstance(events, pd.DataFrame) else events
    counts = [(len(table), _sums(table, seconds)) for table in tables]
    sums = [of_table for _, of_table in counts if len(of_table)]
    if not sums:
        raise _no_event(sum(count for count, _ in counts), seconds)
    return _average(pd.concat(sums, ignore_index=True), seconds)


def _sums(events: pd.DataFrame, seconds: pd.Series) -> pd.DataFrame:
    """Events and their total duration, a row a source and run; `run` is its place in `seconds`."""
    require_columns(events, EVENT_COLUMNS, "events")
    events, run = _of_runs(events, seconds)
    groups = group_sources(events["kind"], events["source"])
    duration = whole_numbers(events, "duration_ns", "events")
    cell, present = renumbered(
        groups.code.astype(np.int64) * len(seconds) + run, len(groups) * len(seconds)
    )
    source, of_run = np.divmod(present, len(seconds))
    return groups.names.iloc[source].assign(
        run=of_run,
        events=np.bincount(cell, minlength=len(present)),
        total_ns=np.bincount(cell, weights=duration, minlength=len(present)),
    )


def _average(sums: pd.DataFrame, seconds: pd.Series) -> pd.DataFrame:
    """Sums are whole numbers below 2^53, so that their order is of no account."""
    cells = sums.groupby(["kind", "source", "run"], sort=True, as_index=False).sum()
    source = cells.groupby(["kind", "source"], sort=True).ngroup().to_numpy()
    per_second = cells["events"] / seconds.to_numpy()[cells["run"]]
    frequency_hz = np.bincount(source, weights=per_second) / len(seconds)
    count = np.bincount(source, weights=cells["events"]).astype(np.int64)
    mean_ns = np.bincount(source, weights=cells["total_ns"]) / count
    names = cells.drop_duplicates(["kind", "source"])[["kind", "source"]]
    table = names.assign(
        frequency_hz=frequency_hz, duration_ns=mean_ns, events=count, runs=np.bincount(source)
    )
    return _largest_first(table, len(seconds))


def _largest_first(table: pd.DataFrame, finished: int) -> pd.DataFrame:
    share = table["frequency_hz"] * table["duration_ns"]
    table = table.iloc[np.argsort(-share, kind="stable")].reset_index(drop=True)
    table[["kind", "source"]] = table[["kind", "source"]].astype(str)
    table.attrs["runs"] = finished
    return table


def of_finished_runs(events: pd.DataFrame, seconds: pd.Series) -> tuple[pd.DataFrame, np.ndarray]:
    """The events of the finished runs, and for each the place of its run in `seconds`."""
    of_runs, place = _of_runs(events, seconds)
    if of_runs.empty:
        raise _no_event(len(events), seconds)
    return of_runs, place


def _of_runs(events: pd.DataFrame, seconds: pd.Series) -> tuple[pd.DataFrame, np.ndarray]:
    codes, numbers = pd.factorize(whole_numbers(events, "run", "events", lowest=None))
    place = seconds.index.get_indexer(pd.Index(numbers))[codes]
    return (events, place) if (place >= 0).all() else (events[place >= 0], place[place >= 0])


def _no_event(events: int, seconds: pd.Series) -> InputError:
    return InputError(
        "no event belongs to a finished run",
        where=f"{events} events, {len(seconds)} finished runs",
        fix="pass the events and the runs of the same campaign",
    )
