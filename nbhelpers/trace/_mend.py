"""Switches that the kernel did not report, inferred from what it did report.

Seen on Linux 6.18 in a virtual machine: some threads (and one CPU's idle task) leave a CPU without any scheduler tracepoint, without a
loss being counted. Every record names who was running, so the gap shows: one record says X runs, the next one says Y did.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

WAKE, SWITCH = "sched_wakeup", "sched_switch"
_SLEEPS = 1  # prev_state of who left: it was not preempted, so it kept nobody waiting


@dataclass(frozen=True)
class Mended:
    """The table with the missing switches put in and the wake-ups taken out.

    `count`: switches put in; `ambiguous_ns`: CPU time of which it is not known whose it was (counted as the later thread's).
    """

    raw: pd.DataFrame
    count: int
    ambiguous_ns: int


def mend_switches(raw: pd.DataFrame) -> Mended:
    """Put the missing switches into a table of tracepoints (see `noise_from_tracepoints`).

    A missing switch from X to Y lies between the last record of X and the first of Y. If Y was woken for this CPU in between it began
    then, and the CPU was idle before; else it is put directly after the last record of X.
    """
    order = np.lexsort((raw["time_ns"].to_numpy(), raw["cpu"].to_numpy()))
    raw = raw.iloc[order].reset_index(drop=True)
    is_switch = (raw["event"] == SWITCH).to_numpy()
    cpu, time_ns, pid = (raw[name].to_numpy() for name in ("cpu", "time_ns", "pid"))
    before, after = np.where(is_switch, raw["prev_pid"], pid), np.where(is_switch, raw["next_pid"], pid)
    at = np.flatnonzero((cpu[1:] == cpu[:-1]) & (after[:-1] != before[1:]))
    is_wake = (raw["event"] == WAKE).to_numpy()
    if not len(at):
        return Mended(raw[~is_wake] if is_wake.any() else raw, 0, 0)
    # The idle task is interrupted once more between the wake-up and the switch that it brings about.
    since_ns = np.where(after[at] == 0, _last_switch_ns(cpu, time_ns, is_switch)[at], time_ns[at])
    woken_ns = _woken(raw[is_wake], cpu[at], before[at + 1], since_ns, time_ns[at + 1])
    rows, ambiguous_ns = _rows(at, cpu[at], after[at], before[at + 1], time_ns[at], time_ns[at + 1], woken_ns)
    return Mended(_inserted(raw, is_wake, rows), len(rows), ambiguous_ns)


def _last_switch_ns(cpu: np.ndarray, time_ns: np.ndarray, is_switch: np.ndarray) -> np.ndarray:
    """For each record the time of the last switch before it on its CPU, or of the CPU's first record."""
    first = np.r_[True, cpu[1:] != cpu[:-1]]
    return time_ns[np.maximum.accumulate(np.where(is_switch | first, np.arange(len(cpu)), 0))]


def _woken(wakes: pd.DataFrame, cpu: np.ndarray, pid: np.ndarray, low_ns: np.ndarray, high_ns: np.ndarray) -> list[int | None]:
    """For each gap, when its later thread was last woken for its CPU."""
    times = {key: np.sort(own.to_numpy()) for key, own in wakes.groupby(["next_pid", "number"])["time_ns"]}
    return [_last_within(times.get((int(who), int(where))), low, high) for who, where, low, high in zip(pid, cpu, low_ns, high_ns)]


def _last_within(times: np.ndarray | None, low: int, high: int) -> int | None:
    at = -1 if times is None else int(np.searchsorted(times, high, side="right")) - 1
    return int(times[at]) if at >= 0 and times[at] >= low else None


def _rows(at, cpu, left, found, low_ns, high_ns, woken_ns) -> tuple[list[tuple], int]:
    """(position in the table, cpu, time, from, to) of each switch to put in, and the ambiguous time."""
    rows, ambiguous_ns = [], 0
    for position, where, x, y, low, high, woken in zip(at, cpu, left, found, low_ns, high_ns, woken_ns):
        if woken is None:
            rows.append((position, where, low, x, y))
            ambiguous_ns += int(high - low)
        elif x == 0:
            rows.append((position, where, max(woken, low), 0, y))
        else:
            rows += [(position, where, low, x, 0), (position, where, woken, 0, y)]
            ambiguous_ns += int(woken - low)
    return rows, ambiguous_ns


def _inserted(raw: pd.DataFrame, is_wake: np.ndarray, rows: list[tuple]) -> pd.DataFrame:
    switches = raw[raw["event"] == SWITCH]
    names = dict(zip(switches["prev_pid"], switches["prev_comm"])) | dict(zip(switches["next_pid"], switches["next_comm"]))
    prios = dict(zip(switches["next_pid"], switches["next_prio"])) | dict(zip(switches["prev_pid"], switches["prev_prio"]))
    table = pd.DataFrame(rows, columns=["position", "cpu", "time_ns", "prev_pid", "next_pid"])
    new = pd.DataFrame(0, index=table.index, columns=raw.columns).astype({name: object for name in ("event", "name", "prev_comm", "next_comm")})
    new[["cpu", "time_ns", "prev_pid", "next_pid"]] = table[["cpu", "time_ns", "prev_pid", "next_pid"]]
    new["pid"], new["event"], new["name"], new["prev_state"] = table["prev_pid"], SWITCH, "", _SLEEPS
    for end in ("prev", "next"):
        new[f"{end}_comm"] = [names.get(pid, "") for pid in table[f"{end}_pid"]]
        new[f"{end}_prio"] = [prios.get(pid, 120) for pid in table[f"{end}_pid"]]
    place = np.concatenate([np.flatnonzero(~is_wake), table["position"].to_numpy() + 0.5])
    plain = raw[~is_wake].astype({name: object for name in ("event", "name", "prev_comm", "next_comm")})
    joined = pd.concat([plain, new.astype(plain.dtypes)], ignore_index=True).iloc[np.argsort(place, kind="stable")]
    return joined.astype({name: "category" for name in ("event", "name", "prev_comm", "next_comm")}).reset_index(drop=True)
