"""The questions of fairness of Persson et al. 2025, section 5.2: whose trace disturbs whom, and
what a fixed length of noise does to longer runs.

Owns the contrasts of slow-downs; the disturbances are planted on page 40.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ...statistics.claims import Claim
from ..findings import Finding
from .claims import by_round


def slowdowns(
    runs: pd.DataFrame, by: list[str], levels: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Log slow-downs over the undisturbed run of the same round, and differences in stolen time: a
    row a pair of runs, columns by levels, then `log` and `steal_s`.

    Parameters
    ----------
    runs
        With `noise_kind` (undisturbed, and what disturbs), `seconds` and perhaps `steal_s`.
    by
        Columns that a pair agrees in, `round` among them.
    levels
        Columns that are compared, the last `noise_kind`, each with all its values; what was not
        measured is missing.

    Examples
    --------
    >>> kinds = ["undisturbed", "fixed", "scaled"]
    >>> runs = pd.DataFrame({"noise_kind": kinds, "round": 0, "seconds": [1, 1.25, 1.5]})
    >>> found = slowdowns(runs, ["round"], {"noise_kind": ["fixed", "scaled"]})
    >>> np.exp(found["scaled", "log"]).round(2).tolist()
    [1.5]
    """
    data = runs.assign(log=np.log(runs["seconds"]), steal_s=runs.get("steal_s", 0.0))
    values = data.groupby([*by, *levels], observed=True)[["log", "steal_s"]].mean()
    is_calm = values.index.get_level_values("noise_kind") == "undisturbed"
    calm, disturbed = values[is_calm].droplevel("noise_kind"), values[~is_calm]
    less = disturbed - calm.reindex(disturbed.index.droplevel("noise_kind")).to_numpy()
    wide = less.unstack(list(levels))
    wide.columns = wide.columns.reorder_levels([*levels, None])
    every = pd.MultiIndex.from_product([*levels.values(), ["log", "steal_s"]])
    return wide.reindex(columns=every.set_names([*levels, None]))


def contrast(claim: Claim, pairs: pd.DataFrame) -> Finding:
    """A claim about the mean of a contrast of slow-downs, to be judged with others.

    Parameters
    ----------
    claim
        What is claimed.
    pairs
        The contrast: `log` and `steal_s` of pairs, sums of columns of `slowdowns`.
    """
    pairs = pairs.dropna(subset="log")
    here = by_round(pairs, "" if len(pairs) else "the runs that it compares were not measured")
    return Finding(claim, here, steal=pairs["steal_s"].fillna(0).to_numpy())
