"""Time order as a factor: do neighbouring runs resemble each other, does the campaign drift, where
does it change?

Owns the test of exchangeability. What it finds decides which surrogates a search is compared with;
without them a counter that drifts together with the run times would be taken for their cause.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .intervals import Values

LEVEL = 0.01  # of the test of time order
SUSPECTED = 0.1  # p-value from which surrogates keep the order, even if it is not shown to matter
CHANGE_LEVEL = 0.01  # of each change point
TREND = 1.65  # standard errors from which there may be one
SHUFFLES = 499
TESTS = 4
FEWEST_RUNS = 12  # fewer say nothing of their order
SHORTEST_SEGMENT = 3
WAVES = 6  # that a campaign holds at least, if it has a period
WAVE_SHARE = 0.3  # of the variance of the ranks
ORDER_COLUMNS = ("began_unix_s", "start_ns", "t0_ns", "run")


@dataclass(frozen=True)
class TimeOrder:
    """What the order of the runs has to do with the outcome.

    Attributes
    ----------
    found
        The order matters (p at most 0.01).
    p_value
        p-value of the hypothesis that the runs are exchangeable.
    autocorrelation
        Autocorrelation of neighbouring runs, by ranks.
    trend
        Rank correlation of the outcome with the position.
    changes
        Positions at which a new level begins (0 = first run).
    block
        Runs that belong together: a shuffle moves blocks of this length (1: single runs).
    size
        Number of runs.
    is_sorted
        The runs are sorted by the outcome, which says nothing of the order in which they ran.
    sorted_by
        A column that the rows are sorted by, where no column says in which order they ran.
    """

    found: bool
    p_value: float
    autocorrelation: float
    trend: float
    changes: tuple[int, ...]
    block: int
    size: int
    is_sorted: bool = False
    sorted_by: str = ""

    @property
    def evidence(self) -> str:
        """The result in words."""
        if self.is_sorted:
            return "The runs are sorted by the outcome: in which order they ran is not known."
        levels = ", ".join(str(change + 1) for change in self.changes[:6])
        where = f"; the level changes at run {levels}" if levels else ""
        matters = "matters" if self.found else "does not matter"
        warning = f" Rows are sorted by {self.sorted_by}: if they ran otherwise, number them (run)."
        return (
            f"The order of the runs {matters} (p = {self.p_value:.3f}, autocorrelation"
            f" {self.autocorrelation:.2f}, rank correlation with the position"
            f" {self.trend:+.2f}{where}; {self.size} runs).{warning if self.sorted_by else ''}"
        )


def time_order(values: Values, seed: int = 0) -> TimeOrder:
    """Test whether the order of the runs matters, and how.

    Parameters
    ----------
    values
        Outcome of n runs in the order in which they were measured.
    seed
        Seed of the shuffles.

    Notes
    -----
    Four tests on ranks, all against shuffled orders; the smallest p-value is multiplied by four.
    Resemblance of neighbours, or its opposite: Bartels's rank version of von Neumann's ratio
    (1982). Change of level at an unknown place: the largest weighted CUSUM (Pettitt 1979). A
    period: the largest ordinate of the periodogram (Fisher 1929). Any other pattern that
    repeats: the largest autocorrelation. Change points by binary segmentation. The block is twice
    the integrated autocorrelation time, summed up to the first lag within the noise of white data,
    and at least a period.
    """
    outcomes = np.asarray(values, dtype=float)
    if outcomes.size < FEWEST_RUNS or np.ptp(outcomes) == 0:
        return TimeOrder(False, 1.0, 0.0, 0.0, (), 1, outcomes.size)
    ranks = standard_ranks(outcomes)
    random = np.random.default_rng(seed)
    p_value = min(1.0, TESTS * min(_order_p_values(ranks, random)))
    near = float(_neighbours(ranks))
    trend = float(ranks @ standard_ranks(np.arange(outcomes.size)) / outcomes.size)
    found = p_value <= LEVEL
    changes = tuple(_changes(ranks, 0, random)) if found else ()
    block = _block(ranks) if found else 1
    return TimeOrder(found, p_value, near, trend, changes, block, outcomes.size)


def is_sorted(values: np.ndarray) -> bool:
    """Whether values rise or fall throughout, as in a table that was sorted; all equal: no."""
    steps = np.diff(values)
    return bool(np.any(steps)) and bool(np.all(steps >= 0) or np.all(steps <= 0))


def standard_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks with mean 0 and standard deviation 1 (0 throughout if all are equal), of a vector or of
    each column. A missing value has no rank: 0, which is associated with nothing.
    """
    if not len(values):
        return np.asarray(values, dtype=float)
    from scipy.stats import rankdata

    ranks, some = rankdata(values, axis=0, nan_policy="omit"), ~np.isnan(values)
    means = np.where(some, ranks, 0).sum(axis=0) / np.maximum(some.sum(axis=0), 1)
    ranks = np.where(some, ranks - means, 0)
    return ranks / np.maximum(ranks.std(axis=0), 1e-12)


def chance_above(ranks: np.ndarray, slow: np.ndarray) -> np.ndarray:
    """Chance that a slow run has a larger value than another, for each column, from its ranks (Mann
    and Whitney; the area under the ROC curve). A missing value has no rank: NaN.
    """
    there = ~np.isnan(ranks)
    count, others = there[slow].sum(axis=0), there[~slow].sum(axis=0)
    return (np.nansum(ranks[slow], axis=0) - count * (count + 1) / 2) / (count * others)


def positions(runs: pd.DataFrame) -> np.ndarray:
    """The order in which the runs were measured: row numbers, first run first; by `order_column`,
    else the rows as they stand.
    """
    name = order_column(runs)
    places = np.arange(len(runs)) if name is None else runs[name].to_numpy()
    return np.argsort(places, kind="stable")


def order_column(runs: pd.DataFrame) -> str | None:
    """The column that says in which order runs were measured: the first of began_unix_s, start_ns,
    t0_ns, run that has a different number in each row; None: none of them.
    """
    there = (name for name in ORDER_COLUMNS if name in runs and _numbers_all(runs[name]))
    return next(there, None)


def _numbers_all(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and column.notna().all() and column.is_unique


def _neighbours(ranks: np.ndarray) -> np.ndarray:
    """Correlation of neighbours along the last axis of standard ranks."""
    return (ranks[..., 1:] * ranks[..., :-1]).mean(axis=-1)


def _cusum(ranks: np.ndarray) -> np.ndarray:
    """Standardised difference of level before and after each possible change, on the last axis."""
    size = ranks.shape[-1]
    before = np.arange(SHORTEST_SEGMENT, size - SHORTEST_SEGMENT + 1)
    sums = np.cumsum(ranks, axis=-1)[..., before - 1]
    return np.abs(sums) / np.sqrt(before * (size - before) / size)


def _order_p_values(ranks: np.ndarray, random: np.random.Generator) -> list[float]:
    """p-value of each test of the order, by shuffles."""
    both = np.vstack([ranks, random.permuted(np.tile(ranks, (SHUFFLES, 1)), axis=1)])
    power = _power(both)
    statistics = [
        np.abs(_neighbours(both)),
        _cusum(both).max(axis=1),
        power[:, 1 : ranks.size + 1].max(axis=1),
        _repetition(power, ranks.size),
    ]
    return [float((seen[1:] >= seen[0] - 1e-9).sum() + 1) / (SHUFFLES + 1) for seen in statistics]


def _power(ranks: np.ndarray) -> np.ndarray:
    """Periodogram of rows, at twice as many frequencies as they have."""
    return np.abs(np.fft.rfft(ranks, 2 * ranks.shape[-1], axis=-1)) ** 2


def _repetition(power: np.ndarray, size: int) -> np.ndarray:
    """Largest autocorrelation of each row at a lag of two to a half of its length."""
    products = np.fft.irfft(power, axis=-1)[:, 2 : size // 2 + 1]
    terms = size - np.arange(2, size // 2 + 1)
    return (np.abs(products) / np.sqrt(terms)).max(axis=1)


def has_trend(ranks: np.ndarray) -> bool:
    """Whether standard ranks rise or fall with their position, or from the first to the last third:
    then the end of a campaign does not go on at its beginning.
    """
    third = ranks.size // 3
    ends = (ranks[:third].mean() - ranks[-third:].mean()) / np.sqrt(2 / third)
    trend = ranks @ standard_ranks(np.arange(ranks.size)) / np.sqrt(ranks.size)
    return bool(max(abs(ends), abs(trend)) > TREND)


def period_of(ranks: np.ndarray) -> float:
    """Runs of the strongest wave; 0 if it is seen seldom, or makes up little of the variance."""
    power = _power(ranks)
    strongest = 1 + int(np.argmax(power[1:]))
    period, share = 2 * ranks.size / strongest, 2 * power[strongest] / ranks.size**2
    return period if period <= ranks.size / WAVES and share >= WAVE_SHARE else 0.0


def _changes(ranks: np.ndarray, first: int, random: np.random.Generator) -> list[int]:
    """Change points by binary segmentation, each tested against shuffles of its segment."""
    if ranks.size < 4 * SHORTEST_SEGMENT:
        return []
    ranks = ranks - ranks.mean()
    height = _cusum(ranks)
    shuffled = random.permuted(np.tile(ranks, (SHUFFLES, 1)), axis=1)
    if (np.sum(_cusum(shuffled).max(axis=1) >= height.max()) + 1) / (SHUFFLES + 1) > CHANGE_LEVEL:
        return []
    cut = int(np.argmax(height)) + SHORTEST_SEGMENT
    return [
        *_changes(ranks[:cut], first, random),
        first + cut,
        *_changes(ranks[cut:], first + cut, random),
    ]


def _block(ranks: np.ndarray) -> int:
    size = ranks.size
    correlation = np.fft.irfft(_power(ranks))[:size] / size
    noise = np.flatnonzero(correlation < 1.96 / np.sqrt(size))
    last = int(noise[0]) if noise.size else size
    time = 2 * (1 + 2 * correlation[1:last].sum())
    return int(np.clip(np.ceil(max(time, period_of(ranks))), 2, size // 2))
