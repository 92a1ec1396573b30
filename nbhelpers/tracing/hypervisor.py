"""What a hypervisor took: time in which a CPU of a virtual machine stood still, of which the kernel
has no event.

Owns the two clocks that show it in a recording of tracepoints: the scheduler's account of CPU time,
from which a paravirtualised kernel takes what was stolen, to the ns and to the tick; and the tick
itself, which comes late when the CPU was away. The plain way is steal of /proc/stat, in ticks of
10 ms. As a sum it is as good: of the 431 ms that a traced loop lost in 30 runs beyond the kernel's
events, it has 13.9 %, this 11.6 % (benchmarks/rivals.py gaps). It does not say when, nor whom it
interrupted, which a replay needs.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from ._files import header_integer, header_integers, header_window
from ._missing_switches import RUNTIME, SWITCH
from ._table import (
    REPLAY_PRIORITY,
    clip_to_window,
    hardware_events,
    in_order,
    join_events,
    rows_by_cpu,
    within_interrupts,
)
from .netduration import with_children

_Side = Literal["left", "right"]
SHORTEST_NS = 30_000  # 99 % of the intervals in which nothing was stolen close within 17 µs
TICK = "local_timer_entry"
PERIODS_NS = (1_000_000, 10_000_000 / 3, 4_000_000, 10_000_000)  # HZ 1000, 300, 250, 100
ON_TIME_NS = 20_000  # a tick comes within 10 µs of its grid, if nothing keeps it
_NO_TICKS = pd.DataFrame(columns=["cpu", "due_ns", "came_ns"], dtype=np.int64)
_TIME_BITS = 44  # of a key of CPU and time: recordings of at most 4.8 hours


def stolen_time(header: dict, raw: pd.DataFrame, path: str | Path) -> pd.DataFrame:
    """Time in which the workload had a CPU and the CPU did not run, from a recording of
    tracepoints.

    Parameters
    ----------
    header, raw
        Header and tracepoints of a recording, as `read_recording` returns them.
    path
        Path of that file, for messages.

    Returns
    -------
    events : an events table, kind hardware, source "stolen", with the column `slack_ns`: how much
    earlier or later it may have been. attrs: `method` ("account", or "not recorded" where the
    scheduler's account was not), `away_share`: share of the ticks that came late while a CPU was
    busy. Each tick being a look at the CPU at a time that the hypervisor does not know, that share
    estimates the share of time away, short gaps included. `all_ns`: what the accounts of all
    threads lack, the workload's or not (None: not recorded): that is what /proc/stat calls steal.
    Only what made the *workload* wait is in the table: what interrupted other threads, or lay
    within an interrupt, is part of their events already. Time stolen while the CPU was idle, or
    less than 30 µs, is in neither.

    Raises
    ------
    InputError
        A header without the timed region or the workload.

    Notes
    -----
    Between two entries of a thread's account (sched_stat_runtime, written at each tick and switch)
    it ran without a pause, and what the account lacks of the wall clock was stolen. The length is
    exact, the place known to the stretch between two records. Ticks alone are no rival: one that
    comes late gives a lower bound, and gaps between two ticks are not seen at all.
    """
    window, run = header_window(header, path), header_integer(header, "run", path)
    records = _Records.of(raw, header_integers(header, "workload_pids", path))
    ticks = _late_ticks(records, window)
    lacking = _lacking(raw, records)
    gaps = _from_account(lacking[lacking["of_workload"]], records, ticks)
    table = _table(gaps, run, window)
    busy = ticks[ticks["busy"]]
    has_account = bool((raw["event"] == RUNTIME).any())
    within = (lacking["to_ns"] > window[0]) & (lacking["from_ns"] < window[1])
    table.attrs |= {
        "method": "account" if has_account else "not recorded",
        "away_share": float((busy["late_ns"] > ON_TIME_NS).mean()) if len(busy) else 0.0,
        "all_ns": int(lacking.loc[within, "lack_ns"].sum()) if has_account else None,
        "cpus": sorted(set(raw["cpu"].tolist())),
    }
    return table


def with_stolen_time(events: pd.DataFrame, stolen: pd.DataFrame) -> pd.DataFrame:
    """Add the time that the hypervisor took as noise events, for a config that replays both.

    Parameters
    ----------
    events
        Noise events, as `read_traces` returns them.
    stolen
        Time that the hypervisor took in the same runs (`stolen_times`).

    Returns
    -------
    `events` and the rows of `stolen`, by run and start; `attrs["hypervisor"]` is the method that
    found the stolen time.
    """
    joined = join_events([events, stolen[list(events.columns)]]).sort_values(
        ["run", "start_ns", "cpu", "end_ns"], kind="stable", ignore_index=True
    )
    joined.attrs = events.attrs | {"hypervisor": stolen.attrs.get("method", "")}
    return joined


@dataclass(frozen=True)
class _Records:
    """All records by CPU and time.

    `after`: who ran after each. `stretch`: in which unbroken stretch of one thread the time after
    the record lies; a new one begins with a switch, and wherever records contradict each other.
    """

    cpu: np.ndarray
    time_ns: np.ndarray
    after: np.ndarray
    stretch: np.ndarray
    event: pd.api.extensions.ExtensionArray
    workload_pids: np.ndarray
    since_ns: int

    @classmethod
    def of(cls, raw: pd.DataFrame, workload_pids: Collection[int]) -> "_Records":
        sorted_ = in_order(raw)
        cpu, time_ns, pid = (sorted_[name].to_numpy() for name in ("cpu", "time_ns", "pid"))
        is_switch = (sorted_["event"] == SWITCH).to_numpy()
        before, after = (
            np.where(is_switch, sorted_[name], pid) for name in ("prev_pid", "next_pid")
        )
        breaks = is_switch.astype(np.int64)
        breaks[1:] += (cpu[1:] != cpu[:-1]) | (before[1:] != after[:-1])
        return cls(
            cpu,
            time_ns,
            after,
            np.cumsum(breaks),
            sorted_["event"].array,
            with_children(raw, workload_pids),
            int(time_ns.min()) if len(time_ns) else 0,
        )

    def last_before(self, cpu: np.ndarray, time_ns: np.ndarray, side: _Side = "left") -> np.ndarray:
        """Place of the last record of a CPU before a time; −1 where there is none."""
        place = (
            np.searchsorted(self._keys(self.cpu, self.time_ns), self._keys(cpu, time_ns), side=side)
            - 1
        )
        return np.where((place >= 0) & (self.cpu[place] == cpu), place, -1)

    def _keys(self, cpu: np.ndarray, time_ns: np.ndarray) -> np.ndarray:
        return (np.asarray(cpu, np.int64) << _TIME_BITS) + np.maximum(
            np.asarray(time_ns, np.int64) - self.since_ns, 0
        )

    def interrupted_ns(self) -> np.ndarray:
        """Time up to each record that interrupts and softirqs of its CPU took."""
        within = within_interrupts(self.ends_with("_entry"), self.ends_with("_exit"), self.cpu)
        result = np.zeros(len(within), np.int64)
        for _, here in rows_by_cpu(self.cpu):
            within_ns = np.where(within[here[:-1]], np.diff(self.time_ns[here]), 0)
            result[here] = np.cumsum(np.append(0, within_ns))
        return result

    def ends_with(self, ending: str) -> np.ndarray:
        """Whether a record is of the begin (_entry) or the end (_exit) of an interrupt or
        softirq.
        """
        found = [str(name).endswith(ending) for name in self.event.categories]
        return np.array(found or [False])[self.event.codes]


def _late_ticks(records: _Records, window: tuple[int, int]) -> pd.DataFrame:
    """Every time within the timed region at which a CPU's tick was due: `cpu`, `due_ns`, `came_ns`,
    `late_ns`, `busy` (the workload had the CPU).
    """
    is_tick = np.asarray(records.event == TICK)
    tables = [
        _of_cpu(cpu, records.time_ns[is_tick & (records.cpu == cpu)], window)
        for cpu in np.unique(records.cpu[is_tick])
    ]
    due = pd.concat([_NO_TICKS, *tables], ignore_index=True)
    cpu, due_ns, came_ns = due.to_numpy().T
    last = records.last_before(cpu, due_ns - ON_TIME_NS)
    # A CPU that goes idle between two ticks stops its tick: who ran when it was due must still run
    # when it came.
    came = records.last_before(cpu, came_ns)
    busy = (
        (last >= 0)
        & np.isin(records.after[last], records.workload_pids)
        & ~records.ends_with("_entry")[last]
        & (records.stretch[came] == records.stretch[last])
    )
    return due.assign(late_ns=np.maximum(due["came_ns"] - due["due_ns"], 0), busy=busy)


def _of_cpu(cpu: int, came_ns: np.ndarray, window: tuple[int, int]) -> pd.DataFrame:
    """Each time on a CPU's grid, and the first timer interrupt from then on."""
    grid = _grid(came_ns)
    if grid is None:
        return _NO_TICKS
    period_ns, phase_ns = grid
    first = np.ceil((window[0] - phase_ns) / period_ns)
    last = np.floor((min(window[1], came_ns[-1]) - phase_ns) / period_ns)
    due_ns = np.rint(np.arange(first, last + 1) * period_ns + phase_ns).astype(np.int64)
    at = np.searchsorted(came_ns, due_ns - ON_TIME_NS)
    due_ns, at = due_ns[at < len(came_ns)], at[at < len(came_ns)]
    return pd.DataFrame({"cpu": cpu, "due_ns": due_ns, "came_ns": came_ns[at]})


def _grid(came_ns: np.ndarray) -> tuple[float, float] | None:
    """Period and phase of a CPU's tick: most timer interrupts are its, one period apart and at the
    same place in it.
    """
    if len(came_ns) < 10:
        return None
    apart = np.diff(came_ns)
    period_ns = max(PERIODS_NS, key=lambda period: (np.abs(apart - period) < ON_TIME_NS).sum())
    place = (came_ns - came_ns[0]) % period_ns
    # a first guess that holds where the ends of the period meet
    angle = np.angle(np.exp(2j * np.pi * place / period_ns).mean())
    near = (place - angle * period_ns / (2 * np.pi) + period_ns / 2) % period_ns - period_ns / 2
    return period_ns, float(came_ns[0] + angle * period_ns / (2 * np.pi) + np.median(near))


def _from_account(lacking: pd.DataFrame, records: _Records, ticks: pd.DataFrame) -> pd.DataFrame:
    """Rows (cpu, start_ns, duration_ns, slack_ns) of what accounts lack, put into the stretches
    that no record interrupts.
    """
    late = ticks[ticks["late_ns"] > ON_TIME_NS]
    came = set(zip(late["cpu"].tolist(), late["came_ns"].tolist()))
    entry = records.ends_with("_entry")
    rows = []
    for interval in lacking.to_dict("records"):
        rows += _placed(interval, records, entry, came)
    return pd.DataFrame(rows, columns=["cpu", "start_ns", "duration_ns", "slack_ns"])


@dataclass(frozen=True)
class _Accounts:
    """Switches to each thread and entries of its account, by thread and time.

    `cpu`: of the last record that the thread's CPU wrote; another CPU, which wakes somebody there,
    may write an entry, too.
    """

    pid: np.ndarray
    time_ns: np.ndarray
    is_entry: np.ndarray
    spent_ns: np.ndarray
    cpu: np.ndarray

    @classmethod
    def of(cls, raw: pd.DataFrame) -> "_Accounts":
        event = raw["event"]
        table = raw[((event == RUNTIME) | (event == SWITCH)).to_numpy()]
        table = table.iloc[np.lexsort((table["time_ns"].to_numpy(), table["next_pid"].to_numpy()))]
        pid, cpu = table["next_pid"].to_numpy(), table["cpu"].to_numpy()
        is_entry = (table["event"] == RUNTIME).to_numpy()
        local = ~is_entry | (table["pid"].to_numpy() == pid)
        last_local = np.maximum.accumulate(np.where(local, np.arange(len(pid)), -1))
        return cls(
            pid,
            table["time_ns"].to_numpy(),
            is_entry,
            table["delta_ns"].to_numpy(),
            cpu[last_local],
        )


def _lacking(raw: pd.DataFrame, records: _Records) -> pd.DataFrame:
    """Where something was stolen between two entries of a thread's account, without a switch.

    Columns `cpu`, `from_ns`, `to_ns`, `lack_ns` (wall time less CPU time), `of_workload`. The first
    entry after a switch counts from the switch.
    """
    accounts = _Accounts.of(raw)
    pid, is_entry = accounts.pid, accounts.is_entry
    at = np.flatnonzero(is_entry[1:] & (pid[1:] == pid[:-1])) + 1
    cpu, from_ns, to_ns = accounts.cpu[at], accounts.time_ns[at - 1], accounts.time_ns[at]
    first = records.last_before(cpu, from_ns, side="right")
    last = records.last_before(cpu, to_ns)
    unbroken = (
        (first >= 0)
        & (last >= 0)
        & (records.stretch[first] == records.stretch[last])
        & (records.after[first] == pid[at])
    )
    interrupted_ns = records.interrupted_ns()
    lack_ns = _without_interrupts(
        to_ns - from_ns - accounts.spent_ns[at],
        interrupted_ns[last] - interrupted_ns[first],
        unbroken,
    )
    table = pd.DataFrame(
        {
            "cpu": cpu,
            "from_ns": from_ns,
            "to_ns": to_ns,
            "lack_ns": lack_ns,
            "of_workload": np.isin(pid[at], records.workload_pids),
        }
    )
    return table[unbroken & (lack_ns >= SHORTEST_NS)]


def _without_interrupts(
    lack_ns: np.ndarray, interrupts_ns: np.ndarray, whole: np.ndarray
) -> np.ndarray:
    """Many kernels (CONFIG_IRQ_TIME_ACCOUNTING) take interrupts out of the account, too: then most
    intervals lack just those.
    """
    typical = whole & (interrupts_ns > 3000)
    are_out = typical.any() and np.median(lack_ns[typical] / interrupts_ns[typical]) > 0.5
    return lack_ns - interrupts_ns if are_out else lack_ns


def _placed(interval: dict, records: _Records, entry: np.ndarray, came: set) -> list[tuple]:
    """Where in an interval its stolen time was: in its longest stretch without a record, up to a
    late tick if one ends it.

    What does not fit goes into the next longest. A stretch that an interrupt's entry begins is that
    interrupt's.
    """
    cpu = interval["cpu"]
    ends_ns = np.array([interval["from_ns"], interval["to_ns"]])
    low, high = records.last_before(np.array([cpu, cpu]), ends_ns, side="right").tolist()
    times, left, rows = records.time_ns[low : high + 1], int(interval["lack_ns"]), []
    for at in np.argsort(-np.diff(times), kind="stable"):
        length = int(times[at + 1] - times[at])
        if left <= 0 or length == 0:
            break
        taken = min(left, length)
        slack = 0 if (cpu, int(times[at + 1])) in came else max(length - left, 0) // 2
        if not entry[low + at]:
            rows.append((cpu, int(times[at + 1]) - slack - taken, taken, slack))
        left -= taken
    return rows


def _table(gaps: pd.DataFrame, run: int, window: tuple[int, int]) -> pd.DataFrame:
    gaps = gaps.sort_values(["start_ns", "cpu"], kind="stable")
    priority = REPLAY_PRIORITY["hardware"]
    events = hardware_events(gaps, "stolen", "SCHED_FIFO", priority, run, "hypervisor")
    return clip_to_window(events.assign(slack_ns=gaps["slack_ns"].to_numpy(np.int64)), *window)
