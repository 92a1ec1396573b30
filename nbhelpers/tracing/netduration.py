"""Noise events from ordinary tracepoints by the kernel's net-duration algorithm.

Owns the algorithm of kernel/trace/trace_osnoise.c (irq, softirq and thread each know when they
arrived and how much of their time others took), and who was interrupted. Pure: a table in, a table
out. The plain way takes each event's length from its begin to its end. In 86 recorded runs that
counts 0.3 to 0.4 % of the time twice, net lengths none (benchmarks/rivals.py lengths): little, but
it is what the kernel's own tracer reports.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ._missing_switches import RUNTIME, SWITCH, WAKE, WAKING, infer_switches
from ._table import (
    INTERRUPTED,
    KINDS,
    NO_PID,
    POLICIES,
    REPLAY_PRIORITY,
    clip_to_window,
    in_order,
    noise_events,
    policy_of,
    stacked,
    unite_texts,
)

SOFTIRQS = (
    "HI",
    "TIMER",
    "NET_TX",
    "NET_RX",
    "BLOCK",
    "IRQ_POLL",
    "TASKLET",
    "SCHED",
    "HRTIMER",
    "RCU",
)
IRQ, NMI, FORK = "irq_handler", "nmi_handler", "sched_process_fork"
_AS_OSNOISE_SAYS = {"deferred_error_apic": "deferred_error"}
_STATE_MASK = (
    0xFF  # the bits of prev_state that mean "sleeps"; above them is only the mark "preempted" (R+)
)
_WORKLOAD, _IDLE, _OTHER = range(3)
_NOBODY = -1


def noise_from_tracepoints(
    raw: pd.DataFrame,
    workload_pids: Collection[int] = (),
    excluded_pids: Collection[int] = (),
    window: tuple[int, int] | None = None,
    recorded: tuple[int, int] | None = None,
    run: int = 0,
) -> pd.DataFrame:
    """Turn tracepoints into noise events with net durations, as osnoise would have reported them.

    Parameters
    ----------
    raw
        One row a tracepoint, in the order of each CPU's buffer: `cpu`, `time_ns`, `event`
        (irq_handler_entry, softirq_exit, local_timer_entry, sched_switch, nmi_handler,
        sched_process_fork, …), `pid` (who ran), `number` (of the interrupt, softirq or vector),
        `name` (of the interrupt's action), `prev_pid`, `prev_prio`, `prev_state`, `prev_comm`,
        `next_pid`, `next_prio`, `next_comm` (of a switch; of a fork `prev_pid` is the parent and
        `next_pid` the child; of a sched_wakeup `next_pid` is who was woken and `number` the CPU it
        was woken for; of a sched_stat_runtime `next_pid` is whose account it is), `delta_ns`
        (length of an NMI; of an account the CPU time since the one before).
    workload_pids
        Threads of the workload; their children, as far as `raw` holds the forks, are added.
    excluded_pids
        Threads of the harness: neither workload nor noise.
    window
        Timed region, ns, in the clock of `raw`; None: no clipping, times as they are.
    recorded
        When recording began and ended. Then a thread that ran from before the first switch, or
        beyond the last one, counts from or to there; without it such intervals are left out, as the
        kernel's tracer does.
    run
        For the column `run`.

    Returns
    -------
    The events table of data/README.md. attrs: `inferred_switches`, how many switches the kernel
    did not report, and `ambiguous_ns`, CPU time that could be either thread's.

    Notes
    -----
    An exit without its entry (an interrupt in flight when recording began) is passed over. A
    thread's name, policy and priority are those at its switch-out. `interrupted` is for interrupts
    who ran; for threads the workload if the last of its threads to run on that CPU was preempted
    there and has not run elsewhere since; idle if the CPU had nothing else to do; else other.
    """
    inferred = infer_switches(raw)
    trace = _Trace.of(_with_ends(in_order(inferred.raw), recorded))
    of_workload = with_children(raw, workload_pids)
    # what each event took from the thread beneath it
    net_ns = np.zeros(len(trace.time_ns), dtype=np.int64)
    parts = [_nmis(trace, net_ns), _interrupts(trace, net_ns), _softirqs(trace, net_ns)]
    for part in parts:
        part["interrupted"] = _role(trace.pid[part.pop("last")], of_workload)
    parts.append(_threads(trace, net_ns, of_workload, excluded_pids))
    events = _table(parts, run)
    events = clip_to_window(events, *window) if window else events
    events.attrs |= {"inferred_switches": inferred.count, "ambiguous_ns": inferred.ambiguous_ns}
    return events


@dataclass(frozen=True)
class _Trace:
    """The raw table as arrays, CPU by CPU, each in time order."""

    cpu: np.ndarray
    time_ns: np.ndarray
    pid: np.ndarray
    number: np.ndarray
    family: np.ndarray  # code of what the event is of: irq_handler, softirq, local_timer, …
    families: list
    entry: np.ndarray
    exit: np.ndarray
    raw: pd.DataFrame

    @classmethod
    def of(cls, raw: pd.DataFrame) -> "_Trace":
        event = raw["event"].astype("category").cat
        names = list(event.categories)
        code = event.codes.to_numpy()
        bases = [name.removesuffix("_entry").removesuffix("_exit") for name in names]
        families = sorted(set(bases))
        family = np.array([families.index(base) for base in bases] or [0])[code]
        entry, exit_ = (
            np.array(
                [name.endswith(end) and base != name for name, base in zip(names, bases)] or [False]
            )[code]
            for end in ("_entry", "_exit")
        )
        return cls(
            cpu=raw["cpu"].to_numpy(),
            time_ns=raw["time_ns"].to_numpy(),
            pid=raw["pid"].to_numpy(),
            number=raw["number"].to_numpy(),
            family=family,
            families=families,
            entry=entry,
            exit=exit_,
            raw=raw,
        )

    def of_family(self, name: str) -> np.ndarray:
        return (
            self.family == self.families.index(name)
            if name in self.families
            else np.zeros(len(self.family), dtype=bool)
        )

    def pairs(self, member: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions of entries and of the exits that follow them directly; there is one slot, so
        nothing nests in its kind.
        """
        position = np.flatnonzero(member & (self.entry | self.exit))
        first, last = position[:-1], position[1:]
        match = self.entry[first] & self.exit[last]
        for same in (self.cpu, self.family, self.number):
            match &= same[first] == same[last]
        return first[match], last[match]


def _with_ends(raw: pd.DataFrame, recorded: tuple[int, int] | None) -> pd.DataFrame:
    """With a switch at both ends of the recording: who ran before a CPU's first switch had run
    since it began, and who was switched in last ran until it ended.
    """
    switches = raw[raw["event"] == SWITCH]
    if recorded is None or not len(switches):
        return raw
    first, last = (switches.drop_duplicates("cpu", keep=end) for end in ("first", "last"))
    times = raw.groupby("cpu")["time_ns"]
    began_ns, ended_ns = times.first().clip(upper=recorded[0]), times.last().clip(lower=recorded[1])
    begins = first.assign(
        time_ns=first["cpu"].map(began_ns), prev_pid=_NOBODY, next_pid=first["prev_pid"]
    )
    ends = last.assign(
        time_ns=last["cpu"].map(ended_ns),
        next_pid=_NOBODY,
        prev_pid=last["next_pid"],
        prev_prio=last["next_prio"],
        prev_comm=last["next_comm"],
    )
    return in_order(stacked([begins, raw, ends]))


def with_children(raw: pd.DataFrame, pids: Collection[int]) -> np.ndarray:
    """The pids and those of all that they forked, as far as `raw` holds the forks; sorted."""
    found = set(pids)
    forks = raw.loc[raw["event"] == FORK, ["time_ns", "prev_pid", "next_pid"]].sort_values(
        "time_ns", kind="stable"
    )
    for parent, child in zip(forks["prev_pid"], forks["next_pid"]):
        if parent in found:
            found.add(child)
    return np.array(sorted(found), dtype=np.int64)


def _role(pid: np.ndarray, workload_pids: np.ndarray) -> np.ndarray:
    return np.select([pid == 0, np.isin(pid, workload_pids)], [_IDLE, _WORKLOAD], _OTHER)


def _nmis(trace: _Trace, net_ns: np.ndarray) -> dict:
    """An NMI has one report, at its end, with its length."""
    last = np.flatnonzero(trace.of_family(NMI))
    duration_ns = np.maximum(trace.raw["delta_ns"].to_numpy()[last], 0)
    net_ns[last] = duration_ns
    return _part(
        "nmi",
        trace,
        trace.time_ns[last] - duration_ns,
        last,
        duration_ns,
        pd.Categorical(["nmi"] * len(last)),
    )


def _interrupts(trace: _Trace, net_ns: np.ndarray) -> dict:
    others = np.array(
        [name in ("softirq", SWITCH, NMI, FORK, WAKE, WAKING, RUNTIME) for name in trace.families]
        or [True]
    )
    first, last = trace.pairs(~others[trace.family])
    vector = trace.family[first]
    source = np.array(
        [_AS_OSNOISE_SAYS.get(name, name) for name in trace.families] or [""], dtype=object
    )[vector]
    device = np.flatnonzero(trace.of_family(IRQ)[first])
    source[device] = trace.raw["name"].to_numpy()[first[device]]
    return _paired("irq", trace, net_ns, first, last, pd.Categorical(source))


def _softirqs(trace: _Trace, net_ns: np.ndarray) -> dict:
    first, last = trace.pairs(trace.of_family("softirq"))
    vector = trace.number[first]
    known = np.where((vector >= 0) & (vector < len(SOFTIRQS)), vector, len(SOFTIRQS))
    source = pd.Categorical.from_codes(known, categories=[*SOFTIRQS, "unknown"])
    return _paired("softirq", trace, net_ns, first, last, source)


def _paired(
    kind: str,
    trace: _Trace,
    net_ns: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    source: pd.Categorical,
) -> dict:
    duration_ns = net_ns[last] = _net(trace, net_ns, first, last)
    return _part(kind, trace, trace.time_ns[first], last, duration_ns, source)


def _net(trace: _Trace, net_ns: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Time from first to last, less what events that ended in between took (their net times, so
    nothing counts twice).
    """
    taken = np.cumsum(net_ns)
    return np.maximum(trace.time_ns[last] - trace.time_ns[first] - (taken[last] - taken[first]), 0)


def _part(
    kind: str,
    trace: _Trace,
    start_ns: np.ndarray,
    last: np.ndarray,
    duration_ns: np.ndarray,
    source: pd.Categorical,
) -> dict:
    count = len(last)
    return {
        "kind": np.full(count, KINDS.index(kind)),
        "cpu": trace.cpu[last],
        "start_ns": start_ns,
        "end_ns": trace.time_ns[last],
        "duration_ns": duration_ns,
        "source": source,
        "policy": np.full(count, POLICIES.index("SCHED_FIFO")),
        "priority": np.full(count, REPLAY_PRIORITY[kind]),
        "pid": np.full(count, NO_PID),
        "last": last,
    }


def _threads(
    trace: _Trace,
    net_ns: np.ndarray,
    workload_pids: np.ndarray,
    excluded: Collection[int],
) -> dict:
    spans = _spans(trace, net_ns)
    role = _displaced(trace, spans, workload_pids)
    noise = ~np.isin(spans["pid"], [0, *workload_pids, *excluded])
    part = {name: values[noise] for name, values in spans.items() if name not in ("switch", "prio")}
    policy, priority = policy_of(spans["prio"][noise])
    count = int(noise.sum())
    return part | {
        "kind": np.full(count, KINDS.index("thread")),
        "policy": policy,
        "priority": priority,
        "interrupted": role[noise],
    }


def _spans(trace: _Trace, net_ns: np.ndarray) -> dict:
    """Every stretch of time a thread ran: from its switch-in to its switch-out."""
    switch = np.flatnonzero(trace.of_family(SWITCH))
    raw, cpu = trace.raw, trace.cpu
    first, last = switch[:-1], switch[1:]
    same = cpu[first] == cpu[last]
    first, last = first[same], last[same]
    return {
        "switch": first,
        "cpu": cpu[first],
        "start_ns": trace.time_ns[first],
        "end_ns": trace.time_ns[last],
        "duration_ns": _net(trace, net_ns, first, last),
        "pid": raw["next_pid"].to_numpy()[first],
        "prio": raw["prev_prio"].to_numpy()[last],
        "source": raw["prev_comm"].astype("category").array[last],
    }


def _displaced(trace: _Trace, spans: dict, workload_pids: np.ndarray) -> np.ndarray:
    """Who waited during each stretch, see Notes of `noise_from_tracepoints`."""
    switch = np.flatnonzero(trace.of_family(SWITCH))
    prev = trace.raw["prev_pid"].to_numpy()[switch]
    cpu = trace.cpu[switch]
    time_ns = trace.time_ns[switch]
    role = _role(prev, workload_pids)
    preempted = (trace.raw["prev_state"].to_numpy()[switch] & _STATE_MASK) == 0
    back_ns = _next_run(trace, switch, workload_pids)
    begin_of_cpu = np.searchsorted(cpu, cpu)
    anchor = (
        np.maximum.accumulate(np.where(role != _OTHER, np.arange(len(switch)), -1))
        if len(switch)
        else switch
    )
    known = anchor >= begin_of_cpu
    waits = known & (role[anchor] == _WORKLOAD) & preempted[anchor] & (back_ns[anchor] >= time_ns)
    result = np.where(waits, _WORKLOAD, np.where(known & (role[anchor] == _IDLE), _IDLE, _OTHER))
    at = np.searchsorted(switch, spans["switch"])
    return result[at]


def _next_run(trace: _Trace, switch: np.ndarray, workload_pids: np.ndarray) -> np.ndarray:
    """For each switch, when the thread switched out runs next, on any CPU; else the end of time."""
    never = np.iinfo(np.int64).max
    result = np.full(len(switch), never)
    prev, following = (trace.raw[name].to_numpy()[switch] for name in ("prev_pid", "next_pid"))
    time_ns = trace.time_ns[switch]
    for pid in np.intersect1d(workload_pids, prev):
        out = prev == pid
        runs_ns = np.append(np.sort(time_ns[following == pid]), never)
        result[out] = runs_ns[
            np.searchsorted(runs_ns, time_ns[out], side="right").clip(max=len(runs_ns) - 1)
        ]
    return result


def _table(parts: list[dict], run: int) -> pd.DataFrame:
    columns = {"source": unite_texts([part.pop("source") for part in parts])}
    columns |= {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    for name, values in (("kind", KINDS), ("policy", POLICIES), ("interrupted", INTERRUPTED)):
        columns[name] = pd.Categorical.from_codes(columns[name], categories=values)
    return noise_events(columns | {"run": run}, clock="monotonic", tracer="tracepoints")
