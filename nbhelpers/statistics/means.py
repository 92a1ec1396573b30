"""Numbers of a planted-anomaly study: how well a replay reproduces the run times that a real
disturbance caused.

Owns intervals of means and of ratios of means; pure, tables in, numbers out.
"""

from typing import NamedTuple

import numpy as np

from ..errors import InputError


class Interval(NamedTuple):
    """An estimate and its confidence interval."""

    value: float
    low: float
    high: float
    count: int

    @property
    def half_width_share(self) -> float:
        """Half the interval's width over the value: 0.02 is ± 2 %."""
        return (self.high - self.low) / 2 / self.value


def mean_interval(values: object, level: float = 0.95) -> Interval:
    """Mean and its Student-t interval.

    Parameters
    ----------
    values
        One number a run, such as seconds; at least two.
    level
        Of confidence.

    Raises
    ------
    InputError
        Too few values, or one that is not finite.
    """
    from scipy import stats

    values = as_values(values)
    half = stats.t.ppf((1 + level) / 2, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    mean = values.mean()
    return Interval(float(mean), float(mean - half), float(mean + half), values.size)


def replay_ratio(
    disturbed: object, replayed: object, level: float = 0.95, seed: int = 0, repeats: int = 4000
) -> Interval:
    """Mean of the replayed runs over mean of the disturbed ones, with a percentile bootstrap
    interval.

    1 is a perfect replay; abs(ratio − 1) is Table 7's number (Persson et al. 2025), whose paper gives
    no interval.

    Parameters
    ----------
    disturbed, replayed
        Seconds of the runs with the real disturbance and with its replay; two independent samples.
    level
        Of confidence.
    seed, repeats
        Of the bootstrap.

    Returns
    -------
    Interval; `count` is the size of the smaller sample.
    """
    disturbed, replayed = as_values(disturbed), as_values(replayed)
    random = np.random.default_rng(seed)
    below, above = (
        random.choice(sample, (repeats, sample.size)).mean(axis=1)
        for sample in (disturbed, replayed)
    )
    low, high = np.quantile(above / below, [(1 - level) / 2, (1 + level) / 2])
    return Interval(
        float(replayed.mean() / disturbed.mean()),
        float(low),
        float(high),
        min(disturbed.size, replayed.size),
    )


def mean_ratio(
    seconds: object, anomaly_seconds: float, level: float = 0.95, seed: int = 0, repeats: int = 4000
) -> Interval:
    """Mean of runs over one number, such as the run time of a single anomaly, with a percentile
    bootstrap interval of the mean.
    """
    seconds = as_values(seconds)
    draws = (
        np.random.default_rng(seed).choice(seconds, (repeats, seconds.size)).mean(axis=1)
        / anomaly_seconds
    )
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(seconds.mean() / anomaly_seconds), float(low), float(high), seconds.size)


def as_values(values: object) -> np.ndarray:
    """Seconds of at least two runs as a flat array.

    Raises
    ------
    InputError
        Too few, or one that is not finite.
    """
    array = np.asarray(values, dtype=float).ravel()
    if array.size < 2 or not np.isfinite(array).all():
        raise InputError(
            f"{array.size} value(s), {int((~np.isfinite(array)).sum())} of them not finite",
            fix="pass the seconds of at least two finished runs",
        )
    return array
