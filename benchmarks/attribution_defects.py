"""What was once measured of attribution and claims, as one table: consequences, phases, sorted
tables, one bad node of many, two modes, false pages of claims, a coarse clock.

    python benchmarks/attribution_defects.py [--first 31000] [--pages 1000]

Another version's column: the same command with PYTHONPATH at a checkout of it. Tables are made here
and have 20 counters of nothing beside. Where there is no cause, what is found is false; else only
what begins with `cause` is right. Brackets: 95 % (Clopper and Pearson). A quarter of an hour.
"""

import argparse
import os
from collections.abc import Callable

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import pandas as pd
from attribution_structure import COUNTERS, RUNS, Draw, slow_times
from scipy.signal import lfilter
from statsmodels.stats.proportion import proportion_confint

from nbhelpers.attribution import explain, find_cutoff
from nbhelpers.statistics.claims import Claim, Evidence, judge

SLOWER = 0.1
OPEN = "inconclusive", "equivalent to none"


def table(random: np.random.Generator, seconds: np.ndarray, **more: object) -> pd.DataFrame:
    counters = random.poisson(200, (COUNTERS, seconds.size))
    named = {f"c{number}": values for number, values in enumerate(counters)}
    return pd.DataFrame({"seconds": seconds} | named | more)


def floors(random: np.random.Generator) -> pd.DataFrame:
    _, seconds = slow_times(random)
    ticks = np.floor(random.uniform(20, 300) * seconds)
    return table(random, seconds, ticks=ticks, ticks_per_s=ticks / seconds)


def after_a_limit(random: np.random.Generator) -> pd.DataFrame:
    _, seconds = slow_times(random)
    return table(random, seconds, late=np.maximum(0, np.floor(400 * (seconds - 1.1))))


def other_rates(random: np.random.Generator) -> pd.DataFrame:
    _, seconds = slow_times(random)
    work = {name: random.normal(1, 0.01, RUNS) / seconds for name in ("gbps", "ipc", "cpu_util")}
    return table(random, seconds, **work)


def gaps(random: np.random.Generator) -> pd.DataFrame:
    slow, seconds = slow_times(random)
    gone = random.random(RUNS) < np.where(slow, 0.4, 0.02)
    return table(random, seconds, lost=np.where(gone, np.nan, random.lognormal(5, 0.3, RUNS)))


def phases(on: Callable[[np.random.Generator], np.ndarray]) -> Draw:
    """The cause adds three standard deviations or more to the run time and to its own counter."""

    def draw(random: np.random.Generator) -> pd.DataFrame:
        active = on(random)
        seconds = random.normal(1, 0.02, RUNS) + SLOWER * active
        return table(random, seconds, cause=random.normal(100, 5, RUNS) + 20 * active)

    return draw


AT = np.arange(RUNS)


def three_bursts(random: np.random.Generator) -> np.ndarray:
    begins = random.choice(RUNS // 10, 3, replace=False) * 10
    return ((AT[:, None] >= begins) & (AT[:, None] < begins + 8)).any(axis=1)


def step(random: np.random.Generator) -> np.ndarray:
    return random.integers(30, 90) <= AT


def partial(random: np.random.Generator) -> np.ndarray:
    return (AT >= 60) & (random.random(RUNS) < 0.5)


def sorted_by(column: str) -> Draw:
    def draw(random: np.random.Generator) -> pd.DataFrame:
        made = phases(lambda random: random.random(RUNS) < 0.3)(random)
        return made.sort_values(column, ignore_index=True)

    return draw


def one_bad(levels: int, numbered: bool = False) -> Draw:
    """Six runs a level, in random order; those of one are slow."""

    def draw(random: np.random.Generator) -> pd.DataFrame:
        level = random.permutation(np.arange(6 * levels) % levels)
        seconds = random.normal(1, 0.02, level.size) + SLOWER * (level == 3)
        named = level if numbered else [f"n{number}" for number in level]
        return table(random, seconds, cause=named)

    return draw


FALSE = {
    "floor(rate × seconds)": (46, floors),
    "counts after a time limit": (46, after_a_limit),
    "rates under other names": (46, other_rates),
}
RIGHT = {
    "counter missing in slow runs": (46, gaps),
    "on and off every 5 runs": (10, phases(lambda _: AT // 5 % 2 == 1)),
    "blocks of 30": (10, phases(lambda _: AT // 30 % 2 == 1)),
    "three bursts": (45, phases(three_bursts)),
    "a step": (15, phases(step)),
    "partial regime": (16, phases(partial)),
    "unsorted": (10, phases(lambda random: random.random(RUNS) < 0.3)),
    "sorted by the run time": (10, sorted_by("seconds")),
    "sorted by the cause": (10, sorted_by("cause")),
    "one bad node of 40": (15, one_bad(40)),
    "one bad node of 50": (15, one_bad(50)),
    "one bad node of 200": (15, one_bad(200)),
    "one bad CPU of 64, a number": (5, one_bad(64, numbered=True)),
}


def share(hits: int, count: int) -> str:
    low, high = proportion_confint(hits, count, method="beta")
    return f"{hits:>4} of {count:<5} ({low:.0%} to {high:.0%})"


def first_named(frame: pd.DataFrame, seed: int) -> str:
    found = explain(frame, seed=seed)
    return str(found.factors["factor"].iloc[0]) if found.found else ""


def tables(first: int) -> None:
    for names, kind in ((FALSE, "false"), (RIGHT, "rightly")):
        for name, (count, draw) in names.items():
            seeds = range(first, first + count)
            named = [first_named(draw(np.random.default_rng([s, 31])), s) for s in seeds]
            hits = sum(one.startswith(("cause", "lost is missing")) for one in named)
            print(f"{name:<34}{kind:<9}", end="")
            print(share(hits if names is RIGHT else sum(map(bool, named)), count), flush=True)


def modes(first: int) -> None:
    for spread in (0.05, 0.08, 0.10, 0.12):
        hits = 0
        for seed in range(first, first + 30):
            random = np.random.default_rng([seed, 31])
            middle = np.where(random.permutation(60) < 30, 1, 1.5)
            hits += find_cutoff(middle * random.normal(1, spread, 60), seed).kind == "modes"
        print(f"{f'two modes, ×1.5, CV {spread:.0%}':<34}{'rightly':<9}{share(hits, 30)}")


def coarse_clock(first: int) -> None:
    ends = 0
    for seed in range(first, first + 20):
        random = np.random.default_rng([seed, 31])
        seconds = np.where(random.random(RUNS) < 0.3, 1.02, 1 + random.integers(0, 2, RUNS) / 100)
        try:
            explain(table(random, seconds), seed=seed)
        except (KeyError, IndexError):
            ends += 1
    print(f"{'a quarter at the top, 10 ms clock':<34}{'crashes':<9}{share(ends, 20)}")


def pages(first: int, count: int) -> None:
    """Eight claims a page of log ratios with mean 0: gamma of skewness 2, and autoregression."""
    claim = Claim("slower", "above")
    for label, units in (("skewness 2", (8, 15, 20, 40)), ("autoregression 0.5", (15, 20, 40))):
        for size in units:
            random, false = np.random.default_rng([first, size]), 0
            for _ in range(count):
                rows = random.gamma(1, size=(8, size)) - 1
                if label.startswith("auto"):
                    rows = lfilter([1], [1, -0.5], random.normal(size=(8, size + 50)))[:, 50:]
                evidence = [Evidence(0.05 * row, units=range(size)) for row in rows]
                judged = judge([(claim, one) for one in evidence])
                false += any(one.verdict not in OPEN for one in judged)
            print(
                f"{f'pages, {label}, n = {size}':<34}{'false':<9}{share(false, count)}", flush=True
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=31000, help="the first seed")
    parser.add_argument("--pages", type=int, default=1000)
    chosen = parser.parse_args()
    tables(chosen.first)
    modes(chosen.first)
    coarse_clock(chosen.first)
    pages(chosen.first, chosen.pages)
