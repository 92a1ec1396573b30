"""What an injected event costs on this machine: measured with the real injector against a real
shielded loop, for each kind of core, then cached until the machine changes.

Owns the measurement, its statistics and the file of the cache. The plain way takes an event's
length for what it costs. A loop then loses 4.5 to 8.4 µs more (medians of six lengths from 50 µs to
10 ms, 200 to 250 events each), with this measurement −0.1 to 0.4 µs (benchmarks/injector.py).
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ..errors import InputError, RunError, SettingError, Unavailable
from ..files import write_json
from ..machine import measuring, state_folder
from ..machine.cpus import core_kinds
from ..progress import each
from ..reading import read_json
from ..statistics import bootstrap_interval
from ._machine_state import machine_state
from ._native import ffi, lib
from .costs import SHORT_NS, ExitCost, Overheads, overheads_from
from .replay import Replay
from .rules import Plan, Rules, may_realtime

# length in ns -> events of a round. A round takes 0.65 s: the fair server steps in after 0.95 s.
ROUNDS = 4
EVENTS = {
    0: 28,
    50_000: 16,
    SHORT_NS: 28,
    300_000: 16,
    1_000_000: 16,
    3_000_000: 14,
    10_000_000: 12,
}
PAUSE_NS = (1_000_000, 6_000_000)  # between events, at random
LOOP_PRIORITY, PRIORITY = 10, 50
ORDINARY_EVENTS, ORDINARY_SPACING_NS = 200, 500_000
LEAD_NS = 20_000_000
SMALLEST_GAP_NS = 1000
FEWEST, FEWEST_OF_A_LENGTH = 50, 10  # usable events, or typical numbers are used
OVER_SHARE = 0.01  # the shortest event takes on average at most so much more than its length
# quantile at which single costs are cut off: the hypervisor's stops are not the injector's
_HIGHEST = 0.98
_ON_TIME_US = 1.0  # an event that ended later woke too late, or was stopped at its end
_SHORT_US = SHORT_NS / 1e3
_SLOPE_TO_US = 300.0  # up to this length the way out is warm, and its cost hardly grows


def measure_overheads(path: str | Path | None = None, again: bool = False) -> Overheads:
    """Measure what an injected event costs on this machine beyond its length.

    It takes 3.5 s a kind of core; then the result is cached until the machine changes: its boot,
    CPUs, SMT, frequency settings, or the build of the injector. A SCHED_FIFO loop on one CPU
    records when it is without it, while the injector injects events of length 0 to 10 ms there.
    What the loop loses beyond an event's length is the exit cost. What it loses to an event of
    length 0 is the floor.

    Parameters
    ----------
    path
        File of the cache; None: with Noisebook's state, see `nbhelpers.machine.state_folder`.
    again
        Measure even if it was measured before.

    Returns
    -------
    Overheads : typical numbers, with `measured` False, where SCHED_FIFO is not permitted, or where
    an analysis that holds the machine's lock shared must not measure.
    """
    path = cache_path(path)
    cached = None if again else cached_overheads(path)
    if cached or not may_realtime(PRIORITY):
        return cached or Overheads()
    state = machine_state()
    try:
        with measuring():
            found = _of_each_kind(core_kinds())
    except (Unavailable, RunError):
        return Overheads()
    if found.measured:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        found = replace(found, measured_at=now, state=state)
        if path is not None:
            write_json(path, asdict(found))
    return found


def cache_path(path: str | Path | None = None) -> Path | None:
    """The file of the cache; None where nothing can be kept."""
    try:
        return Path(path) if path else state_folder() / "injector-overheads.json"
    except SettingError:
        return None


def cached_overheads(path: Path | None) -> Overheads | None:
    """What the file caches; None where the machine was another one then, or it is damaged."""
    try:
        cached = overheads_from(read_json(path)) if path else None
    except (InputError, KeyError, TypeError, ValueError, AttributeError):
        return None
    return cached if cached and cached.state == machine_state() else None


def _of_each_kind(kinds: Mapping[str, tuple[int, ...]]) -> Overheads:
    """Overheads of the last CPU of each kind of core; of the kinds that could be measured."""
    found = [
        replace(measure_on(max(cpus)), core_kind=name, cpus=cpus)
        for name, cpus in list(kinds.items())[: lib.NB_CORE_KINDS]
    ]
    measured = [own for own in found if own.measured]
    return replace(measured[0], others=tuple(measured[1:])) if measured else Overheads()


def measure_on(cpu: int) -> Overheads:
    """Measure the costs on one CPU, now.

    Raises
    ------
    RunError
        The injector could not be started.
    """
    rounds = each(range(ROUNDS), "measuring the injector's overheads", "rounds")
    costs = pd.concat([replayed_costs(cpu, seed, EVENTS) for seed in rounds])
    ordinary_us = _ordinary_costs_us(cpu)
    zero_us = costs.loc[costs["length_us"] == 0, "lost_us"].to_numpy()
    ended = costs[(costs["length_us"] > 0) & (costs["over_us"] < _ON_TIME_US)]
    if min(len(zero_us), (ended["length_us"] == _SHORT_US).sum(), len(ordinary_us)) < FEWEST:
        return Overheads()
    wake_us = costs["wake_us"].to_numpy()
    usual_us, most_us = np.quantile(wake_us, (0.5, 0.95))
    slope = _slope_of(ended[ended["length_us"] <= _SLOPE_TO_US])
    exit_us = ended["beyond_us"] - slope * (ended["wake_us"].clip(upper=most_us) - usual_us)
    medians, intervals = _medians(
        wake_us=wake_us,
        exit_us=exit_us[ended["length_us"] == _SHORT_US].to_numpy(),
        floor_us=zero_us,
        ordinary_floor_us=ordinary_us,
    )
    return Overheads(
        **medians,
        wake_most_us=round(float(most_us), 3),
        exit_per_wake=round(slope, 4),
        exit_by_length=_by_length(exit_us.groupby(ended["length_us"])),
        shortest_us=_shortest(zero_us),
        shortest_ordinary_us=_shortest(ordinary_us),
        n=len(costs),
        cpu=cpu,
        measured=True,
        intervals=intervals,
    )


def _medians(**values: np.ndarray) -> tuple[dict[str, Any], dict[str, tuple[float, float]]]:
    """Medians and their intervals, by name."""
    return (
        {name: round(float(np.median(costs_us)), 3) for name, costs_us in values.items()},
        {name: _interval(costs_us) for name, costs_us in values.items()},
    )


def _by_length(exits_us: Any) -> tuple[ExitCost, ...]:
    return tuple(
        ExitCost(
            float(length_us), max(round(float(own.median()), 3), 0.0), *_interval(own), len(own)
        )
        for length_us, own in exits_us
        if len(own) >= FEWEST_OF_A_LENGTH
    )


def _slope_of(costs: pd.DataFrame) -> float:
    """How much more the way out costs for each µs of waking up, between events of one length."""
    centred = costs["beyond_us"] - costs.groupby("length_us")["beyond_us"].transform("median")
    if costs["wake_us"].nunique() < 2:
        return 0.0
    return float(np.clip(stats.theilslopes(centred, costs["wake_us"]).slope, 0, 1))


def _plan(
    cpu: int, start_ns: np.ndarray, duration_ns: np.ndarray, policy: str, priority: int
) -> Plan:
    count = len(start_ns)
    events = pd.DataFrame(
        {
            "cpu": cpu,
            "event": range(count),
            "start_ns": start_ns,
            "duration_ns": duration_ns,
            "policy": policy,
            "priority": np.int8(priority),
            "kind": "irq",
            "intensity": 0.0,
            "recorded_start_ns": start_ns,
            "recorded_duration_ns": duration_ns,
            "into": range(count),
        }
    )
    return Plan(
        events,
        pd.DataFrame({"cpu": [cpu], "first": [0], "count": [count]}),
        Rules(exit_cost_us=0, shortest_us=0),
    )


def replayed_costs(cpu: int, seed: int, events: Mapping[int, int]) -> pd.DataFrame:
    """Inject events into a loop: what each took, for those that are a gap each.

    Parameters
    ----------
    cpu
        Where.
    seed
        Seed of the events' order and of the pauses between them.
    events
        Length in ns -> how many.

    Returns
    -------
    `length_us`, `wake_us`, `over_us` (its last instruction after its planned end), `lost_us` (by
    the loop), `beyond_us` (the length).
    """
    random = np.random.default_rng(seed)
    duration_ns = random.permutation(np.repeat(list(events), list(events.values())))
    start_ns = np.cumsum(random.integers(*PAUSE_NS, len(duration_ns)) + duration_ns) - duration_ns
    plan = _plan(cpu, start_ns, duration_ns, "SCHED_FIFO", PRIORITY)
    replay = Replay(plan)
    try:
        replay.start()
        gaps = _observed_gaps(replay, cpu, plan.end_ns + PAUSE_NS[0])
    finally:
        replay.close()
    return _matched(plan.events, {name: column.copy() for name, column in replay.log.items()}, gaps)


def _observed_gaps(replay: Replay, cpu: int, length_ns: int) -> np.ndarray:
    """Release a replay while the loop runs; the loop's gaps (before, after) in ns from t0.

    The loop is a thread: its policy ends with it.
    """
    t0_ns, capacity = time.monotonic_ns() + LEAD_NS, 20 * sum(EVENTS.values())
    gaps = np.zeros((capacity, 2), dtype=np.int64)
    counts: list[int] = []
    loop = threading.Thread(
        target=lambda: counts.append(
            lib.nb_observe_losses(
                cpu,
                LOOP_PRIORITY,
                t0_ns,
                length_ns,
                SMALLEST_GAP_NS,
                ffi.from_buffer("int64_t[]", gaps, require_writable=True),
                capacity,
            )
        )
    )
    loop.start()
    replay.release(t0_ns)
    loop.join()
    return gaps[: max(counts[0], 0)]


def _matched(events: pd.DataFrame, log: dict[str, np.ndarray], gaps: np.ndarray) -> pd.DataFrame:
    """Each event with the gap that it lies in: taken since the planned start, where nothing else
    happened before or within it.
    """
    start_ns, duration_ns = events["start_ns"].to_numpy(), events["duration_ns"].to_numpy()
    if not len(gaps):
        return pd.DataFrame(columns=["length_us", "wake_us", "over_us", "lost_us", "beyond_us"])
    place = np.maximum(np.searchsorted(gaps[:, 0], log["start_ns"]) - 1, 0)
    before, after = gaps[place].T
    table = pd.DataFrame(
        {
            "length_us": duration_ns / 1e3,
            "wake_us": (log["start_ns"] - start_ns) / 1e3,
            "over_us": (log["end_ns"] - start_ns - duration_ns) / 1e3,
            "lost_us": (after - before) / 1e3,
            "beyond_us": (after - before - duration_ns) / 1e3,
        }
    )
    alone = (after >= log["end_ns"]) & (np.abs(before - start_ns) < 10_000)
    return table[alone & (log["outcome"] == 1) & (log["policy"] == 1)]


def _ordinary_costs_us(cpu: int) -> np.ndarray:
    """CPU time that ordinary events of length 0 consume, falling asleep and waking up included."""
    start_ns = np.arange(ORDINARY_EVENTS) * ORDINARY_SPACING_NS
    replay = Replay(
        _plan(cpu, start_ns, np.zeros(ORDINARY_EVENTS, dtype=np.int64), "SCHED_OTHER", 0)
    )
    try:
        replay.start()
        replay.release(time.monotonic_ns() + LEAD_NS)
        replay.wait(10)
    finally:
        replay.close()
    return replay.log["cpu_time_ns"][1:][np.isin(replay.log["outcome"][1:], (1, 2))] / 1e3


def _shortest(costs_us: np.ndarray) -> float:
    """The shortest event whose mean of max(length, cost) is at most OVER_SHARE above its length.

    To 0.5 µs.
    """
    costs = np.minimum(costs_us, np.quantile(costs_us, _HIGHEST))
    lengths = np.arange(np.floor(2 * np.median(costs)) / 2, costs.max() + 1, 0.5)
    over = np.array([np.maximum(costs, length).mean() / max(length, 0.5) - 1 for length in lengths])
    return float(lengths[np.argmax(over <= OVER_SHARE)])


def _interval(values: np.ndarray) -> tuple[float, float]:
    low, high = bootstrap_interval(values, "median", repeats=500)
    return round(low, 3), round(high, 3)
