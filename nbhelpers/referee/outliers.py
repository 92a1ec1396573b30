"""Runs that lie far from the others of their side: named, never dropped.

Owns which runs are far, and whether one side has more of them.
"""

import numpy as np
import pandas as pd

from ..outcomes import COST, with_cost
from .sides import NEW, OLD

FAR = 5.0  # robust standard deviations
COLUMNS = ["run", "cell", "round", "factor"]


def far_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs whose cost lies more than five robust standard deviations above their side's median.

    Parameters
    ----------
    runs
        Finished runs of a `Duel`.

    Returns
    -------
    DataFrame, the farthest first; columns run, cell, round, factor (over the median of its side).

    Examples
    --------
    >>> runs = pd.DataFrame({"run": range(9), "cell": "old", "round": range(9)})
    >>> far_runs(runs.assign(seconds=[1, 1.1, 1, 1.1, 1, 1.1, 1, 1.1, 3]))["run"].tolist()
    [8]
    """
    logs = with_cost(runs).assign(log=lambda table: np.log(table[COST]))
    rest = logs["log"] - logs.groupby("cell")["log"].transform("median")
    spread = rest.abs().median() / 0.6745
    far = logs.assign(factor=np.exp(rest))[rest > FAR * max(spread, 1e-9)]
    return far.sort_values("factor", ascending=False)[COLUMNS]


def more_on_one_side(runs: pd.DataFrame, far: pd.DataFrame, level: float = 0.01) -> str:
    """A sentence if one side has more far runs than chance gives; else empty.

    Parameters
    ----------
    runs, far
        Finished runs, and those of them that are far.
    level
        Significance level of Fisher's exact test.
    """
    from scipy.stats import fisher_exact

    counts = {name: int((far["cell"] == name).sum()) for name in (OLD, NEW)}
    sizes = {name: int((runs["cell"] == name).sum()) for name in (OLD, NEW)}
    table = [[counts[name], sizes[name] - counts[name]] for name in (OLD, NEW)]
    p_value = float(fisher_exact(table)[1])
    if p_value >= level:
        return ""
    return (
        f"Far runs are not equally frequent: old {counts[OLD]} of {sizes[OLD]}, new {counts[NEW]}"
        f" of {sizes[NEW]} (p = {p_value:.2g}); the change of the usual run does not say that."
    )
