"""The runs table: its columns and their meaning, which rows are data, totals as rates."""

from collections.abc import Sequence
from functools import cache

import pandas as pd

from ..outcomes import reported
from ..places import shipped
from ..reading import read_yaml
from ._knowledge import every_metric, metric_of

_TOTAL, _LEVEL = "total", "level"
_SERIES = {"run": "int64", "name": "str", "unit": "str", "index": "int64", "value": "float64"}
WITHOUT_LOCK = "without_lock"
_NOT_ALWAYS = {"left_processes", "paused_seconds", WITHOUT_LOCK}
# What our programs count themselves, in their timed region; all else is counted from the common
# start to the end.
_IN_REGION = {"runqueue_wait_ns", "cpu_ns", "timeslices"}
_CLEARLY_LONGER = 1.02


@cache
def known_columns(kind: str) -> dict[str, tuple[str, str, str]]:
    """Kind, unit and meaning of columns, from data/knowledge/columns.yml: those of `every_run`, or
    those `of_some`.
    """
    known = read_yaml(shipped() / "data/knowledge/columns.yml", "columns", fast=True)
    return {name: tuple(words) for name, words in known[kind].items()}


def runs_table(rows: Sequence[dict]) -> pd.DataFrame:
    """Rows as a table with the columns of every run first; whole numbers stay whole (Int64) where a
    failed run has none.
    """
    every_run = known_columns("every_run")
    table = pd.DataFrame.from_records(
        rows, columns=None if rows else [name for name in every_run if name not in _NOT_ALWAYS]
    )
    first = [name for name in every_run if name in table.columns]
    table = table[first + [name for name in table.columns if name not in first]]
    for name in table.columns[table.isna().any()]:
        present = [row[name] for row in rows if row.get(name) is not None]
        if present and all(type(value) is int for value in present):
            # not by way of float64: it cannot hold the nanoseconds of a machine that is up for 104
            # days
            table[name] = pd.array([row.get(name) for row in rows], dtype="Int64")
        elif table[name].isna().all() and name != "message":
            table[name] = table[name].astype(float)
    # in one piece: a table that was made column by column is slow, and pandas warns of it
    return table.copy()


def region_seconds(runs: pd.DataFrame) -> pd.Series:
    """Return the length of the timed region of each run.

    Parameters
    ----------
    runs
        Runs table.

    Returns
    -------
    Series
        Seconds; the column `seconds` of a table that has no other.
    """
    return runs["region_seconds"] if "region_seconds" in runs else runs["seconds"]


def region_notes(runs: pd.DataFrame) -> list[str]:
    """Return what a reader must know of the timed region: that it is unknown, or not to 1 ms.

    Parameters
    ----------
    runs
        Runs table, finished runs only.

    Returns
    -------
    list of str
        A sentence each; empty where the region is known.

    Examples
    --------
    >>> runs = pd.DataFrame(
    ...     {"seconds": [0.5], "region_seconds": [1.52], "start_ns": [7], "t0_ns": [7]}
    ... )
    >>> region_notes(runs)[0][:49]
    'the timed region of this program is not known: no'
    """
    if not {"region_seconds", "start_ns", "t0_ns"} <= set(runs.columns):
        return []
    # only a region that is the whole process begins at the common start exactly
    whole = runs[
        (runs["start_ns"] == runs["t0_ns"])
        & (runs["region_seconds"] > _CLEARLY_LONGER * runs["seconds"])
    ]
    if whole.empty:
        return []
    region, reported = whole["region_seconds"].median(), whole["seconds"].median()
    return [
        "the timed region of this program is not known: noise is counted over the whole process"
        f" ({region:.2f} s; the program reports {reported:.2f} s); define where it begins and ends:"
        " region=…"
    ]


def run_notes(runs: pd.DataFrame) -> list[str]:
    """Return what a reader of any answer must know of its runs.

    Parameters
    ----------
    runs
        Runs table, failed runs included.

    Returns
    -------
    list of str
        A sentence each: runs that failed, runs that left processes, runs beside another user's, an
        unknown timed region.
    """
    beside = runs[WITHOUT_LOCK].dropna() if WITHOUT_LOCK in runs else []
    said = [f"{len(beside)} of {len(runs)} runs: {', '.join(set(beside))}"] if len(beside) else []
    return failed_notes(runs) + left_notes(runs) + said + region_notes(finished(runs))


def failed_notes(runs: pd.DataFrame) -> list[str]:
    """Return how many runs failed, and how; of several cells, a sentence for each that has some.

    Parameters
    ----------
    runs
        Runs table, failed runs included.

    Returns
    -------
    list of str
        A sentence each; empty where all runs ended well.

    Examples
    --------
    >>> failed_notes(pd.DataFrame({"status": ["ok", "exit 3", "ok", "exit 3", "timeout"]}))
    ['3 of 5 runs failed (2 exit status 3, 1 timeout); they are excluded']
    """
    several = "cell" in runs and runs["cell"].nunique() > 1
    cells = runs.groupby("cell", sort=False) if several else [("", runs)]
    notes = []
    for cell, of_cell in cells:
        failed = of_cell["status"][of_cell["status"] != "ok"].str.replace("exit ", "exit status ")
        counts = failed.value_counts()
        words = counts.index if len(counts) == 1 else [f"{n} {name}" for name, n in counts.items()]
        said = (
            f"{len(failed)} of {len(of_cell)} runs failed ({', '.join(words)}); they are excluded"
        )
        notes += [f"{cell}: {said}" if cell else said] if len(failed) else []
    return notes


def left_notes(runs: pd.DataFrame) -> list[str]:
    """Return how many runs left processes running, which were killed.

    Parameters
    ----------
    runs
        Runs table.

    Returns
    -------
    list of str
        A sentence; empty where all processes of all runs ended by themselves.

    Examples
    --------
    >>> left_notes(pd.DataFrame({"left_processes": [2, None], "status": "ok"}))[0][:47]
    '1 of 2 runs left processes running, 2 at most, '
    """
    if "left_processes" not in runs:
        return []
    left = runs["left_processes"].dropna()
    return [
        f"{len(left)} of {len(runs)} runs left processes running, {int(left.max())} at most, which"
        " were killed: what they would have done later is not measured; the column `message` names"
        " them"
    ]


def finished(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the finished runs: those of status "ok", numbered anew from 0.

    Parameters
    ----------
    runs
        Runs table.

    Returns
    -------
    DataFrame
        The same columns; columns of whole numbers become int64 where no value is missing.

    Examples
    --------
    >>> runs = pd.DataFrame({"run": [0, 1], "status": ["timeout", "ok"]})
    >>> finished(runs)["run"].tolist()
    [1]
    """
    data = runs[runs["status"] == "ok"].reset_index(drop=True)
    whole = [
        name
        for name in data.columns
        if str(data[name].dtype) == "Int64" and not data[name].isna().any()
    ]
    return data.astype(dict.fromkeys(whole, "int64")).copy()  # in one piece


def rates(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with a column `<metric>_per_s` for every total: total over time.

    The time is `wall_seconds` (from the common start to the end of the process), or
    `region_seconds` for what our programs count in their timed region (`runqueue_wait_ns`,
    `cpu_ns`, `timeslices`). A total grows with the run time: it shows that a run was slow, a rate
    shows why.

    Parameters
    ----------
    runs
        Runs table.

    Returns
    -------
    DataFrame
        The runs table with the further columns, per second.
    """
    totals = [
        name
        for name in runs.columns
        if _meaning(name)[0] == _TOTAL and pd.api.types.is_numeric_dtype(runs[name])
    ]
    per_second = pd.DataFrame(
        {f"{name}_per_s": runs[name] / runs[_counted_in(name, runs)] for name in totals},
        index=runs.index,
    )
    return pd.concat([runs.drop(columns=per_second.columns, errors="ignore"), per_second], axis=1)


def _counted_in(name: str, runs: pd.DataFrame | None = None) -> str:
    """The column with the time in which a total was counted."""
    in_region = name in _IN_REGION and (runs is None or "region_seconds" in runs)
    return "region_seconds" if in_region else "wall_seconds"


def describe_columns(runs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return kind, unit and meaning of columns of a runs table.

    Parameters
    ----------
    runs
        Runs table; None: all columns that are known.

    Returns
    -------
    DataFrame
        Index `column`; columns `kind`, `unit` and `meaning`. Kinds: label, time, total (grows with
        the run: compare as a rate), level (does not grow), report (a number of the program by which
        runs may be judged), program (any other key of the program, or a column of an attachment).
    """
    counted = (metric.id for _, metric in every_metric())
    names = list(dict.fromkeys([*_known(), *counted]) if runs is None else runs.columns)
    reports = {} if runs is None else reported(runs)
    rows = []
    for name in names:
        kind, unit, meaning = _meaning(name)
        if one := reports.get(name):
            kind, unit = "report", one.unit
            meaning = f"reported by the program; {one.direction} is better"
        rows.append((name, kind, unit, meaning))
    return pd.DataFrame(rows, columns=["column", "kind", "unit", "meaning"]).set_index("column")


def _known() -> dict[str, tuple[str, str, str]]:
    return known_columns("every_run") | known_columns("of_some")


def _meaning(name: str) -> tuple[str, str, str]:
    if name in _known():
        return _known()[name]
    total = name.removesuffix("_per_s")
    if total != name and _meaning(total)[0] == _TOTAL:
        _, unit, meaning = _meaning(total)
        return _LEVEL, f"{unit or '1'}/s", f"{meaning}, per second of {_counted_in(total)}"
    metric = metric_of(name)
    if metric is not None:
        return metric.kind, metric.unit, metric.title
    return "program", "", "a key of the program, or a column of an attachment"


def series_table(records: Sequence[dict]) -> pd.DataFrame:
    """Records of a campaign's store as a table: one row a value; `run` as in the runs table,
    `index` from 0 in the order of the run.
    """
    rows: list[tuple] = []
    for record in records:
        for name, one in record["series"].items():
            begin = (record["run"], name, one["unit"])
            rows += [(*begin, index, value) for index, value in enumerate(one["values"])]
    return pd.DataFrame(rows, columns=list(_SERIES)).astype(_SERIES)
