"""Evidence on variation: does one of two sets of runs vary more than the other?

Owns the measure of variation that one number a round can be made of, so that claims on variation
are judged like all others.
"""

import numpy as np
import pandas as pd

from .evidence import Evidence

FEWEST_RUNS = 4  # of each side; one is left out, and of two a spread means nothing


def variation_evidence(
    pairs: pd.DataFrame, strata: list[str], unit: str = "round", unmeasurable: str = ""
) -> Evidence:
    """Logarithms of a ratio of variations (first / second), one a unit and stratum.

    Variation is the typical relative difference of two runs: the geometric mean over all pairs of
    runs. Where both sides have the same shape of distribution its ratio is that of the coefficients
    of variation.

    Parameters
    ----------
    pairs
        A row a pair of runs: `first` and `second` (positive), the columns of `strata`, and `unit`.
    strata
        Columns that name what varies by itself: program, configuration and so on.
    unit
        Column of the units.
    unmeasurable
        Why the claim cannot be measured here; empty: it can. As in `Evidence`.

    Returns
    -------
    Evidence; strata of fewer than four pairs are left out.

    Notes
    -----
    The jackknife of the coefficient of variation itself (Miller 1968) finds a difference where
    there is none in 50 % of the cases in which one run of ten is slow (level 1 %: 10 %); this one
    keeps its level (tests/statistics/test_variation.py).

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> pairs = pd.DataFrame({"round": range(30), "first": random.normal(1, 0.2, 30)})
    >>> pairs["second"], pairs["program"] = random.normal(1, 0.1, 30), "nbody"
    >>> bool(variation_evidence(pairs, ["program"]).estimate.mean > 0.5)
    True
    """
    parts = [
        rows.assign(
            log=log_variations(rows["first"].to_numpy(float))
            - log_variations(rows["second"].to_numpy(float)),
            stratum=" ".join(map(str, name)),
        )
        for name, rows in pairs.groupby(strata, sort=False, observed=True)
        if len(rows) >= FEWEST_RUNS
    ]
    table = pd.concat(parts) if parts else pd.DataFrame(columns=["log", "stratum", unit])
    return Evidence(
        table["log"].to_numpy(float),
        table[unit].to_numpy(),
        table["stratum"].to_numpy(),
        unmeasurable,
    )


def log_variations(values: np.ndarray) -> np.ndarray:
    """What each value adds to the logarithm of how much the values vary.

    Parameters
    ----------
    values
        At least three, positive.

    Returns
    -------
    Array whose mean is the mean logarithm of |log a − log b| over all pairs of values, and whose
    spread says how well it is known: its pseudo-values of the jackknife. NaN where nothing varies.

    Notes
    -----
    Arvesen, Jackknifing U-statistics (Annals of Mathematical Statistics 1969). A difference of 0
    counts as the smallest one that is not.

    Examples
    --------
    >>> values = np.array([1.0, 1.1, 1.3, 1.2])
    >>> bool(
    ...     np.isclose(log_variations(values**2).mean() - log_variations(values).mean(), np.log(2))
    ... )
    True
    """
    size, logs = values.size, np.log(values)
    apart = np.abs(logs[:, None] - logs[None, :])
    if not (apart > 0).any():
        return np.full(size, np.nan)
    distances = np.log(np.where(apart > 0, apart, apart[apart > 0].min()))
    np.fill_diagonal(distances, 0)
    by_value = distances.sum(axis=1)
    total = by_value.sum()
    without = (total - 2 * by_value) / ((size - 1) * (size - 2))
    return total / (size - 1) - (size - 1) * without
