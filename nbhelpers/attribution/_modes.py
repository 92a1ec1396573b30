"""Whether a sample has two modes or is one class, and where it is best cut.

Owns the test: the scale, the bins, the statistic and its null by bootstrap. What is fitted is in
`_mixtures` (two and more classes) and `_one_class`. Of 510 samples with two modes this test finds
472, the dip test 192, the valley of a kernel density 344. Of 1,150 samples with one class it
divides 11 (200 runs; 7 of 48 runs), these 117 and 14 (benchmarks/modes.py).

What was here before found as many, 472, and divided 10 of those of 48 runs: closer fits of the one
class, a class on the linear scale beside it, and a choice among valleys by what filling them costs.
Of 120 fresh samples with two or three modes that cut 100 rightly, the deepest valley 114; of 224
with one class it divided 1, this 2. Without the order of neighbouring runs 16 of these are divided.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from ..statistics.order import is_sorted
from ._mixtures import deepest_valleys, fit_mixtures, valley_to_cut
from ._one_class import OneClass, fit_one_class

MODES_LEVEL = 0.02  # of the bootstrap test against one class
REPEATS = 99  # bootstrap samples
FIRST_REPEATS = 33  # after these, hopeless cases end
MODE_SHARE = 0.03  # a mode holds at least this share of the runs, and four runs
FEWEST_IN_MODE = 4
VALLEY_DEPTH = 0.9  # density in the valley over the lower peak: a shallower one is a shoulder
FLOOR_DEPTH = 0.05  # deeper valleys are no better
BINS = 128
PADDING = 0.06  # of the range, beyond either end
REACH = 1  # a value beyond the middle 90 % by more than their range counts at that place
PAD = int(BINS * PADDING / (1 + 2 * PADDING))  # the bin in which the least value lies
MOST_COMPONENTS = 3
DEPENDENCE_SD = 1.64  # standard errors from which neighbouring runs count as alike


@dataclass(frozen=True)
class Modes:
    """The answer of the test.

    Attributes
    ----------
    value
        The cut between two modes, in the unit of the values; None: one class.
    p_value
        Chance that one class looks as much like two.
    depth
        Density in the valley over that of the lower peak; 1 without a valley.
    gain
        How many times better two classes fit than one, natural logarithm, parameters counted.
    logarithmic
        The test was made on the logarithms.
    dependent
        Neighbouring runs are alike, and so are those of the bootstrap samples.
    """

    value: float | None
    p_value: float
    depth: float
    gain: float
    logarithmic: bool
    dependent: bool = False

    def sentence(self) -> str:
        """The numbers that decided, in words."""
        if self.gain == -np.inf:
            return "No two modes: no valley divides the runs into two groups."
        seen = "No two modes" if self.value is None else "Two modes"
        scale = "on the logarithms" if self.logarithmic else "on the values"
        alike = ", where neighbouring runs resemble each other" if self.dependent else ""
        return (
            f"{seen}: p = {self.p_value:.3f} for a single class {scale}{alike}; the valley is at"
            f" {self.depth:.0%} of the lower peak."
        )


def modes_of(values: np.ndarray, random: np.random.Generator) -> Modes:
    """Test whether values come from two classes, against the single class that fits best.

    Parameters
    ----------
    values
        Outcomes of n runs, float64 [n], in the order in which they were measured; not all equal.
    random
        For the bootstrap samples.
    """
    logarithmic = bool(values.min() > 0)
    bins = _Bins.over(values, logarithmic)
    counts = bins.counts(values)[None]
    smallest = max(FEWEST_IN_MODE, MODE_SHARE * values.size)
    gain, density, single = _gains(counts, smallest)
    places, depths = deepest_valleys(density, counts, smallest)
    if gain[0] == -np.inf:
        return Modes(None, 1.0, float(depths[0]), -np.inf, logarithmic)
    cut = _widest_gap(values, bins, valley_to_cut(density[0], int(places[0])))
    spectrum = _spectrum(values, values > cut)
    p_value = _p_value(gain[0], single, values.size, smallest, spectrum, random)
    dependent = spectrum is not None
    enough = min((values > cut).sum(), (values <= cut).sum()) >= smallest
    value = cut if p_value <= MODES_LEVEL and enough else None
    return Modes(value, p_value, float(depths[0]), float(gain[0]), logarithmic, dependent)


def _gains(counts: np.ndarray, smallest: float) -> tuple[np.ndarray, np.ndarray, OneClass]:
    """The gain of fit of a mixture with a valley over one class; -inf without a valley."""
    mixtures = fit_mixtures(counts, smallest, MOST_COMPONENTS)
    single = fit_one_class(counts)
    _, depths = deepest_valleys(mixtures.density, counts, smallest)
    gains = mixtures.score - single.log_likelihood - np.log(depths + FLOOR_DEPTH)
    gains = np.where(depths <= VALLEY_DEPTH, gains, -np.inf)
    return gains, mixtures.density, single


def _widest_gap(values: np.ndarray, bins: "_Bins", bottom: tuple[int, int]) -> float:
    """The middle of the widest gap between neighbouring values at the bottom of the valley."""
    ends = bins.scaled(np.array([bins.edge(bottom[0]), bins.edge(bottom[1] + 1)]))
    scaled = np.sort(bins.scaled(values))
    first, last = np.searchsorted(scaled, ends)
    around = scaled[max(first - 1, 0) : last + 1]
    widest = int(np.diff(around).argmax())
    middle = (around[widest] + around[widest + 1]) / 2
    return float(np.exp(middle) if bins.logarithmic else middle)


# The scale and the bins
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Bins:
    """Equal bins over the values or their logarithms; far outliers fall into the end bins."""

    low: float
    step: float
    logarithmic: bool

    @classmethod
    def over(cls, values: np.ndarray, logarithmic: bool) -> "_Bins":
        scaled = np.log(values) if logarithmic else values
        p5, p95 = np.percentile(scaled, [5, 95])
        reach = REACH * (p95 - p5) if p95 > p5 else np.inf
        low, high = max(scaled.min(), p5 - reach), min(scaled.max(), p95 + reach)
        margin = PADDING * (high - low)
        return cls(low - margin, (high - low + 2 * margin) / BINS, logarithmic)

    def counts(self, values: np.ndarray) -> np.ndarray:
        """Runs in each bin; a rounded value is spread over the interval that was rounded to it."""
        edges = self.edge(np.arange(BINS + 1))
        distinct, runs = np.unique(values, return_counts=True)
        half = resolution(distinct, values.size) / 2
        if half == 0:
            below = np.searchsorted(np.sort(values), edges).astype(float)
        else:
            knots = np.stack([distinct - half, distinct + half], axis=1).ravel()
            reached = np.cumsum(runs)
            steps = np.stack([reached - runs, reached], axis=1).ravel()
            below = np.interp(edges, knots, steps)
        counts = np.diff(below)
        counts[PAD] += below[0]
        counts[-1 - PAD] += values.size - below[-1]
        return counts

    def edge(self, bin_: Any) -> Any:
        """Lower edge of a bin, in the unit of the values."""
        low = self.low + self.step * bin_
        return np.exp(low) if self.logarithmic else low

    def scaled(self, values: np.ndarray) -> np.ndarray:
        return np.log(values) if self.logarithmic else values


def resolution(distinct: np.ndarray, size: int) -> float:
    """Distance between neighbouring values of a rounded sample, 0 if it isn't rounded: rounding is
    not a mode.
    """
    return float(np.median(np.diff(distinct))) if 1 < distinct.size < size / 2 else 0.0


# Samples of one class
# --------------------------------------------------------------------------------------------------


def _p_value(
    gain: float,
    single: OneClass,
    size: int,
    smallest: float,
    spectrum: np.ndarray | None,
    random: np.random.Generator,
) -> float:
    """Share of samples of the one class in which two fit better by as much."""
    shares = single.probabilities(BINS)
    as_large = done = 0
    for count in (FIRST_REPEATS, REPEATS - FIRST_REPEATS):
        samples = _samples(shares, size, count, spectrum, random)
        as_large += int((_gains(samples, smallest)[0] >= gain).sum())
        done += count
        if as_large >= MODES_LEVEL * (REPEATS + 1):
            break
    return (as_large + 1) / (done + 1)


def _samples(
    shares: np.ndarray,
    size: int,
    count: int,
    spectrum: np.ndarray | None,
    random: np.random.Generator,
) -> np.ndarray:
    """Binned samples of one class; with a spectrum their runs depend on each other as ours do."""
    if spectrum is None:
        return random.multinomial(size, shares, count).astype(float)
    angles = random.uniform(0, 2 * np.pi, (count, spectrum.size))
    angles[:, 0] = 0
    series = np.fft.irfft(spectrum * np.exp(1j * angles), 2 * size, axis=1)[:, :size]
    series -= series.mean(axis=1, keepdims=True)
    series /= series.std(axis=1, keepdims=True)
    drawn = np.searchsorted(np.cumsum(shares)[:-1], ndtr(series))
    return np.stack([np.bincount(row, minlength=BINS) for row in drawn]).astype(float)


def _spectrum(values: np.ndarray, slow: np.ndarray) -> np.ndarray | None:
    """Amplitudes of the normal scores by frequency, if neighbours of the same class are alike.

    Runs that stay in a class for a while are two levels in phases, which is no reason to doubt the
    classes; runs that are alike within their class wander.
    """
    if is_sorted(values):
        return None  # the order of measuring is not known
    inside = np.zeros(values.size)
    for members in (slow, ~slow):
        ranks = rankdata(values[members])
        inside[members] = ndtri((ranks - 0.5) / max(ranks.size, 1))
    pairs = slow[1:] == slow[:-1]
    alike = float((inside[1:] * inside[:-1])[pairs].sum() / np.sqrt(max(pairs.sum(), 1)))
    if alike <= DEPENDENCE_SD:
        return None
    scaled = np.log(values) if values.min() > 0 else values
    scores = scaled - np.median(scaled)
    scores = np.clip(scores, *np.percentile(scores, [1, 99]))
    return np.abs(np.fft.rfft(np.r_[scores, scores[::-1]]))  # mirrored: no jump from end to start
