"""Ten structures without a cause, written after the code of attribution was done.

Owns the list, in which nothing was tuned: it was committed before `explain` saw it for the first
time. Rows are in the order of measuring; a count that only follows the run time is no cause.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.signal import lfilter

Draw = Callable[[np.random.Generator], pd.DataFrame]
RUNS, COUNTERS = 120, 20


def table(seconds: np.ndarray, counters: np.ndarray, **more: object) -> pd.DataFrame:
    named = {f"c{number}": column for number, column in enumerate(counters.T)}
    return pd.DataFrame({"seconds": seconds} | named | more)


def heavy_autoregression(random: np.random.Generator) -> pd.DataFrame:
    """Rounds that depend on the one before, by 0.6, with steps of Student's t of 3 degrees."""
    steps = random.standard_t(3, (RUNS + 100, COUNTERS + 1))
    values = lfilter([1], [1, -0.6], steps, axis=0)[100:]
    return table(100 + values[:, 0], values[:, 1:])


def common_season(random: np.random.Generator) -> pd.DataFrame:
    """All counters share a season of 24 runs; the run time has the same, in another phase."""
    at = 2 * np.pi * np.arange(RUNS) / 24
    season = np.sin(at)[:, None] * random.uniform(0.5, 2, COUNTERS)
    seconds = 1 + 0.02 * np.sin(at + random.uniform(0, 2 * np.pi)) + random.normal(0, 0.01, RUNS)
    return table(seconds, 100 * np.exp(0.2 * season + random.normal(0, 0.1, season.shape)))


def sublinear_counts(random: np.random.Generator) -> pd.DataFrame:
    """Counts that grow as the run time to a power from 0.4 to 0.9; a third of the runs is slow."""
    seconds = random.normal(1, 0.03, RUNS) * np.where(random.random(RUNS) < 0.3, 1.35, 1)
    powers = random.uniform(0.4, 0.9, 8)
    expected = 10 ** random.uniform(3, 6, 8) * seconds[:, None] ** powers
    noise = random.normal(1, random.uniform(0.005, 0.05, 8), expected.shape)
    return table(seconds, np.hstack([(expected * noise).round(), random.normal(size=(RUNS, 12))]))


def mixtures(random: np.random.Generator) -> pd.DataFrame:
    """Run times of three kinds of gamma, counters of two kinds of lognormal, each of its own."""
    kind = random.choice(3, RUNS, p=[0.6, 0.3, 0.1])
    seconds = random.gamma(np.array([400, 100, 25])[kind]) / np.array([400, 80, 15])[kind]
    own = random.random((RUNS, COUNTERS)) < random.uniform(0.05, 0.5, COUNTERS)
    return table(seconds, random.lognormal(np.where(own, 9, 7), 0.4))


def missing_blocks(random: np.random.Generator) -> pd.DataFrame:
    """Counters that were not read for blocks of runs; run times that are slow in other blocks."""
    counters = random.lognormal(5, 0.3, (RUNS, COUNTERS))
    for column in counters.T[:12]:
        for first in random.integers(0, RUNS, 2):
            column[first : first + int(random.integers(5, 25))] = np.nan
    seconds = random.normal(1, 0.02, RUNS)
    for first in random.integers(0, RUNS, 2):
        seconds[first : first + int(random.integers(8, 20))] += 0.1
    return table(seconds, counters)


def duplicates(random: np.random.Generator) -> pd.DataFrame:
    """Five counters, each four times in other units; run times that depend on the one before."""
    own = np.repeat(random.lognormal(6, 0.5, (RUNS, 5)), 4, axis=1)
    counters = own * 10.0 ** random.integers(-3, 4, COUNTERS)
    return table(100 + lfilter([1], [1, -0.5], random.normal(size=RUNS)), counters)


def quantised(random: np.random.Generator) -> pd.DataFrame:
    """Counters of three to five steps, run times from a clock of 10 ms."""
    steps = random.integers(2, 5, COUNTERS)
    counters = np.floor(random.beta(2, 3, (RUNS, COUNTERS)) * (steps + 1))
    return table((1 + 0.03 * random.gamma(2, size=RUNS)).round(2), counters)


def noisy_hours(random: np.random.Generator) -> pd.DataFrame:
    """Hours of 15 runs: in some, run time and counters spread more around the same level."""
    spread = np.exp(np.repeat(random.normal(0, 0.7, RUNS // 15), 15))[:, None]
    values = spread * random.normal(size=(RUNS, COUNTERS + 1))
    return table(100 + values[:, 0], values[:, 1:])


def nodes(random: np.random.Generator) -> pd.DataFrame:
    """Counters of six nodes: equal medians, other means and spreads; the run time has no node."""
    node = random.integers(0, 6, RUNS)
    scales = random.lognormal(0, 0.8, (6, COUNTERS))[node]
    skewed = scales * (random.gamma(1, size=scales.shape) - np.log(2))
    return table(random.lognormal(0, 0.1, RUNS), 50 + skewed).assign(node=[f"n{n}" for n in node])


def warm_up(random: np.random.Generator) -> pd.DataFrame:
    """Run time and counters decay to their level, each at its own pace of 3 to 20 runs."""
    decay = np.exp(-np.arange(RUNS)[:, None] / random.uniform(3, 20, COUNTERS + 1))
    values = random.uniform(1, 5, COUNTERS + 1) * decay + random.normal(size=decay.shape)
    return table(100 + values[:, 0], values[:, 1:])


UNSEEN: dict[str, Draw] = {
    "unseen: heavy autoregression": heavy_autoregression,
    "unseen: common season": common_season,
    "unseen: sublinear counts": sublinear_counts,
    "unseen: mixtures": mixtures,
    "unseen: missing blocks": missing_blocks,
    "unseen: duplicates": duplicates,
    "unseen: quantised": quantised,
    "unseen: noisy hours": noisy_hours,
    "unseen: nodes": nodes,
    "unseen: warm-up": warm_up,
}
