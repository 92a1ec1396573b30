"""What an injected event costs on this machine: measured with the real injector against a real
shielded loop, one time for each boot, then cached.

Owns the measurement, its statistics and the file of the cache.
"""

import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError, RunError, SettingError, Unavailable
from ..files import digest, read_json, write_json
from ..machine import measuring, online_cpus, state_folder
from ..progress import each
from ..statistics import bootstrap_interval
from ._native import ffi, lib, library
from .replay import Replay
from .rules import SHORT_NS, Overheads, Plan, Rules, doublings, may_realtime

# 0.48 s a round: the fair server steps in after 0.95 s
ROUNDS = 4
EVENTS = 120
SPACING_NS = 4_000_000
LENGTHS_NS = (0, SHORT_NS, 10 * SHORT_NS)
LOOP_PRIORITY, PRIORITY = 10, 50
ORDINARY_EVENTS, ORDINARY_SPACING_NS = 200, 500_000
LEAD_NS = 20_000_000
SMALLEST_GAP_NS = 1000
FEWEST = 50  # usable events, or typical numbers are used
OVER_SHARE = 0.01  # the shortest event takes on average at most so much more than its length
# quantile at which single costs are cut off: the hypervisor's stops are not the injector's
_HIGHEST = 0.98


def measure_overheads(path: str | Path | None = None, again: bool = False) -> Overheads:
    """Measure what an injected event costs on this machine beyond its length.

    It takes 2.5 s, one time for each boot and build of the injector; then the result is cached. A
    SCHED_FIFO loop on one CPU records when it is without it, while the injector injects events of
    length 0, 100 µs and 1 ms there. What the loop loses beyond an event's length is the exit cost.
    What it loses to an event of length 0 is the floor.

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
    try:
        path = Path(path) if path else state_folder() / "injector-overheads.json"
    except SettingError:
        path = None
    cached = None if again or path is None else _read(path)
    if cached or not may_realtime(PRIORITY):
        return cached or Overheads()
    try:
        with measuring(doing="overheads of the injector"):
            found = measure_on(max(online_cpus()))
    except (Unavailable, RunError):
        return Overheads()
    if found.measured and path is not None:
        write_json(path, {"of": _identity(), "overheads": asdict(found)})
    return found


def _identity() -> str:
    """Changes with the boot, the kernel, the CPUs that are online and the build of the injector."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text() + Path("/proc/version").read_text()
    return digest(boot, str(online_cpus()), Path(library).read_bytes())


def _read(path: Path) -> Overheads | None:
    """What the file caches; None where it is of another boot or build, or damaged."""
    try:
        cached: Any = read_json(path)
        values = dict(cached["overheads"])
        values["intervals"] = {
            name: tuple(interval) for name, interval in values["intervals"].items()
        }
        return Overheads(**values) if cached["of"] == _identity() else None
    except (InputError, KeyError, TypeError, ValueError, AttributeError):
        return None


def measure_on(cpu: int) -> Overheads:
    """Measure the costs on one CPU, now.

    Raises
    ------
    RunError
        The injector could not be started.
    """
    costs = pd.concat(
        [
            _costs(cpu, seed)
            for seed in each(range(ROUNDS), "measuring the injector's overheads", "rounds")
        ]
    )
    ordinary_us = _ordinary_costs_us(cpu)
    zero = costs.loc[costs["length_us"] == 0, "lost_us"].to_numpy()
    short, long = (costs[costs["length_us"] == length_ns / 1e3] for length_ns in LENGTHS_NS[1:])
    if min(len(zero), len(short), len(long), len(ordinary_us)) < FEWEST:
        return Overheads()
    wake, beyond = short["wake_us"].to_numpy(), short["beyond_us"].to_numpy()
    slope = _slope(wake, beyond)
    longer_us = (
        long["beyond_us"] - slope * (long["wake_us"] - np.median(wake))
    ).median() - np.median(beyond)  # an event of 1 ms beyond one of 100 µs
    values = {
        "wake_us": wake,
        "exit_us": beyond - slope * (wake - np.median(wake)),
        "floor_us": zero,
        "ordinary_floor_us": ordinary_us,
    }
    medians = {name: round(float(np.median(costs_us)), 3) for name, costs_us in values.items()}
    return Overheads(
        **medians,
        exit_per_wake=round(slope, 4),
        exit_per_doubling_us=round(max(0.0, longer_us / float(doublings(LENGTHS_NS[-1]))), 4),
        exit_most_us=round(float(long["beyond_us"].quantile(0.95)), 3),
        shortest_us=_shortest(zero),
        shortest_ordinary_us=_shortest(ordinary_us),
        n=len(costs),
        cpu=cpu,
        measured=True,
        intervals={name: _interval(costs_us) for name, costs_us in values.items()},
    )


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


def _costs(cpu: int, seed: int) -> pd.DataFrame:
    """One round: `length_us`, `wake_us`, `lost_us`, `beyond_us` of events that are a gap each."""
    random = np.random.default_rng(seed)
    start_ns = np.arange(EVENTS) * SPACING_NS + random.integers(
        100_000, SPACING_NS - LENGTHS_NS[-1] - 300_000, EVENTS
    )
    plan = _plan(
        cpu, start_ns, random.permutation(np.resize(LENGTHS_NS, EVENTS)), "SCHED_FIFO", PRIORITY
    )
    replay = Replay(plan)
    try:
        replay.start()
        gaps = _observed_gaps(replay, cpu, EVENTS * SPACING_NS)
    finally:
        replay.close()
    return _matched(plan.events, {name: column.copy() for name, column in replay.log.items()}, gaps)


def _observed_gaps(replay: Replay, cpu: int, length_ns: int) -> np.ndarray:
    """Release a replay while the loop runs; the loop's gaps (before, after) in ns from t0.

    The loop is a thread: its policy ends with it.
    """
    t0_ns, capacity = time.monotonic_ns() + LEAD_NS, 20 * EVENTS
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
        return pd.DataFrame(columns=["length_us", "wake_us", "lost_us", "beyond_us"])
    place = np.maximum(np.searchsorted(gaps[:, 0], log["start_ns"]) - 1, 0)
    before, after = gaps[place].T
    table = pd.DataFrame(
        {
            "length_us": duration_ns / 1e3,
            "wake_us": (log["start_ns"] - start_ns) / 1e3,
            "lost_us": (after - before) / 1e3,
            "beyond_us": (after - before - duration_ns) / 1e3,
        }
    )
    whole = (after >= log["end_ns"]) & (np.abs(before - start_ns) < 10_000) & (log["outcome"] == 1)
    return table[whole & (log["policy"] == 1) & (log["gap_ns"] < SHORT_NS // 2)]


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


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    """Theil–Sen: the median slope of all pairs that are at least 1 µs apart, 0 to 1."""
    dx, dy = x[:, None] - x[None, :], y[:, None] - y[None, :]
    far = dx > 1
    return float(np.clip(np.median(dy[far] / dx[far]), 0, 1)) if far.any() else 0.0


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
