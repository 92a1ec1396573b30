"""Attribution where the data have structure: what is claimed, and what is missed.

    python benchmarks/attribution_structure.py [NAME …] [--sets 20] [--first 0] [--wide 5000]
    python benchmarks/attribution_structure.py unseen --sets 100 --first 31000

A line a shape: in how many tables something was found, and whether rightly, beside the plain test
(the strongest rank correlation of a column of numbers, by Bonferroni). In a shape of noise or of
consequences everything found is false. `unseen` are the ten of `_unseen_structures`. `--wide` times
one search of so many columns.
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # two processes, a thread each

import numpy as np
import pandas as pd
from _unseen_structures import COUNTERS, RUNS, UNSEEN, Draw, table
from scipy.signal import lfilter
from scipy.stats import binomtest, spearmanr

from nbhelpers.attribution import explain
from nbhelpers.errors import NoisebookError

LEVEL = 0.01  # that of `explain`, for the plain test beside it


def ordinary(random: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    return random.normal(size=size)


# Noise: nothing is to be found
# --------------------------------------------------------------------------------------------------


def plain(runs: int, counters: int) -> Draw:
    return lambda random: table(
        random.normal(1, 0.02, runs), np.abs(ordinary(random, (runs, counters)))
    )


def modes(random: np.random.Generator) -> pd.DataFrame:
    slow = random.random(RUNS) < 0.25
    return table(random.normal(1, 0.01, RUNS) + 0.1 * slow, ordinary(random, (RUNS, COUNTERS)))


def rare_counts(random: np.random.Generator) -> pd.DataFrame:
    counts = random.poisson(random.choice([0.05, 0.3, 2], COUNTERS), (RUNS, COUNTERS))
    return table(random.lognormal(0, 0.1, RUNS), counts)


def categories(random: np.random.Generator) -> pd.DataFrame:
    names = {f"place{number}": random.choice(list("abcdefgh"), RUNS) for number in range(6)}
    return modes(random).assign(cpu=random.integers(0, 8, RUNS), **names)


def autoregressive(rho: float) -> Draw:
    def draw(random: np.random.Generator) -> pd.DataFrame:
        steps = ordinary(random, (RUNS + 200, COUNTERS + 1))
        values = lfilter([1], [1, -rho], steps, axis=0)[200:]
        return table(100 + values[:, 0], values[:, 1:])

    return draw


def regimes(random: np.random.Generator) -> pd.DataFrame:
    """Outcome and counters switch between two levels, each on its own account."""
    switches = random.random((RUNS, COUNTERS + 1)) < 0.08
    level = np.cumsum(switches, axis=0) % 2
    values = 3 * level + ordinary(random, level.shape)
    return table(100 + values[:, 0], values[:, 1:])


def periodic(period: float, same: bool, noise: float = 0.5) -> Draw:
    """Outcome and counters have a period, and phases of their own."""

    def draw(random: np.random.Generator) -> pd.DataFrame:
        periods = np.full(COUNTERS + 1, period)
        if not same:
            periods = period * random.uniform(0.7, 1.4, COUNTERS + 1)
        phases = random.uniform(0, 2 * np.pi, COUNTERS + 1)
        waves = np.sin(2 * np.pi * np.arange(RUNS)[:, None] / periods + phases)
        values = waves + noise * ordinary(random, waves.shape)
        return table(100 + values[:, 0], values[:, 1:])

    return draw


def pulses(random: np.random.Generator) -> pd.DataFrame:
    """Every eighth run is slow; counters rise every eighth run, too, at another place."""
    places = np.r_[0, random.integers(0, 8, COUNTERS)]
    on = np.arange(RUNS)[:, None] % 8 == places
    values = 4 * on + ordinary(random, on.shape)
    values[:, 1:][:, places[1:] == 0] = ordinary(random, (RUNS, int((places[1:] == 0).sum())))
    return table(100 + values[:, 0], values[:, 1:])


def trend(random: np.random.Generator) -> pd.DataFrame:
    values = ordinary(random, (RUNS, COUNTERS + 1)) + np.linspace(0, 3, RUNS)[:, None]
    return table(100 + values[:, 0], values[:, 1:])


def step(random: np.random.Generator) -> pd.DataFrame:
    """All of them change once, at nearly the same time."""
    places = RUNS * 0.55 + random.uniform(-3, 3, COUNTERS + 1)
    values = 3 * (np.arange(RUNS)[:, None] > places) + ordinary(random, (RUNS, COUNTERS + 1))
    return table(100 + values[:, 0], values[:, 1:])


def drift_and_period(random: np.random.Generator) -> pd.DataFrame:
    return periodic(10, same=True)(random) + 0.5 * trend(random)


def burst(random: np.random.Generator) -> pd.DataFrame:
    """A dozen slow runs in a row; the counters move slowly."""
    first = random.integers(0, RUNS - 12)
    seconds = random.normal(1, 0.01, RUNS)
    seconds[first : first + 12] += 0.2
    waves = np.sin(np.arange(RUNS)[:, None] / random.uniform(10, 50, COUNTERS))
    return table(seconds, waves + 0.1 * ordinary(random, waves.shape))


# Consequences: nothing is to be found
# --------------------------------------------------------------------------------------------------


def slow_times(random: np.random.Generator, factor: float = 1.4) -> tuple[np.ndarray, np.ndarray]:
    slow = random.random(RUNS) < 0.3
    return slow, random.normal(1, 0.02, RUNS) * np.where(slow, factor, 1)


def grows(power: float, rated: bool, noise: float = 0.03, one_class: bool = False) -> Draw:
    """Counts that grow as a power of the run time; with rates, or as a foreign table has them."""

    def draw(random: np.random.Generator) -> pd.DataFrame:
        seconds = random.lognormal(0, 0.1, RUNS) if one_class else slow_times(random)[1]
        counts = {}
        for number in range(6):
            total = 1e5 * seconds**power * random.normal(1, noise, RUNS)
            counts[f"c{number}"] = total.round()
            if rated:
                counts[f"c{number}_per_s"] = total.round() / seconds
        return table(seconds, ordinary(random, (RUNS, 0)), **counts).assign(
            other=random.normal(size=RUNS)
        )

    return draw


def partly_fixed(random: np.random.Generator) -> pd.DataFrame:
    _, seconds = slow_times(random)
    counts = {}
    for number in range(6):
        total = random.normal(1e4 * (1 + seconds), 200).round()
        counts |= {f"c{number}": total, f"c{number}_per_s": total / seconds}
    return pd.DataFrame({"seconds": seconds, "other": random.normal(size=RUNS)} | counts)


def peaks(random: np.random.Generator) -> pd.DataFrame:
    """The largest of as many samples as the run is long."""
    _, seconds = slow_times(random)
    largest = [random.exponential(1, (int(200 * one), COUNTERS)).max(axis=0) for one in seconds]
    return table(seconds, np.array(largest))


# Causes: `cause` is to be found
# --------------------------------------------------------------------------------------------------


def smaller_rise(noise: float) -> Draw:
    """The cause's count rises by 20 %, the run time by 40 %."""

    def draw(random: np.random.Generator) -> pd.DataFrame:
        slow, seconds = slow_times(random)
        count = (1e4 * np.where(slow, 1.2, 1) * random.normal(1, noise, RUNS)).round()
        return table(seconds, random.poisson(200, (RUNS, COUNTERS))).assign(
            cause=count, cause_per_s=count / seconds
        )

    return draw


def exclusive_or(random: np.random.Generator) -> pd.DataFrame:
    counters = ordinary(random, (RUNS, COUNTERS))
    both = (counters[:, 0] > 0) ^ (counters[:, 1] > 0)
    seconds = random.normal(1, 0.01, RUNS) + 0.1 * both
    frame = table(seconds, counters[:, 2:])
    return frame.assign(cause=counters[:, 0], cause2=counters[:, 1])


def linear(strength: float, positive: bool) -> Draw:
    def draw(random: np.random.Generator) -> pd.DataFrame:
        counters, cause = ordinary(random, (RUNS, COUNTERS)), random.normal(size=RUNS)
        seconds = 1 + 0.03 * (
            strength * cause + np.sqrt(1 - strength**2) * random.normal(size=RUNS)
        )
        if positive:  # counts that vary by half
            counters, cause = np.exp(0.5 * counters).round(3), np.exp(0.5 * cause).round(3)
        return table(seconds, counters).assign(cause=cause)

    return draw


def category(numbered: bool, effect: float = 0.1) -> Draw:
    def draw(random: np.random.Generator) -> pd.DataFrame:
        cpu = random.integers(0, 8, RUNS)
        seconds = random.normal(1, 0.02, RUNS) + effect * (cpu == 3)
        named = cpu if numbered else [f"cpu{number}" for number in cpu]
        return table(seconds, ordinary(random, (RUNS, COUNTERS))).assign(cause=named)

    return draw


def both_ends(random: np.random.Generator) -> pd.DataFrame:
    cause = random.normal(size=RUNS)
    seconds = random.normal(1, 0.01, RUNS) + 0.1 * (np.abs(cause) > 1)
    return table(seconds, ordinary(random, (RUNS, COUNTERS))).assign(cause=cause)


def through(noise: Draw) -> Draw:
    """A cause in a third of the runs, in an outcome that has structure of its own."""

    def draw(random: np.random.Generator) -> pd.DataFrame:
        frame, on = noise(random), random.random(RUNS) < 0.3
        return frame.assign(
            seconds=frame["seconds"] + 4 * frame["seconds"].std() * on,
            cause=random.normal(size=RUNS) + 4 * on,
        )

    return draw


NOISE = {
    "plain, 120 × 20": plain(120, 20),
    "plain, 40 × 60": plain(40, 60),
    "two modes": modes,
    "rare counts": rare_counts,
    "categories": categories,
    "autoregression 0.3": autoregressive(0.3),
    "autoregression 0.9": autoregressive(0.9),
    "random walks": autoregressive(1.0),
    "regimes": regimes,
    "same period 7": periodic(7, same=True),
    "same period 12": periodic(12, same=True),
    "same period 40": periodic(40, same=True),
    "same period 12, clean": periodic(12, same=True, noise=0.1),
    "periods near 12": periodic(12, same=False),
    "pulses": pulses,
    "same trend": trend,
    "same step": step,
    "drift and period": drift_and_period,
    "burst": burst,
    "grows as time^1.15": grows(1.15, True),
    "grows as time^1.15, one class": grows(1.15, True, one_class=True),
    "totals without rates": grows(1.0, False),
    "totals without rates, one class": grows(1.0, False, one_class=True),
    "noisy totals without rates": grows(1.0, False, noise=0.15),
    "partly fixed": partly_fixed,
    "peaks": peaks,
}
CAUSES = {
    "count +20 %, time +40 %": smaller_rise(0.02),
    "the same, noisier": smaller_rise(0.04),
    "exclusive or": exclusive_or,
    "linear, r = 0.3": linear(0.3, False),
    "linear, r = 0.3, counts": linear(0.3, True),
    "category, text": category(False),
    "category, number": category(True),
    "both ends": both_ends,
    "through autoregression 0.9": through(autoregressive(0.9)),
    "through a period": through(periodic(12, same=True)),
    "through a trend": through(trend),
}
SHAPES = NOISE | CAUSES | UNSEEN


def _one(task: tuple[str, int]) -> tuple[bool, bool, bool, bool, float]:
    """Whether something was found, and rightly, by `explain` and by the plain test; seconds."""
    name, seed = task
    frame = SHAPES[name](np.random.default_rng([seed, 14]))
    begin = time.perf_counter()
    try:
        result = explain(frame, seed=seed)
    except NoisebookError:
        return False, False, *_plain_test(frame), time.perf_counter() - begin
    members = {str(one) for one in result.factors["members"].iloc[0]} if result.found else set()
    right = any(member.startswith("cause") for member in members)
    return result.found, right, *_plain_test(frame), time.perf_counter() - begin


def _plain_test(frame: pd.DataFrame) -> tuple[bool, bool]:
    """Rank correlation of each column of numbers with the run time, by Bonferroni."""
    columns = frame.drop(columns="seconds").select_dtypes("number")
    p_values = [spearmanr(columns[name], frame["seconds"]).pvalue for name in columns]
    best = int(np.argmin(p_values))
    found = bool(p_values[best] * len(p_values) <= LEVEL)
    return found, found and columns.columns[best].startswith("cause")


def study(names: list[str], options: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
    seeds = range(options.first, options.first + options.sets)
    totals = {True: np.zeros(5, int), False: np.zeros(5, int)}
    for name in names:
        results = np.array(list(pool.map(_one, [(name, seed) for seed in seeds], chunksize=2)))
        found, right, plain_found, plain_right = results[:, :4].sum(axis=0).astype(int)
        totals[name in CAUSES] += found, right, plain_found, plain_right, options.sets
        told = f"found {found:>3} of {options.sets}   plain test {plain_found:>3}"
        if name in CAUSES:
            told += f"   rightly {right:>3}   plain test {plain_right:>3}"
        else:
            told += f"   95 % bound {_bound(found, options.sets):.0%}"
        print(f"{name:<34} {told}   {results[:, 4].max():.1f} s at most", flush=True)
    false, _, plain_false, _, tables = totals[False]
    if tables:
        print(f"false: {false} of {tables}, 95 % bound {_bound(false, tables):.1%}", end="")
        print(f"; plain test {plain_false}")
    _, right, _, plain_right, tables = totals[True]
    if tables:
        print(f"causes found rightly: {right} of {tables}; plain test {plain_right}")


def _bound(hits: int, count: int) -> float:
    """Upper bound of the share, one-sided 95 % (Clopper and Pearson)."""
    return float(binomtest(hits, count).proportion_ci(0.9, "exact").high)


def wide(columns: int) -> None:
    """One search of a wide table, with a planted column."""
    random = np.random.default_rng(5)
    slow, values = random.random(200) < 0.25, random.normal(size=(200, columns))
    values[:, columns // 2] += 3 * slow
    frame = table(random.normal(1, 0.02, 200) + 0.2 * slow, values)
    begin = time.perf_counter()
    result = explain(frame)
    print(f"200 runs × {columns} columns: {time.perf_counter() - begin:.1f} s   {result}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--wide", type=int, default=0, help="columns of one wide table to time")
    chosen = parser.parse_args()
    if chosen.wide:
        wide(chosen.wide)
    else:
        with ProcessPoolExecutor(2) as processes:
            names = list(UNSEEN) if chosen.names == ["unseen"] else chosen.names
            study(names or [*NOISE, *CAUSES], chosen, processes)
