"""From a noise config to what the injector replays: flat columns, cut into lanes, checked against
what the machine can stand.

Owns the limits: how many CPUs, how long one event, how long all CPUs at once. The C core enforces
the first two again.
"""

from collections.abc import Collection

import numpy as np
import pandas as pd

from ..errors import InputError
from ..machine import online_cpus
from ..noise import NoiseConfig
from ._coalesce import coalesce, queued
from ._lanes import INTERRUPTS, PLACEMENTS, Placement, parts, places, ranks, slices
from ._limits import REALTIME, busiest_second_share, is_among, longest_full_stop_ns, realtime_spans
from .overheads import measure_overheads
from .rules import (
    DROPPED,
    HIGHEST_PRIORITY,
    KIND_CODES,
    POLICY_CODES,
    POLICY_NAMES,
    ROAM,
    Overheads,
    Plan,
    Rules,
)
from .stressor_options import StressorOptions, check_stressors

__all__ = [
    "HIGHEST_PRIORITY",
    "KIND_CODES",
    "PLACEMENTS",
    "POLICY_CODES",
    "POLICY_NAMES",
    "REALTIME",
    "ROAM",
    "Plan",
    "Rules",
    "busiest_second_share",
    "longest_full_stop_ns",
    "make_plan",
    "realtime_spans",
]


def make_plan(
    config: NoiseConfig,
    placement: Placement = "roam",
    lanes: int = 2,
    rules: Rules | None = None,
    exclude_cpus: Collection[int] = (),
    overheads: Overheads | None = None,
    stressors: StressorOptions | None = None,
) -> Plan:
    """The plan of a noise config on this machine.

    Events that are shorter than the machine can inject them are carried by others of the same CPU,
    kind, policy and priority, so that the CPU time injected is the planned one: by a longer one
    nearby, else several of them together become one event about their centre of gravity. What is
    left finds its carrier among all real-time, or all ordinary, events of the CPU. No noise is
    moved farther than `rules.coalesce_ms`; what nothing can carry is dropped. `Plan.summary` says
    how much that is. The config, and its digest, stay as they are.

    Parameters
    ----------
    config
        What to inject.
    placement
        "roam": each process may run anywhere, as in the paper. "origin": on the CPU that its events
        were recorded on. "faithful": interrupts, the hypervisor's noise and the threads that the
        kernel keeps on a CPU (kworker/3:1, ksoftirqd/3, migration/3) on their own, other threads
        anywhere. A mapping {recorded CPU: CPU here}: where it says.
    lanes
        Processes a CPU of the config. 1: as in the paper. 2: one for its real-time and one for its
        ordinary events, so that an ordinary event that takes long does not delay the interrupts
        after it. 3: interrupts and real-time threads apart, too.
    rules
        See `Rules`.
    exclude_cpus
        Housekeeping CPUs that no noise may go to. Noise that belongs there is refused, unless a
        mapping says where it goes.
    overheads
        What the machine's costs are; None: measured once, then kept, see `measure_overheads`.
    stressors
        Where file and network noise goes, and how much memory and disk noise may take; see
        `StressorOptions`.

    Raises
    ------
    InputError
        More CPUs than the machine has for it, an event that is too long or of a policy that cannot
        be taken, or a plan that would stop the whole machine for too long.
    """
    rules, stressors = rules or Rules(), stressors or StressorOptions()
    if lanes not in (1, 2, 3):
        raise InputError(
            f"{lanes} lanes a CPU",
            fix="use 1 (a process a CPU), 2 (ordinary events apart), 3 (real-time threads, too)",
        )
    online = online_cpus()
    events = _columns(config.events())
    here = places(events, placement, online, exclude_cpus)
    _check_events(events, rules)
    check_stressors(events, stressors)
    _check_full_stop(events, rules, len(online))
    overheads = overheads or (
        measure_overheads() if None in (rules.exit_cost_us, rules.shortest_us) else Overheads()
    )
    codes = _codes(events["kind"], KIND_CODES)
    events["into"] = _carry(events, here, codes, rules, overheads)
    events, table = _cut_into_lanes(events, here, parts(events, lanes, codes))
    roam = tuple(sorted(set(online) - set(exclude_cpus))) if len(exclude_cpus) else ()
    return Plan(events, table, rules, overheads, roam, stressors)


def _columns(events: pd.DataFrame) -> pd.DataFrame:
    """The config's events by CPU and start, as a plan has them; interrupts above all threads."""
    columns = {
        name: events[name]
        for name in (
            "cpu",
            "event",
            "start_ns",
            "duration_ns",
            "policy",
            "priority",
            "kind",
            "source",
        )
    }
    columns["intensity"] = (
        events["intensity"] if "intensity" in events else np.zeros(len(events))
    )  # what it means depends on the kind
    columns["priority"] = _priorities(events)
    columns |= {
        "recorded_start_ns": events["start_ns"],
        "recorded_duration_ns": events["duration_ns"],
    }
    return pd.DataFrame(columns)


def _priorities(events: pd.DataFrame) -> np.ndarray:
    """As recorded, but no real-time thread reaches the priority of an interrupt of the config, and
    nothing that of the supervisor.
    """
    priority = events["priority"].to_numpy()
    realtime, interrupt = is_among(events["policy"], REALTIME), is_among(events["kind"], INTERRUPTS)
    lowest = priority[realtime & interrupt].min(initial=HIGHEST_PRIORITY + 1)
    most = np.where(interrupt, HIGHEST_PRIORITY, max(int(lowest) - 1, 1))
    return np.where(realtime, np.minimum(priority, most), priority).astype(np.int8)


def _codes(words: pd.Series, codes: dict[str, int]) -> np.ndarray:
    words = words.astype("category")
    return np.array(
        [codes.get(str(word), 0) for word in words.cat.categories] + [0], dtype=np.int16
    )[words.cat.codes]


def _carry(
    events: pd.DataFrame,
    here: np.ndarray,
    codes: np.ndarray,
    rules: Rules,
    overheads: Overheads,
) -> np.ndarray:
    """Applies the floor rule to start and duration, first class by class, then to what is left;
    returns the row that carries each event.
    """
    realtime, window_ns = is_among(events["policy"], REALTIME), round(rules.coalesce_ms * 1e6)
    shortest_us = (
        (overheads.shortest_us, overheads.shortest_ordinary_us)
        if rules.shortest_us is None
        else (rules.shortest_us,) * 2
    )
    shortest_ns = np.where(
        codes > 0, 0, np.where(realtime, *(round(value * 1e3) for value in shortest_us))
    )
    start = events["start_ns"].to_numpy().copy()
    duration = events["duration_ns"].to_numpy().copy()
    into = np.arange(len(events))
    if (duration >= shortest_ns).all():
        return into
    cpu = events["cpu"].to_numpy()
    kind = events["kind"].cat.codes
    policy = events["policy"].cat.codes
    _coalesce_each(
        ranks(cpu, here, codes, kind, policy, events["priority"].to_numpy()),
        start,
        duration,
        into,
        shortest_ns,
        window_ns,
    )
    if (into == DROPPED).any():
        _coalesce_each(
            ranks(cpu, here, codes, realtime), start, duration, into, shortest_ns, window_ns
        )
    own = into == np.arange(len(events))
    events["start_ns"] = np.where(own, start, events["recorded_start_ns"])
    events["duration_ns"] = np.where(own, duration, events["recorded_duration_ns"])
    return into


def _coalesce_each(
    classes: np.ndarray,
    start: np.ndarray,
    duration: np.ndarray,
    into: np.ndarray,
    shortest_ns: np.ndarray,
    window_ns: int,
) -> None:
    """Apply the rule to each class, to what is not carried yet; changes `start`, `duration` and
    `into`.
    """
    for rows in slices(classes):
        rows = rows[(into[rows] == rows) | (into[rows] == DROPPED)]
        rows = rows[np.argsort(start[rows], kind="stable")]
        if (duration[rows] < shortest_ns[rows]).any():
            carried = coalesce(start[rows], duration[rows], int(shortest_ns[rows[0]]), window_ns)
            own = carried.into == np.arange(len(rows))
            start[rows[own]], duration[rows[own]] = carried.start_ns[own], carried.duration_ns[own]
            into[rows] = np.where(carried.into == DROPPED, DROPPED, rows[carried.into])


def _cut_into_lanes(
    events: pd.DataFrame, here: np.ndarray, part: np.ndarray
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Events lane by lane and by start, behind them those that are not injected; the table of
    lanes.
    """
    into, start, duration = (
        events[name].to_numpy() for name in ("into", "start_ns", "duration_ns")
    )
    own = into == np.arange(len(events))
    injected = np.flatnonzero(own)
    lane = [
        injected[rows]
        for rows in slices(ranks(events["cpu"].to_numpy()[own], here[own], part[own]))
    ]
    lane = [rows[np.argsort(start[rows], kind="stable")] for rows in lane]
    if not own.all():  # what carries others is longer than it was
        start = start.copy()
        for rows in lane:
            start[rows] = queued(start[rows], duration[rows])
    order = np.concatenate([*lane, np.flatnonzero(~own)]).astype(np.int64)
    place = np.empty(len(events) + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(len(events)), DROPPED
    counts = np.array([len(rows) for rows in lane], dtype=np.int64)
    table = pd.DataFrame(
        {
            "cpu": np.array([here[rows[0]] for rows in lane], dtype=np.int64),
            "first": np.cumsum(counts) - counts,
            "count": counts,
        }
    )
    events = events.drop(columns="source").assign(start_ns=start, into=place[into])
    return events.take(order).reset_index(drop=True), table


def _check_events(events: pd.DataFrame, rules: Rules) -> None:
    unknown = events[~is_among(events["policy"], tuple(POLICY_CODES))]
    if len(unknown):
        raise InputError(
            f"cannot inject with policy {unknown['policy'].iloc[0]!r}",
            where=_place(unknown.iloc[0]),
            fix=f"use one of {', '.join(POLICY_CODES)}",
        )
    long = events[
        (events["duration_ns"] > rules.longest_event_s * 1e9)
        & ~is_among(events["kind"], tuple(KIND_CODES))
    ]
    if len(long):
        raise InputError(
            f"an event of {long['duration_ns'].iloc[0] / 1e9:.3f} s",
            where=_place(long.iloc[0]),
            why=(
                f"an event of more than {rules.longest_event_s} s is more likely an error in a"
                " trace than noise"
            ),
            fix="if it is meant, pass rules=Rules(longest_event_s=...)",
        )


def _place(event: pd.Series) -> str:
    return f"config, CPU {event['cpu']}, event {event['event']}"


def _check_full_stop(events: pd.DataFrame, rules: Rules, cpu_count: int) -> None:
    stop_ns = longest_full_stop_ns(events, cpu_count)
    if stop_ns > rules.full_stop_ms * 1e6 and not rules.allow_full_stop:
        raise InputError(
            "the plan takes every CPU of this machine with real-time priority for"
            f" {stop_ns / 1e6:.0f} ms at a stretch",
            why="nothing else could run meanwhile, not even what ends the injection",
            fix="if it is meant, pass rules=Rules(allow_full_stop=True)",
        )
