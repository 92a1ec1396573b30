"""How long the longest will be: the tail of a distribution of durations, from those recorded.

Owns the generalised Pareto model of what exceeds a threshold, its posterior on a grid, and what
follows from it: the longest in a time ahead, return levels and return periods.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import InputError

SHARE = 0.1  # of the durations that are above the threshold,
FEWEST, MOST = 30, 200  # but not fewer than these, nor more
LEAST_EXCEEDANCES = 8  # of fewer, two parameters are a guess
_SHAPES = np.linspace(-2, 0.99, 61)
_SHAPE_SD = 0.5  # of the prior
_STEPS = np.linspace(np.log(1e-5), np.log(1e3), 81)
_PASSES, _FINE, _NEGLIGIBLE = 2, 61, 1e-6  # of the refinement of the grid
_BISECTIONS = 45


@dataclass(frozen=True, eq=False, repr=False)
class Tail:
    """What is known of the durations above a threshold: the posterior of a generalised Pareto
    distribution, on a grid.

    Parameters
    ----------
    threshold
        Durations above it are modelled; in the unit of the durations.
    exposure
        How long was recorded, in any unit of time (seconds of a CPU).
    exceedances
        How many durations were above the threshold.
    longest
        The longest that was recorded.
    shape, scale, weight
        float64[G]: points of the grid and the probability of each. A shape below 0 is a tail that
        ends, 0 an exponential one, above 0 one that falls like a power.
    """

    threshold: float
    exposure: float
    exceedances: int
    longest: float
    shape: np.ndarray = field(default_factory=lambda: np.zeros(0))
    scale: np.ndarray = field(default_factory=lambda: np.zeros(0))
    weight: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def rate(self) -> float:
        """Exceedances in a unit of exposure."""
        return self.exceedances / self.exposure

    def beyond(self, duration: float) -> np.ndarray:
        """Probability that an exceedance is longer than so, float64[G]."""
        return _survival(max(duration - self.threshold, 0.0), self.shape, self.scale)

    def shape_interval(self, level: float = 0.9) -> tuple[float, float, float]:
        """Median and the ends of the interval of the shape."""
        return _quantiles(self.shape, self.weight, level)

    def __repr__(self) -> str:
        shape, low, high = self.shape_interval()
        return (
            f"Tail({self.exceedances} above {self.threshold:g} in {self.exposure:g}:"
            f" shape {shape:.2f}, {low:.2f} to {high:.2f})"
        )


def fit_tail(
    durations: Sequence[float] | np.ndarray, exposure: float, threshold: float | None = None
) -> Tail:
    """The tail of recorded durations.

    Parameters
    ----------
    durations
        Independent of each other; of a burst give the longest alone.
    exposure
        How long was recorded, in any unit of time.
    threshold
        Only longer durations count; None: a tenth of them is above it, at least 30 and at most
        200.

    Returns
    -------
    Tail

    Raises
    ------
    InputError
        Fewer than 8 durations above the threshold, or an exposure that is not positive.

    Notes
    -----
    Peaks over a threshold: Coles, An Introduction to Statistical Modeling of Extreme Values (2001),
    chapter 4. The prior of the shape is normal, 0 ± 0.5, and ends at 1: beyond, the mean would be
    infinite, and such noise would take all the time. That of the scale is flat in its logarithm;
    the rate of exceedances has Jeffreys' prior.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> tail = fit_tail(rng.exponential(10.0, 2000), exposure=100.0)
    >>> tail.exceedances, tail.shape_interval()[1] < 0 < tail.shape_interval()[2]
    (200, True)
    """
    values = np.sort(np.asarray(durations, float))
    if not (np.isfinite(exposure) and exposure > 0):
        raise InputError(f"an exposure must be positive, not {exposure!r}")
    if not np.isfinite(values).all():
        raise InputError("a duration is not a finite number")
    above = threshold_for(values) if threshold is None else float(threshold)
    excess = values[values > above] - above
    if len(excess) < LEAST_EXCEEDANCES:
        raise InputError(
            f"{len(excess)} durations above the threshold",
            why=f"a tail is fitted to {LEAST_EXCEEDANCES} at least",
            fix="record for longer, or give a lower threshold",
        )
    shape, scale, weight = _posterior(excess)
    return Tail(above, float(exposure), len(excess), float(values[-1]), shape, scale, weight)


def threshold_for(durations: np.ndarray) -> float:
    """A threshold with a tenth of the durations above it, at least 30 and at most 200; with all of
    them above it where there are no more than 30.
    """
    values = np.sort(np.asarray(durations, float))
    count = int(np.clip(SHARE * len(values), FEWEST, MOST))
    if not len(values):
        return 0.0
    if count >= len(values):
        return float(np.nextafter(values[0], -np.inf))
    return float(values[-count - 1])


def _posterior(excess: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Grid and weights: a coarse grid first, then a fine one where the coarse one has weight."""
    shapes, steps = _SHAPES, _STEPS
    for _ in range(_PASSES):
        weight = _weights(excess, shapes, steps)
        relevant = weight > weight.max() * _NEGLIGIBLE
        found = np.flatnonzero(relevant)
        shapes, steps = (
            _around(axis, found // len(steps) if rows else found % len(steps))
            for axis, rows in ((shapes, True), (steps, False))
        )
    weight = _weights(excess, shapes, steps)
    shape, scale, _ = _grid(excess, shapes, steps)
    relevant = weight > weight.max() * _NEGLIGIBLE
    chosen = weight[relevant]
    return shape[relevant], scale[relevant], chosen / chosen.sum()


def _around(axis: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The part of an axis where something was found, with a finer step."""
    low, high = axis[max(found.min() - 1, 0)], axis[min(found.max() + 1, len(axis) - 1)]
    return np.linspace(low, high, _FINE)


def _grid(
    excess: np.ndarray, shapes: np.ndarray, steps: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shape, scale and step of each point. For shapes below 0 the scale begins where the tail would
    end at the longest excess; steps from there are geometric, since the likelihood may rise without
    bound towards it.
    """
    shape = np.repeat(shapes, len(steps))
    step = np.tile(excess.mean() * np.exp(steps), len(shapes))
    return shape, np.maximum(-shape, 0) * excess.max() + step, step


def _weights(excess: np.ndarray, shapes: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Prior × likelihood on a grid, up to a factor."""
    shape, scale, step = _grid(excess, shapes, steps)
    flat_in_log_scale = np.log(step / scale)
    log_prior = -0.5 * (shape / _SHAPE_SD) ** 2 + flat_in_log_scale
    log_weight = _log_likelihood(excess, shape, scale) + log_prior
    return np.exp(log_weight - log_weight.max())


def _log_likelihood(excess: np.ndarray, shape: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Of each point of the grid, float64[G]."""
    total = np.zeros(len(shape))
    straight = np.abs(shape) < 1e-9
    curved = np.where(straight, 1.0, shape)
    for value in excess:
        z = value / scale
        total -= np.where(
            straight, z, (1 + 1 / curved) * np.log1p(np.where(straight, 0, curved * z))
        )
    return total - len(excess) * np.log(scale)


def _survival(excess: float, shape: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """P(an exceedance is longer than the threshold + excess)."""
    straight = np.abs(shape) < 1e-9
    curved = np.where(straight, 1.0, shape)
    inside = np.maximum(1 + curved * excess / scale, 0)
    with np.errstate(divide="ignore"):
        power = np.exp(-np.log(inside) / curved)
    return np.where(straight, np.exp(-excess / scale), power)


# --- what follows from a tail ---------------------------------------------------------------------


@dataclass(frozen=True)
class Foretold:
    """A median and the ends of an interval that holds `level` of the probability."""

    median: float
    low: float
    high: float
    level: float = 0.9

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def longest_ahead(tail: Tail, exposure: float, level: float = 0.9) -> Foretold:
    """The longest duration in a time to come: what the model does not know included.

    Parameters
    ----------
    tail
        Of `fit_tail`.
    exposure
        How long that time is, in the unit of the tail's exposure.
    level
        Of the interval.

    Returns
    -------
    Foretold; the threshold stands for "nothing above it".

    Notes
    -----
    P(longest ≤ x) is the mean over the posterior of exp(−rate × exposure × P(longer than x)); over
    the rate, whose posterior is a gamma distribution, it is calculated exactly.
    """
    quantiles = [(1 - level) / 2, 0.5, (1 + level) / 2]
    low, median, high = (_longest_quantile(tail, exposure, share) for share in quantiles)
    return Foretold(median, low, high, level)


def longest_draws(tail: Tail, exposure: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """The longest of so many times to come, drawn at random, float64[count]; the threshold where
    nothing was above it.
    """
    point = rng.choice(len(tail.weight), count, p=tail.weight)
    rate = rng.gamma(tail.exceedances + 0.5, 1 / tail.exposure, count)
    # 1 − U^(1 / N) for N exceedances, Poisson, is where −log U / (rate × exposure) leads
    beyond = -np.log(rng.random(count)) / (rate * exposure)
    excess = _excess_of(np.minimum(beyond, 1.0), tail.shape[point], tail.scale[point])
    return tail.threshold + excess


def return_level(tail: Tail, exposure: float, level: float = 0.9) -> Foretold:
    """The duration that is exceeded once in such a time, on average.

    Parameters
    ----------
    tail, exposure, level
        As in `longest_ahead`.
    """
    beyond = np.minimum(1 / (tail.rate * exposure), 1.0)
    excess = _excess_of(np.full(len(tail.shape), beyond), tail.shape, tail.scale)
    return Foretold(*(_quantiles(tail.threshold + excess, tail.weight, level)), level)


def return_period(tail: Tail, duration: float, level: float = 0.9) -> Foretold:
    """In what exposure a duration is exceeded once, on average; infinite for what the tail does not
    reach.

    Parameters
    ----------
    tail, level
        As in `longest_ahead`.
    duration
        Above the threshold.

    Raises
    ------
    InputError
        The duration is below the threshold, where the model says nothing.
    """
    if duration < tail.threshold:
        raise InputError(
            f"a duration of {duration:g} is below the threshold of {tail.threshold:g}",
            why="the model is of longer ones only",
            fix="count the recorded ones, or give a lower threshold to fit_tail",
        )
    with np.errstate(divide="ignore"):
        period = 1 / (tail.rate * tail.beyond(duration))
    return Foretold(*_quantiles(period, tail.weight, level), level)


def _excess_of(beyond: np.ndarray, shape: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The excess that an exceedance is above with such a probability."""
    straight = np.abs(shape) < 1e-9
    curved = np.where(straight, 1.0, shape)
    log_beyond = np.log(beyond)
    return scale * np.where(straight, -log_beyond, np.expm1(-curved * log_beyond) / curved)


def _longest_quantile(tail: Tail, exposure: float, share: float) -> float:
    """By bisection on the logarithm of the excess."""
    low, high = np.log(tail.scale.min()) - 30.0, np.log(tail.scale.max()) + 60.0
    if _none_longer(tail, exposure, tail.threshold) >= share:
        return tail.threshold
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        reached = _none_longer(tail, exposure, tail.threshold + np.exp(middle)) >= share
        low, high = (low, middle) if reached else (middle, high)
    return float(tail.threshold + np.exp(high))


def _none_longer(tail: Tail, exposure: float, duration: float) -> float:
    """P(no duration ahead is longer), over the posterior."""
    expected = exposure / tail.exposure * tail.beyond(duration)
    return float((tail.weight * (1 + expected) ** -(tail.exceedances + 0.5)).sum())


def _quantiles(values: np.ndarray, weight: np.ndarray, level: float) -> tuple[float, float, float]:
    """Median, low and high end of a weighted distribution."""
    order = np.argsort(values)
    reached = np.cumsum(weight[order])
    wanted = [0.5, (1 - level) / 2, (1 + level) / 2]
    places = np.minimum(np.searchsorted(reached, wanted), len(values) - 1)
    median, low, high = values[order][places]
    return float(median), float(low), float(high)
