"""The runs table: its columns and their meaning, which rows are data, totals as rates."""

from collections.abc import Sequence

import pandas as pd

from ..outcomes import Outcome, reported
from ._knowledge import every_metric, metric_of

_TIME, _TOTAL, _LEVEL, _LABEL = "time", "total", "level", "label"


def _label(meaning: str) -> tuple[str, str, str]:
    return _LABEL, "", meaning


def _time(unit: str, meaning: str) -> tuple[str, str, str]:
    return _TIME, unit, meaning


def _total(unit: str, meaning: str) -> tuple[str, str, str]:
    return _TOTAL, unit, meaning


# column: (kind, unit, meaning); kinds: label, time, total (grows with the run), level (does not)
COLUMNS = {
    "run": _label("number of the run, unique in a campaign"),
    "cell": _label("the configuration that the campaign interleaves with others"),
    "round": _label(
        "the block of the random order; cells are compared by the rounds that hold both"
    ),
    "epoch": _label(
        "from 0; counts up when the cells of the campaign change after something was measured"
    ),
    "workload": _label("name of the program"),
    "model": _label("omp, sycl, mpi or external"),
    "config": _label("placement: Rm, RmHK, RmHK2, TP, TPHK, TPHK2"),
    "noise": _label("none, or the digest of the injected noise config"),
    "seconds": _time(
        "s", "what is judged: the time that the program reports, or else its timed region"
    ),
    "region_seconds": _time(
        "s", "length of the timed region: noise is counted in it and divided by it"
    ),
    "reports": _label(
        "numbers that the program reports, in JSON: {column: [unit, which is better]}"
    ),
    "outcome": _label("the column by which runs are judged; missing: seconds"),
    "wall_seconds": _time("s", "from the common start to the end of the process"),
    "start_ns": _time("ns", "start of the timed region, CLOCK_MONOTONIC"),
    "end_ns": _time("ns", "end of the timed region, CLOCK_MONOTONIC"),
    "status": _label(
        "ok; or exit N, signal N, timeout, unverified, unreadable output: then the run is excluded"
    ),
    "message": _label("why a run failed, and what it printed"),
    "left_processes": _label(
        "processes of the run that still lived 0.1 s after its program had ended, and were killed;"
        " missing: none"
    ),
    "paused_seconds": _time(
        "s", "time within the timed region that lies between an end and the next begin"
    ),
    "region_slack_us": _time("µs", "how much later the region may have begun or ended"),
    "t0_ns": _time("ns", "the common start that was agreed, CLOCK_MONOTONIC"),
    "began_unix_s": _time("s", "time of day when the run was begun, since 1970"),
    "elapsed_seconds": _time("s", "the run as a whole, with start-up and the reading of metrics"),
    "runqueue_wait_ns": _total(
        "ns", "time in which threads could run and no CPU was free for them, summed over threads"
    ),
    "cpu_ns": _total("ns", "CPU time of all threads in the timed region"),
    "timeslices": _total("", "times that a thread was put on a CPU in the timed region"),
    "threads": _label("threads that the program used"),
    "device": _label("what the kernels of a SYCL program ran on"),
    "driver": _label("version of the device's driver"),
    "verified": _label("whether the program found its result right"),
    "placement_ok": _label(
        "whether all threads were on the CPUs that their configuration promises; missing: several"
        " threads were never seen"
    ),
    "placement": _label(
        "the CPUs that the threads were allowed: 0+1: one thread on each; 0,1*2: two on either"
    ),
    "last_cpus": _label("CPUs on which the threads had run last when the timed region began"),
    "frequency_samples": _label("readings of the clock frequency that its mean is of"),
}
_FIRST = list(COLUMNS)[: list(COLUMNS).index("elapsed_seconds") + 1]
_NOT_ALWAYS = {"left_processes", "paused_seconds", "region_slack_us"}
# What our programs count themselves, in their timed region; all else is counted from the common
# start to the end.
_IN_REGION = {"runqueue_wait_ns", "cpu_ns", "timeslices"}
_CLEARLY_LONGER = 1.02
_MOST_SLACK_US = 1000


def runs_table(rows: Sequence[dict]) -> pd.DataFrame:
    """Rows as a table with the columns of `COLUMNS` first; whole numbers stay whole (Int64) where a
    failed run has none.
    """
    if any("epoch" in row for row in rows):  # rows of before there were epochs are of the first
        rows = [row if "epoch" in row else {**row, "epoch": 0} for row in rows]
    rows = [_with_region_seconds(row) for row in rows]
    table = pd.DataFrame.from_records(
        rows, columns=None if rows else [name for name in _FIRST if name not in _NOT_ALWAYS]
    )
    first = [name for name in _FIRST if name in table.columns]
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


def _with_region_seconds(row: dict) -> dict:
    """Of runs that were recorded before there was this column."""
    if "region_seconds" in row or "start_ns" not in row:
        return row
    known = row.get("start_ns") is not None and row.get("end_ns") is not None
    return row | {"region_seconds": (row["end_ns"] - row["start_ns"]) / 1e9 if known else None}


def region_seconds(runs: pd.DataFrame) -> pd.Series:
    """Return the length of the timed region of each run.

    Parameters
    ----------
    runs
        Runs table.

    Returns
    -------
    Series
        Seconds; the column `seconds` of a table of before regions were recorded.
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
    notes = []
    if {"region_seconds", "start_ns", "t0_ns"} <= set(runs.columns):
        # only a region that is the whole process begins at the common start exactly
        whole = runs[
            (runs["start_ns"] == runs["t0_ns"])
            & (runs["region_seconds"] > _CLEARLY_LONGER * runs["seconds"])
        ]
        if len(whole):
            region, reported = whole["region_seconds"].median(), whole["seconds"].median()
            notes.append(
                "the timed region of this program is not known: noise is counted over the whole"
                f" process ({region:.2f} s; the program reports {reported:.2f} s); define where it"
                " begins and ends: region=…"
            )
    slack_us = runs["region_slack_us"].max() if "region_slack_us" in runs else 0
    if slack_us > _MOST_SLACK_US:
        notes.append(
            f"begin and end of the timed region are known to {slack_us / 1e3:.1f} ms only: what was"
            ' written to $NOISEBOOK_ROI was read so late; write the time with it: echo "begin'
            ' $EPOCHREALTIME"'
        )
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
    return data.astype(dict.fromkeys(whole, "int64"))


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
    names = (
        list(runs.columns)
        if runs is not None
        else list(dict.fromkeys([*COLUMNS, *(metric.id for _, metric in every_metric())]))
    )
    reports = {} if runs is None else reported(runs)
    rows = [
        (name, *(_of_report(reports[name]) if name in reports else _meaning(name)))
        for name in names
    ]
    return pd.DataFrame(rows, columns=["column", "kind", "unit", "meaning"]).set_index("column")


def _of_report(outcome: Outcome) -> tuple[str, str, str]:
    return "report", outcome.unit, f"reported by the program; {outcome.direction} is better"


def _meaning(name: str) -> tuple[str, str, str]:
    if name in COLUMNS:
        return COLUMNS[name]
    if name.endswith("_per_s") and _meaning(name.removesuffix("_per_s"))[0] == _TOTAL:
        kind, unit, meaning = _meaning(name.removesuffix("_per_s"))
        return (
            _LEVEL,
            f"{unit or '1'}/s",
            f"{meaning}, per second of {_counted_in(name.removesuffix('_per_s'))}",
        )
    metric = metric_of(name)
    if metric is not None:
        return metric.kind, metric.unit, metric.title
    return "program", "", "a key of the program, or a column of an attachment"
