"""Median and trimmed mean with their intervals, to stand beside a mean that one run can decide.

Owns which runs a trimmed mean leaves out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .evidence import satterthwaite
from .intervals import (
    Interval,
    as_values,
    bootstrap_interval,
    percentile_interval,
    resampled_rounds,
)

TRIMMED_SHARE = 0.1  # of the runs, left out at each end
FEWEST_TO_TRIM = 5  # of fewer runs none is left out: what remained would say nothing of a spread
FEWEST_ROUNDS = 8  # fewer say too little of how rounds differ; runs then stand for themselves
_REPEATS = 2000

Pair = tuple[pd.DataFrame, pd.DataFrame]


# One sample
# --------------------------------------------------------------------------------------------------


def trimmed_count(size: int) -> int:
    """How many values a trimmed mean leaves out at each end: a tenth, and at least one of five."""
    return max(1, int(TRIMMED_SHARE * size)) if size >= FEWEST_TO_TRIM else 0


def trimmed_mean(values: np.ndarray, axis: int | None = None) -> np.ndarray | float:
    """The mean without a tenth of the values at each end, and without at least one of five.

    Examples
    --------
    >>> float(trimmed_mean([1.0, 1.1, 1.2, 1.3, 9.0]))
    1.2
    """
    ordered = np.sort(values, axis=axis)
    axis = -1 if axis is None else axis
    cut = trimmed_count(ordered.shape[axis])
    return np.take(ordered, range(cut, ordered.shape[axis] - cut), axis=axis).mean(axis=axis)


def _moves(values: np.ndarray) -> np.ndarray:
    """How much each value moves the trimmed mean of them all (its influence, over n).

    A value that is left out counts like the outermost one that is not: however far it is, it
    moves no more.
    """
    ordered, cut = np.sort(values), trimmed_count(values.size)
    held = np.clip(values, ordered[cut], ordered[values.size - cut - 1])
    return (held - held.mean()) / (values.size - 2 * cut)


def _half_width(strata: Sequence[np.ndarray]) -> float:
    """Half the width of Student's 95 % interval, from what each unit of each stratum adds.

    Strata are independent of each other; their degrees of freedom are Satterthwaite's.
    """
    from scipy.stats import t

    sizes = np.array([moves.size for moves in strata])
    variances = sizes / (sizes - 1) * [np.sum(moves**2) for moves in strata]
    # one less than the values that a trimmed mean is made of
    freedoms = np.array([moves.size - 2 * trimmed_count(moves.size) - 1 for moves in strata])
    return float(t.ppf(0.975, satterthwaite(variances, freedoms)) * np.sqrt(variances.sum()))


def trimmed_interval(values: object) -> Interval:
    """Trimmed mean and its 95 % Student interval by the winsorised variance.

    Parameters
    ----------
    values
        One number a run; at least two.

    Returns
    -------
    Interval, in the unit of the values.

    Notes
    -----
    Tukey and McLaughlin 1963; Wilcox, Introduction to Robust Estimation (2017), section 4.3. The
    percentile bootstrap is no help here: of 16 runs a quarter of the resamples hold the farthest
    one twice or more, and its interval is as long as the mean's.

    Examples
    --------
    >>> trimmed_interval([1.0, 1.1, 1.2, 1.3, 1.4, 9.0]).value
    1.25
    """
    sample = as_values(values)
    value = float(trimmed_mean(sample))
    half = _half_width([_moves(sample)])
    return Interval(value, value - half, value + half, sample.size)


def error_columns(values: object, target: float) -> dict[str, float]:
    """How near runs come to a number that they should reproduce, as columns of a table.

    Parameters
    ----------
    values
        One number a run; at least two.
    target
        What they should be: the run time of the one run that they replay. It is a constant; only
        what is compared with it has an interval.

    Returns
    -------
    `error_percent` (abs(mean / target − 1)), from `error_low_percent` (0 where the interval of the
    ratio holds 1) to `error_high_percent`; `ratio` (mean / target), `median_ratio` and
    `trimmed_ratio`, each with its 95 % interval (`low`, `high`; `median_ratio_low` and so on).

    Examples
    --------
    >>> found = error_columns([1.0, 1.1, 1.2, 1.3, 1.4], 2.0)
    >>> found["error_percent"], found["median_ratio"]
    (40.0, 0.6)
    """
    sample = as_values(values)
    ratio = float(sample.mean()) / target
    ends = [bound / target for bound in bootstrap_interval(sample, "mean")]
    least, most = sorted(abs(end - 1) for end in ends)
    errors = abs(ratio - 1), 0.0 if ends[0] <= 1 <= ends[1] else least, most
    columns = {f"error{end}_percent": 100 * of for end, of in zip(("", "_low", "_high"), errors)}
    columns |= dict(zip(("ratio", "low", "high"), (ratio, *ends)))
    median = Interval(float(np.median(sample)), *bootstrap_interval(sample, "median"), sample.size)
    intervals = {"median": median, "trimmed": trimmed_interval(sample)}
    return columns | {
        f"{name}_ratio{end}": bound / target
        for name, found in intervals.items()
        for end, bound in zip(("", "_low", "_high"), found[:3])
    }


# Ratios
# --------------------------------------------------------------------------------------------------


def increase_columns(ratios: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Increases in per cent, with their intervals, as columns of a table.

    Parameters
    ----------
    ratios
        Ratios by name, each with value, low and high, such as `robust_ratio` returns.

    Returns
    -------
    For a ratio named `median`: `median_percent`, `median_low_percent`, `median_high_percent`.

    Examples
    --------
    >>> increase_columns({"median": (1.5, 1.25, 2.0)})["median_low_percent"]
    25.0
    """
    return {
        f"{name}{end}_percent": 100 * (bound - 1)
        for name, found in ratios.items()
        for end, bound in zip(("", "_low", "_high"), found[:3])
    }


def robust_ratio(pairs: Sequence[Pair], seed: int = 0) -> dict[str, Interval]:
    """Ratio of medians and of trimmed means of run times, or the mean of such ratios over several
    pairs, with 95 % intervals.

    Parameters
    ----------
    pairs
        Pairs of tables of finished runs: (above, below), with `seconds`. Where at least eight
        rounds (`round`) hold runs of all cells, whole rounds are the units that differ by chance,
        else the runs.
    seed
        Seed of the bootstrap, for the medians.

    Returns
    -------
    `median` and `trimmed`; `size` is the number of rounds, or of the runs of the smallest cell.

    Examples
    --------
    >>> below = pd.DataFrame({"seconds": [1.0, 1.1, 1.2, 1.3, 9.0]})
    >>> above = pd.DataFrame({"seconds": [2.0, 2.2, 2.4, 2.6, 2.8]})
    >>> robust_ratio([(above, below)])["trimmed"].value
    2.0
    """
    cells, rounds = _cells(pairs)
    trimmed = trimmed_ratio(pairs)
    value = float(_mean_ratio([np.median(cell.values) for cell in cells]))
    low, high = percentile_interval(_mean_ratio(_median_draws(cells, rounds, seed)))
    return {"median": Interval(value, low, high, trimmed.size), "trimmed": trimmed}


def trimmed_ratio(pairs: Sequence[Pair]) -> Interval:
    """Ratio of trimmed means, or the mean of such ratios over several pairs.

    Parameters
    ----------
    pairs
        Pairs of tables of runs; see `robust_ratio`.

    Returns
    -------
    Interval.

    Notes
    -----
    Student's interval by the winsorised variance, of differences in a round where there are rounds
    (Yuen 1974; Wilcox 2017, section 5.9.5), carried over to the ratio to first order.
    """
    cells, rounds = _cells(pairs)
    half = _half_width(list(_strata(cells, rounds).values()))
    value = float(_mean_ratio([trimmed_mean(cell.values) for cell in cells]))
    size = rounds or min(cell.values.size for cell in cells)
    return Interval(value, value - half, value + half, size)


@dataclass(frozen=True, eq=False)
class _Cell:
    """Values, the unit that each belongs to (its round, or itself), and which cell this is."""

    values: np.ndarray
    units: np.ndarray
    number: int


def _cells(pairs: Sequence[Pair]) -> tuple[list[_Cell], int]:
    """A cell for each table, and how many rounds hold runs of all; 0 if they are too few to be the
    units. Several pairs may share a table, whose cells then have one number.
    """
    tables = [runs for pair in pairs for runs in pair]
    rounds = 0
    if all("round" in runs for runs in tables):
        rounds = len(set.intersection(*(set(runs["round"]) for runs in tables)))
        rounds = rounds if rounds >= FEWEST_ROUNDS else 0
    numbers: dict[tuple, int] = {}
    cells = []
    for runs in tables:
        values = as_values(runs["seconds"])
        units = (runs["round"] if rounds else runs.index).to_numpy()
        number = numbers.setdefault((*units, *values), len(numbers))
        cells.append(_Cell(values, units, number))
    return cells, rounds


def _mean_ratio(values: Sequence) -> np.ndarray | float:
    """The mean of the ratios of above, below, above, below, …"""
    ratios = [above / below for above, below in zip(values[::2], values[1::2])]
    return np.mean(ratios, axis=0)


def _median_draws(cells: Sequence[_Cell], rounds: int, seed: int) -> list[np.ndarray]:
    """Resampled medians of each cell: by the same rounds, or each by runs of its own."""
    together = np.unique(np.concatenate([cell.units for cell in cells]))
    draws = {}
    for cell in {one.number: one for one in cells}.values():  # several pairs may share a table
        units = together if rounds else cell.units
        random = np.random.default_rng(seed if rounds else [seed, cell.number])
        drawn = random.integers(0, units.size, (_REPEATS, units.size))
        tables = resampled_rounds([cell.values[cell.units == unit] for unit in units], drawn)
        draws[cell.number] = np.concatenate([np.median(table, axis=1) for table in tables])
    return [draws[cell.number] for cell in cells]


def _strata(cells: Sequence[_Cell], rounds: int) -> dict[int, np.ndarray]:
    """How much each unit moves the mean ratio of trimmed means, to first order.

    The strata are the cells; where rounds are the units they are the one stratum.
    """
    means = [float(trimmed_mean(cell.values)) for cell in cells]
    moves: dict[int, dict[object, float]] = {}
    for place, cell in enumerate(cells):  # they come in pairs: above, below
        below = means[place | 1]
        slope = -means[place - 1] / below**2 if place % 2 else 1 / below
        stratum = moves.setdefault(0 if rounds else cell.number, {})
        for unit, move in zip(cell.units, 2 / len(cells) * slope * _moves(cell.values)):
            stratum[unit] = stratum.get(unit, 0.0) + move
    return {number: np.array(list(stratum.values())) for number, stratum in moves.items()}
