"""Two modes or one class: how often `find_cutoff` and three other methods say "two modes".

    python benchmarks/modes.py [--samples 30] [--singles 100]

The other methods: Silverman's test (1981) on the values and on their logarithms, and normal
mixtures on the logarithms by Schwarz's criterion. The oracle knows the true density and tests it,
at the same level, against the density with one peak that is closest to it (likelihood ratio): no
test that keeps its level for every single peak finds more. Two processes share the samples.
"""

import argparse
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # two processes, a thread each

import numpy as np
from scipy import stats
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import isotonic_regression

from nbhelpers.attribution import find_cutoff

LEVEL = 0.02
FIRST_SEED = 500_000
RUNS = 48, 200, 1000  # of the single classes


def normal(mean: float, cv: float) -> Any:
    return stats.truncnorm(-1 / cv + 0.01, 20, loc=mean, scale=cv * mean)


@dataclass(frozen=True)
class Shape:
    """So many runs, a share of them slow; each class has a distribution of its own."""

    runs: int
    slow: float
    fast_class: Any
    slow_class: Any

    def draw(self, random: np.random.Generator) -> np.ndarray:
        slow = random.permutation(np.arange(self.runs) < round(self.slow * self.runs))
        classes = self.fast_class, self.slow_class
        fast, late = (each.rvs(self.runs, random_state=random) for each in classes)
        return np.where(slow, late, fast)

    def probabilities(self) -> np.ndarray:
        """Of 400 equal bins over the logarithms."""
        classes = self.fast_class, self.slow_class
        ends = np.array([[each.ppf(1e-5), each.isf(1e-5)] for each in classes])
        edges = np.geomspace(ends.min(), ends.max(), 401)
        fast, late = (np.diff(each.cdf(edges)) for each in classes)
        mixed = (1 - self.slow) * fast + self.slow * late
        return mixed / mixed.sum()


SHAPES = {
    "×5.7, CV 30 %, half": Shape(48, 1 / 2, normal(1, 0.3), normal(5.7, 0.3)),
    "×5.7, CV 30 %, third": Shape(48, 1 / 3, normal(1, 0.3), normal(5.7, 0.3)),
    "×5.7, CV 30 %, two thirds": Shape(48, 2 / 3, normal(1, 0.3), normal(5.7, 0.3)),
    "×1.5, CV 10 %, half": Shape(60, 1 / 2, normal(1, 0.1), normal(1.5, 0.1)),
    "×1.5, CV 10 %, third": Shape(60, 1 / 3, normal(1, 0.1), normal(1.5, 0.1)),
    "×1.5, CV 10 %, half, 120": Shape(120, 1 / 2, normal(1, 0.1), normal(1.5, 0.1)),
    "×1.3, CV 5 %, half": Shape(40, 1 / 2, normal(1, 0.05), normal(1.3, 0.05)),
    "×1.3, CV 5 %, quarter": Shape(40, 1 / 4, normal(1, 0.05), normal(1.3, 0.05)),
    "×1.3, CV 5 %, tenth": Shape(100, 1 / 10, normal(1, 0.05), normal(1.3, 0.05)),
    "×1.3, CV 5 %, twentieth": Shape(1000, 1 / 20, normal(1, 0.05), normal(1.3, 0.05)),
    "×1.3, CV 4 %, 5 % slow": Shape(200, 0.05, normal(1, 0.04), normal(1.3, 0.04)),
    "×1.3, CV 4 %, 5 % fast": Shape(200, 0.95, normal(1, 0.04), normal(1.3, 0.04)),
    "×1.5, CV 2 and 15 %": Shape(60, 0.4, normal(1, 0.02), normal(1.5, 0.15)),
    "×1.5, CV 10 and 2 %": Shape(60, 0.3, normal(1, 0.1), normal(1.5, 0.02)),
    "×1.15, one-sided": Shape(100, 0.3, stats.expon(1, 0.02), stats.expon(1.15, 0.023)),
    "one-sided and a hump": Shape(200, 0.11, stats.expon(1, 0.008), normal(1.08, 0.011)),
    "×2, lognormal": Shape(80, 0.3, stats.lognorm(0.15), stats.lognorm(0.15, scale=2)),
}

Draw = Callable[[np.random.Generator, int], np.ndarray]


def _autoregression(rho: float) -> Draw:
    def draw(random: np.random.Generator, count: int) -> np.ndarray:
        from scipy.signal import lfilter

        return 50 + lfilter([1], [1, -rho], random.normal(size=count + 300))[300:]

    return draw


SINGLES: dict[str, Draw] = {
    "normal": lambda random, n: random.normal(1, 0.05, n),
    "normal around 0": lambda random, n: random.normal(0, 1, n),
    "lognormal, 0.5": lambda random, n: random.lognormal(0, 0.5, n),
    "lognormal, 1.5": lambda random, n: random.lognormal(0, 1.5, n),
    "1 + lognormal": lambda random, n: 1 + 0.1 * random.lognormal(0, 1, n),
    "gamma, shape 4": lambda random, n: random.gamma(4, 1, n),
    "Weibull, shape 1.5": lambda random, n: random.weibull(1.5, n),
    "Weibull, shape 8": lambda random, n: random.weibull(8, n),
    "exponential": lambda random, n: random.exponential(1, n),
    "1 + exponential": lambda random, n: 1 + random.exponential(1, n),
    "uniform, 1 to 2": lambda random, n: random.uniform(1, 2, n),
    "uniform, 0 to 1": lambda random, n: random.uniform(0, 1, n),
    "plateau, soft edges": lambda random, n: 50 + random.uniform(-3, 3, n) + random.normal(size=n),
    "triangular": lambda random, n: 1 + random.triangular(0, 0.1, 1, n),
    "beta (2, 2)": lambda random, n: 1 + random.beta(2, 2, n),
    "drift of 4 sd": lambda random, n: 100 + np.linspace(0, 4, n) + random.normal(size=n),
    "autoregression 0.6": _autoregression(0.6),
    "autoregression 0.95": _autoregression(0.95),
    "random walk": lambda random, n: 100 + np.cumsum(random.normal(size=n)),
    "rounded to its sd": lambda random, n: np.round(random.normal(0.4, 0.01, n), 2),
    "counts, Poisson 3": lambda random, n: random.poisson(3, n).astype(float),
    "Laplace": lambda random, n: 50 + random.laplace(size=n),
    "Student, 5 degrees": lambda random, n: 50 + random.standard_t(5, n),
}


# The other methods
# --------------------------------------------------------------------------------------------------

GRID = 512
SILVERMAN_SAMPLES = 100


def silverman(values: np.ndarray, random: np.random.Generator) -> bool:
    """Whether the smallest kernel width with one mode is too wide for a sample with one mode."""
    low, high = values.min(), values.max()
    places = (values - low) / (high - low) * GRID / 2 + GRID / 4
    smallest = max(5, 0.05 * values.size)

    def has_valley(at: np.ndarray, width: float) -> bool:
        counts = np.bincount(np.clip(at, 0, GRID - 1).astype(int), minlength=GRID).astype(float)
        density = gaussian_filter1d(counts, width, mode="constant")
        turns = np.flatnonzero((density[1:-1] < density[:-2]) & (density[1:-1] <= density[2:]))
        below = np.cumsum(counts)[turns + 1]
        return bool(((below >= smallest) & (values.size - below >= smallest)).any())

    narrow, wide = 2.0, GRID / 4
    if not has_valley(places, narrow):
        return False
    for _ in range(12):
        middle = np.sqrt(narrow * wide)
        narrow, wide = (middle, wide) if has_valley(places, middle) else (narrow, middle)
    shrink = places.std() / np.hypot(places.std(), wide)
    shape = SILVERMAN_SAMPLES, values.size
    drawn = random.choice(places, shape) + random.normal(0, wide, shape)
    drawn = places.mean() + shrink * (drawn - places.mean())
    return sum(has_valley(sample, wide) for sample in drawn) < LEVEL * SILVERMAN_SAMPLES


def mixture_by_bic(values: np.ndarray) -> bool:
    from sklearn.mixture import GaussianMixture

    column = values[:, None]
    fits = [GaussianMixture(count, n_init=3, random_state=0).fit(column) for count in (1, 2)]
    return fits[1].bic(column) < fits[0].bic(column)


def oracle(shape: Shape, samples: int = 4000) -> float:
    """Share of samples in which a test that knows the density tells it from one with one peak."""
    true = shape.probabilities()
    single = _closest_single_peak(true)
    ratio = np.log((true + 1e-300) / (single + 1e-300))
    random = np.random.default_rng(0)
    null = random.multinomial(shape.runs, single, samples) @ ratio
    return float(np.mean(random.multinomial(shape.runs, true, samples) @ ratio > _top(null)))


def _top(null: np.ndarray) -> float:
    return float(np.quantile(null, 1 - LEVEL))


def _closest_single_peak(true: np.ndarray) -> np.ndarray:
    """By Kullback and Leibler's distance: rising up to some bin and falling from there."""
    best, least = true, np.inf
    for peak in range(1, true.size, 2):
        rising = isotonic_regression(true[:peak]).x
        falling = isotonic_regression(true[peak:], increasing=False).x
        single = np.r_[rising, falling]
        distance = float(true @ np.log((true + 1e-300) / (single + 1e-300)))
        if distance < least:
            best, least = single / single.sum(), distance
    return best


# The tables
# --------------------------------------------------------------------------------------------------


def _verdicts(values: np.ndarray, seed: int, others: bool) -> tuple[str, bool, bool, bool]:
    """The kind of our cutoff, and whether each other method sees two modes."""
    warnings.simplefilter("ignore")
    kind = find_cutoff(values, seed).kind
    if not others:
        return kind, False, False, False
    random = np.random.default_rng(seed)
    scaled = np.log(values) if values.min() > 0 else values
    return kind, silverman(values, random), silverman(scaled, random), mixture_by_bic(scaled)


def _of_shape(task: tuple[str, int]) -> tuple[str, bool, bool, bool]:
    return _verdicts(SHAPES[task[0]].draw(np.random.default_rng(task[1])), task[1], True)


def _of_single(task: tuple[str, int, int]) -> tuple[str, bool, bool, bool]:
    values = SINGLES[task[0]](np.random.default_rng(task[2]), task[1])
    return _verdicts(values, task[2], task[1] <= 200)


def show_shapes(samples: int, pool: ProcessPoolExecutor) -> None:
    print(f"\nTwo modes found in {samples} samples (the oracle's in percent)")
    print(
        f"{'':<28}{'runs':>6}{'ours':>6}{'Silverman':>11}{'its log':>9}{'BIC log':>9}{'oracle':>9}"
    )
    for name, shape in SHAPES.items():
        tasks = [(name, FIRST_SEED + sample) for sample in range(samples)]
        kinds, *others = zip(*pool.map(_of_shape, tasks, chunksize=5))
        plain, logarithms, bic = (sum(column) for column in others)
        print(
            f"{name:<28}{shape.runs:>6}{kinds.count('modes'):>6}{plain:>11}{logarithms:>9}{bic:>9}"
            f"{oracle(shape):>9.0%}",
            flush=True,
        )


def show_singles(samples: int, pool: ProcessPoolExecutor) -> None:
    print(f"\nTwo modes, or a tail, claimed of one class in {samples} samples; 95 % upper bound")
    heads = "modes", "bound", "tail", "bound", "Silverman", "its log", "BIC log"
    print(f"{'':<24}{'runs':>6}" + "".join(f"{head:>10}" for head in heads))
    for runs in RUNS:
        for name in SINGLES:
            tasks = [(name, runs, FIRST_SEED + sample) for sample in range(samples)]
            kinds, *others = zip(*pool.map(_of_single, tasks, chunksize=5))
            ours = [kinds.count(kind) for kind in ("modes", "tail")]
            cells = [cell for hits in ours for cell in (f"{hits}", f"{_bound(hits, samples):.1%}")]
            cells += [f"{sum(column)}" if runs <= 200 else "" for column in others]
            print(f"{name:<24}{runs:>6}" + "".join(f"{cell:>10}" for cell in cells), flush=True)


def _bound(hits: int, samples: int) -> float:
    """One-sided 95 % bound of Clopper and Pearson."""
    return float(stats.beta.ppf(0.95, hits + 1, samples - hits)) if hits < samples else 1.0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--singles", type=int, default=100)
    chosen = parser.parse_args()
    with ProcessPoolExecutor(2) as processes:
        show_shapes(chosen.samples, processes)
        show_singles(chosen.singles, processes)
