"""What the other modules ask of the events and runs tables: the columns, the finished runs, whole
numbers, names.

Owns the checks of what comes in; nothing here is per event in Python, so ten million rows take
about a second.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ._vocabulary import LARGEST_NS

EVENT_COLUMNS = ("run", "cpu", "kind", "source", "start_ns", "duration_ns")

# The columns of an events table that is made here; data/README.md says what they mean.
MADE_COLUMNS = (*EVENT_COLUMNS, "end_ns", "policy", "priority", "pid", "interrupted")


def made_events(
    times: pd.DataFrame, tracer: str, seconds: float, *, with_intensity: bool = False, **what: Any
) -> pd.DataFrame:
    """Complete times on CPUs to the events of one run: `what` is their kind, source, policy and
    priority.
    """
    columns = [*MADE_COLUMNS, *(["intensity"] if with_intensity else [])]
    events = times.assign(run=0, pid=0, interrupted="workload", **what)[columns]
    events.attrs = {"clock": "none", "tracer": tracer, "lost": 0, "seconds": seconds}
    return events


def require_columns(table: pd.DataFrame, columns: tuple[str, ...], name: str) -> None:
    """Refuse a table that lacks one of the columns."""
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise InputError(
            f"the {name} table lacks {', '.join(missing)}",
            where=f"columns: {', '.join(map(str, table.columns))}",
            fix=f"pass the {name} table as data/README.md describes it",
        )


def require_one_run(table: pd.DataFrame, name: str, choice: str) -> None:
    """Refuse a table of several runs; `choice` is how to choose one."""
    if "run" in table.columns and table["run"].nunique() > 1:
        raise InputError(
            f"{name} of {table['run'].nunique()} runs",
            where=f"{name} table, column run",
            why="one replay is one run",
            fix=f"choose one: {choice}",
        )


def whole_numbers(
    table: pd.DataFrame, column: str, name: str, lowest: int | None = 0
) -> np.ndarray:
    """A column as int64; an error names the first row that is missing, fractional, too small or
    beyond 2^62.

    `lowest=None` allows negative values.
    """
    values = table[column]
    if not pd.api.types.is_integer_dtype(values.dtype) or values.isna().any():
        values = _whole(values, f"{name} table, column {column}")
    values = values.to_numpy()
    lowest = -LARGEST_NS if lowest is None else lowest
    bad = (values < lowest) | (values > LARGEST_NS)
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"{column} {values[at]} lies outside {lowest} … {LARGEST_NS}",
            where=f"{name} table, row {at}",
        )
    return values.astype(np.int64, copy=False)


def _whole(values: pd.Series, where: str) -> pd.Series:
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    bad = ~(np.isfinite(numbers) & (numbers == np.round(numbers)) & (np.abs(numbers) < 2**53))
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(f"not a whole number: {values.iloc[at]}", where=f"{where}, row {at}")
    return pd.Series(numbers.astype(np.int64))


def categories(
    events: pd.DataFrame, column: str, known: Sequence[str] | None = None
) -> pd.Categorical:
    """A column of words as categories: the known ones, or those that occur, in alphabetical order.

    The name of a program may be any bytes; what isn't text is written as `\\udcNN`.

    Raises
    ------
    InputError
        A missing word, or one that is not known.
    """
    codes, unique = pd.factorize(events[column])
    if (codes < 0).any():
        raise InputError(
            f"an event without a {column}", where=f"events table, row {int(np.argmax(codes < 0))}"
        )
    words = [str(word).encode("utf-8", "backslashreplace").decode() for word in unique]
    known = sorted(set(words)) if known is None else list(known)
    unknown = sorted(set(words) - set(known))
    if unknown:
        raise InputError(
            f"unknown {column} {unknown[0]!r}",
            where=f"events table, column {column}",
            fix=f"known: {', '.join(known)}",
        )
    place = {word: at for at, word in enumerate(known)}
    places = np.array([place[word] for word in words], np.int64)
    return pd.Categorical.from_codes(places[codes], pd.Index(known, dtype=str))


def finished_seconds(runs: pd.DataFrame, column: str = "region_seconds") -> pd.Series:
    """Length of the timed region of each finished run, by ascending run number.

    Parameters
    ----------
    column
        `region_seconds`, in which the noise was counted; a table without it has `seconds` only.

    Raises
    ------
    InputError
        No run finished, a run number occurs twice, or a length is not a positive number.
    """
    column = column if column in runs.columns else "seconds"
    require_columns(runs, ("run", column), "runs")
    done = runs[runs["status"] == "ok"] if "status" in runs.columns else runs
    if done.empty:
        raise InputError(
            "no finished run",
            where=f"{len(runs)} runs, none with status ok",
            why="there is no average and no worst case",
            fix="look at the column status of the runs table",
        )
    numbers = whole_numbers(done, "run", "runs", lowest=None)
    seconds = pd.Series(
        pd.to_numeric(done[column], errors="coerce").to_numpy(dtype=float), index=numbers
    ).sort_index()
    twice = seconds.index[seconds.index.duplicated()]
    if len(twice):
        raise InputError(
            f"run {twice[0]} occurs twice",
            where="runs table, column run",
            fix="pass the runs of one campaign, or number them anew",
        )
    bad = ~(np.isfinite(seconds) & (seconds > 0))
    if bad.any():
        raise InputError(
            f"run {seconds.index[bad][0]} lasted {seconds[bad].iloc[0]} seconds",
            where=f"runs table, column {column}",
        )
    return seconds
