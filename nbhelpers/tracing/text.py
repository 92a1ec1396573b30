"""Traces that other tools print as text: `perf script` (and `perf sched script`), `trace-cmd
report`, tracefs' `trace`, Perfetto's `traceconv systrace`, and LTTng's by `babeltrace`.

Owns the shapes of their lines. Times are as fine as the text has them: 1 µs, or 1 ns. What may
repeat in a shape has a bound, so that no line takes the square of its length: a name of the kernel
has 15 letters.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd

from ..errors import InputError, LostEvents
from ..reading import in_child
from ._files import damaged, read_trace
from ._missing_switches import SWITCH, WAKE
from ._table import LARGEST_NS
from .netduration import FORK, NMI, noise_from_tracepoints

# COMM-PID (TGID) [CPU] flags TIME: EVENT: fields; perf has COMM PID/TID, and SYSTEM:EVENT
_FTRACE = re.compile(
    r".{0,16}?[-\s]\s*(?:-?\d+/)?(-?\d{1,9})\s+(?:\(\s*[-\d]+\)\s+)?\[(\d{1,6})\]\s+"
    r"(?:[^\s:]{4,8}\s+)?(\d{1,10})\.(\d{6,9}):\s+(?:\d+\s+)?(?:[\w-]+:)?(\w+):\s*(.*)",
    re.ASCII,
)
# [date hours:minutes:seconds] (+passed) host EVENT: { cpu_id = CPU }, { context }, { fields }
_LTTNG = re.compile(
    r"\[(?:[\d-]{10} )?(?:(\d{1,2}):(\d{2}):)?(\d{1,10})\.(\d{9})\] (?:\(\S+\) )?(?:\S+ )?"
    r"(?:[\w-]+:)*(\w+): (?:\{ cpu_id = (\d{1,6}) \})(.*)",
    re.ASCII,
)
_PREV = r"prev_comm=(.{0,16}) prev_pid=(\d{1,9}) prev_prio=(-?\d{1,9}) prev_state=(\S{1,9})"
_SWITCHES = (  # as the kernel prints it, and as the library of perf and trace-cmd does
    re.compile(_PREV + r"(?: ==>)? next_comm=(.{0,16}) next_pid=(\d{1,9}) next_prio=(-?\d{1,9})"),
    re.compile(
        r"(?:task )?(.{0,16}):(\d{1,9}) \[(-?\d{1,9})\] \(?([^\s()]{1,9})\)? ==> "
        r"(.{0,16}):(\d{1,9}) \[(-?\d{1,9})\]"
    ),
)
_OF_PREV = ("prev_comm", "prev_pid", "prev_prio", "prev_state")
_OF_SWITCH = (*_OF_PREV, "next_comm", "next_pid", "next_prio")
_WOKEN = re.compile(r".{0,30}?(?:\bpid=|:)(\d{1,9}) .{0,60}(?:target_cpu=|CPU:)(\d{1,6})")
_FIELD = re.compile(r"\b(\w+)(?:=|: )([^\s\]]+)")
_LTTNG_FIELD = re.compile(r'\b(\w+) = (?:"([^"]*)"|(?:\( [^)]{0,60}container = )?(-?\d{1,9})\b)')
_LOST = re.compile(r"\[(?:LOST )?(\d+ )?EVENTS(?: DROPPED)?\]|LOST (\d+) events")
_NUMBERS = ("irq", "vec", "vector", "softirq", "target_cpu")
_STATES = {"R": 0, "S": 1, "D": 2, "T": 4, "t": 8, "X": 16, "Z": 32, "P": 64, "I": 128}
_EVENTS = {SWITCH, WAKE, FORK, NMI, "irq_handler_entry", "irq_handler_exit"}
_EVENTS |= {"softirq_entry", "softirq_exit", "ipi_entry", "ipi_exit"}
_OF_ALL = ("cpu", "time_ns", "pid", "number", "delta_ns")
_INTEGERS = (*_OF_ALL, "prev_pid", "prev_prio", "prev_state", "next_pid", "next_prio")
_RT = 100  # what LTTng takes off the kernel's priority
_DAY_NS = 86_400 * 10**9


def read_text(path: str | Path, workload: str = "", run: int = 0) -> tuple[dict, pd.DataFrame]:
    """Read a trace that another tool printed, as a run and its noise events.

    Parameters
    ----------
    path
        Text of `sched_switch`, interrupts and softirqs, plain or gzip.
    workload
        Name (comm) of the program, whose threads are not noise; "": the name that had most CPU
        time.
    run
        Number of the run.

    Returns
    -------
    run
        `run`, `cell` ("traced"), `seconds`, `status` ("ok"), `trace` (the file), `program` (its
        name). It lasts from when the program first had a CPU to when it last had one.
    events
        The events table of data/README.md, times from the run's begin; `attrs["cpus"]`: those that
        the text has.

    Raises
    ------
    LostEvents
        The text says that events were lost.
    InputError
        No such event, an unreadable one (with its line), or no thread of that name.
    """
    raw = tracepoints_of_text(path)
    switches = raw[raw["event"] == SWITCH]
    name = workload[:15] or _busiest(switches)
    pids = {
        pid
        for end in ("prev", "next")
        for pid in switches.loc[switches[f"{end}_comm"] == name, f"{end}_pid"]
    } - {0}
    if workload and not pids:
        names = ", ".join(sorted(set(switches["next_comm"]))[:20])
        raise InputError(f"no thread named '{name}'", where=path, fix=f"threads seen: {names}")
    whole = int(raw["time_ns"].min()), int(raw["time_ns"].max()) + 1
    window = _life(switches, pids, whole)
    events = noise_from_tracepoints(raw, pids, (), window, whole, run)
    events.attrs["cpus"] = sorted(map(int, raw["cpu"].unique()))
    seconds = (window[1] - window[0]) / 1e9
    row = {"run": run, "cell": "traced", "seconds": seconds, "status": "ok"}
    return row | {"trace": Path(path).name, "program": name}, events


def _busiest(switches: pd.DataFrame) -> str:
    """The name that had most CPU time, the idle task aside; "" where nobody had any."""
    until = switches.groupby("cpu")["time_ns"].shift(-1)
    had = (until - switches["time_ns"])[switches["next_pid"] != 0]
    had = had.groupby(switches["next_comm"]).sum()
    return str(had.idxmax()) if len(had) else ""


def _life(switches: pd.DataFrame, pids: set[int], whole: tuple[int, int]) -> tuple[int, int]:
    """From when threads first had a CPU to when they last had one, ns."""
    came, left = switches["next_pid"].isin(pids), switches["prev_pid"].isin(pids)
    own = switches["time_ns"][came | left]
    if own.nunique() < 2:
        return whole
    begin = whole[0] if left[own.index[0]] else int(own.iloc[0])
    return begin, whole[1] if came[own.index[-1]] else int(own.iloc[-1])


def tracepoints_of_text(path: str | Path) -> pd.DataFrame:
    """The tracepoints of a text as `noise_from_tracepoints` takes them, in the order of time.

    Raises
    ------
    LostEvents, InputError
        What `read_text` raises.
    """
    content = read_trace(path)
    return in_child(partial(_tracepoints, content, path), path, "trace", len(content))


def _tracepoints(content: bytes, path: str | Path) -> pd.DataFrame:
    rows = list(_rows(content.decode(errors="replace"), path))
    if not rows:
        raise InputError(
            "no switch of threads and no interrupt in a form that is known",
            where=path,
            fix="give the text of perf script, trace-cmd report, tracefs' trace, Perfetto's"
            " traceconv systrace, or babeltrace",
        )
    raw = pd.DataFrame(rows).astype(dict.fromkeys(_INTEGERS, "int64"))
    raw = raw.sort_values("time_ns", kind="stable", ignore_index=True)
    return raw.assign(pid=raw["pid"].where(raw["pid"] >= 0, _who_ran(raw)))


def _who_ran(raw: pd.DataFrame) -> pd.Series:
    """Who had the CPU at each record, by the switch before it, or else the one after."""
    switch = raw["event"] == SWITCH
    came = raw["next_pid"].where(switch).groupby(raw["cpu"]).ffill()
    left = raw["prev_pid"].where(switch).groupby(raw["cpu"]).bfill()
    return raw["prev_pid"].where(switch, came.fillna(left).fillna(-1)).astype("int64")


def _rows(text: str, path: str | Path) -> Iterator[dict]:
    ahead_ns = last_ns = 0
    for number, line in enumerate(text.split("\n"), 1):
        head = _head(line)
        if head is None:
            if lost := _LOST.search(line):
                raise LostEvents(f"events were lost: {lost[0]}", where=f"{path}, line {number}")
            continue
        time_ns, cpu, pid, event, rest = head
        ahead_ns += _DAY_NS * (time_ns + ahead_ns < last_ns - _DAY_NS // 2)  # it was midnight
        last_ns = time_ns = time_ns + ahead_ns
        try:
            row = _row(event, (_lttng_fields if rest.startswith(", {") else _fields)(event, rest))
        except (KeyError, ValueError):
            row, time_ns = {}, LARGEST_NS
        if time_ns >= LARGEST_NS:
            raise damaged(f"an unreadable {event}", f"{path}, line {number}")
        if row:
            yield {"cpu": cpu, "time_ns": time_ns, "pid": pid} | row


def _head(line: str) -> tuple[int, int, int, str, str] | None:
    """Time, CPU, thread (−1: not rest), event and what it says; None: the line has none."""
    if found := _FTRACE.match(line.lstrip()):
        pid, cpu, seconds, parts, event, rest = found.groups()
        return _ns(seconds, parts), int(cpu), int(pid), event, rest
    if found := _LTTNG.match(line):
        hours, minutes, seconds, parts, event, cpu, rest = found.groups()
        hour_ns = (60 * int(hours or 0) + int(minutes or 0)) * 60 * 10**9
        event = event.removeprefix("x86_irq_vectors_").replace("irq_softirq_", "softirq_")
        return hour_ns + _ns(seconds, parts), int(cpu), -1, event, rest
    return None


def _ns(seconds: str, parts: str) -> int:
    return int(seconds) * 10**9 + int(parts.ljust(9, "0"))


def _fields(event: str, rest: str) -> dict[str, str]:
    if event == SWITCH:
        found = _SWITCHES[0].match(rest) or _SWITCHES[1].match(rest)
        return dict(zip(_OF_SWITCH, found.groups() if found else ()))
    if event == WAKE:
        found = _WOKEN.match(rest)
        return dict(zip(("pid", "target_cpu"), found.groups() if found else ()))
    fields = dict(_FIELD.findall(rest))
    name = rest.partition("name=")[2].strip()  # may have spaces
    return fields | ({"name": name} if name else {})


def _lttng_fields(event: str, rest: str) -> dict[str, str]:
    """The fields of the last braces; a thread's number is called tid there."""
    found = _LTTNG_FIELD.findall(rest.rpartition("{")[2])
    fields = {name.lstrip("_"): text or value for name, text, value in found}
    fields |= {name.replace("tid", "pid"): fields[name] for name in fields if "tid" in name}
    fields |= {name: str(int(fields[name]) + _RT) for name in fields if name.endswith("_prio")}
    return fields | ({"pid": fields["parent_pid"]} if "parent_pid" in fields else {})


def _row(event: str, fields: dict[str, str]) -> dict:
    """What an event has to say; nothing of one that takes no CPU time."""
    if event not in _EVENTS and not (event.endswith(("_entry", "_exit")) and "vector" in fields):
        return {}
    number = next((_integer(fields[name]) for name in _NUMBERS if name in fields), -1)
    row = {"event": event, "number": number, "name": fields.get("name", fields.get("handler", ""))}
    row |= {"delta_ns": _integer(fields["delta_ns"]) if event == NMI else 0}
    ends: dict[str, int | str] = dict.fromkeys(_OF_SWITCH, 0)
    ends |= {"prev_comm": "", "next_comm": ""}
    if event == SWITCH:
        ends = {name: fields[name] for name in _OF_SWITCH}
        ends |= {name: int(ends[name]) for name in ends if name.endswith(("pid", "prio"))}
        state = fields["prev_state"]
        ends["prev_state"] = int(state) if state.isdecimal() else _STATES.get(state[:1], 1)
    elif event == WAKE:
        ends["next_pid"] = _integer(fields.get("pid", "-1"))
    elif event == FORK:
        ends |= {"prev_pid": _integer(fields["pid"]), "next_pid": _integer(fields["child_pid"])}
    return row | ends


def _integer(text: str) -> int:
    value = int(text)
    if abs(value) >= 1 << 31:
        raise ValueError(text)
    return value
