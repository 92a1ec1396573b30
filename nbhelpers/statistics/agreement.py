"""When a simulated number agrees with a published one: one rule for all of them.

Owns how far beyond a published range ours may lie, stated before anything was simulated.
"""

from collections.abc import Sequence

import numpy as np

from ..errors import InputError
from .claims import MARGIN

WITHIN = 0.2  # of what was published beyond no effect
NO_EFFECT = {"slow-down": 1.0, "ratio": 0.0, "µs": 0.0, "correlation": 0.0, "share": 0.0}


def accepted_range(
    low: float | Sequence[float] | np.ndarray,
    high: float | Sequence[float] | np.ndarray,
    quantity: str = "slow-down",
) -> tuple[np.ndarray, np.ndarray]:
    """The published range, each end widened by 20 % of its effect, and by 0.01 at least.

    The effect of a slow-down is its excess, the factor less 1: of 1.3 it is 0.3, and 0.06 is a
    fifth of it. A lone bound ("more than twice") leaves a side open already, so it is widened by
    1 % of its effect only.

    Parameters
    ----------
    low, high
        The ends: the same number twice, a range, or one of them NaN (a lone bound); or arrays.
    quantity
        What was published; a key of `NO_EFFECT`, which has its value without an effect.

    Returns
    -------
    Both ends; NaN where none was published.

    Raises
    ------
    InputError
        The quantity has no value without an effect here.

    Examples
    --------
    >>> [round(float(end), 3) for end in accepted_range(1.3, 1.3)]
    [1.24, 1.36]
    >>> [round(float(end), 3) for end in accepted_range(1.5, 1.6)]
    [1.4, 1.72]
    """
    if quantity not in NO_EFFECT:
        raise InputError(
            f"no value of {quantity!r} without an effect is known",
            why="the margin is a share of the effect",
            fix=f"use one of {', '.join(NO_EFFECT)}",
        )
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    lone = np.isnan(low) | np.isnan(high)
    reach_low, reach_high = (_reach(end - NO_EFFECT[quantity], lone) for end in (low, high))
    return low - reach_low, high + reach_high


def _reach(effect: np.ndarray, lone: np.ndarray) -> np.ndarray:
    """How far an end is widened; an effect of 0 still has the change that counts as none."""
    return np.where(lone, MARGIN * effect, np.maximum(WITHIN * effect, MARGIN))
