"""What was measured of an effect: log ratios with the units that were randomised, and the estimate
that follows.

Owns the standard error by units, strata weighing the same.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

FEWEST_FOR_SHAPE = 20  # units; fewer do not show whether they are skewed or resemble neighbours
SUSPECTED = 1.28  # standard errors of an autocorrelation, from which it counts: p = 0.1


class Estimate(NamedTuple):
    """A mean log ratio, its standard error with its degrees of freedom, how many units they rest
    on, and the skewness of the mean.
    """

    mean: float
    error: float
    freedom: float
    units: int
    skewness: float = 0.0

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """All mean log ratios that `below` or `above` leaves possible."""
        from scipy.special import stdtrit

        half, skew = float(stdtrit(self.freedom, (1 + level) / 2)), self.skewness
        ends = np.array([half, -half])
        if skew:
            hall = 3 / skew * (np.cbrt(1 + skew * (ends - skew / 6)) - 1)
            ends = np.sign(ends) * np.maximum(half, np.sign(ends) * hall)
        low, high = self.mean - self.error * ends
        return float(low), float(high)

    def below(self, log: float) -> float:
        """The p-value of the mean log ratio being this or more."""
        return self._tail(log, 1)

    def above(self, log: float) -> float:
        """The p-value of the mean log ratio being this or less."""
        return self._tail(log, -1)

    def _tail(self, log: float, sign: int) -> float:
        """The larger of two p-values: by Student's t, and by t with the skewness taken out (Hall
        1992, On the removal of skewness by transformation).
        """
        from scipy.special import stdtr

        t, skew = (self.mean - log) / self.error, self.skewness
        hall = t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6
        return float(max(stdtr(self.freedom, sign * each) for each in (t, hall)))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was measured of an effect.

    Attributes
    ----------
    effects
        Logarithms of a ratio, one a pair of runs.
    units
        What was randomised (the round) of each pair; None: each pair stands alone. Pairs of one
        unit share what disturbed it and count as one.
    strata
        Program, model or the like of each pair, weighted equally; None: all are alike. A stratum
        of a single unit is excluded.
    unmeasurable
        Why the claim cannot be measured here; empty if it can.
    unit
        What the units are, for sentences.
    """

    effects: np.ndarray = field(default_factory=lambda: np.empty(0))
    units: Sequence[Hashable] | np.ndarray | None = None
    strata: Sequence[Hashable] | np.ndarray | None = None
    unmeasurable: str = ""
    unit: str = "rounds"

    @cached_property
    def estimate(self) -> Estimate:
        """Mean over strata of the means over units, with a standard error by units.

        Notes
        -----
        Cluster-robust variance with units as clusters; each stratum's residuals are scaled as in
        its own sample variance, so that one stratum gives Student's t-test over units. Cameron and
        Miller, A Practitioner's Guide to Cluster-Robust Inference (2015). Strata that share no unit
        are independent: their degrees of freedom are combined by Satterthwaite's rule. Units that
        are named are taken to stand in the order in which they ran: see `estimate_of`.
        """
        table = self.by_unit()
        table = table[:, np.isfinite(table).sum(axis=0) > 1]
        table = table[np.isfinite(table).any(axis=1)]
        if not table.size:
            return Estimate(np.nan, np.nan, np.nan, 0)
        counts, means = np.isfinite(table).sum(axis=0), np.nanmean(table, axis=0)
        scale = 1 / np.sqrt(counts * (counts - 1)) / table.shape[1]
        moves = np.nansum((table - means) * scale, axis=1)
        parts = _parts(table)
        freedom = satterthwaite(np.bincount(parts, moves**2), np.bincount(parts) - 1)
        in_order = self.units is not None
        return estimate_of(float(means.mean()), moves, freedom, in_order=in_order)

    def by_unit(self) -> np.ndarray:
        """Mean effect by unit (rows) and stratum (columns); NaN where none was measured."""
        effects = np.asarray(self.effects, dtype=float)
        known = np.isfinite(effects)
        unit, units = _codes(np.arange(effects.size) if self.units is None else self.units, known)
        stratum, strata = _codes(
            np.zeros(effects.size) if self.strata is None else self.strata, known
        )
        place, shape = unit * strata + stratum, (units, strata)
        counts = np.bincount(place, minlength=units * strata).reshape(shape)
        sums = np.bincount(place, effects[known], minlength=units * strata).reshape(shape)
        return np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)


def _codes(labels: Iterable[Hashable] | np.ndarray, known: np.ndarray) -> tuple[np.ndarray, int]:
    """A number for each label in use, and how many there are."""
    codes = pd.factorize(pd.Series(list(labels), dtype=object)[known], use_na_sentinel=False)[0]
    return codes, int(codes.max(initial=-1)) + 1


def _parts(table: np.ndarray) -> np.ndarray:
    """The part that each unit belongs to: strata that share a unit are one part."""
    from scipy.sparse.csgraph import connected_components

    measured = np.isfinite(table)
    if measured.all():
        return np.zeros(len(table), int)
    return connected_components(measured.astype(int) @ measured.T, directed=False)[1]


def satterthwaite(variances: np.ndarray, freedoms: np.ndarray) -> float:
    """Degrees of freedom of a sum of variances of independent parts (Satterthwaite 1946)."""
    total = variances.sum()
    return float(total**2 / np.sum(variances**2 / freedoms) if total > 0 else freedoms.sum())


def estimate_of(
    mean: float,
    moves: np.ndarray,
    freedom: float,
    smaller: int | None = None,
    in_order: bool = False,
) -> Estimate:
    """An estimate from what each unit adds to the mean, less what it adds on average.

    Parameters
    ----------
    mean
        The mean log ratio.
    moves
        A unit each; the root of the sum of their squares is the standard error.
    freedom
        Degrees of freedom of independent units.
    smaller
        Units of the smaller of two sides; None: each unit has both.
    in_order
        The units stand in the order in which they ran. If neighbours seem to resemble each other
        (first autocorrelation r, p at most 0.1), they count as n (1 - r) / (1 + r) units.

    Notes
    -----
    r is corrected for its bias (Marriott and Pope 1954), and at most 0.8. Of fewer than 20 units
    neither skewness nor resemblance is seen.
    """
    size, square = len(moves), float(moves @ moves)
    if (smaller or size) < FEWEST_FOR_SHAPE or not square > 0:
        return Estimate(mean, float(np.sqrt(square)), freedom, size)
    skewness = np.sum(moves**3) / square**1.5 * np.sqrt(size * (size - 1)) / (size - 2)
    near = moves[1:] @ moves[:-1] / square
    times = 1.0
    if in_order and near + 1 / size > SUSPECTED / np.sqrt(size):
        near = min(0.8, (near + 1 / size) / (1 - 4 / size))
        times = (1 + near) / (1 - near)
    freedom = max(freedom / times, min(freedom, 2.0))
    return Estimate(mean, float(np.sqrt(times * square)), freedom, size, float(skewness))


@dataclass(frozen=True, eq=False)
class Estimated(Evidence):
    """Evidence whose estimate was made elsewhere, by another statistic than the mean."""

    known: Estimate = Estimate(np.nan, np.nan, np.nan, 0)

    @cached_property
    def estimate(self) -> Estimate:
        """The estimate as it was made."""
        return self.known
