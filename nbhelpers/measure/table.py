"""The runs table: its columns and their meaning, which rows are data, totals as rates."""

from collections.abc import Sequence

import pandas as pd

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
    "user_s": (_TOTAL, "s", "CPU time in user mode, from the start of the process, of all its threads"),
    "system_s": (_TOTAL, "s", "CPU time in the kernel"),
    "max_rss_kb": (_LEVEL, "KiB", "peak resident memory; missing where the harness's own peak hides it"),
    "minor_faults": (_TOTAL, "", "page faults served from memory"),
    "major_faults": (_TOTAL, "", "page faults that read from a disk"),
    "voluntary_switches": (_TOTAL, "", "context switches because the program waited"),
    "involuntary_switches": (_TOTAL, "", "context switches because something else was to run"),
    "runqueue_wait_ns": (_TOTAL, "ns", "time in which threads could run and no CPU was free for them, summed over threads"),
    "cpu_ns": (_TOTAL, "ns", "CPU time of all threads in the timed region"),
    "timeslices": (_TOTAL, "", "times that a thread was put on a CPU in the timed region"),
    "threads": (_LABEL, "", "threads that the program used"),
    "verified": (_LABEL, "", "whether the program found its own result right"),
    "task_clock_ns": (_TOTAL, "ns", "CPU time from the barrier to the end (perf)"),
    "page_faults": (_TOTAL, "", "page faults from the barrier to the end (perf)"),
    "context_switches": (_TOTAL, "", "context switches from the barrier to the end (perf)"),
    "cpu_migrations": (_TOTAL, "", "moves of a thread to another CPU (perf)"),
    "cycles": (_TOTAL, "", "CPU cycles (perf)"),
    "instructions": (_TOTAL, "", "instructions retired (perf)"),
    "cache_references": (_TOTAL, "", "accesses to the last cache (perf)"),
    "cache_misses": (_TOTAL, "", "accesses that missed the last cache (perf)"),
    "branches": (_TOTAL, "", "branches (perf)"),
    "branch_misses": (_TOTAL, "", "branches predicted wrongly (perf)"),
    "stalled_cycles_frontend": (_TOTAL, "", "cycles without an instruction to issue (perf)"),
    "stalled_cycles_backend": (_TOTAL, "", "cycles in which issued instructions waited (perf)"),
    "reference_cycles": (_TOTAL, "", "cycles at the nominal clock (perf)"),
    "hardware_running_share": (_LEVEL, "", "least share of the time that a hardware counter was on; below 1 counts are scaled up"),
    "steal_s": (_TOTAL, "s", "CPU time that the hypervisor gave to others, all CPUs, in ticks"),
    "machine_busy_s": (_TOTAL, "s", "CPU time of everybody, all CPUs, in ticks"),
    "others_busy_s": (_TOTAL, "s", "CPU time of everybody but the run, in ticks, so it may be a tick below 0"),
    "machine_context_switches": (_TOTAL, "", "context switches on the whole machine"),
    "machine_forks": (_TOTAL, "", "processes and threads started on the whole machine"),
}
_FAMILIES = {
    "irq_": (_TOTAL, "", "interrupts of this source on all CPUs, as in /proc/interrupts"),
    "softirq_": (_TOTAL, "", "softirqs of this kind on all CPUs, as in /proc/softirqs"),
    "vm_": (_TOTAL, "", "counter of /proc/vmstat, whole machine"),
    "pressure_": (_TOTAL, "us", "time in which tasks waited for the resource (some, or all of them), whole machine"),
}
_FIRST = list(COLUMNS)[:list(COLUMNS).index("user_s")]


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
    names = list(runs.columns) if runs is not None else [*COLUMNS, *(f"{prefix}*" for prefix in _FAMILIES)]
    rows = [(name, *_meaning(name)) for name in names]
    return pd.DataFrame(rows, columns=["column", "kind", "unit", "meaning"]).set_index("column")


def _meaning(name: str) -> tuple[str, str, str]:
    if name in COLUMNS:
        return COLUMNS[name]
    if name.endswith("_per_s") and _meaning(name.removesuffix("_per_s"))[0] == _TOTAL:
        kind, unit, meaning = _meaning(name.removesuffix("_per_s"))
        return _LEVEL, f"{unit or '1'}/s", f"{meaning}, per second of wall_seconds"
    for prefix, meaning in _FAMILIES.items():
        if name.startswith(prefix):
            return meaning
    return "own", "", "the program's own key, or a column of an attachment"
