"""What each thread of a program did, and who had each CPU: the states and the owners of a run.

Owns the way from switches and wake-ups to the two tables. Pure. No model: each state is what the
kernel recorded.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ._files import header_integer, header_integers, header_window
from ._missing_switches import SWITCH, WAKE, WAKING, infer_switches
from ._table import in_order, stacked, within_interrupts
from .netduration import FORK, IRQ, SOFTIRQS, with_children

STATES = ("running", "runnable", "sleeping", "disk", "stopped")
COLUMNS = {
    "run": "int64",
    "thread": "int64",
    "name": "str",
    "start_ns": "int64",
    "end_ns": "int64",
    "state": "str",
    "cpu": "int64",
    "woken_by": "int64",
    "woken_by_name": "str",
}
OWNERS = {
    "run": "int64",
    "cpu": "int64",
    "start_ns": "int64",
    "end_ns": "int64",
    "thread": "int64",
    "name": "str",
    "is_program": "bool",
}
UNKNOWN, NOBODY = -1, 0  # a waker: not recorded; an interrupt, or the idle task
TIMER, IDLE = "timer", "idle"  # names
NOT_RECORDED = (
    "what threads did is in recordings of tracepoints only; make doctor says what tracing takes on"
    " this machine"
)
_RUNNING, _RUNNABLE, _SLEEPING, _DISK, _STOPPED, _ENDED = range(6)
# Bits of prev_state (include/linux/sched.h); 0x80 is an idle kernel thread, 0x100 "preempted".
_BITS = ((0x10 | 0x20, _ENDED), (0x4 | 0x8, _STOPPED), (0x2, _DISK), (0x1 | 0x40 | 0x80, _SLEEPING))
_TIMERS = ("local_timer", "softirq:TIMER", "softirq:HRTIMER")
# Another CPU asked for the wake-up by these: who it was is not in this record.
_REMOTE = ("reschedule", "call_function", "call_function_single")


def tables_of_recording(
    header: dict, raw: pd.DataFrame, path: str | Path
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What each thread of the program did, and who had each CPU.

    Parameters
    ----------
    header, raw
        What `read_recording` returned.
    path
        Path of the recording, for messages.

    Returns
    -------
    states
        One row an interval of a thread, sorted by `thread` and `start_ns`; a thread's rows follow
        each other without a gap within its life, clipped to the timed region. `run`, `thread`
        (tid), `name`, `start_ns`, `end_ns` (from the begin of the region), `state` (running,
        runnable, sleeping, disk, stopped), `cpu` (where it ran or waits to run; −1 unknown),
        `woken_by` (tid of who ended a sleep, or forked the thread; 0 an interrupt or the idle task,
        −1 unknown) and `woken_by_name` (its name, ``timer``, ``irq:NAME`` or ``softirq:NAME``).
    owners
        One row an interval of a CPU, sorted and without gaps, clipped to the timed region: `run`,
        `cpu`, `start_ns`, `end_ns` (from its begin), `thread` (0 the idle task, −1 unknown),
        `name`, `is_program`.

    Raises
    ------
    InputError
        A header that lacks a number.

    Notes
    -----
    A preempted thread is runnable at once, a sleeping one from its wake-up. Of a thread that was
    there when recording began the first record says what it did before.
    """
    window, run = header_window(header, path), header_integer(header, "run", path)
    recorded = header_window(header, path, "on_ns", "off_ns")
    threads = with_children(raw, header_integers(header, "workload_pids", path))
    inferred = infer_switches(raw).raw
    switch = inferred[inferred["event"] == SWITCH]
    names = _names(switch)
    steps = pd.concat(
        [_switches(switch, threads), _wakes(raw, threads, names), _forks(raw, threads)]
    )
    steps = steps.sort_values(["thread", "time_ns", "order"], kind="stable", ignore_index=True)
    steps = steps[_takes_effect(steps)].reset_index(drop=True)
    states = _intervals(steps, recorded)
    states["name"] = states["thread"].map(names).fillna("")
    states = _clipped(states.assign(run=run), window)[list(COLUMNS)].astype(COLUMNS)
    owners = _owners(header, raw, switch, recorded)
    # the last name: a process that was just forked still has its parent's
    last = owners["thread"].where(owners["thread"] > NOBODY).map(names)
    owners = owners.assign(name=last.fillna(owners["name"]))
    owners = owners.assign(run=run, is_program=owners["thread"].isin(threads))
    return states, _clipped(owners, window)[list(OWNERS)].astype(OWNERS)


def _owners(
    header: dict, raw: pd.DataFrame, switch: pd.DataFrame, recorded: tuple[int, int]
) -> pd.DataFrame:
    """Who had each CPU while recording lasted: before its first switch, and after each."""
    first = switch.drop_duplicates("cpu")
    before = pd.DataFrame({"cpu": first["cpu"], "start_ns": recorded[0]})
    before = before.assign(thread=first["prev_pid"], name=first["prev_comm"].astype(str))
    after = switch[["cpu", "time_ns"]].rename(columns={"time_ns": "start_ns"})
    after = after.assign(thread=switch["next_pid"], name=switch["next_comm"].astype(str))
    silent = sorted({buffer["cpu"] for buffer in header["buffers"]} - set(first["cpu"]))
    ran = raw.drop_duplicates("cpu").set_index("cpu")["pid"]
    quiet = pd.DataFrame({"cpu": silent, "start_ns": recorded[0]})
    quiet = quiet.assign(thread=quiet["cpu"].map(ran).fillna(UNKNOWN), name="")
    table = pd.concat([before, after, quiet]).sort_values(["cpu", "start_ns"], kind="stable")
    end_ns = table.groupby("cpu")["start_ns"].shift(-1).fillna(recorded[1])
    return table.assign(end_ns=end_ns, name=table["name"].mask(table["thread"] == NOBODY, IDLE))


def _clipped(table: pd.DataFrame, window: tuple[int, int]) -> pd.DataFrame:
    start_ns = table["start_ns"].clip(*window) - window[0]
    end_ns = table["end_ns"].clip(*window) - window[0]
    table = table.assign(start_ns=start_ns, end_ns=end_ns)
    return table[end_ns > start_ns].reset_index(drop=True)


def _names(switch: pd.DataFrame) -> dict[int, str]:
    """The last name of each thread."""
    columns = ["time_ns", "thread", "name"]
    ends = [switch[["time_ns", f"{end}_pid", f"{end}_comm"]] for end in ("next", "prev")]
    seen = pd.concat([end.set_axis(columns, axis=1) for end in ends])
    last = seen.sort_values("time_ns", kind="stable").drop_duplicates("thread", keep="last")
    return dict(zip(last["thread"], last["name"].astype(str)))


def _steps(rows: pd.DataFrame, thread: str, state: object, order: int, cpu: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "thread": rows[thread],
            "time_ns": rows["time_ns"],
            "state": state,
            "order": order,  # of steps at the same ns
            "cpu": rows[cpu],
            "woken_by": UNKNOWN,
            "woken_by_name": "",
        }
    )


def _switches(switch: pd.DataFrame, threads: np.ndarray) -> pd.DataFrame:
    """Each switch of one of the threads to a CPU, and off it."""
    onto = switch[switch["next_pid"].isin(threads)]
    off = switch[switch["prev_pid"].isin(threads)]
    bits, state = off["prev_state"].to_numpy(), np.full(len(off), _RUNNABLE)
    for mask, value in reversed(_BITS):
        state = np.where(bits & mask, value, state)
    return pd.concat(
        [_steps(off, "prev_pid", state, 0, "cpu"), _steps(onto, "next_pid", _RUNNING, 2, "cpu")]
    )


def _wakes(raw: pd.DataFrame, threads: np.ndarray, names: dict[int, str]) -> pd.DataFrame:
    """Each wake-up of one of the threads, with who woke it."""
    raw = in_order(raw).reset_index(drop=True)
    # of two of one wake-up the first counts: WAKING, in the waker's context; but it may come before
    # the switch off the CPU, and then only WAKE comes in the sleep that it ends
    wakes = raw[raw["event"].isin((WAKING, WAKE)) & raw["next_pid"].isin(threads)]
    context = _contexts(raw)[wakes.index]
    steps = _steps(wakes, "next_pid", _RUNNABLE, 1, "number")
    waker = wakes["pid"].to_numpy()
    remote = np.isin(context, _REMOTE) | ((waker == 0) & (context == ""))
    steps["woken_by"] = np.select([remote, context != ""], [UNKNOWN, NOBODY], waker)
    by = pd.Series(waker).map(names).fillna("").to_numpy(dtype=object)
    known = np.where(np.isin(context, _TIMERS), TIMER, context)
    steps["woken_by_name"] = np.select([remote, context != ""], ["", known], by)
    return steps


def _contexts(raw: pd.DataFrame) -> np.ndarray:
    """In which interrupt or softirq each record was made, by name; "" in none."""
    event = raw["event"].astype(str)
    is_entry = event.str.endswith("_entry").to_numpy(bool)
    is_exit = event.str.endswith("_exit").to_numpy(bool)
    inside = within_interrupts(is_entry, is_exit, raw["cpu"].to_numpy())
    last = np.maximum.accumulate(np.where(is_entry, np.arange(len(raw)), 0))
    names = np.full(len(raw), "", dtype=object)
    entries = np.flatnonzero(is_entry)
    names[entries] = [_interrupt(*row) for row in _fields(raw, event.to_numpy(), entries)]
    return np.where(inside, names[last], "").astype(str)


def _fields(raw: pd.DataFrame, event: np.ndarray, at: np.ndarray) -> Iterator[tuple]:
    return zip(event[at], raw["number"].to_numpy()[at], raw["name"].astype(str).to_numpy()[at])


def _interrupt(event: str, number: int, name: str) -> str:
    family = event.removesuffix("_entry")
    if family == "softirq":
        return f"softirq:{SOFTIRQS[number] if 0 <= number < len(SOFTIRQS) else number}"
    if family == IRQ:
        return f"irq:{name}"
    return family if family in (*_REMOTE, *_TIMERS) else f"irq:{family}"


def _forks(raw: pd.DataFrame, threads: np.ndarray) -> pd.DataFrame:
    """The begin of each of the threads that was forked."""
    forks = raw[(raw["event"] == FORK) & raw["next_pid"].isin(threads)].assign(nowhere=UNKNOWN)
    return _steps(forks, "next_pid", _RUNNABLE, -1, "nowhere").assign(woken_by=forks["prev_pid"])


def _takes_effect(steps: pd.DataFrame) -> np.ndarray:
    """A wake-up is one only of who sleeps: the kernel also wakes who is about to sleep."""
    state = steps["state"].to_numpy()
    wake = (steps["order"] == 1).to_numpy()
    first = ~steps["thread"].duplicated().to_numpy()
    anchor = np.maximum.accumulate(np.where(~wake | first, np.arange(len(steps)), 0))
    sleeps = np.isin(state[anchor], (_SLEEPING, _DISK, _STOPPED))
    again = wake & np.append(False, wake[:-1]) & ~first
    return ~wake | first | (sleeps & ~again)


def _intervals(steps: pd.DataFrame, recorded: tuple[int, int]) -> pd.DataFrame:
    """From steps to intervals: each lasts until the thread's next step; a sleep has its waker."""
    begins = steps[~steps["thread"].duplicated() & (steps["order"] >= 0)]
    # before its first record it ran, slept, or waited for a CPU
    before = begins["order"].map({0: _RUNNING, 1: _SLEEPING, 2: _RUNNABLE})
    earlier = begins.assign(time_ns=recorded[0], state=before, woken_by=UNKNOWN, woken_by_name="")
    steps = stacked([earlier, steps])
    steps = steps.sort_values(["thread", "time_ns", "order"], kind="stable", ignore_index=True)
    following = steps.groupby("thread")[["time_ns", "woken_by", "woken_by_name", "cpu"]].shift(-1)
    # where a new thread waits is where it runs first
    forked = (steps["order"] < 0) & following["cpu"].notna()
    asleep = steps["state"].isin((_SLEEPING, _DISK, _STOPPED))
    forked_by = steps["woken_by"].where(steps["order"] < 0, UNKNOWN)
    table = steps.rename(columns={"time_ns": "start_ns"}).assign(
        end_ns=following["time_ns"].fillna(recorded[1]),
        cpu=steps["cpu"].mask(forked, following["cpu"]),
        woken_by=following["woken_by"].fillna(UNKNOWN).where(asleep, forked_by),
        woken_by_name=following["woken_by_name"].where(asleep, "").fillna(""),
    )
    table = table[table["state"] != _ENDED]
    return table.assign(state=np.array(STATES, dtype=object)[table["state"].to_numpy()])
