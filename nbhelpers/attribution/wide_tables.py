"""Tables with thousands of columns from elsewhere: which columns are informative.

A table is never held whole as a DataFrame.

Owns the reading, a thousand columns at a time, and the filter; `explain` goes on from there.
"""

import io
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from ..errors import InputError
from ..outcomes import DIRECTIONS, Outcome
from ..reading import open_regular, read_bytes, refusing_no_table, require_parquet
from ..statistics.order import standard_ranks
from .screening import Consequences, as_known, excluded_by_name

BLOCK_BYTES = 64 * 2**20  # of a CSV parsed at once
COLUMNS_AT_ONCE = 1000
MOST = 200  # columns in the result
FALSE_SHARE = 0.05  # of the columns called informative (Benjamini and Hochberg 1995)
MOST_MISSING = 0.2
IN_STEP = 0.98

Part = Any  # some columns: a DataFrame, or a table of pyarrow, which has no types
Reader = Callable[[list[str]], Part]  # names -> these columns


@dataclass(frozen=True, eq=False)
class FilteredColumns:
    """The informative columns of a wide table.

    Attributes
    ----------
    runs
        DataFrame: the outcome, then the chosen columns, most informative first.
    columns
        DataFrame of all informative columns: index column; columns correlation (rank correlation
        with the outcome), p_value.
    dropped
        How many columns were dropped, by reason.
    outcome
        Name of the outcome.
    """

    runs: pd.DataFrame
    columns: pd.DataFrame
    dropped: dict[str, int]
    outcome: str

    def __repr__(self) -> str:
        total = len(self.columns) + sum(self.dropped.values())
        return (
            f"FilteredColumns({self.runs.shape[1] - 1} of {len(self.columns)} informative columns"
            f" of {total}, {len(self.runs)} rows)"
        )


def filter_columns(
    source: str | Path | pd.DataFrame,
    outcome: str,
    *,
    most: int = MOST,
    exclude: Iterable[str] = (),
    consequences: Consequences = None,
    higher_is_better: bool = False,
    keep: Iterable[str] = (),
) -> FilteredColumns:
    """Filter a wide table: the columns that are associated with the outcome.

    Parameters
    ----------
    source
        Path of a CSV or parquet file, or a DataFrame.
    outcome
        Column of the outcome.
    most
        Informative columns in the result.
    exclude
        Columns to exclude.
    consequences, higher_is_better
        As in `explain`.
    keep
        Columns to add to the result unchanged (a status, a time).

    Returns
    -------
    FilteredColumns; `explain(result.runs, outcome)` goes on from there. Its p-value is then too
    small, since the filter has seen the outcome: filter one half of the rows and explain the other,
    or quote the p-values of `columns`.

    Raises
    ------
    InputError
        No such file or column, an unknown kind of file, an outcome that is no numbers.

    Notes
    -----
    Informative: varies, is missing in at most a fifth of the rows, is not the outcome in other
    units, and correlates with it by ranks at a false discovery rate of 5 % over all columns. Values
    are compared as float32. A CSV is held whole as float64 (39,000 × 14,400 values: 4.5 GB), of a
    parquet file a few thousand columns at a time.
    """
    names, read = _open(source)
    keep = list(keep)
    for name in (outcome, *keep):
        if name not in names:
            raise InputError(
                f"no column {name!r}",
                where=source if isinstance(source, (str, Path)) else None,
                fix=(
                    f"the table has {len(names)} columns, such as {', '.join(map(str, names[:5]))}"
                ),
            )
    head = _frame(read, [outcome, *keep])
    values = _outcome(head[outcome], outcome)
    candidates = [name for name in names if name not in {outcome, *keep}]
    costs = Outcome(direction=DIRECTIONS[higher_is_better]).costs(values)
    table, dropped = _correlations(read, candidates, costs, tuple(exclude), as_known(consequences))
    chosen = _discoveries(table)
    dropped["not associated with the outcome"] += len(table) - len(chosen)
    runs = pd.concat([head, _frame(read, list(chosen.index[:most]))], axis=1)
    reasons = {reason: count for reason, count in dropped.items() if count}
    return FilteredColumns(runs, chosen, reasons, outcome)


def _correlations(
    read: Reader, names: list[str], times: np.ndarray, exclude: tuple[str, ...], known: dict
) -> tuple[pd.DataFrame, Counter[str]]:
    """Every usable column with its correlation, and how many are not usable, by reason.

    A few parts are in memory at a time.
    """
    ranks = standard_ranks(times)
    dropped: Counter[str] = Counter()
    found = [pd.DataFrame(columns=["correlation", "p_value"], dtype=float)]
    waiting: deque[Future] = deque()

    def take() -> None:
        part, reasons = waiting.popleft().result()
        found.append(part)
        dropped.update(reasons)

    with ThreadPoolExecutor(2) as pool:
        for first in range(0, len(names), COLUMNS_AT_ONCE):
            part_names = names[first : first + COLUMNS_AT_ONCE]
            numeric, table = _numbers(read(part_names))
            dropped["not numbers"] += len(part_names) - len(numeric)
            waiting.append(pool.submit(_correlate, numeric, table, ranks, exclude, known))
            if len(waiting) > 2:
                take()
        while waiting:
            take()
    return pd.concat(found[1:] or found), dropped


def _correlate(
    names: list[str], table: np.ndarray, ranks: np.ndarray, exclude: tuple[str, ...], known: dict
) -> tuple[pd.DataFrame, Counter[str]]:
    """Rank correlation of each usable column (columns × rows), and how many are not usable, by
    reason.
    """
    dropped: Counter[str] = Counter()
    chosen, correlations = [], []
    for name, column in zip(names, table, strict=True):
        reason = excluded_by_name(name, exclude, known) or _unusable(column)
        correlation = 0.0 if reason else _correlation(column, ranks)
        if abs(correlation) > IN_STEP:
            reason = "follows the run time itself"
        if reason:
            dropped[reason] += 1
        else:
            chosen.append(name)
            correlations.append(correlation)
    values = np.array(correlations, float)
    # Fieller, Hartley and Pearson 1957
    errors = np.abs(np.arctanh(values)) * np.sqrt(max(ranks.size - 3, 1) / 1.06)
    columns = {"correlation": values, "p_value": 2 * norm.sf(errors)}
    return pd.DataFrame(columns, index=chosen, dtype=float), dropped


def _unusable(column: np.ndarray) -> str | None:
    gaps = np.isnan(column)
    if gaps.any() and gaps.mean() > MOST_MISSING:
        return "missing in too many rows"
    low, high = (
        (column.min(), column.max()) if not gaps.any() else (np.nanmin(column), np.nanmax(column))
    )
    return "does not vary" if low == high else None


def _correlation(column: np.ndarray, ranks: np.ndarray) -> float:
    """Rank correlation; sorted once, ties share their mean rank, gaps take the median."""
    if np.isnan(column).any():
        column = np.where(np.isnan(column), np.nanmedian(column), column)
    order = np.argsort(column)
    ordered = column[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    counts = np.diff(np.append(starts, column.size))
    means = starts + (counts - 1) / 2 - (column.size - 1) / 2
    shared = np.add.reduceat(ranks[order], starts) @ means
    return float(shared / np.sqrt((counts * means**2).sum() * column.size))


def _discoveries(table: pd.DataFrame) -> pd.DataFrame:
    ranked = table.sort_values("p_value", kind="stable")
    limits = FALSE_SHARE * np.arange(1, len(ranked) + 1) / max(len(ranked), 1)
    passed = np.flatnonzero(ranked["p_value"].to_numpy() <= limits)
    return ranked.iloc[: passed[-1] + 1 if passed.size else 0]


# Reading
# --------------------------------------------------------------------------------------------------


def _open(source: str | Path | pd.DataFrame) -> tuple[list[str], Reader]:
    """Names of all columns, and what reads some of them."""
    if isinstance(source, pd.DataFrame):
        return list(source.columns), lambda names: source[names].reset_index(drop=True)
    path = Path(source)
    if not path.is_file():
        raise InputError("there is no such file", where=path)
    if path.name.endswith((".csv", ".csv.gz")):
        table = _csv(path)
        return table.column_names, table.select
    if path.suffix != ".parquet":
        raise InputError(
            "an unknown kind of file",
            where=path,
            fix="give a .csv, .csv.gz or .parquet file, or a DataFrame",
        )
    file = _parquet(path)
    return file.schema_arrow.names, lambda names: file.read(columns=names)


def _parquet(path: Path) -> Any:
    import pyarrow.parquet as parquet

    require_parquet(path, "parquet file")
    with refusing_no_table(path, "parquet file"):
        return parquet.ParquetFile(path, memory_map=True)


def _csv(path: Path) -> Any:
    """The whole file: kinds of columns are known only at its end, and lie as 8 bytes a value in
    memory.
    """
    from pyarrow import csv

    with refusing_no_table(path, "CSV"):
        open_regular(path, "table").close()
        source = io.BytesIO(read_bytes(path)) if path.suffix == ".gz" else path
        return csv.read_csv(source, csv.ReadOptions(block_size=BLOCK_BYTES))


def _frame(read: Reader, names: list[str]) -> pd.DataFrame:
    part = read(names)
    return part if isinstance(part, pd.DataFrame) else part.to_pandas()


def _numbers(part: Part) -> tuple[list[str], np.ndarray]:
    """Names and values (columns × rows, float32) of the columns of numbers."""
    if isinstance(part, pd.DataFrame):
        numeric = part.select_dtypes(["number", "bool"])
        return list(numeric.columns), numeric.to_numpy(np.float32, na_value=np.nan).T.copy()
    import pyarrow as arrow

    usable = [
        (name, column)
        for name, column in zip(part.column_names, part.columns, strict=True)
        if arrow.types.is_integer(column.type) or arrow.types.is_floating(column.type)
    ]
    values = np.empty((len(usable), part.num_rows), np.float32)
    for row, (_, column) in zip(values, usable, strict=True):
        row[:] = column.cast(arrow.float32(), safe=False).to_numpy()
    values[~np.isfinite(values)] = np.nan
    return [name for name, _ in usable], values


def _outcome(column: pd.Series, name: str) -> np.ndarray:
    try:
        values = column.to_numpy(float)
    except (TypeError, ValueError):
        raise InputError("the outcome is not a column of numbers", where=name) from None
    if not np.isfinite(values).all():
        raise InputError(
            "a value of the outcome is missing or infinite",
            where=f"{name}, row {int(np.flatnonzero(~np.isfinite(values))[0])}",
        )
    return values
