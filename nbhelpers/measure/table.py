"""The runs table: its columns and their meaning, which rows are data, totals as rates."""

from collections.abc import Sequence

import pandas as pd

from ._knowledge import every_metric, metric_of

_TIME, _TOTAL, _LEVEL, _LABEL = "time", "total", "level", "label"
# column: (kind, unit, meaning); kinds: label, time, total (grows with the run), level (does not)
COLUMNS = {
    "run": (_LABEL, "", "number of the run, unique in a campaign"),
    "cell": (_LABEL, "", "the configuration that the campaign interleaves with others"),
    "round": (_LABEL, "", "the block of the random order"),
    "workload": (_LABEL, "", "name of the program"),
    "model": (_LABEL, "", "omp, sycl, mpi or external"),
    "config": (_LABEL, "", "placement: Rm, RmHK, RmHK2, TP, TPHK, TPHK2"),
    "noise": (_LABEL, "", "none, or the digest of the injected noise config"),
    "seconds": (_TIME, "s", "the timed region"),
    "wall_seconds": (_TIME, "s", "from the common start to the end of the process"),
    "start_ns": (_TIME, "ns", "start of the timed region, CLOCK_MONOTONIC"),
    "end_ns": (_TIME, "ns", "end of the timed region, CLOCK_MONOTONIC"),
    "status": (_LABEL, "", "ok; or exit N, signal N, timeout, unverified, unreadable output: then the run is no data"),
    "message": (_LABEL, "", "what a failed run complained of"),
    "t0_ns": (_TIME, "ns", "the common start that was agreed, CLOCK_MONOTONIC"),
    "began_unix_s": (_TIME, "s", "time of day when the run was begun, since 1970"),
    "elapsed_seconds": (_TIME, "s", "the run as a whole, with start-up and the reading of metrics"),
    "runqueue_wait_ns": (_TOTAL, "ns", "time in which threads could run and no CPU was free for them, summed over threads"),
    "cpu_ns": (_TOTAL, "ns", "CPU time of all threads in the timed region"),
    "timeslices": (_TOTAL, "", "times that a thread was put on a CPU in the timed region"),
    "threads": (_LABEL, "", "threads that the program used"),
    "verified": (_LABEL, "", "whether the program found its own result right"),
    "placement_ok": (_LABEL, "", "whether all threads were where the configuration says when the timed region began; missing: they did not exist yet"),
    "placement": (_LABEL, "", "the CPUs that the threads were allowed: 0+1: one thread on each; 0,1*2: two on either"),
    "last_cpus": (_LABEL, "", "CPUs on which the threads had run last when the timed region began"),
    "frequency_samples": (_LABEL, "", "readings of the clock frequency that its mean is of"),
}
_FIRST = list(COLUMNS)[:list(COLUMNS).index("elapsed_seconds") + 1]


def runs_table(rows: Sequence[dict]) -> pd.DataFrame:
    """Rows as a table with the agreed columns first; whole numbers stay whole (Int64) where a failed run has none."""
    table = pd.DataFrame.from_records(list(rows), columns=None if rows else _FIRST)
    first = [name for name in _FIRST if name in table.columns]
    table = table[first + [name for name in table.columns if name not in first]]
    for name in table.columns[table.isna().any()]:
        present = [row[name] for row in rows if row.get(name) is not None]
        if present and all(type(value) is int for value in present):
            # not by way of float64: it cannot hold the nanoseconds of a machine that is up for 104 days
            table[name] = pd.array([row.get(name) for row in rows], dtype="Int64")
        elif table[name].isna().all() and name != "message":
            table[name] = table[name].astype(float)
    return table


def finished(runs: pd.DataFrame) -> pd.DataFrame:
    """The rows that are data: those of status ok, numbered anew from 0; whole columns become plain int64 again."""
    data = runs[runs["status"] == "ok"].reset_index(drop=True)
    whole = [name for name in data.columns if str(data[name].dtype) == "Int64" and not data[name].isna().any()]
    return data.astype(dict.fromkeys(whole, "int64"))


def rates(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with a column `<metric>_per_s` for every total: the total divided by `wall_seconds`.

    A total grows with the run time, so it says that a slow run was slow, and not why.
    """
    totals = [name for name in runs.columns if _meaning(name)[0] == _TOTAL and pd.api.types.is_numeric_dtype(runs[name])]
    per_second = runs[totals].div(runs["wall_seconds"], axis=0).rename(columns=lambda name: f"{name}_per_s")
    return pd.concat([runs.drop(columns=per_second.columns, errors="ignore"), per_second], axis=1)


def describe_columns(runs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Kind, unit and meaning of columns: of a runs table, or of all that are known; indexed by `column`.

    Kinds: label, time, total (grows with the run: compare as a rate), level (does not), own (the program's own key).
    """
    names = list(runs.columns) if runs is not None else list(dict.fromkeys([*COLUMNS, *(metric.id for _, metric in every_metric())]))
    rows = [(name, *_meaning(name)) for name in names]
    return pd.DataFrame(rows, columns=["column", "kind", "unit", "meaning"]).set_index("column")


def _meaning(name: str) -> tuple[str, str, str]:
    if name in COLUMNS:
        return COLUMNS[name]
    if name.endswith("_per_s") and _meaning(name.removesuffix("_per_s"))[0] == _TOTAL:
        kind, unit, meaning = _meaning(name.removesuffix("_per_s"))
        return _LEVEL, f"{unit or '1'}/s", f"{meaning}, per second of wall_seconds"
    metric = metric_of(name)
    if metric is not None:
        return metric.kind, metric.unit, metric.title
    return "own", "", "the program's own key, or a column of an attachment"
