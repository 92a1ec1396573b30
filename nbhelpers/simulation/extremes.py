"""How sure a slow-down at scale is, and what decides it.

Owns the replicates that draw the recording anew, those that leave a source or a detour away, and
the tail model of a recording's detours: what a longer recording would have shown.
"""

import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

from ..errors import InputError
from ..progress import each
from ..statistics import bootstrap_interval, percentile_interval
from ..statistics.tails import (
    LEAST_EXCEEDANCES,
    Tail,
    fit_tail,
    longest_ahead,
    longest_draws,
    return_period,
    threshold_for,
)
from .detours import Detours
from .noise import NOISELESS, Noise
from .replicates import Outcome, seeds_of

Call: TypeAlias = Callable[[Noise | None], Outcome]
_MOST_UNITS = 1 / 3  # of the units have an exceedance; with more, one a unit would be too few
ALL, UNKNOWN = "all sources", "unknown"
_DRAWS = 4000
_HELD_OUT = ["split", "source", "low_ms", "median_ms", "high_ms", "longest_ms", "inside"]


# --- both spreads ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spreads:
    """A median slow-down with two 95 % intervals.

    Parameters
    ----------
    median
        Of replicates on the recording as it is.
    phases_low, phases_high
        Replicates draw where each rank begins, and which trace it has.
    recording_low, recording_high
        Each replicate also draws the recording: its units, then CPUs within a unit.
    seeds, resamples, units
        How many replicates, resampled recordings, and units there are to draw from.
    """

    median: float
    phases_low: float
    phases_high: float
    recording_low: float
    recording_high: float
    seeds: int
    resamples: int
    units: int


def spreads(
    traces: Sequence[Detours],
    units: Sequence[Hashable],
    call: Call,
    ranks: int,
    *,
    seeds: int = 30,
    resamples: int = 60,
    phases: int = 3,
    seed: int = 0,
) -> Spreads:
    """How far a slow-down would change with other phases, and how far with another recording.

    Parameters
    ----------
    traces
        The recording, a trace for every CPU and unit.
    units
        Of each trace: what was recorded independently of the rest, such as a run.
    call
        What is simulated, a function of the noise.
    ranks
        P.
    seeds
        Replicates on the recording as it is.
    resamples, phases
        Resampled recordings, and replicates on each, whose median counts.
    seed
        Of all draws.

    Raises
    ------
    InputError
        Fewer than two units, seeds or resamples, or not one unit for each trace.

    Notes
    -----
    A bootstrap in two stages (Davison and Hinkley, Bootstrap Methods and their Application, 1997,
    section 3.8). It cannot draw a detour that is longer than those recorded: `return_periods`
    can.

    Examples
    --------
    >>> from functools import partial
    >>> from nbhelpers.simulation import evaluate, periodic
    >>> traces = [periodic(10, 100), periodic(10, 2000)]
    >>> call = lambda noise: evaluate("dissemination", 64, noise=noise)
    >>> found = spreads(traces, [0, 1], call, 64, seeds=5, resamples=20)
    >>> found.recording_low <= found.phases_low
    True
    """
    groups = _groups(traces, units)
    if min(len(groups), seeds, resamples) < 2:
        raise InputError(
            f"{len(groups)} units, {seeds} seeds and {resamples} resamples",
            why="a spread needs two at least of each",
            fix="record more runs, or ask for more replicates",
        )
    pool = np.concatenate(groups)
    plain = _slowdowns(traces, call, ranks, [(pool, int(one)) for one in seeds_of(seeds, seed)])
    drawn = _resampled(groups, resamples, phases, seed)
    medians = np.median(_slowdowns(traces, call, ranks, drawn).reshape(resamples, phases), axis=1)
    phases_low, phases_high = bootstrap_interval(plain, "median", level=0.95)
    low, high = percentile_interval(medians)
    return Spreads(
        float(np.median(plain)),
        phases_low,
        phases_high,
        low,
        high,
        seeds,
        resamples,
        len(groups),
    )


def _groups(traces: Sequence[Detours], units: Sequence[Hashable]) -> list[np.ndarray]:
    """Indexes of the traces of each unit."""
    if len(units) != len(traces):
        raise InputError(f"{len(units)} units for {len(traces)} traces")
    codes, _ = pd.factorize(np.array([str(unit) for unit in units]))
    return [np.flatnonzero(codes == code) for code in range(codes.max() + 1)] if len(codes) else []


def _resampled(
    groups: list[np.ndarray], count: int, phases: int, seed: int
) -> list[tuple[np.ndarray, int]]:
    """So many recordings, units drawn with replacement, then traces within each; with so many
    seeds of phases for each.
    """
    drawn = []
    for child in np.random.SeedSequence(seed).spawn(count):
        rng = np.random.default_rng(child)
        chosen = [groups[index] for index in rng.integers(0, len(groups), len(groups))]
        pool = np.concatenate([rng.choice(group, len(group)) for group in chosen])
        drawn += [(pool, int(one)) for one in rng.integers(0, 2**32, phases)]
    return drawn


def _slowdowns(
    traces: Sequence[Detours],
    call: Call,
    ranks: int,
    drawn: list[tuple[np.ndarray, int]],
    place: np.ndarray | None = None,
) -> np.ndarray:
    """Each rank draws a trace of the pool, and its phase: float64, one of each pool and seed. What
    is drawn are indexes of `traces`, or of `place`, which says where in `traces` they lie.
    """

    def one(pool: np.ndarray, seed: int) -> float:
        which = np.random.default_rng(seed).choice(pool, ranks)
        which = which if place is None else place[which]
        noise = Noise.on_ranks(list(traces), ranks, seed=seed, which=which)
        return float(call(noise).finish_ns.max())

    ideal_ns = float(call(None).finish_ns.max())
    if not len(traces):
        return np.ones(len(drawn))  # nothing disturbs
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        found = threads.map(one, *zip(*drawn))
        return np.array(list(each(found, "simulating", "replicates", len(drawn)))) / ideal_ns


def pieces(traces: Sequence[Detours], count: int) -> list[Detours]:
    """Traces cut into pieces of equal time, so that a single recording has units to draw from.

    Parameters
    ----------
    traces
        One a CPU.
    count
        Pieces of each. A detour belongs to the piece in which it begins, and no piece ends within a
        detour but behind it: a CPU that was taken for longer than a piece has a longer piece. A
        piece without any detour is left out.

    Examples
    --------
    >>> trace = Detours(np.array([1e6, 6e6]), np.array([10.0, 20.0]), 1e7, name="CPU 0")
    >>> [piece.period_ns for piece in pieces([trace], 2)]
    [5000000.0, 5000000.0]
    """
    cut = []
    for trace in traces:
        ends = _between_detours(trace, trace.period_ns / count * np.arange(count + 1))
        index = np.searchsorted(ends[1:-1], trace.start_ns, side="right")
        for number in np.unique(index):
            length = float(ends[number + 1] - ends[number])
            name = f"{trace.name}, piece {number}"
            cut.append(_part(trace, index == number, ends[number], length, name))
    return cut


def _between_detours(trace: Detours, times: np.ndarray) -> np.ndarray:
    """Times within a detour are moved to its end."""
    order = np.argsort(trace.start_ns, kind="stable")
    start, end = trace.start_ns[order], (trace.start_ns + trace.duration_ns)[order]
    latest = np.maximum.accumulate(end)
    before = np.searchsorted(start, times, side="left") - 1  # begun before
    return np.where(before >= 0, np.maximum(times, latest[before]), times)


def _part(
    trace: Detours, inside: np.ndarray, begin_ns: float, period_ns: float, name: str
) -> Detours:
    source = np.asarray(trace.source)[inside] if len(trace.source) else trace.source
    start = trace.start_ns[inside] - begin_ns
    return Detours(start, trace.duration_ns[inside], period_ns, source, trace.sources, name)


# --- what decides ---------------------------------------------------------------------------------


def detours_table(
    traces: Sequence[Detours], units: Sequence[Hashable] | None = None
) -> pd.DataFrame:
    """All detours of a recording, the longest first: `trace` (index), `unit` (of `units`; without,
    the trace), `name`, `detour` (index in its trace), `source`, `start_ns`, `duration_ns`.
    """
    unit = list(range(len(traces))) if units is None else list(units)
    parts = [
        pd.DataFrame(
            {
                "trace": number,
                "unit": str(unit[number]),
                "name": trace.name,
                "detour": np.arange(len(trace)),
                "source": _source_names(trace),
                "start_ns": trace.start_ns,
                "duration_ns": trace.duration_ns,
            }
        )
        for number, trace in enumerate(traces)
    ]
    table = pd.concat(parts, ignore_index=True)
    return table.sort_values("duration_ns", ascending=False, kind="stable", ignore_index=True)


def _source_names(trace: Detours) -> np.ndarray:
    if not len(trace.source):
        return np.full(len(trace), UNKNOWN, object)
    return np.array(trace.sources, object)[np.asarray(trace.source)]


def deciding_detours(
    traces: Sequence[Detours],
    call: Call,
    ranks: int,
    *,
    seeds: int = 10,
    seed: int = 0,
    sources: int = 5,
    longest: Sequence[int] = (1, 2, 5, 10),
) -> pd.DataFrame:
    """Which noise a slow-down rests on: take a source away, or the longest detours, and simulate
    again with the same draws.

    Parameters
    ----------
    traces
        The recording; traces without sources are asked for their longest detours alone.
    call, ranks, seeds, seed
        As in `spreads`.
    sources
        How many, those with the longest detours first.
    longest
        How many of the longest detours are taken away.

    Returns
    -------
    `without`, `kind` (nothing, source, detours), `detours` (taken away), `longest_ms` (of them),
    `median`, `low`, `high` (95 %, over seeds), `removed_share` (of the delay), `seeds`.
    """
    table = detours_table(traces)
    first = table.groupby("source", sort=False)["duration_ns"].max().head(sources)
    taken = [("nothing", "nothing", table.index[:0])]
    if not table["source"].eq(UNKNOWN).all():
        taken += [(name, "source", table.index[table["source"] == name]) for name in first.index]
    taken += [(_label(table, count), "detours", table.index[:count]) for count in longest]
    drawn = [(np.arange(len(traces)), int(one)) for one in seeds_of(seeds, seed)]
    rows = []
    for name, kind, index in each(taken, "simulating", "without a source", len(taken)):
        left, place = _without(traces, table.loc[index])
        slow = _slowdowns(left, call, ranks, drawn, place)
        low, high = bootstrap_interval(slow, "median", level=0.95)
        rows.append(
            {
                "without": name,
                "kind": kind,
                "detours": len(index),
                "longest_ms": table.loc[index, "duration_ns"].max() / 1e6,
                "median": float(np.median(slow)),
                "low": low,
                "high": high,
                "seeds": seeds,
            }
        )
    result = pd.DataFrame(rows)
    delay = result["median"] - 1
    result.insert(7, "removed_share", 1 - delay / delay.iloc[0] if delay.iloc[0] > 0 else np.nan)
    return result


def _label(table: pd.DataFrame, count: int) -> str:
    if count == 1:
        top = table.iloc[0]
        source = "" if top["source"] == UNKNOWN else f"{top['source']}, "
        return f"the longest detour ({source}{top['name']})"
    return f"the {count} longest detours"


def _without(traces: Sequence[Detours], taken: pd.DataFrame) -> tuple[list[Detours], np.ndarray]:
    """Traces without some detours, and where each lies among them: NOISELESS for one that lost all
    of its detours, as all may have done.
    """
    left: list[Detours] = []
    place = np.full(len(traces), NOISELESS)
    by_trace = {trace: rows["detour"].to_numpy() for trace, rows in taken.groupby("trace")}
    for number, trace in enumerate(traces):
        inside = np.ones(len(trace), bool)
        inside[by_trace.get(number, [])] = False
        if inside.any():
            place[number] = len(left)
            left.append(_part(trace, inside, 0.0, trace.period_ns, trace.name))
    return left, place


# --- what a longer recording would have shown -----------------------------------------------------


def exposure_s(traces: Sequence[Detours]) -> float:
    """How long was recorded, in seconds of a CPU."""
    return sum(trace.period_ns for trace in traces) / 1e9


def tail_of(table: pd.DataFrame, exposure: float, units: int) -> Tail | None:
    """The tail of a table's detours; None for too few of them.

    Parameters
    ----------
    table
        `unit`, `duration_ns`. The longest detour of each unit counts: what is in one unit is not
        independent.
    exposure
        How long was recorded.
    units
        How many there are, with such a detour or without.
    """
    peaks = np.sort(table.groupby("unit")["duration_ns"].max().to_numpy())
    most = int(units * _MOST_UNITS)
    threshold = threshold_for(peaks)
    if most < len(peaks):
        threshold = max(threshold, float(peaks[-most - 1]))
    if (peaks > threshold).sum() < LEAST_EXCEEDANCES:
        return None
    return fit_tail(peaks, exposure, threshold)


@dataclass(frozen=True)
class Tails:
    """The tails of a recording.

    Parameters
    ----------
    pooled
        Of all sources together.
    by_source
        Of each source that has enough detours.
    left_out
        Names of the other sources.
    seconds
        How long was recorded, in seconds of a CPU.
    table
        The detours, as of `detours_table`.
    """

    pooled: Tail
    by_source: dict[str, Tail]
    left_out: tuple[str, ...]
    seconds: float
    table: pd.DataFrame


def tails_of(traces: Sequence[Detours], units: Sequence[Hashable]) -> Tails:
    """Fit the tail of a recording's detours, pooled and by source.

    Parameters
    ----------
    traces, units
        As in `spreads`.

    Raises
    ------
    InputError
        Too few detours for any tail.
    """
    table, seconds = detours_table(traces, units), exposure_s(traces)
    count = len(_groups(traces, units))
    pooled = tail_of(table, seconds, count)
    if pooled is None:
        raise InputError(
            f"{len(table)} detours in {count} units",
            why=f"a tail is fitted to {LEAST_EXCEEDANCES} units at least",
            fix="record for longer",
        )
    tails = {
        str(name): tail_of(rows, seconds, count)
        for name, rows in table.groupby("source", sort=False)
        if name != UNKNOWN
    }
    fitted = {name: tail for name, tail in tails.items() if tail is not None}
    left_out = tuple(name for name, tail in tails.items() if tail is None)
    return Tails(pooled, fitted, left_out, seconds, table)


def return_periods(
    tails: Tails, cpu_seconds: Sequence[float], *, level: float = 0.9, seed: int = 0
) -> pd.DataFrame:
    """The longest detour in times that were not recorded, and which source has it.

    Parameters
    ----------
    tails
        Of `tails_of`.
    cpu_seconds
        How long these times are: CPUs × seconds.
    level
        Of the intervals.
    seed
        Of the draws that say which source has the longest.

    Returns
    -------
    `cpu_seconds`, `times_recorded`, `pooled_ms`, `pooled_low_ms`, `pooled_high_ms` (all sources
    share a tail), `by_source_ms`, `by_source_low_ms`, `by_source_high_ms` (each has its own),
    `decides` (the source that has the longest in most draws), `decides_share` (of the draws),
    `second`, `second_share`.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for seconds in cpu_seconds:
        pooled = longest_ahead(tails.pooled, seconds, level)
        longest, shares = _drawn_longest(tails.by_source, seconds, rng)
        ends = [0.5, (1 - level) / 2, (1 + level) / 2]
        middle, low, high = np.quantile(longest, ends) if len(longest) else [np.nan] * 3
        first, second, *_ = [*shares, ("none", np.nan), ("none", np.nan)]
        rows.append(
            {
                "cpu_seconds": seconds,
                "times_recorded": seconds / tails.seconds,
                "pooled_ms": pooled.median / 1e6,
                "pooled_low_ms": pooled.low / 1e6,
                "pooled_high_ms": pooled.high / 1e6,
                "by_source_ms": middle / 1e6,
                "by_source_low_ms": low / 1e6,
                "by_source_high_ms": high / 1e6,
                "decides": first[0],
                "decides_share": first[1],
                "second": second[0],
                "second_share": second[1],
            }
        )
    return pd.DataFrame(rows)


def _drawn_longest(
    tails: dict[str, Tail], cpu_seconds: float, rng: np.random.Generator
) -> tuple[np.ndarray, list[tuple[str, float]]]:
    """Draws of the longest of all sources, ns; and the share in which each source has it, the
    largest share first.
    """
    if not tails:
        return np.zeros(0), []
    draws = np.array([longest_draws(tail, cpu_seconds, _DRAWS, rng) for tail in tails.values()])
    shares = np.bincount(draws.argmax(axis=0), minlength=len(tails)) / _DRAWS
    ranked = sorted(zip(tails, shares.tolist()), key=lambda item: -item[1])
    return draws.max(axis=0), ranked


def source_tails(tails: Tails, level: float = 0.9) -> pd.DataFrame:
    """The fitted tails: all sources together, then those with the longest detours first.

    Returns
    -------
    `source`, `detours` (recorded), `exceedances` (units with one above the threshold),
    `threshold_us`, `longest_ms` (recorded), `shape`, `shape_low`, `shape_high`, and how often a
    detour as long as the longest recorded comes: `every_cpu_s`, `every_low_cpu_s`,
    `every_high_cpu_s`.
    """
    rows = [_tail_row(ALL, tails.table, tails.pooled, level)]
    for name, tail in tails.by_source.items():
        rows.append(_tail_row(name, tails.table[tails.table["source"] == name], tail, level))
    return pd.DataFrame(rows)


def _tail_row(source: str, table: pd.DataFrame, tail: Tail, level: float) -> dict[str, object]:
    shape, shape_low, shape_high = tail.shape_interval(level)
    every = return_period(tail, tail.longest, level)
    return {
        "source": source,
        "detours": len(table),
        "exceedances": tail.exceedances,
        "threshold_us": tail.threshold / 1e3,
        "longest_ms": tail.longest / 1e6,
        "shape": shape,
        "shape_low": shape_low,
        "shape_high": shape_high,
        "every_cpu_s": every.median,
        "every_low_cpu_s": every.low,
        "every_high_cpu_s": every.high,
    }


def return_curve(
    tails: Tails, cpu_seconds: Sequence[float], source: str = ALL, level: float = 0.9
) -> pd.DataFrame:
    """The longest detour against the time, for a drawing: `cpu_seconds`, `median_ms`, `low_ms`,
    `high_ms`.
    """
    tail = tails.pooled if source == ALL else tails.by_source[source]
    ahead = [longest_ahead(tail, seconds, level) for seconds in cpu_seconds]
    return pd.DataFrame(
        {
            "cpu_seconds": np.asarray(cpu_seconds, float),
            "median_ms": [one.median / 1e6 for one in ahead],
            "low_ms": [one.low / 1e6 for one in ahead],
            "high_ms": [one.high / 1e6 for one in ahead],
        }
    )


def recorded_levels(tails: Tails, source: str = ALL) -> pd.DataFrame:
    """The recorded detours as points of such a drawing, the longest of each unit: the n-th longest
    is reached once in a time of recorded time / n.
    """
    table = tails.table if source == ALL else tails.table[tails.table["source"] == source]
    peaks = np.sort(table.groupby("unit")["duration_ns"].max().to_numpy())[::-1]
    return pd.DataFrame(
        {
            "cpu_seconds": tails.seconds / np.arange(1, len(peaks) + 1),
            "longest_ms": peaks / 1e6,
        }
    )


# --- is the tail model right? ---------------------------------------------------------------------


def held_out(
    traces: Sequence[Detours],
    units: Sequence[Hashable],
    *,
    splits: int = 20,
    level: float = 0.9,
    seed: int = 0,
    sources: int = 10,
) -> pd.DataFrame:
    """Whether one half of a recording foretells the longest detour of the other half.

    Parameters
    ----------
    traces, units
        As in `spreads`.
    splits
        Random divisions of the units into halves. One more division is that in time, the first half
        of the units foretelling the second.
    level
        Of the foretold intervals.
    seed
        Of the divisions.
    sources
        How many are foretold, those with the longest detours.

    Returns
    -------
    `split` (0 is the one in time), `source`, `low_ms`, `median_ms`, `high_ms`, `longest_ms` (of the
    half that was held out), `inside`. A source in too few units of the first half has no row.

    Notes
    -----
    The divisions share their detours: their outcomes are not independent, and a share of them has
    no binomial interval.
    """
    groups = _groups(traces, units)
    table = detours_table(traces, units)
    known = table.loc[table["source"] != UNKNOWN, "source"]
    chosen = known.drop_duplicates().head(sources).tolist()
    rng = np.random.default_rng(seed)
    orders = [np.arange(len(groups))] + [rng.permutation(len(groups)) for _ in range(splits)]
    rows: list[dict[str, object]] = []
    for split, order in each(list(enumerate(orders)), "fitting", "halves", len(orders)):
        inside = np.zeros(len(traces), bool)
        inside[np.concatenate([groups[unit] for unit in order[: len(groups) // 2]])] = True
        half = _Half(inside, len(groups) // 2)
        rows += _foretold_half(table, traces, half, split, level, chosen)
    return pd.DataFrame(rows, columns=_HELD_OUT)


@dataclass(frozen=True)
class _Half:
    """Which traces are known, and of how many units they are."""

    known: np.ndarray
    units: int


def _foretold_half(
    table: pd.DataFrame,
    traces: Sequence[Detours],
    half: _Half,
    split: int,
    level: float,
    sources: list[str],
) -> list[dict[str, object]]:
    known = half.known
    seconds = np.array([trace.period_ns for trace in traces]) / 1e9
    in_known = known[table["trace"].to_numpy()]
    before, after = table[in_known], table[~in_known]
    rows: list[dict[str, object]] = []
    for source in [ALL, *sources]:
        first = before if source == ALL else before[before["source"] == source]
        second = after if source == ALL else after[after["source"] == source]
        tail = tail_of(first, float(seconds[known].sum()), half.units) if len(first) else None
        if tail is None:
            continue
        ahead = longest_ahead(tail, float(seconds[~known].sum()), level)
        longest = max(float(second["duration_ns"].max()) if len(second) else 0.0, tail.threshold)
        rows.append(
            {
                "split": split,
                "source": source,
                "low_ms": ahead.low / 1e6,
                "median_ms": ahead.median / 1e6,
                "high_ms": ahead.high / 1e6,
                "longest_ms": longest / 1e6,
                "inside": longest in ahead,
            }
        )
    return rows
