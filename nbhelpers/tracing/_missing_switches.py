"""Switches that the kernel did not report, inferred from what it did report.

Seen on Linux 6.18 in a virtual machine: some threads (and one CPU's idle task) leave a CPU without
any scheduler tracepoint, without a loss being counted. Every record names who was running, so the
gap shows: one record says X runs, the next one says Y did.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

WAKE, SWITCH, RUNTIME = "sched_wakeup", "sched_switch", "sched_stat_runtime"
_ORDINARY = 120  # the kernel's priority of a thread of nice 0
_SLEEPS = 1  # prev_state of who left: it was not preempted, so it kept nobody waiting


@dataclass(frozen=True)
class InferredSwitches:
    """The table with the missing switches put in and the wake-ups taken out.

    `count`: switches put in; `ambiguous_ns`: CPU time of which it is not known whose it was
    (counted as the later thread's).
    """

    raw: pd.DataFrame
    count: int
    ambiguous_ns: int


def infer_switches(raw: pd.DataFrame) -> InferredSwitches:
    """Put the missing switches into a table of tracepoints (see `noise_from_tracepoints`).

    A missing switch from X to Y lies between the last record of X and the first of Y. If Y was
    woken for this CPU in between it began then, and the CPU was idle before. Else the first entry
    of Y's account (where that was recorded) says since when it has run. Else the switch is put
    directly after the last record of X.
    """
    order = np.lexsort((raw["time_ns"].to_numpy(), raw["cpu"].to_numpy()))
    raw = (raw.iloc[order] if (np.diff(order) != 1).any() else raw).reset_index(drop=True)
    is_switch = (raw["event"] == SWITCH).to_numpy()
    cpu, time_ns, pid = (raw[name].to_numpy() for name in ("cpu", "time_ns", "pid"))
    before = np.where(is_switch, raw["prev_pid"], pid)
    after = np.where(is_switch, raw["next_pid"], pid)
    at = np.flatnonzero((cpu[1:] == cpu[:-1]) & (after[:-1] != before[1:]))
    is_wake = (raw["event"] == WAKE).to_numpy()
    if not len(at):
        return InferredSwitches(raw[~is_wake] if is_wake.any() else raw, 0, 0)
    # The idle task is interrupted once more between the wake-up and the switch that it brings
    # about.
    since_ns = np.where(after[at] == 0, _last_switch_ns(cpu, time_ns, is_switch)[at], time_ns[at])
    woken_ns = _woken(raw[is_wake], cpu[at], before[at + 1], since_ns, time_ns[at + 1])
    began_ns = _accounted(
        raw[(raw["event"] == RUNTIME).to_numpy()], before[at + 1], time_ns[at], time_ns[at + 1]
    )
    rows, ambiguous_ns = _rows(
        at, cpu[at], after[at], before[at + 1], time_ns[at], time_ns[at + 1], woken_ns, began_ns
    )
    return InferredSwitches(_inserted(raw, is_wake, rows), len(rows), ambiguous_ns)


def _last_switch_ns(cpu: np.ndarray, time_ns: np.ndarray, is_switch: np.ndarray) -> np.ndarray:
    """For each record the time of the last switch before it on its CPU, or of the CPU's first
    record.
    """
    first = np.r_[True, cpu[1:] != cpu[:-1]]
    return time_ns[np.maximum.accumulate(np.where(is_switch | first, np.arange(len(cpu)), 0))]


def _woken(
    wakes: pd.DataFrame, cpu: np.ndarray, pid: np.ndarray, low_ns: np.ndarray, high_ns: np.ndarray
) -> list[int | None]:
    """For each gap, when its later thread was last woken for its CPU."""
    wakes = wakes[wakes["next_pid"].isin(pid)]
    times = {
        key: np.sort(own.to_numpy())
        for key, own in wakes.groupby(["next_pid", "number"])["time_ns"]
    }
    return [
        _last_within(times.get((int(who), int(where))), low, high)
        for who, where, low, high in zip(pid, cpu, low_ns, high_ns)
    ]


def _last_within(times: np.ndarray | None, low: int, high: int) -> int | None:
    at = -1 if times is None else int(np.searchsorted(times, high, side="right")) - 1
    return int(times[at]) if at >= 0 and times[at] >= low else None


def _accounted(
    entries: pd.DataFrame, pid: np.ndarray, low_ns: np.ndarray, high_ns: np.ndarray
) -> list[int | None]:
    """For each gap, since when its later thread has run by the first entry of its account from then
    on; None where that is not in the gap.
    """
    entries = entries[entries["next_pid"].isin(pid)].sort_values("time_ns", kind="stable")
    accounts = {
        who: (own["time_ns"].to_numpy(), own["delta_ns"].to_numpy())
        for who, own in entries.groupby("next_pid")
    }
    return [
        _first_entry(*accounts[who], low, high) if who in accounts else None
        for who, low, high in zip(pid.tolist(), low_ns, high_ns)
    ]


def _first_entry(times: np.ndarray, spent_ns: np.ndarray, low: int, high: int) -> int | None:
    at = int(np.searchsorted(times, low, side="right"))
    began = int(times[at] - spent_ns[at]) if at < len(times) else -1
    return began if low <= began <= high else None


def _rows(at, cpu, left, found, low_ns, high_ns, woken_ns, began_ns) -> tuple[list[tuple], int]:
    """(position in the table, cpu, time, from, to) of each switch to put in, and the ambiguous
    time.
    """
    rows, ambiguous_ns = [], 0
    for position, where, x, y, low, high, woken, began in zip(
        at, cpu, left, found, low_ns, high_ns, woken_ns, began_ns
    ):
        if woken is None and began is not None:
            rows.append((position, where, began, x, y))
        elif woken is None:
            rows.append((position, where, low, x, y))
            ambiguous_ns += int(high - low)
        elif x == 0:
            rows.append((position, where, max(woken, low), 0, y))
        else:
            rows += [(position, where, low, x, 0), (position, where, woken, 0, y)]
            ambiguous_ns += int(woken - low)
    return rows, ambiguous_ns


def _inserted(raw: pd.DataFrame, is_wake: np.ndarray, rows: list[tuple]) -> pd.DataFrame:
    """The table without wake-ups and with the new switches; each goes behind the row that it names."""
    position, cpu, time_ns, left, found = (np.array(values) for values in zip(*rows))
    comms, prios = _last_known(raw, "comm"), _last_known(raw, "prio")
    new = {
        "cpu": cpu,
        "time_ns": time_ns,
        "pid": left,
        "event": [SWITCH] * len(rows),
        "prev_pid": left,
        "next_pid": found,
        "prev_state": np.full(len(rows), _SLEEPS),
        "prev_comm": [comms.get(pid, "") for pid in left],
        "next_comm": [comms.get(pid, "") for pid in found],
        "prev_prio": [prios.get(pid, _ORDINARY) for pid in left],
        "next_prio": [prios.get(pid, _ORDINARY) for pid in found],
    }
    kept = np.flatnonzero(~is_wake)
    order = np.argsort(np.concatenate([kept, position + 0.5]), kind="stable")
    return pd.DataFrame(
        {
            name: _joined(raw[name].array[kept], new.get(name), len(rows))[order]
            for name in raw.columns
        }
    )


def _joined(old: pd.api.extensions.ExtensionArray, new: object, count: int) -> object:
    """Two columns one behind the other; texts stay categories, since there are millions of them."""
    if (
        isinstance(old.dtype, pd.CategoricalDtype)
        or old.dtype == object
        or isinstance(old.dtype, pd.StringDtype)
    ):
        return union_categoricals(
            [pd.Categorical(old), pd.Categorical([""] * count if new is None else new)]
        )
    return np.concatenate(
        [
            np.asarray(old),
            np.zeros(count, np.asarray(old).dtype) if new is None else np.asarray(new),
        ]
    )


def _last_known(raw: pd.DataFrame, what: str) -> dict[int, object]:
    """Name or priority of each thread, as its last switch says."""
    ends = [
        raw.loc[raw["event"] == SWITCH, [f"{end}_pid", f"{end}_{what}"]].set_axis(
            ["pid", what], axis=1
        )
        for end in ("next", "prev")
    ]
    last = [end.drop_duplicates("pid", keep="last") for end in ends]
    return {
        pid: value for end in last for pid, value in zip(end["pid"].tolist(), end[what].tolist())
    }
