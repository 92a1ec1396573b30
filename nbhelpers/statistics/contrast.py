"""Evidence of two sets of runs, whether they were measured in rounds or not: their means, their
trimmed means, their variation.

Owns the estimates by which `compare` judges.
"""

import numpy as np

from .evidence import Estimate, Estimated, Evidence, estimate_of, satterthwaite
from .intervals import Interval
from .variation import FEWEST_RUNS, log_variations

Rounds = np.ndarray | None
NOT_POSITIVE = "of values that are not positive no ratio can be formed"
TOO_FEW = "fewer than two runs"


def mean_contrast(
    before: np.ndarray, after: np.ndarray, rounds_before: Rounds = None, rounds_after: Rounds = None
) -> Evidence:
    """The logarithm of the ratio of the means, after / before.

    Parameters
    ----------
    before, after
        Values of either set.
    rounds_before, rounds_after
        The round of each value; None: every value stands alone.

    Examples
    --------
    >>> evidence = mean_contrast(np.array([1.0, 1.1, 0.9]), np.array([2.1, 1.9, 2.0]))
    >>> round(float(np.exp(evidence.estimate.mean)), 3)
    2.0
    """
    if min(before.size, after.size) < 2:
        return Evidence(unmeasurable=TOO_FEW)
    if not (before.mean() > 0 and after.mean() > 0):
        return Evidence(unmeasurable=NOT_POSITIVE)
    old, new = (np.log(side.mean()) + side / side.mean() - 1 for side in (before, after))
    return _contrast(old, new, rounds_before, rounds_after)


def variation_contrast(
    before: np.ndarray, after: np.ndarray, rounds_before: Rounds = None, rounds_after: Rounds = None
) -> Evidence:
    """The logarithm of the ratio of the typical differences of two runs, after / before.

    Parameters
    ----------
    before, after, rounds_before, rounds_after
        Values of either set, and the round of each value; see `mean_contrast`.
    """
    if min(before.min(), after.min()) <= 0:
        return Evidence(unmeasurable=NOT_POSITIVE)
    if min(before.size, after.size) < FEWEST_RUNS:
        return Evidence(unmeasurable=f"fewer than {FEWEST_RUNS} runs")
    old, new = log_variations(before), log_variations(after)
    return _contrast(old, new, rounds_before, rounds_after)


def interval_evidence(ratio: Interval, units: int, unit: str) -> Evidence:
    """A ratio with a 95 % interval that was made elsewhere.

    Parameters
    ----------
    ratio
        With its ends.
    units, unit
        What it rests on.
    """
    if not (ratio.low > 0 and np.isfinite([ratio.value, ratio.low, ratio.high]).all()):
        return Evidence(unmeasurable=NOT_POSITIVE)
    whole = Estimate(0, 1, units - 1, units).interval()
    error = np.log(ratio.high / ratio.low) / (whole[1] - whole[0])
    known = Estimate(float(np.log(ratio.value)), float(error), units - 1, units)
    return Estimated(unit=unit, known=known)


def _contrast(
    before: np.ndarray, after: np.ndarray, rounds_before: Rounds, rounds_after: Rounds
) -> Evidence:
    """The mean of what each value after adds, less that of the values before."""
    difference = float(after.mean() - before.mean())
    if rounds_before is None or rounds_after is None:
        old, new = (_moves(side) for side in (before, after))
        moves, sizes = np.concatenate([-old, new]), np.array([old.size, new.size])
        freedom = satterthwaite(np.array([old @ old, new @ new]), sizes - 1)
        known = estimate_of(difference, moves, freedom, int(sizes.min()))
        return Estimated(unit="runs", known=known)
    names, codes = np.unique(np.concatenate([rounds_before, rounds_after]), return_inverse=True)
    shares = np.concatenate(
        [-(before - before.mean()) / before.size, (after - after.mean()) / after.size]
    )
    moves = np.bincount(codes, shares)
    moves *= np.sqrt(names.size / (names.size - 1))
    return Estimated(known=estimate_of(difference, moves, names.size - 1, in_order=True))


def _moves(values: np.ndarray) -> np.ndarray:
    """What each value adds to the error of their mean, which is the root of their squares' sum."""
    return (values - values.mean()) / np.sqrt(values.size * (values.size - 1))
