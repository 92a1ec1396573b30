"""What was measured of an effect: log ratios with the units that were randomised, and the estimate
that follows.

Owns the standard error by units, strata weighing the same.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd


class Estimate(NamedTuple):
    """A mean log ratio, its standard error with its degrees of freedom, and how many units they
    rest on.
    """

    mean: float
    error: float
    freedom: float
    units: int

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Student's interval of the mean log ratio."""
        from scipy.special import stdtrit

        half = float(stdtrit(self.freedom, (1 + level) / 2)) * self.error
        return self.mean - half, self.mean + half


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
        are independent: their degrees of freedom are combined by Satterthwaite's rule.
        """
        table = self.by_unit()
        table = table[:, np.isfinite(table).sum(axis=0) > 1]
        table = table[np.isfinite(table).any(axis=1)]
        if not table.size:
            return Estimate(np.nan, np.nan, np.nan, 0)
        counts, means = np.isfinite(table).sum(axis=0), np.nanmean(table, axis=0)
        scale = 1 / np.sqrt(counts * (counts - 1)) / table.shape[1]
        moves = np.nansum((table - means) * scale, axis=1)
        error = float(np.sqrt(moves @ moves))
        return Estimate(float(means.mean()), error, _freedom(moves, _parts(table)), len(table))

    def by_unit(self) -> np.ndarray:
        """Mean effect by unit (rows) and stratum (columns); NaN where none was measured."""
        effects = np.asarray(self.effects, dtype=float)
        known = np.isfinite(effects)
        unit, units = _codes(self.units, effects.size, known)
        stratum, strata = _codes(self.strata, effects.size, known, alike=True)
        place, shape = unit * strata + stratum, (units, strata)
        counts = np.bincount(place, minlength=units * strata).reshape(shape)
        sums = np.bincount(place, effects[known], minlength=units * strata).reshape(shape)
        return np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)


def _codes(
    labels: Sequence[Hashable] | np.ndarray | None,
    size: int,
    known: np.ndarray,
    alike: bool = False,
) -> tuple[np.ndarray, int]:
    """A number for each label in use, and how many there are; without labels all differ, or all are
    alike.
    """
    if labels is None:
        codes = np.zeros(size, int) if alike else np.arange(size)
    else:
        codes = pd.factorize(pd.Series(list(labels), dtype=object))[0]
    used, codes = np.unique(codes[known], return_inverse=True)
    return codes, used.size


def _parts(table: np.ndarray) -> np.ndarray:
    """The part that each unit belongs to: strata that share a unit are one part."""
    from scipy.sparse.csgraph import connected_components

    measured = np.isfinite(table)
    if measured.all():
        return np.zeros(len(table), int)
    return connected_components(measured.astype(int) @ measured.T, directed=False)[1]


def _freedom(moves: np.ndarray, parts: np.ndarray) -> float:
    """Degrees of freedom of a sum of variances of independent parts (Satterthwaite 1946)."""
    variances = np.bincount(parts, moves**2)
    freedoms = np.bincount(parts) - 1
    if not variances.sum() > 0:
        return float(freedoms.sum())
    return float(variances.sum() ** 2 / np.sum(variances**2 / freedoms))


@dataclass(frozen=True, eq=False)
class Estimated(Evidence):
    """Evidence whose estimate was made elsewhere, by another statistic than the mean."""

    known: Estimate = Estimate(np.nan, np.nan, np.nan, 0)

    @cached_property
    def estimate(self) -> Estimate:
        """The estimate as it was made."""
        return self.known
