"""How often claims of no effect are false: under skewness, and where rounds depend on each other.

    python benchmarks/false_claims.py [--draws 10000] [--runs | --few]

Effects of rounds have mean 0: normal, or gamma of skewness 1, 2 and 4. Three tests: Student's, the
larger p of Student's and Hall's (`statistics.claims` takes it from 20 units on), the studentised
bootstrap (399 resamples). `page`: eight such claims, by the share of single ones at 5 % / 8.
`power`: of effects that Student's test finds in 80 % of cases, how many are found. Then 95 %
intervals of rounds that are autoregressive: how often they hold the truth, and how wide they are
beside Student's. Last the same noise in runs, not in effects: rounds of cells in an order that is
drawn, of normal and of skewed log run times, by the rule of claims and by signs drawn at random
(the test of that coin). Brackets: 95 % (Clopper and Pearson). 15 minutes on one CPU.

`--few`: below 20 units alone, two more tests: the larger p only where the sample's skewness is
beyond 1.28 standard errors of it, and the signs of the effects drawn 2,000 times. Then dependent
effects, counted as fewer whenever r is above 0. A minute.
"""

import argparse
from itertools import product

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtr
from scipy.stats import gamma, skew, t
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint

from nbhelpers.statistics.evidence import SUSPECTED, Estimate, estimate_of

SIZES = (5, 6, 8, 12, 20, 40, 100)
FEW = (6, 8, 10, 12, 15, 19)
SKEWS = (0, 1, 2, 4)
LEVEL, CLAIMS, RESAMPLES, SIGNS = 0.05, 8, 399, 2000
FIRST_SEED = 900_000


def effects(random: np.random.Generator, skewness: float, draws: int, size: int) -> np.ndarray:
    """Of mean 0 and standard deviation 1."""
    if not skewness:
        return random.normal(size=(draws, size))
    shape = 4 / skewness**2
    return (random.gamma(shape, size=(draws, size)) - shape) / np.sqrt(shape)


def by_students_t(rows: np.ndarray) -> np.ndarray:
    error = rows.std(axis=1, ddof=1) / np.sqrt(rows.shape[1])
    return 2 * t.sf(np.abs(rows.mean(axis=1)) / error, rows.shape[1] - 1)


def by_the_larger(rows: np.ndarray) -> np.ndarray:
    size = rows.shape[1]
    means, errors = rows.mean(axis=1), rows.std(axis=1, ddof=1) / np.sqrt(size)
    skews = skew(rows, axis=1, bias=False) / np.sqrt(size)
    found = (Estimate(*row[:2], size - 1, size, row[2]) for row in zip(means, errors, skews))
    return np.array([2 * min(one.above(0), one.below(0)) for one in found])


def by_the_larger_if_skewed(rows: np.ndarray) -> np.ndarray:
    size = rows.shape[1]
    error = np.sqrt(6 * size * (size - 1) / ((size - 2) * (size + 1) * (size + 3)))
    skewed = np.abs(skew(rows, axis=1, bias=False)) > SUSPECTED * error
    return np.where(skewed, by_the_larger(rows), by_students_t(rows))


def by_signs(rows: np.ndarray) -> np.ndarray:
    signs = np.random.default_rng(FIRST_SEED).choice([-1.0, 1.0], (rows.shape[1], SIGNS))
    parts = np.array_split(rows, len(rows) // 500 + 1)
    larger = [np.abs(part @ signs) >= np.abs(part.sum(axis=1))[:, None] - 1e-12 for part in parts]
    return (np.concatenate([part.sum(axis=1) for part in larger]) + 1) / (SIGNS + 1)


def few(draws: int) -> None:
    """False claims and power of fewer than 20 units."""
    tests = (by_students_t, by_the_larger, by_the_larger_if_skewed, by_signs)
    names = "Student", "larger", "if skewed", "signs"
    heads = "".join(f"{name:>24}{'page':>6}" for name in names)
    random = np.random.default_rng(FIRST_SEED + 3)
    print(f"{'skewness':>8}{'n':>5}{heads}")
    for skewness in SKEWS:
        for size in FEW:
            p_values = [test(effects(random, skewness, draws, size)) for test in tests]
            shown = "".join(f"{share(one <= LEVEL):>24}{page(one):>6}" for one in p_values)
            print(f"{skewness:>8}{size:>5}{shown}", flush=True)
    print(f"\n{'power, p at':>13}")
    for level in (LEVEL, LEVEL / CLAIMS):
        for size in FEW:
            effect = TTestPower().solve_power(nobs=size, alpha=level, power=0.8)
            rows = random.normal(effect, 1, (draws, size))
            shown = "".join(f"{share(test(rows) <= level):>30}" for test in tests)
            print(f"{level:>8.4f}{size:>5}{shown}", flush=True)


def by_bootstrap(random: np.random.Generator, row: np.ndarray) -> bool:
    """Whether the equal-tailed interval of the studentised bootstrap leaves 0 out."""
    drawn = row[random.integers(0, row.size, (RESAMPLES, row.size))]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.nan_to_num((drawn.mean(axis=1) - row.mean()) / drawn.std(axis=1, ddof=1))
    low, high = np.sort(ratios)[[9, 389]]  # the 10th and the 390th of 399: 2.5 and 97.5 %
    return not low <= row.mean() / row.std(ddof=1) <= high


def share(hits: np.ndarray) -> str:
    low, high = proportion_confint(hits.sum(), hits.size, method="beta")
    return f"{hits.mean():.1%} ({low:.1%} to {high:.1%})"


def page(p_values: np.ndarray) -> str:
    return f"{1 - np.mean(p_values > LEVEL / CLAIMS) ** CLAIMS:.0%}"


def skewed(draws: int) -> None:
    random = np.random.default_rng(FIRST_SEED)
    print(f"{'skewness':>8}{'n':>5}{'Student':>24}{'page':>6}{'larger':>24}{'page':>6}  bootstrap")
    for skewness in SKEWS:
        for size in SIZES:
            rows = effects(random, skewness, draws, size)
            shown = "".join(
                f"{share(p_values <= LEVEL):>24}{page(p_values):>6}"
                for p_values in (by_students_t(rows), by_the_larger(rows))
            )
            resampled = np.array([by_bootstrap(random, row) for row in rows])
            print(f"{skewness:>8}{size:>5}{shown}  {share(resampled)}", flush=True)


def power(draws: int) -> None:
    random = np.random.default_rng(FIRST_SEED + 2)
    print(f"\n{'n':>13}{'Student':>24}  larger")
    for size in SIZES:
        effect = TTestPower().solve_power(nobs=size, alpha=LEVEL, power=0.8)
        rows = random.normal(effect, 1, (draws, size))
        shown = [share(test(rows) <= LEVEL) for test in (by_students_t, by_the_larger)]
        print(f"{size:>13}{shown[0]:>24}  {shown[1]}", flush=True)


def estimate(row: np.ndarray) -> Estimate:
    """As `Evidence` makes it of rounds in order."""
    moves = (row - row.mean()) / np.sqrt(row.size * (row.size - 1))
    return estimate_of(row.mean(), moves, row.size - 1, in_order=True)


def by_claims(rows: np.ndarray) -> np.ndarray:
    found = map(estimate, rows)
    return np.array([2 * min(one.above(0), one.below(0)) for one in found])


def resembling(random: np.random.Generator, phi: float, draws: int, size: int) -> np.ndarray:
    """Autoregressive noise, `phi` from a value to the next."""
    rows = random.normal(size=(draws, size))
    rows[:, 0] /= np.sqrt(1 - phi**2)
    return lfilter([1], [1, -phi], rows, axis=1)


def of_runs(draws: int) -> None:
    """Two cells of rounds in an order that is drawn, of runs that resemble their neighbours."""
    random = np.random.default_rng(FIRST_SEED + 4)
    tests = by_claims, by_signs
    heads = "".join(f"{name:>24}{'page':>6}{'power':>7}" for name in ("claims", "signs"))
    print(f"\n{'skewness':>8}{'of a round':>12}{'cells':>7}{'n':>5}{heads}")
    sizes = (*SIZES[1:4], 16, *SIZES[4:6])
    for skewness, phi, cells, size in product((0, 4), (0.5, 0.9), (2, 4), sizes):
        near = phi ** (1 / cells)
        runs = resembling(random, near, draws, size * cells) * np.sqrt(1 - near**2)
        if skewness:
            runs = gamma(4 / skewness**2).ppf(ndtr(runs))
        order = random.permuted(np.tile(np.arange(cells), (draws, size, 1)), axis=2)
        cell = np.take_along_axis(runs.reshape(draws, size, cells), order, axis=2)
        rows = cell[..., 1] - cell[..., 0]
        effect = TTestPower().solve_power(nobs=size, alpha=LEVEL, power=0.8) * rows.std()
        shown = ""
        for test in tests:
            p_values, found = test(rows), np.mean(test(rows + effect) <= LEVEL)
            shown += f"{share(p_values <= LEVEL):>24}{page(p_values):>6}{found:>7.0%}"
        print(f"{skewness:>8}{phi:>12}{cells:>7}{size:>5}{shown}", flush=True)


def by_fewer(rows: np.ndarray) -> np.ndarray:
    """Student's t of rounds that count as fewer whenever their autocorrelation is above 0."""
    size = rows.shape[1]
    means = rows.mean(axis=1)
    moves = rows - means[:, None]
    squares = (moves**2).sum(axis=1)
    near = (moves[:, 1:] * moves[:, :-1]).sum(axis=1) / squares
    near = np.clip((near + 1 / size) / (1 - 4 / size), 0, 0.8)
    times = (1 + near) / (1 - near)
    errors = np.sqrt(times * squares / (size * (size - 1)))
    return 2 * t.sf(np.abs(means) / errors, np.maximum((size - 1) / times, 2))


def few_dependent(draws: int) -> None:
    random = np.random.default_rng(FIRST_SEED + 5)
    print(f"\n{'phi':>5}{'n':>5}{'Student':>24}{'page':>6}{'as fewer':>24}{'page':>6}  its power")
    for phi, size in product((0, 0.3, 0.5), (6, 8, 12, 16)):
        rows = resembling(random, phi, draws, size)
        p_values = [test(rows) for test in (by_students_t, by_fewer)]
        shown = "".join(f"{share(one <= LEVEL):>24}{page(one):>6}" for one in p_values)
        effect = TTestPower().solve_power(nobs=size, alpha=LEVEL, power=0.8)
        found = "" if phi else share(by_fewer(rows + effect) <= LEVEL)
        print(f"{phi:>5}{size:>5}{shown}  {found}", flush=True)


def dependent(draws: int) -> None:
    random = np.random.default_rng(FIRST_SEED + 1)
    print(f"\n{'phi':>5}{'n':>5}{'Student':>24}{'claims':>24}  width")
    for phi in (0, 0.3, 0.5):
        for size in SIZES[2:]:
            rows = resembling(random, phi, draws, size)
            ends = np.array([estimate(row).interval() for row in rows])
            held = (ends[:, 0] <= 0) & (ends[:, 1] >= 0)
            plain = 2 * t.isf(0.025, size - 1) * rows.std(axis=1, ddof=1) / np.sqrt(size)
            width = np.median((ends[:, 1] - ends[:, 0]) / plain)
            shown = f"{share(by_students_t(rows) > LEVEL):>24}{share(held):>24}"
            print(f"{phi:>5}{size:>5}{shown}  ×{width:.2f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--runs", action="store_true", help="runs that resemble neighbours alone")
    parser.add_argument("--few", action="store_true", help="fewer than 20 units alone")
    chosen = parser.parse_args()
    parts = (few_dependent, few) if chosen.few else (of_runs, dependent, power, skewed)
    for part in (of_runs,) if chosen.runs else parts:
        part(chosen.draws)
