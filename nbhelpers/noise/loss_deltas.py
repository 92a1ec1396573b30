"""What a run lost beyond the typical run: losses less what every run loses.

Owns that subtraction. As with events (`delta_noise`), what is left has the times of the run itself.
"""

from collections.abc import Collection

import numpy as np
import pandas as pd

from ..errors import InputError
from ._tables import require_columns
from .losses import COLUMNS, SLOW


def loss_delta(losses: pd.DataFrame, runs: pd.DataFrame, ordinary: Collection[int]) -> pd.DataFrame:
    """Reduce the losses of each run by what ordinary runs lose in the same time, cause by cause.

    Parameters
    ----------
    losses
        Of several runs, all CPUs: `run` and the columns of `loss_config`.
    runs
        The runs: `run`, `region_seconds`.
    ordinary
        Numbers of the runs that are typical.

    Returns
    -------
    The same rows with less in `lost_ns`; those that lost nothing beyond are left out.

    Raises
    ------
    InputError
        No run is ordinary, or a column is missing.

    Notes
    -----
    An ordinary run loses a share of its time. As much is taken off: off each interval without the
    CPU the same time, and off each phase the same share of its length, but never more than there
    is. So ticks and the probe's own noise disappear, and what stands out stays where it was.
    """
    require_columns(losses, ("run", *COLUMNS), "losses")
    region_ns = runs.set_index("run")["region_seconds"] * 1e9
    usual = region_ns.reindex(list(ordinary)).dropna()
    if not len(usual):
        raise InputError("no ordinary run", fix="name some of the runs, such as the middle half")
    of_ordinary = losses[losses["run"].isin(usual.index)]
    rates = of_ordinary.groupby("cause")["lost_ns"].sum() / usual.sum()
    left = [
        _less(part, rates.get(cause, 0.0) * region_ns[run], cause in SLOW)
        for (run, cause), part in losses.groupby(["run", "cause"], observed=True)
    ]
    delta = pd.concat(left).sort_index() if left else losses
    return delta[delta["lost_ns"] > 0]


def _less(part: pd.DataFrame, typical_ns: float, is_slow: bool) -> pd.DataFrame:
    """Rows of one run and cause less `typical_ns` in all: from each what one level, times its
    weight, takes away.
    """
    lost_ns = part["lost_ns"].to_numpy(float)
    length_ns = (part["end_ns"] - part["start_ns"]).to_numpy(float)
    weight = np.maximum(length_ns, 1) if is_slow else np.ones(len(part))
    left_ns = np.maximum(lost_ns - _level(lost_ns, weight, typical_ns) * weight, 0)
    # rounded in sum, not row by row
    whole_ns = np.diff(np.rint(np.cumsum(left_ns)), prepend=0).astype(np.int64)
    return part.assign(lost_ns=np.minimum(whole_ns, part["lost_ns"].to_numpy()))


def _level(lost: np.ndarray, weight: np.ndarray, less: float) -> float:
    """The level at which all that is below it, Σ min(lost, level × weight), is `less`."""
    order = np.argsort(lost / weight, kind="stable")
    lost, weight = lost[order], weight[order]
    levels = lost / weight
    below = np.cumsum(lost) + levels * (weight.sum() - np.cumsum(weight))
    return float(np.interp(less, np.append(0, below), np.append(0, levels)))
