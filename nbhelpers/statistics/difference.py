"""Do two samples differ: in location, in dispersion, in distribution? By shuffling labels, within
rounds where there are rounds.

Owns the three statistics and the correction for three tests.
"""

import numpy as np
import pandas as pd

from .intervals import Values

SHUFFLES = 1999
CHUNK_VALUES = 4_000_000  # shuffled labels held at once


def difference_tests(
    before: np.ndarray,
    after: np.ndarray,
    rounds_before: np.ndarray | None = None,
    rounds_after: np.ndarray | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Permutation tests of three differences, with Holm's correction.

    Parameters
    ----------
    before, after
        Values of either sample.
    rounds_before, rounds_after
        Round of each value; labels are then exchanged within a round only, so that drift is no
        difference.
    seed
        Of the shuffles.

    Returns
    -------
    DataFrame, index location, dispersion, distribution; columns statistic, p_value, p_holm
    (corrected for the three), differs (p_holm at most 0.05).

    Notes
    -----
    Location: rank sum (Wilcoxon, Mann and Whitney). Dispersion: distances from the median of each
    sample (Brown and Forsythe 1974). Distribution: Anderson and Darling's two-sample statistic
    (Scholz and Stephens 1987).
    """
    labels = np.repeat([0.0, 1.0], [before.size, after.size])
    values = np.concatenate([before, after])
    if rounds_before is None or rounds_after is None:
        rounds = np.zeros(values.size)
    else:
        rounds = np.concatenate([rounds_before, rounds_after])
    statistics = _Statistics.of(before, after, values)
    observed = statistics.of_labels(labels[None])[:, 0]
    random = np.random.default_rng(seed)
    least = observed[:, None] * (1 - 1e-12)
    as_large = np.zeros(3)
    chunk = max(1, CHUNK_VALUES // values.size)
    for done in range(0, SHUFFLES, chunk):
        shuffled = _shuffled(labels, rounds, min(chunk, SHUFFLES - done), random)
        as_large += (statistics.of_labels(shuffled) >= least).sum(axis=1)
    p_values = (as_large + 1) / (SHUFFLES + 1)
    corrected = holm(p_values)
    return pd.DataFrame(
        {
            "statistic": observed,
            "p_value": p_values,
            "p_holm": corrected,
            "differs": corrected <= 0.05,
        },
        index=pd.Index(["location", "dispersion", "distribution"], name="difference"),
    )


def holm(p_values: Values) -> np.ndarray:
    """p-values corrected for their number (Holm 1979).

    Parameters
    ----------
    p_values
        Of as many tests.

    Returns
    -------
    Array of corrected p-values, in the same order.

    Examples
    --------
    >>> holm([0.25, 0.125]).tolist()
    [0.25, 0.25]
    """
    values = np.asarray(p_values, dtype=float)
    order = np.argsort(values)
    scaled = np.maximum.accumulate(values[order] * np.arange(len(order), 0, -1))
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(scaled, 1)
    return corrected


class _Statistics:
    """What labels are multiplied with: centred ranks, centred distances from the median, and the
    order of the values.
    """

    def __init__(
        self, ranks: np.ndarray, distances: np.ndarray, order: np.ndarray, last_of_equal: np.ndarray
    ):
        self.ranks = ranks
        self.distances = distances
        self.order = order
        self.last_of_equal = last_of_equal

    @classmethod
    def of(cls, before: np.ndarray, after: np.ndarray, values: np.ndarray) -> "_Statistics":
        from scipy.stats import rankdata

        distances = np.concatenate(
            [np.abs(sample - np.median(sample)) for sample in (before, after)]
        )
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        ranks = rankdata(values)
        return cls(
            ranks - ranks.mean(),
            distances - distances.mean(),
            order,
            np.append(ordered[1:] > ordered[:-1], False),
        )

    def of_labels(self, labels: np.ndarray) -> np.ndarray:
        """The three statistics (rows) of each row of labels."""
        size, ones = labels.shape[1], labels[0].sum()
        below = np.cumsum(labels[:, self.order], axis=1)[:, self.last_of_equal]
        place = (np.arange(1, size + 1))[self.last_of_equal]
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = (below / ones - (place - below) / (size - ones)) ** 2 / (
                place * (size - place)
            )
        return np.array(
            [
                np.abs(labels @ self.ranks),
                np.abs(labels @ self.distances),
                spread.sum(axis=1) * ones * (size - ones),
            ]
        )


def _shuffled(
    labels: np.ndarray, rounds: np.ndarray, count: int, random: np.random.Generator
) -> np.ndarray:
    """Labels exchanged within rounds, a row a shuffle."""
    _, codes = np.unique(rounds, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    keys = codes[order] + random.random((count, labels.size))
    shuffled = np.empty((count, labels.size))
    shuffled[:, order] = labels[order][np.argsort(keys, axis=1)]
    return shuffled
