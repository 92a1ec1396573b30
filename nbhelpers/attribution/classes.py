"""Performance classes: by hand, by thresholds, modes, tails, outliers, by time order, by quantiles,
or by the automatic cutoff.

Owns the names of the classes and which of them is explained; the tests behind them are in `cutoff`
and in `statistics.order`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import norm

from ..errors import InputError
from ..statistics.order import SHORTEST_SEGMENT, TimeOrder, time_order
from ._modes import modes_of
from .cutoff import (
    FEWEST_VALUES,
    SMALLEST_CLASS,
    Cutoff,
    bulk_scores,
    find_cutoff,
    find_tail,
    finite,
    iqr,
    thinned,
)

# outliers that a sample of the bulk alone would have, on both sides together
OUTLIERS_EXPECTED = 0.05
QUANTILES = {"median": 2, "tertiles": 3, "quartiles": 4}


@dataclass(frozen=True, eq=False)
class Classes:
    """Runs divided into performance classes.

    Attributes
    ----------
    labels
        Series of ordered categories, best class first, with the index of the values.
    marked
        Bool Series: the class to explain (the slow runs; or the left tail, or the early runs).
    how
        The rule.
    bounds
        Values between neighbouring classes, ascending; empty if the classes are no ranges of
        values.
    evidence
        Why, in words.
    """

    labels: pd.Series
    marked: pd.Series
    how: str
    bounds: tuple[float, ...]
    evidence: str

    def __repr__(self) -> str:
        counts = self.labels.value_counts(sort=False)
        return (
            f"Classes({self.how}: {', '.join(f'{count} {name}' for name, count in counts.items())})"
        )

    def _repr_html_(self) -> str:
        return f"<p><b>{repr(self)[8:-1]}.</b> {self.evidence}</p>"

    def table(self, values: object) -> pd.DataFrame:
        """Runs, share, median, least and largest value of each class.

        Parameters
        ----------
        values
            Those that were classified.
        """
        grouped = pd.Series(np.asarray(values, dtype=float), self.labels.index).groupby(
            self.labels, observed=False
        )
        table = grouped.agg(runs="size", median="median", least="min", largest="max")
        table.insert(1, "share", table["runs"] / max(len(self.labels), 1))
        return table.rename_axis("class")


def classify(
    values: object,
    how: str = "cutoff",
    *,
    at: float | Iterable[float] | None = None,
    runs: Iterable | None = None,
    higher_is_better: bool = False,
    seed: int = 0,
) -> Classes:
    """Divide runs into performance classes.

    Parameters
    ----------
    values
        Outcome of n runs in the order in which they were measured; array, or Series whose index
        names the runs.
    how
        "cutoff" (modes, a tail on the worse side, or one class, as the data have it), "modes" (any
        number), "right tail", "left tail", "outliers" (either side), "warm-up", "slow-down" (by
        time order), "median", "tertiles", "quartiles".
    at
        One threshold or several, such as the values of sliders; in place of `how`.
    runs
        The slow runs by hand: a mask of n booleans, or names from the index; in place of `how`.
    higher_is_better
        High values are the good ones.
    seed
        Of the tests.

    Returns
    -------
    Classes; one class only, with nothing marked, if the rule finds nothing; `evidence` says why.

    Raises
    ------
    InputError
        Unknown rule, a threshold or run that is not there, a value that is not finite, two rules at
        once.

    Notes
    -----
    The tests behind the rules: `find_cutoff` and `time_order`.

    Examples
    --------
    >>> classify([1.0, 1.1, 1.0, 1.9, 1.2], at=1.5)
    Classes(thresholds: 4 fast, 1 slow)
    """
    if isinstance(values, pd.Series):
        series = values
    else:
        series = pd.Series(np.asarray(values, dtype=float).ravel())
    finite(series.to_numpy(float))
    if at is not None and runs is not None:
        raise InputError("both thresholds and a list of runs", fix="pass one of the two")
    if runs is not None:
        return _by_hand(series, runs)
    if at is not None:
        bounds = np.unique(np.atleast_1d(np.asarray(at, dtype=float)))
        evidence = "The thresholds were chosen by the user."
        return _ranges(series, bounds, "thresholds", evidence, higher_is_better)
    if how not in RULES:
        raise InputError(f"there is no rule {how!r}", fix=f"choose from {', '.join(RULES)}")
    return RULES[how](series, how, higher_is_better, seed)


def _by_hand(series: pd.Series, runs: Iterable) -> Classes:
    chosen = np.asarray(list(runs))
    if chosen.dtype == bool and chosen.size == len(series):
        marked = chosen
    else:
        strange = [name for name in chosen.tolist() if name not in series.index]
        if strange:
            raise InputError(
                f"there is no run {strange[0]!r}",
                fix="name runs by the index of the values, or give a mask of as many booleans",
            )
        marked = series.index.isin(chosen)
    return _two_classes(
        series, marked, ("other", "slow"), "by hand", (), "The slow runs were chosen by hand."
    )


def _two_classes(
    series: pd.Series,
    marked: np.ndarray,
    names: tuple[str, str],
    how: str,
    bounds: tuple,
    evidence: str,
) -> Classes:
    """The marked runs and the others; `names` from best to worst, the marked class is the one that
    is not "other" or "typical".
    """
    place = 0 if names[1] in ("other", "typical") else 1
    codes = np.where(marked, place, 1 - place)
    return _classes(series, codes, names, marked, how, bounds, evidence)


def _classes(
    series: pd.Series,
    codes: np.ndarray,
    names: tuple[str, ...],
    marked: np.ndarray,
    how: str,
    bounds: Iterable,
    evidence: str,
) -> Classes:
    labels = pd.Series(
        pd.Categorical.from_codes(codes, list(names), ordered=True), series.index, name="class"
    )
    return Classes(
        labels,
        pd.Series(np.asarray(marked, bool), series.index, name="marked"),
        how,
        tuple(float(bound) for bound in bounds),
        evidence,
    )


def _one_class(series: pd.Series, how: str, evidence: str) -> Classes:
    return _classes(
        series,
        np.zeros(len(series), int),
        ("one class",),
        np.zeros(len(series), bool),
        how,
        (),
        evidence,
    )


def _ranges(
    series: pd.Series,
    bounds: np.ndarray,
    how: str,
    evidence: str,
    higher_is_better: bool,
    names: tuple[str, ...] = (),
) -> Classes:
    """Classes between ascending bounds; a value at a bound belongs to the better side."""
    values = series.to_numpy(float)
    codes = np.searchsorted(bounds, values, side="right" if higher_is_better else "left")
    codes = len(bounds) - codes if higher_is_better else codes
    names = names or _range_names(len(bounds) + 1)
    return _classes(series, codes, names, codes == len(bounds), how, bounds, evidence)


def _range_names(count: int) -> tuple[str, ...]:
    if count <= 2:
        return ("fast", "slow")[-count:]
    middle = (
        ("medium",) if count == 3 else tuple(f"medium {number}" for number in range(1, count - 1))
    )
    return ("fast", *middle, "slow")


def _by_cutoff(series: pd.Series, how: str, higher_is_better: bool, seed: int) -> Classes:
    found = find_cutoff(series.to_numpy(), seed, higher_is_better)
    return from_cutoff(series, found)


def from_cutoff(series: pd.Series, cutoff: Cutoff) -> Classes:
    """The two classes of a cutoff, or the one."""
    if cutoff.value is None:
        return _one_class(series, "cutoff", cutoff.evidence)
    return _ranges(
        series, np.array([cutoff.value]), cutoff.kind, cutoff.evidence, cutoff.higher_is_better
    )


def _by_modes(series: pd.Series, how: str, higher_is_better: bool, seed: int) -> Classes:
    values, random = series.to_numpy(float), np.random.default_rng(seed)
    cuts = sorted(_split(values, random))
    if not cuts:
        return _one_class(series, how, "The runs have one mode.")
    names = tuple(f"mode {number}" for number in range(1, len(cuts) + 2))
    bounds = np.array([bound for bound, _ in cuts])
    evidence = f"{len(names)} modes. " + " ".join(why for _, why in cuts)
    return _ranges(series, bounds, how, evidence, higher_is_better, names)


def _split(values: np.ndarray, random: np.random.Generator) -> list[tuple[float, str]]:
    """Cuts between modes: the clearest valley, then those of either part."""
    if values.size < FEWEST_VALUES or np.ptp(values) == 0:
        return []
    found = modes_of(thinned(values), random)
    if found.value is None:
        return []
    why = found.sentence()
    return [
        *_split(values[values <= found.value], random),
        (found.value, f"At {found.value:.4g}: {why[0].lower()}{why[1:]}"),
        *_split(values[values > found.value], random),
    ]


def _by_tail(series: pd.Series, how: str, higher_is_better: bool, seed: int) -> Classes:
    """A tail of low values is found as the right tail of the negated ones."""
    sign = -1 if how == "left tail" else 1
    values = np.sort(sign * series.to_numpy(float))
    if values.size < FEWEST_VALUES or iqr(values) == 0:
        return _one_class(series, how, f"{values.size} runs, too few or too equal to have a tail.")
    cutoff, why_not = find_tail(thinned(values), np.random.default_rng(seed))
    if cutoff is None or cutoff.value is None:
        return _one_class(series, how, why_not.replace("right tail", how))
    marked = sign * series.to_numpy(float) > cutoff.value
    slow_side = (sign < 0) == higher_is_better
    names = ("typical", "slow tail") if slow_side else ("fast tail", "typical")
    evidence = cutoff.evidence.replace("right tail", how)
    return _two_classes(series, marked, names, how, (sign * cutoff.value,), evidence)


def _by_outliers(series: pd.Series, how: str, higher_is_better: bool, seed: int) -> Classes:
    values = series.to_numpy(float)
    if values.size < FEWEST_VALUES or iqr(np.sort(values)) == 0:
        return _one_class(
            series, how, f"{values.size} runs, too few or too equal to have outliers."
        )
    limit = float(norm.isf(OUTLIERS_EXPECTED / 2 / values.size))
    high, low = (_beyond(sign * values, limit) for sign in (1, -1))
    slow, fast = (low, high) if higher_is_better else (high, low)
    if not (slow | fast).any():
        return _one_class(series, how, f"No run lies beyond {limit:.1f} sd of the bulk.")
    codes = 1 + slow.astype(int) - fast
    evidence = (
        f"{slow.sum()} slow and {fast.sum()} fast runs lie beyond {limit:.1f} sd of the bulk;"
        f" {OUTLIERS_EXPECTED:g} would by chance."
    )
    return _classes(
        series, codes, ("fast outlier", "typical", "slow outlier"), slow | fast, how, (), evidence
    )


def _beyond(values: np.ndarray, limit: float) -> np.ndarray:
    order = np.argsort(values)
    beyond = np.empty(values.size, bool)
    beyond[order] = bulk_scores(values[order])[0] > limit
    return beyond & (values > np.median(values))


def _by_time(series: pd.Series, how: str, higher_is_better: bool, seed: int) -> Classes:
    found = time_order(series.to_numpy(), seed, higher_is_better)
    places = np.arange(len(series))
    at = _boundary(found, how)
    if at is None:
        return _one_class(series, how, f"No {how}. {found.evidence}")
    marked = places < at if how == "warm-up" else places >= at
    name = "early" if how == "warm-up" else "late"
    return _two_classes(series, marked, ("other", name), how, (), found.evidence)


def _boundary(found: TimeOrder, how: str) -> int | None:
    """A warm-up ends at the first change, a slow-down begins at the last; a drift is neither."""
    if found.kind != how or not found.changes:
        return None
    return max(found.changes[0], SHORTEST_SEGMENT) if how == "warm-up" else found.changes[-1]


def _by_quantiles(series: pd.Series, how: str, higher_is_better: bool, seed: int) -> Classes:
    parts = QUANTILES[how]
    if len(series) < parts * SMALLEST_CLASS:
        return _one_class(
            series,
            how,
            f"Only {len(series)} runs: at least {parts * SMALLEST_CLASS} are needed for {how}.",
        )
    bounds = np.unique(np.quantile(series.to_numpy(float), np.arange(1, parts) / parts))
    evidence = f"Cut at the {how}: these classes are always there, whatever the data."
    return _ranges(series, bounds, how, evidence, higher_is_better)


RULES = {
    "cutoff": _by_cutoff,
    "modes": _by_modes,
    "right tail": _by_tail,
    "left tail": _by_tail,
    "outliers": _by_outliers,
    "warm-up": _by_time,
    "slow-down": _by_time,
    **dict.fromkeys(QUANTILES, _by_quantiles),
}
