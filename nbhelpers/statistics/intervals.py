"""Intervals: of resampled values, of means, of ratios of means, of quantiles.

Owns every 95 % interval of Noisebook (all others call `percentile_interval`), the interval that
holds most runs, and the list of statistics that a comparison reports. The plain way is
scipy.stats.bootstrap, which is used wherever runs stand for themselves. Where the machine drifts,
whole rounds give intervals of half its width (0.54 under a trend, 0.38 under autoregression; 1
outside in 7 % of 200 sets without a difference). On recorded runs, which drift little, they are as
wide (benchmarks/rivals.py rounds).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import InputError

CHUNK_VALUES = 2_000_000  # resampled values held at once: 16 MB
# of fewer values many resamples hold one value alone: the interval of a spread would begin at 0
FEWEST_FOR_SPREAD = 6
SPREADS = ("sd", "cv")

Values = Sequence[float] | np.ndarray


class Interval(NamedTuple):
    """An estimate and its confidence interval.

    Attributes
    ----------
    value
        The estimate.
    low, high
        Ends of the interval, in the unit of the value.
    size
        Number of values that it rests on.
    """

    value: float
    low: float
    high: float
    size: int


# Percentiles
# --------------------------------------------------------------------------------------------------


def percentile_interval(draws: object) -> tuple[float, float]:
    """The middle part of resampled values that holds 95 % of them.

    Parameters
    ----------
    draws
        Values of a statistic in many resamples; those that are not finite are passed over.

    Returns
    -------
    Low and high end; NaN if no value is finite.

    Notes
    -----
    Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.

    Examples
    --------
    >>> percentile_interval(range(201))
    (5.0, 195.0)
    """
    values = np.asarray(draws, dtype=float).ravel()
    values = values[np.isfinite(values)]
    if not values.size:
        return float("nan"), float("nan")
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def quantile_interval(values: object, share: float) -> tuple[float, float]:
    """95 % interval of a quantile by order statistics, for independent values of any distribution.

    Parameters
    ----------
    values
        The sample.
    share
        Share of the values below the quantile: 0.99 for the 99th percentile.

    Returns
    -------
    Low and high end. −inf or inf where the sample is too small for that end: at 95 % an upper end
    needs 72 values for the 95th percentile, 368 for the 99th.

    Notes
    -----
    David and Nagaraja, Order Statistics (2003), section 7.1.
    """
    from scipy.stats import quantile_test

    sample = np.asarray(values, dtype=float)
    if not sample.size:
        return float("-inf"), float("inf")
    ends = quantile_test(sample, p=share).confidence_interval(0.95)
    return float(np.nan_to_num(ends.low, nan=-np.inf)), float(np.nan_to_num(ends.high, nan=np.inf))


def shortest_interval(values: object, share: float = 0.95) -> tuple[float, float]:
    """The shortest interval that holds a share of the values: their highest-density interval.

    It says where most runs lie, not how well a number is known. Of a distribution with several
    modes it is one interval, with the valleys between the modes that it holds.

    Parameters
    ----------
    values
        One number a run, at least one; all finite.
    share
        Share of the values in the interval, rounded up to whole values and to at least two.

    Returns
    -------
    Low and high end, each a value of the sample; of equally short intervals the lowest.

    Raises
    ------
    InputError
        No value, or one that is not finite.

    Notes
    -----
    Hyndman, Computing and graphing highest density regions, The American Statistician 50 (1996).

    Examples
    --------
    >>> shortest_interval([1, 2, 3, 4, 100], share=0.8)
    (1.0, 4.0)
    """
    ordered = np.sort(finite(values))
    if not ordered.size:
        raise InputError("the shortest interval needs at least one value")
    held = values_held(ordered.size, share)
    widths = ordered[held - 1 :] - ordered[: ordered.size - held + 1]
    first = int(np.argmin(widths))
    return float(ordered[first]), float(ordered[first + held - 1])


def values_held(size: int, share: float = 0.95) -> int:
    """How many of so many values `shortest_interval` holds.

    Examples
    --------
    >>> values_held(100), values_held(12)
    (95, 12)
    """
    # rounded: 0.07 of 100 values are 7, not 7.000000000000001
    return min(size, max(2, int(np.ceil(round(share * size, 9)))))


# Statistics
# --------------------------------------------------------------------------------------------------


def coefficient_of_variation(values: np.ndarray, axis: int | None = None) -> Any:
    """Standard deviation over mean."""
    return np.std(values, axis=axis, ddof=1) / np.mean(values, axis=axis)


STATISTICS: dict[str, Callable[..., Any]] = {
    "mean": np.mean,
    "median": np.median,
    "sd": partial(np.std, ddof=1),
    "cv": coefficient_of_variation,
    "p95": partial(np.percentile, q=95),
    "p99": partial(np.percentile, q=99),
    "max": np.max,
}


def as_values(values: object) -> np.ndarray:
    """A one-dimensional array of at least two finite floats.

    Raises
    ------
    InputError
        Too few values, or one that is not finite.
    """
    array = finite(values)
    if array.size < 2:
        raise InputError(
            f"{array.size} value(s) are too few for an interval", fix="measure at least two runs"
        )
    return array


def finite(values: object) -> np.ndarray:
    """The values as a one-dimensional array of floats; one that is not finite is an error."""
    array = np.asarray(values, dtype=float).ravel()
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise InputError(
            "a value is missing or infinite",
            where=f"row {values.index[bad[0]] if isinstance(values, pd.Series) else bad[0]}",
            fix="use only the runs whose status is 'ok'",
        )
    return array


# Means
# --------------------------------------------------------------------------------------------------


def mean_interval(values: object) -> Interval:
    """Mean and its 95 % Student-t interval.

    Parameters
    ----------
    values
        One number a run, such as seconds; at least two.

    Returns
    -------
    Interval, in the unit of the values.

    Raises
    ------
    InputError
        Too few values, or one that is not finite.

    Examples
    --------
    >>> mean_interval([1.0, 2.0, 3.0]).value
    2.0
    """
    from scipy.stats import t

    sample = as_values(values)
    error = sample.std(ddof=1) / np.sqrt(sample.size)
    half = t.ppf(0.975, sample.size - 1) * error
    mean = sample.mean()
    return Interval(float(mean), float(mean - half), float(mean + half), sample.size)


def resampled_means(values: np.ndarray, random: np.random.Generator, repeats: int) -> np.ndarray:
    """The mean of each of `repeats` resamples of the values."""
    return _resample(values, np.mean, random, repeats)


# Bootstrap
# --------------------------------------------------------------------------------------------------


def bootstrap_interval(
    values: object, statistic: str = "mean", seed: int = 0, repeats: int = 2000
) -> tuple[float, float]:
    """95 % percentile bootstrap interval of a statistic.

    Parameters
    ----------
    values
        At least two finite numbers.
    statistic
        A name of `STATISTICS`.
    seed
        Seed of the resamples.
    repeats
        Number of resamples.

    Returns
    -------
    Low and high end, in the unit of the statistic. NaN for a spread ("sd", "cv") of fewer than six
    values, which are too few.

    Raises
    ------
    InputError
        Fewer than two values, or a value that is not finite.

    Notes
    -----
    Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13. The interval of a maximum is
    too narrow: no resample holds more than the largest value seen.
    """
    random, sample = np.random.default_rng(seed), as_values(values)
    if too_few(statistic, sample.size):
        return float("nan"), float("nan")
    return percentile_interval(_resample(sample, STATISTICS[statistic], random, repeats))


def too_few(statistic: str, size: int) -> bool:
    """Whether so many values say nothing of how well a statistic is known.

    Examples
    --------
    >>> too_few("sd", 2), too_few("mean", 2)
    (True, False)
    """
    return statistic in SPREADS and size < FEWEST_FOR_SPREAD


def bootstrap_ratio(
    numerator: object, denominator: object, statistic: str = "mean", seed: int = 0
) -> tuple[float, float]:
    """95 % percentile bootstrap interval of the ratio of a statistic of two independent samples.

    Parameters
    ----------
    numerator, denominator
        At least two finite numbers each.
    statistic, seed
        Statistic, and seed of the resamples, as in `bootstrap_interval`.

    Returns
    -------
    Low and high end of `statistic(numerator) / statistic(denominator)`; NaN as in
    `bootstrap_interval`.

    Raises
    ------
    InputError
        Fewer than two values, or a value that is not finite.
    """
    random, function = np.random.default_rng(seed), STATISTICS[statistic]
    first, second = as_values(numerator), as_values(denominator)
    if too_few(statistic, min(first.size, second.size)):
        return float("nan"), float("nan")
    above, below = (_resample(side, function, random, 2000) for side in (first, second))
    with np.errstate(divide="ignore", invalid="ignore"):
        return percentile_interval(above / below)


def _resample(
    values: np.ndarray,
    function: Callable[..., Any],
    random: np.random.Generator,
    repeats: int,
) -> np.ndarray:
    from scipy.stats import bootstrap

    batch = max(1, CHUNK_VALUES // values.size)
    options = {"n_resamples": repeats, "batch": batch, "method": "percentile", "rng": random}
    with np.errstate(divide="ignore", invalid="ignore"):
        return bootstrap((values,), function, vectorized=True, **options).bootstrap_distribution


def resample_rounds(
    above: list[np.ndarray],
    below: list[np.ndarray],
    functions: list[Callable[..., Any]],
    seed: int,
) -> list[np.ndarray]:
    """Statistics of two samples measured in the same rounds; each round is resampled whole.

    What disturbed a round disturbed both samples, so resampling rounds keeps it out of their ratio.

    Parameters
    ----------
    above, below
        The values of each round.
    functions
        f(values, axis).
    seed
        Seed of the resamples.

    Returns
    -------
    Two arrays, 2000 × functions.
    """
    random = np.random.default_rng(seed)
    drawn = random.integers(0, len(above), (2000, len(above)))
    with np.errstate(divide="ignore", invalid="ignore"):
        tables = [
            [np.column_stack([function(part, axis=1) for function in functions]) for part in parts]
            for parts in (resampled_rounds(above, drawn), resampled_rounds(below, drawn))
        ]
    return [np.concatenate(table) for table in tables]


def resampled_rounds(values: list[np.ndarray], drawn: np.ndarray) -> Iterator[np.ndarray]:
    """Tables of resampled values, a row a resample; many rows at once if rounds are equally long.

    Parameters
    ----------
    values
        The values of each round.
    drawn
        Numbers of the rounds in each resample, a row a resample.
    """
    if len({len(part) for part in values}) > 1:
        for row in drawn:
            yield np.concatenate([values[place] for place in row])[None]
        return
    table = np.array(values)
    rows = max(1, CHUNK_VALUES // table.size)
    for first in range(0, len(drawn), rows):
        yield table[drawn[first : first + rows]].reshape(-1, table.size)
