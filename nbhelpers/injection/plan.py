"""From a noise config to what the injector replays: flat columns, cut into lanes, checked against
what the machine can stand.

Owns the limits of how many CPUs and how long one event; how long all CPUs at once is for the C core
to decide (`_check.py`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..machine import online_cpus
from ..noise import NoiseConfig
from ..noise._merge import completion
from ..noise._vocabulary import INTERRUPT_KINDS, REAL_TIME
from ._check import check_plan
from ._coalesce import DROPPED, coalesce
from ._lanes import ROAM, Placement, parts, places, ranks, slices
from .overheads import measure_overheads
from .rules import HIGHEST_PRIORITY, KIND_CODES, POLICY_CODES, Overheads, Plan, Rules, codes_of
from .stressors import check_stressors


def make_plan(
    config: NoiseConfig,
    placement: Placement = "roam",
    rules: Rules | None = None,
    exclude_cpus: Collection[int] = (),
    overheads: Overheads | None = None,
    scratch: str | Path | None = None,
) -> Plan:
    """Plan how a noise config is replayed on this machine.

    Events that are shorter than the machine can inject are carried by others of the same CPU, kind,
    policy and priority, so that the injected CPU time is the planned one. A longer event nearby
    carries them; else several of them become one event about their centre of gravity. What is left
    is carried by any real-time, or any ordinary, event of the CPU. No noise is moved farther than
    `rules.coalesce_ms`; what nothing can carry is dropped. `Plan.summary` states how much that is.
    The config and its digest do not change. A CPU of the config gets two processes, for its
    real-time and its ordinary events: one of these that takes long does not delay interrupts.

    Parameters
    ----------
    config
        What to inject.
    placement
        "roam": each process may run anywhere, as in the paper. "origin": on the CPU that its events
        were recorded on. "faithful": interrupts, the hypervisor's noise and the threads that the
        kernel keeps on a CPU (kworker/3:1, ksoftirqd/3, migration/3) on their CPU, other threads
        anywhere. A mapping {recorded CPU: CPU here}: on the CPU here.
    rules
        How events are replayed, and the limits that keep the machine usable; None: `Rules()`.
    exclude_cpus
        Housekeeping CPUs that no noise may go to. Noise that belongs there is refused, unless a
        mapping moves it.
    overheads
        What an injected event costs here; None: those of `measure_overheads`.
    scratch
        Where file noise makes its files, in a new folder that is always removed at the end. None: a
        folder for temporary files on a real disk.

    Raises
    ------
    InputError
        More CPUs than the machine has for it, an event that is too long or of a policy that cannot
        be taken, or a plan that would stop the whole machine for too long or too often.
    """
    rules = rules or Rules()
    online = online_cpus()
    events = _columns(config.events())
    here = places(events, placement, online, exclude_cpus)
    _check_events(events, rules)
    check_stressors(events, scratch)
    overheads = overheads or (
        measure_overheads() if None in (rules.exit_cost_us, rules.shortest_us) else Overheads()
    )
    codes = codes_of(events["kind"])
    events["into"] = _carry(events, here, codes, rules, overheads)
    events, table = _cut_into_lanes(events, here, parts(events, codes))
    roam = tuple(sorted(set(online) - set(exclude_cpus))) if len(exclude_cpus) else ()
    plan = Plan(events, table, rules, overheads, roam, scratch)
    check_plan(plan)
    return plan


def _columns(events: pd.DataFrame) -> pd.DataFrame:
    """The config's events by CPU and start, as a plan has them; interrupts above all threads."""
    names = ["cpu", "event", "start_ns", "duration_ns", "policy", "kind", "source"]
    return events[names].assign(
        priority=_priorities(events),
        intensity=events.get("intensity", 0.0),  # what it means depends on the kind
        recorded_start_ns=events["start_ns"],
        recorded_duration_ns=events["duration_ns"],
    )


def _priorities(events: pd.DataFrame) -> np.ndarray:
    """The priorities as recorded, but no real-time thread reaches that of an interrupt of the
    config, and nothing that of the supervisor.
    """
    priority = events["priority"].to_numpy()
    realtime = events["policy"].isin(REAL_TIME).to_numpy()
    interrupt = events["kind"].isin(INTERRUPT_KINDS).to_numpy()
    lowest = priority[realtime & interrupt].min(initial=HIGHEST_PRIORITY + 1)
    most = np.where(interrupt, HIGHEST_PRIORITY, max(int(lowest) - 1, 1))
    return np.where(realtime, np.minimum(priority, most), priority).astype(np.int8)


def _carry(
    events: pd.DataFrame,
    here: np.ndarray,
    codes: np.ndarray,
    rules: Rules,
    overheads: Overheads,
) -> np.ndarray:
    """Apply the floor rule to start and duration, first class by class, then to what is left.

    Returns the row that carries each event.
    """
    realtime = events["policy"].isin(REAL_TIME).to_numpy()
    floor = _Floor(
        events["start_ns"].to_numpy().copy(),
        events["duration_ns"].to_numpy().copy(),
        np.arange(len(events)),
        _shortest_ns(codes, realtime, here, rules, overheads),
        round(rules.coalesce_ms * 1e6),
    )
    if (floor.duration_ns >= floor.shortest_ns).all():
        return floor.into
    cpu = events["cpu"].to_numpy()
    kind, policy = events["kind"].cat.codes, events["policy"].cat.codes
    floor.apply(ranks(cpu, here, codes, kind, policy, events["priority"].to_numpy()))
    if (floor.into == DROPPED).any():
        floor.apply(ranks(cpu, here, codes, realtime))
    injected = floor.into == np.arange(len(events))
    events["start_ns"] = np.where(injected, floor.start_ns, events["recorded_start_ns"])
    events["duration_ns"] = np.where(injected, floor.duration_ns, events["recorded_duration_ns"])
    return floor.into


def _shortest_ns(
    codes: np.ndarray, realtime: np.ndarray, here: np.ndarray, rules: Rules, overheads: Overheads
) -> np.ndarray:
    """The shortest length that each event can have; 0 for what does not occupy a CPU.

    On the kind of core that it goes to; of what may roam, the worst kind's.
    """
    if rules.shortest_us is not None:
        return np.where(codes > 0, 0, round(rules.shortest_us * 1e3))
    by_kind = np.array(
        [(own.shortest_us, own.shortest_ordinary_us) for own in overheads.kinds], dtype=float
    )
    each = np.where((here == ROAM)[:, None], by_kind.max(axis=0), by_kind[overheads.kind_of(here)])
    shortest_us = np.where(realtime, each[:, 0], each[:, 1])
    return np.where(codes > 0, 0, (shortest_us * 1e3).round().astype(np.int64))


@dataclass(frozen=True)
class _Floor:
    """The floor rule while it is applied: its arrays change."""

    start_ns: np.ndarray
    duration_ns: np.ndarray
    into: np.ndarray
    shortest_ns: np.ndarray
    window_ns: int

    def apply(self, classes: np.ndarray) -> None:
        """Apply the rule to each class, to what is not carried yet."""
        for rows in slices(classes):
            rows = rows[(self.into[rows] == rows) | (self.into[rows] == DROPPED)]
            rows = rows[np.argsort(self.start_ns[rows], kind="stable")]
            start_ns, duration_ns = self.start_ns[rows], self.duration_ns[rows]
            if (duration_ns < self.shortest_ns[rows]).any():
                shortest = int(self.shortest_ns[rows[0]])
                carried = coalesce(start_ns, duration_ns, shortest, self.window_ns)
                injected = carried.into == np.arange(len(rows))
                self.start_ns[rows[injected]] = carried.start_ns[injected]
                self.duration_ns[rows[injected]] = carried.duration_ns[injected]
                self.into[rows] = np.where(carried.into == DROPPED, DROPPED, rows[carried.into])


def _cut_into_lanes(
    events: pd.DataFrame, here: np.ndarray, part: np.ndarray
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Events lane by lane and by start, behind them those that are not injected; the table of
    lanes.
    """
    into, start, duration = (
        events[name].to_numpy() for name in ("into", "start_ns", "duration_ns")
    )
    is_injected = into == np.arange(len(events))
    injected = np.flatnonzero(is_injected)
    cpu = events["cpu"].to_numpy()[injected]
    lane = [injected[rows] for rows in slices(ranks(cpu, here[injected], part[injected]))]
    lane = [rows[np.argsort(start[rows], kind="stable")] for rows in lane]
    if not is_injected.all():  # what carries others is longer than it was
        start = start.copy()
        for rows in lane:
            start[rows] = completion(start[rows], duration[rows]) - duration[rows]
    order = np.concatenate([*lane, np.flatnonzero(~is_injected)]).astype(np.int64)
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
    unknown = events[~events["policy"].isin(list(POLICY_CODES))]
    if len(unknown):
        raise InputError(
            f"cannot inject with policy {unknown['policy'].iloc[0]!r}",
            where=_place(unknown.iloc[0]),
            fix=f"use one of {', '.join(POLICY_CODES)}",
        )
    long = events[
        (events["duration_ns"] > rules.longest_event_s * 1e9)
        & ~events["kind"].isin(list(KIND_CODES))
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
