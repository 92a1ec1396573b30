"""How closely a metric and the outcome are related: R² with its bootstrap interval.

Owns that number. Tables in, numbers out.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import InputError
from ..statistics import percentile_interval

REPEATS = 2000
FEWEST = 5  # runs with a value of both


@dataclass(frozen=True, eq=False)
class Relation:
    """A metric against the outcome.

    Attributes
    ----------
    metric, outcome
        Columns.
    r2, low, high
        Share of the outcome's variance that a straight line explains, and its 95 % interval; NaN
        if either does not vary.
    runs
        How many runs have both.
    slope, intercept
        Of the line of least squares.
    """

    metric: str
    outcome: str
    r2: float
    low: float
    high: float
    runs: int
    slope: float
    intercept: float

    @property
    def sentence(self) -> str:
        """The number with its interval and n."""
        if not np.isfinite(self.r2):
            return f"No R²: {self.metric} or {self.outcome} does not vary (n = {self.runs} runs)."
        return (
            f"R² {self.r2:.2f} ({self.low:.2f} to {self.high:.2f}, n = {self.runs} runs) of"
            f" {self.outcome} with {self.metric}; an association, which need not be a cause."
        )


def relation(runs: pd.DataFrame, metric: str, outcome: str, seed: int = 0) -> Relation:
    """R² of a metric and the outcome, with a percentile bootstrap of the runs.

    Parameters
    ----------
    runs
        Runs table.
    metric, outcome
        Columns of numbers.
    seed
        Of the bootstrap.

    Raises
    ------
    InputError
        No such column, or fewer than five runs with both.

    Examples
    --------
    >>> runs = pd.DataFrame({"faults": range(20), "seconds": [1 + n / 10 for n in range(20)]})
    >>> relation(runs, "faults", "seconds").sentence[:32]
    'R² 1.00 (1.00 to 1.00, n = 20 ru'
    """
    both = _pairs(runs, metric, outcome)
    x, y = both.T
    random = np.random.default_rng(seed)
    drawn = random.integers(0, len(x), (REPEATS, len(x)))
    draws = _r2(x[drawn], y[drawn])
    draws = draws[np.isfinite(draws)]
    r2 = float(_r2(x[None], y[None])[0])
    low, high = percentile_interval(draws) if draws.size else (np.nan, np.nan)
    slope = float(np.cov(x, y)[0, 1] / x.var(ddof=1)) if np.ptp(x) else 0.0
    middle = float(y.mean() - slope * x.mean())
    return Relation(metric, outcome, r2, float(low), float(high), len(x), slope, middle)


def _pairs(runs: pd.DataFrame, metric: str, outcome: str) -> np.ndarray:
    for name in (metric, outcome):
        if name not in runs.columns or not pd.api.types.is_numeric_dtype(runs[name]):
            raise InputError(f"no column of numbers {name!r}", fix="choose one of the runs table")
    both = np.column_stack([runs[metric].to_numpy(float), runs[outcome].to_numpy(float)])
    both = both[np.isfinite(both).all(axis=1)]
    if len(both) < FEWEST:
        raise InputError(
            f"{len(both)} runs have both {metric} and {outcome}; at least {FEWEST} are needed",
            fix="measure more runs, or limit them less",
        )
    return both


def _r2(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of rows of samples: the squared correlation; NaN where either does not vary."""
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    scale = (x**2).sum(axis=1) * (y**2).sum(axis=1)
    shared = (x * y).sum(axis=1) ** 2
    return np.divide(shared, scale, out=np.full(len(x), np.nan), where=scale > 0)
