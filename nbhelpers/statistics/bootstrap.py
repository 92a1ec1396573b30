"""Bootstrap intervals of a statistic and of a ratio of statistics, vectorised over the resamples.

Owns the list of statistics that a comparison reports; everything else here is resampling, of single
runs or of whole rounds.
"""

from collections.abc import Callable

import numpy as np

from ..errors import InputError

CHUNK_VALUES = 2_000_000  # resampled values held at once: 16 MB

Statistic = str | Callable[..., np.ndarray]


def coefficient_of_variation(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Standard deviation over mean."""
    return np.std(values, axis=axis, ddof=1) / np.mean(values, axis=axis)


def standard_deviation(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Standard deviation with n - 1 in the denominator."""
    return np.std(values, axis=axis, ddof=1)


def percentile_95(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """The value that one in twenty exceeds."""
    return np.percentile(values, 95, axis=axis)


def percentile_99(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """The value that one in a hundred exceeds."""
    return np.percentile(values, 99, axis=axis)


STATISTICS: dict[str, Callable[..., np.ndarray]] = {
    "mean": np.mean,
    "median": np.median,
    "sd": standard_deviation,
    "cv": coefficient_of_variation,
    "p95": percentile_95,
    "p99": percentile_99,
    "max": np.max,
}


def bootstrap_interval(
    values: object,
    statistic: Statistic = "mean",
    seed: int = 0,
    level: float = 0.95,
    repeats: int = 2000,
) -> tuple[float, float]:
    """Percentile bootstrap interval of a statistic.

    Parameters
    ----------
    values
        Array of n >= 2 finite numbers.
    statistic
        a name of `STATISTICS`, or a function `f(values, axis=1)`.
    level
        Share of the resamples inside the interval.

    Raises
    ------
    InputError
        Fewer than two values, a value that is not finite, an unknown statistic.

    Notes
    -----
    Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13. The interval of a maximum is
    too narrow: no resample holds more than the largest value seen.
    """
    draws = _resampled(
        as_values(values), as_statistic(statistic), np.random.default_rng(seed), repeats
    )
    return interval_of(draws, level)


def bootstrap_ratio(
    numerator: object,
    denominator: object,
    statistic: Statistic = "mean",
    seed: int = 0,
    level: float = 0.95,
    repeats: int = 2000,
) -> tuple[float, float]:
    """Percentile bootstrap interval of `statistic(numerator) / statistic(denominator)`, two
    independent samples.

    Parameters, errors and notes as in `bootstrap_interval`.
    """
    random = np.random.default_rng(seed)
    function = as_statistic(statistic)
    above = _resampled(as_values(numerator), function, random, repeats)
    below = _resampled(as_values(denominator), function, random, repeats)
    with np.errstate(divide="ignore", invalid="ignore"):
        return interval_of(above / below, level)


def round_draws(
    above: list[np.ndarray],
    below: list[np.ndarray],
    functions: list[Callable[..., np.ndarray]],
    seed: int = 0,
    repeats: int = 2000,
) -> tuple[np.ndarray, np.ndarray]:
    """Statistics of two samples that were measured in the same rounds, the rounds resampled and
    each taken whole.

    What disturbed a round disturbed both samples, so resampling rounds keeps it out of their ratio.

    Parameters
    ----------
    above, below
        The values of each round.
    functions
        f(values, axis).

    Returns
    -------
    Two arrays, repeats × functions.
    """
    random = np.random.default_rng(seed)
    drawn = random.integers(0, len(above), (repeats, len(above)))
    return _of_rounds(above, drawn, functions), _of_rounds(below, drawn, functions)


def _of_rounds(
    values: list[np.ndarray], drawn: np.ndarray, functions: list[Callable[..., np.ndarray]]
) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        if len({part.size for part in values}) == 1:
            table = np.array(values)
            rows = max(1, CHUNK_VALUES // table.size)
            parts = [
                table[drawn[first : first + rows]].reshape(-1, table.size)
                for first in range(0, len(drawn), rows)
            ]
            return np.concatenate(
                [
                    np.column_stack([function(part, axis=1) for function in functions])
                    for part in parts
                ]
            )
        return np.array(
            [
                [function(sample, axis=0) for function in functions]
                for sample in (np.concatenate([values[place] for place in row]) for row in drawn)
            ]
        )


def as_values(values: object) -> np.ndarray:
    """A one-dimensional array of at least two finite floats."""
    array = np.asarray(values, dtype=float).ravel()
    if array.size < 2:
        raise InputError(
            f"{array.size} value(s) are too few for an interval", fix="measure at least two runs"
        )
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise InputError(
            "a value is missing or infinite",
            where=f"position {bad[0]}",
            fix="keep the runs whose status is 'ok'",
        )
    return array


def as_statistic(statistic: Statistic) -> Callable[..., np.ndarray]:
    """The function behind a name of `STATISTICS`; a function is returned as it is."""
    if callable(statistic):
        return statistic
    if statistic not in STATISTICS:
        raise InputError(
            f"unknown statistic {statistic!r}",
            fix=f"use one of {', '.join(STATISTICS)}, or a function",
        )
    return STATISTICS[statistic]


def _resampled(
    values: np.ndarray,
    function: Callable[..., np.ndarray],
    random: np.random.Generator,
    repeats: int,
) -> np.ndarray:
    rows = max(1, CHUNK_VALUES // values.size)
    sizes = [min(rows, repeats - done) for done in range(0, repeats, rows)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.concatenate(
            [function(random.choice(values, (size, values.size)), axis=1) for size in sizes]
        )


def interval_of(draws: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """The middle part of draws that holds `level` of them; NaN if none is finite."""
    draws = draws[np.isfinite(draws)]
    if not draws.size:
        return float("nan"), float("nan")
    tail = 50 * (1 - level)
    low, high = np.percentile(draws, [tail, 100 - tail])
    return float(low), float(high)
