"""The average noise of a set of runs: how often each source strikes, and for how long.

Owns section 4.1/4.2 of Persson et al. (2025), first half: frequency and duration per unique source.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from ..errors import InputError
from ._tables import EVENT_COLUMNS, categories, finished_seconds, require_columns, whole_numbers
from ._vocabulary import KINDS


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
    Persson et al. (2025), section 4.2. The published code computes another duration: the sum per
    run.

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
    seconds = finished_seconds(runs)
    tables = [events] if isinstance(events, pd.DataFrame) else events
    counts = [(len(table), _sums(table, seconds)) for table in tables]
    sums = pd.concat([of_table for _, of_table in counts]) if counts else pd.DataFrame()
    if not len(sums):
        raise InputError(
            "no event belongs to a finished run",
            where=f"{sum(count for count, _ in counts)} events, {len(seconds)} finished runs",
            fix="pass the events and the runs of the same campaign",
        )
    return _average(sums.groupby(["kind", "source", "run"], as_index=False).sum(), seconds)


def _sums(events: pd.DataFrame, seconds: pd.Series) -> pd.DataFrame:
    """Events and their total duration, a row a source and run."""
    require_columns(events, EVENT_COLUMNS, "events")
    cells = pd.DataFrame(
        {
            "kind": categories(events, "kind", KINDS),
            "source": categories(events, "source"),
            "run": whole_numbers(events, "run", "events", lowest=None),
            "total_ns": whole_numbers(events, "duration_ns", "events"),
        }
    )
    cells = cells[cells["run"].isin(seconds.index)]
    by_cell = cells.groupby(["kind", "source", "run"], observed=True)["total_ns"]
    table = by_cell.agg(events="size", total_ns="sum").reset_index()
    return table.astype({"kind": str, "source": str})


def _average(cells: pd.DataFrame, seconds: pd.Series) -> pd.DataFrame:
    """Sums are whole numbers below 2^53, so that their order is of no account; frequencies are
    summed in the order of the runs.
    """
    cells["per_s"] = cells["events"] / cells["run"].map(seconds)
    source = cells.groupby(["kind", "source"]).ngroup().to_numpy()
    table = cells.groupby(["kind", "source"], as_index=False).agg(
        events=("events", "sum"), total_ns=("total_ns", "sum"), runs=("run", "size")
    )
    frequency_hz = np.bincount(source, weights=cells["per_s"]) / len(seconds)
    duration_ns = table.pop("total_ns") / table["events"]
    table.insert(2, "frequency_hz", frequency_hz)
    table.insert(3, "duration_ns", duration_ns)
    share = table["frequency_hz"] * table["duration_ns"]
    table = table.iloc[np.argsort(-share, kind="stable")].reset_index(drop=True)
    table.attrs["runs"] = len(seconds)
    return table
