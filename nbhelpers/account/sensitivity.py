"""How much a program is slowed down when the clock, the core's units or the memory are slower.

Owns that regression.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import lsq_linear

from .threads import SLOWER

# what is expected before any run was seen, with its standard deviation: a program that computes
# follows the clock and the core's units; how much it follows the memory nobody knows
PRIOR = {"clock": (1.0, 0.3), "core": (1.0, 0.3), "memory": (0.5, 0.5)}
MOST = 2.0
_ROUNDS = 20


@dataclass(frozen=True)
class Sensitivity:
    """Computing time = full × exp(Σ sensitivity × log of the probe's factor).

    Parameters
    ----------
    by
        Sensitivity to each of SLOWER; 1: as much as the probe's work.
    full_ns
        Computing time of all threads together at full speed: the median of the runs.
    spread
        Standard deviation of what the factors leave of the log of the computing time.
    runs
        Number of runs that it was fitted to.
    """

    by: dict[str, float]
    full_ns: float
    spread: float
    runs: int

    @property
    def values(self) -> np.ndarray:
        """`by` as an array, in the order of SLOWER."""
        return np.array([self.by[name] for name in SLOWER])

    def log_factor(self, slower: pd.DataFrame) -> pd.DataFrame:
        """Log of the factor by which the program was slower, a column for each of SLOWER."""
        return pd.DataFrame({name: slower[name] * self.by[name] for name in SLOWER})


def fit_sensitivity(slower: np.ndarray, log_ns: np.ndarray) -> Sensitivity:
    """Fit it to runs: least squares on logs, with a weak prior and bounds.

    Where no run was slower in a kind, the prior stands, and it matters for no run.

    Parameters
    ----------
    slower, log_ns
        The two results of `computing_of_runs` as arrays: float64 [R, len(SLOWER)] and [R] of R
        runs.
    """
    by, spread = np.array([PRIOR[name][0] for name in SLOWER]), 0.0
    for _ in range(_ROUNDS):
        before, spread = spread, max(float(np.std(log_ns - slower @ by)), 1e-4)
        if abs(spread - before) < 0.01 * spread:
            break
        by = _solve(slower - slower.mean(axis=0), log_ns - log_ns.mean(), spread)
    full_ns = float(np.exp(np.median(log_ns - slower @ by)))
    return Sensitivity(dict(zip(SLOWER, by.tolist())), full_ns, spread, len(log_ns))


def computing_of_runs(times: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """What was slower in each run, and the log of its computing time, from `thread_times`.

    What was slower is the mean of the run's threads, weighted by their computing time; the
    computing time is that of all threads. Index: `run`.
    """
    total = times.groupby("run")["computing"].sum()
    weighted = times[list(SLOWER)].mul(times["computing"], axis=0)
    slower = weighted.groupby(times["run"]).sum().div(total, axis=0)
    return slower, np.log(total)


def _solve(slower: np.ndarray, log_ns: np.ndarray, spread: float) -> np.ndarray:
    """Both centred; the prior is as many further rows."""
    prior, width = np.array([PRIOR[name] for name in SLOWER]).T
    rows = np.vstack([slower / spread, np.diag(1 / width)])
    values = np.append(log_ns / spread, prior / width)
    return lsq_linear(rows, values, bounds=(0.0, MOST), method="bvls").x
