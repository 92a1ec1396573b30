"""From a noise config to what the injector replays: flat columns, cut into lanes, checked against what the machine can stand.

Owns the limits: how many CPUs, how long one event, how long all CPUs at once. The C core enforces the first two again.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ..errors import InputError
from ..machine import online_cpus
from ..noise import NoiseConfig

POLICY_CODES = {"SCHED_OTHER": 0, "SCHED_FIFO": 1, "SCHED_RR": 2, "SCHED_BATCH": 3, "SCHED_IDLE": 5}
POLICY_NAMES = {code: name for name, code in POLICY_CODES.items()}
REALTIME = ("SCHED_FIFO", "SCHED_RR")
HIGHEST_PRIORITY = 98  # 99 is the supervisor's, which must be able to end every lane
PLACEMENTS = ("roam", "origin")
ROAM = -1


@dataclass(frozen=True)
class Rules:
    """How events are replayed, and the limits that keep the machine usable.

    Parameters
    ----------
    wake_allowance_us : an event that wakes at most so late was on time. Waking up is part of the noise: the workload lost the CPU when
        the timer fired.
    give_up_ms : an event that wakes later than this is dropped; one in between is late and keeps its planned duration. So as much CPU
        time is injected as was planned, and lateness cannot build up beyond this.
    exit_cost_us : a real-time event stops so long before its planned end, because giving the CPU back costs the workload that much.
    longest_event_s : an event longer than this is refused.
    full_stop_ms : a plan that takes every CPU of the machine with real-time priority for longer than this is refused...
    allow_full_stop : ...unless this is true.
    overtime_s : everything ends so long after the planned end of the last event.
    """

    wake_allowance_us: float = 500.0
    give_up_ms: float = 100.0
    exit_cost_us: float = 0.0
    longest_event_s: float = 2.0
    full_stop_ms: float = 500.0
    allow_full_stop: bool = False
    overtime_s: float = 10.0


@dataclass(frozen=True)
class Plan:
    """What the lanes replay.

    `events`: one row an event, lane by lane and by start within a lane (columns cpu, event, start_ns, duration_ns, policy, priority,
    kind; `event` counts within the config's CPU). `lanes`: one row a process (columns cpu, first, count; cpu −1 may roam).
    """

    events: pd.DataFrame
    lanes: pd.DataFrame
    rules: Rules = field(default_factory=Rules)

    @property
    def end_ns(self) -> int:
        """Planned end of the last event, from t0."""
        return int((self.events["start_ns"] + self.events["duration_ns"]).max()) if len(self.events) else 0

    @property
    def longest_realtime_ns(self) -> int:
        """Longest time for which one CPU's real-time events follow each other without a pause."""
        return max((_longest(*spans) for spans in realtime_spans(self.events).values()), default=0)

    def __repr__(self) -> str:
        return f"Plan({len(self.events)} events in {len(self.lanes)} lanes, {self.end_ns / 1e6:.1f} ms)"


def make_plan(config: NoiseConfig, placement: str = "roam", lanes: int = 1, rules: Rules | None = None) -> Plan:
    """The plan of a noise config on this machine.

    Parameters
    ----------
    config : what to inject.
    placement : "roam": each process may run anywhere, as in the paper; "origin": on the CPU that its events were recorded on.
    lanes : 1: one process a CPU of the config, as in the paper. 2: one for its real-time and one for its ordinary events, so that
        an ordinary event that takes long does not make the interrupts after it late.
    rules : see `Rules`.

    Raises
    ------
    InputError : more CPUs than the machine has, an event that is too long or of a policy that cannot be taken, or a plan that would stop
        the whole machine for too long.
    """
    rules = rules or Rules()
    if placement not in PLACEMENTS:
        raise InputError(f"unknown placement {placement!r}", mend=f"use one of {', '.join(PLACEMENTS)}")
    if lanes not in (1, 2):
        raise InputError(f"{lanes} lanes a CPU", mend="use 1 (a process a CPU) or 2 (real-time and ordinary events apart)")
    _check_cpus([int(cpu) for cpu in config.cpus], placement)
    events = _columns(config.events())
    _check_events(events, rules)
    _check_full_stop(events, rules)
    return Plan(*_cut_into_lanes(events, placement, lanes), rules)


def _columns(events: pd.DataFrame) -> pd.DataFrame:
    wanted = ["cpu", "start_ns", "duration_ns", "policy", "priority", "kind"]
    events = events[wanted].sort_values(["cpu", "start_ns"], kind="stable", ignore_index=True)
    events.insert(1, "event", events.groupby("cpu").cumcount())
    realtime = events["policy"].isin(REALTIME)
    events["priority"] = events["priority"].where(~realtime, events["priority"].clip(upper=HIGHEST_PRIORITY)).astype(np.int8)
    return events


def _cut_into_lanes(events: pd.DataFrame, placement: str, lanes: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    part = (~events["policy"].isin(REALTIME)).astype(int) if lanes == 2 else pd.Series(0, index=events.index)
    order = np.lexsort((events["start_ns"], part, events["cpu"]))
    events, part = events.iloc[order].reset_index(drop=True), part.iloc[order].reset_index(drop=True)
    counts = events.groupby(["cpu", part], sort=True).size()
    cpus = counts.index.get_level_values(0).to_numpy(dtype=np.int64)
    table = pd.DataFrame({"cpu": cpus if placement == "origin" else np.full(len(counts), ROAM),
                          "first": counts.cumsum().to_numpy() - counts.to_numpy(), "count": counts.to_numpy()})
    return events, table


def _check_cpus(cpus: list[int], placement: str) -> None:
    here = set(online_cpus())
    if len(cpus) > len(here):
        raise InputError(f"the config has noise for {len(cpus)} CPUs, this machine has {len(here)}",
                         why="CPUs would share what each of them suffered alone", mend="choose a config recorded on at most as many CPUs")
    missing = sorted(set(cpus) - here)
    if placement == "origin" and missing:
        raise InputError(f"the config has noise for CPU {missing[0]}, which is not online here", where=f"online: {sorted(here)}",
                         mend="use placement='roam'")


def _check_events(events: pd.DataFrame, rules: Rules) -> None:
    unknown = events[~events["policy"].isin(list(POLICY_CODES))]
    if len(unknown):
        raise InputError(f"cannot inject with policy {unknown['policy'].iloc[0]!r}", where=_place(unknown.iloc[0]),
                         mend=f"use one of {', '.join(POLICY_CODES)}")
    long = events[events["duration_ns"] > rules.longest_event_s * 1e9]
    if len(long):
        raise InputError(f"an event of {long['duration_ns'].iloc[0] / 1e9:.3f} s", where=_place(long.iloc[0]),
                         why=f"an event of more than {rules.longest_event_s} s is more likely an error in a trace than noise",
                         mend="if it is meant, pass rules=Rules(longest_event_s=...)")


def _place(event: pd.Series) -> str:
    return f"config, CPU {event['cpu']}, event {event['event']}"


def _check_full_stop(events: pd.DataFrame, rules: Rules) -> None:
    stop_ns = longest_full_stop_ns(events, len(online_cpus()))
    if stop_ns > rules.full_stop_ms * 1e6 and not rules.allow_full_stop:
        raise InputError(f"the plan takes every CPU of this machine with real-time priority for {stop_ns / 1e6:.0f} ms at a stretch",
                         why="nothing else could run meanwhile, not even what ends the injection",
                         mend="if it is meant, pass rules=Rules(allow_full_stop=True)")


def realtime_spans(events: pd.DataFrame, pause_ns: int = 100_000) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """For each CPU of the config, starts and ends (ns) of its real-time noise; shorter pauses than `pause_ns` count as none."""
    realtime = events[events["policy"].isin(REALTIME)]
    return {int(cpu): _merge(own["start_ns"].to_numpy(), (own["start_ns"] + own["duration_ns"]).to_numpy(), pause_ns)
            for cpu, own in realtime.groupby("cpu")}


def _merge(starts: np.ndarray, ends: np.ndarray, pause_ns: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(starts, kind="stable")
    starts, latest = starts[order], np.maximum.accumulate(ends[order])
    new = np.flatnonzero(np.concatenate([[True], starts[1:] - latest[:-1] > pause_ns])) if len(starts) else np.array([], int)
    return starts[new], latest[np.append(new[1:] - 1, len(starts) - 1)] if len(starts) else latest


def _longest(starts: np.ndarray, ends: np.ndarray) -> int:
    return int((ends - starts).max()) if len(starts) else 0


def longest_full_stop_ns(events: pd.DataFrame, cpu_count: int) -> int:
    """Longest stretch in which `cpu_count` CPUs have real-time noise at the same time; pauses below 1 ms count as none."""
    spans = realtime_spans(events)
    if len(spans) < cpu_count:
        return 0
    starts, ends = (np.concatenate(parts) for parts in zip(*spans.values()))
    times = np.concatenate([starts, ends])
    steps = np.repeat([1, -1], [len(starts), len(ends)])
    order = np.lexsort((-steps, times))
    times, busy = times[order], np.cumsum(steps[order])
    full = np.flatnonzero(busy[:-1] >= cpu_count)
    return _longest(*_merge(times[full], times[full + 1], 1_000_000))


def busiest_second_share(events: pd.DataFrame) -> float:
    """Largest share of any second that real-time noise takes of one CPU; times are planned ones."""
    return max((_busiest(starts, ends) for starts, ends in realtime_spans(events, pause_ns=0).values()), default=0.0)


def _busiest(starts: np.ndarray, ends: np.ndarray) -> float:
    """A window that holds most begins with a start or ends with an end."""
    times = np.column_stack([starts, ends]).ravel()
    covered = np.column_stack([np.cumsum(ends - starts) - (ends - starts), np.cumsum(ends - starts)]).ravel()
    window = np.concatenate([starts, ends - 10**9])
    return float((np.interp(window + 10**9, times, covered) - np.interp(window, times, covered)).max() / 1e9)
