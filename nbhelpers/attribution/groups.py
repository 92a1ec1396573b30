"""Counters that move together: runs of this kind cannot tell the members of a group apart."""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from ..statistics.order import standard_ranks

GROUP_CORRELATION = 0.7  # mean correlation within a group


def correlation_strength(values: np.ndarray) -> np.ndarray:
    """The larger of Pearson's correlation (counters that are zero in most runs) and Spearman's
    (monotone but curved), without sign (k × k, 0 to 1).
    """
    if values.shape[1] < 2:
        return np.ones((values.shape[1],) * 2)
    return np.maximum(_correlation(values), _correlation(standard_ranks(values)))


def correlation_groups(strength: np.ndarray) -> list[np.ndarray]:
    """Groups of columns (places): data of this kind cannot tell the members of one apart. Average
    linkage on 1 − strength.

    Parameters
    ----------
    strength
        Matrix of `correlation_strength`, k × k, 0 to 1.

    Returns
    -------
    Arrays of places, in the order of their first members.
    """
    if len(strength) < 2:
        return [np.arange(1)] * len(strength)
    distance = np.clip(1 - strength, 0, 1)
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average")
    labels = fcluster(tree, 1 - GROUP_CORRELATION, "distance")
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return sorted(groups, key=lambda members: members[0])


def _correlation(values: np.ndarray) -> np.ndarray:
    centred = values - np.nanmean(values, axis=0)  # a gap is at 0: associated with nothing
    return np.abs(np.corrcoef(np.nan_to_num(centred), rowvar=False))
