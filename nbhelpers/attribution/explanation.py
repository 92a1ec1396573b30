"""Which counters are associated with the slow runs: one call that answers with a factor, or with
none.

Owns the explanation. The choice of columns is in `screening`, the search with its null in `search`,
the tree in `tree`, the words in `_words`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..outcomes import outcome_of
from ..statistics.intervals import column_intervals
from ..statistics.order import TimeOrder, positions, standard_ranks, time_order
from . import tree as trees
from ._words import RIVAL, as_html, summary_of
from .classes import Classes
from .cutoff import FEWEST_VALUES, Cutoff, find_cutoff
from .screening import Consequences, Screen
from .search import Null, Search, SearchResult, default_workers, null_distribution

# of the whole search: campaigns are searched often, so one false find in a hundred, not in twenty
SIGNIFICANCE = 0.01
PERMUTATIONS = 200
FEWEST_SLOW = 4  # slow runs, and fast ones
FACTOR_LEVEL = 0.05  # corrected p-value from which a group counts as a separate factor
MOST_SHARED = 4  # factors among which the variance is divided: it takes 2**n models
DRIFTS = 0.5  # rank correlation with the position in the campaign from which a counter drifts
FACTOR_COLUMNS = [
    "factor",
    "members",
    "importance",
    "low",
    "high",
    "root_share",
    "direction",
    "slow_median",
    "fast_median",
    "separation",
    "variance_share",
    "drifts",
    "p_value",
]


@dataclass(frozen=True, eq=False)
class Explanation:
    """What separates the slow runs from the others.

    Attributes
    ----------
    found
        Whether anything does, at a p-value of at most 0.01.
    p_value
        Of the whole search, by shuffled outcomes; NaN if there was nothing to search, or no null
        was computed.
    factors
        DataFrame, a row a group of counters that move together; empty if nothing was found. Index
        rank: first groups that separate on their own, then by importance. Rivals for the first
        split are ordered by the share of the outcome's variance that they explain.
        Columns: factor (the most central member); members (all of them); importance (the loss of
        balanced accuracy on unseen runs when the factor is shuffled, mean over bootstrapped trees)
        with its 95 % interval low and high; root_share (of these trees, those that split on it
        first); direction ("higher" or "lower" in slow runs); slow_median, fast_median; separation
        (chance that a slow run has the larger value); variance_share (of the outcome, on unseen
        runs, overlaps divided; NaN for groups that are no factors); drifts (it follows the position
        in the campaign); p_value (of the group alone, corrected for the number of columns).
    tree
        Fitted `DecisionTreeClassifier` of depth at most 3 on the leaders of all groups, None if
        nothing was found.
    features
        Columns of the tree, in its order.
    accuracy, accuracy_interval
        Balanced accuracy on runs the tree had not seen, and its 95 % interval; 0.5 is guessing.
    labels
        Bool Series, True for the slow runs, with the index of the runs table.
    cutoff
        The cutoff used or found.
    threshold
        Value of the outcome beyond which a run counts as slow here; NaN if the classes are no
        ranges of values.
    excluded
        Reason for each column that was not searched.
    outcome
        Name of the column explained.
    order
        Whether the order of the runs matters; if so, the shuffles moved blocks of neighbours.
    higher_is_better
        The slow runs are those with the low values.
    summary
        The result in words.
    unit
        Of the outcome.
    """

    found: bool
    p_value: float
    factors: pd.DataFrame
    tree: object | None
    features: list[str]
    accuracy: float
    accuracy_interval: tuple[float, float]
    labels: pd.Series
    cutoff: Cutoff
    threshold: float
    excluded: dict[str, str] = field(repr=False)
    outcome: str = "seconds"
    order: TimeOrder | None = None
    higher_is_better: bool = False
    summary: str = ""
    unit: str = ""

    def __repr__(self) -> str:
        first = self.factors["factor"].iloc[0] if self.found else "nothing found"
        return (
            f"Explanation({first}, p = {self.p_value:.3f}, {int(self.labels.sum())} of"
            f" {len(self.labels)} runs slow)"
        )

    def _repr_html_(self) -> str:
        return as_html(self)


def explain(
    runs: pd.DataFrame,
    outcome: str | None = None,
    cutoff: float | str | Cutoff | Classes | None = None,
    exclude: Iterable[str] = (),
    seed: int = 0,
    permutations: int = PERMUTATIONS,
    *,
    higher_is_better: bool | None = None,
    consequences: Consequences = None,
    order: str | None = None,
    workers: int | None = None,
) -> Explanation:
    """Look for counters that separate the slow runs from the others, and say how sure that is.

    Parameters
    ----------
    runs
        Runs table, a row a run; rows whose `status` is not "ok" are excluded.
    outcome
        Column to explain; positive, if counters are given as totals and rates. None: the column
        that the program is judged by (`outcomes.outcome_of`), with unit and direction.
    cutoff
        Value beyond which a run is slow, a Cutoff, or Classes, whose marked runs are explained.
        "search": the value at which some counter separates best; the null searches it anew each
        time. None: `find_cutoff`; if it finds one class only, the slowest quarter is explained, and
        the summary says so.
    exclude
        Columns that may not explain.
    seed
        Of folds, shuffles and bootstraps; the same runs and seed give the same explanation.
    permutations
        Shuffled outcomes of the tree's null, at least 200 for a p-value of 0.01. The null of single
        columns has five times as many. 0: neither null nor intervals, and nothing is claimed.
    higher_is_better
        The outcome is a throughput or the like; None: as the table says.
    consequences
        What is known of columns, by name: True or a reason (grows with the run time), False (does
        not).
    order
        Column that tells the order of measuring; None: start times or run numbers, else the order
        of the rows.
    workers
        Threads; None: the CPUs of this process, at most four. The result does not depend on it.

    Returns
    -------
    Explanation; `found` is False if nothing separates the slow runs, which is a normal answer.

    Raises
    ------
    InputError
        No such column, or not numbers.

    Notes
    -----
    A decision tree as in Frachtenberg (VGO, 2026), with four guards against false finds: accuracy
    on unseen runs; a null for the whole search, with its choice of columns and cutoff; consequences
    of a longer run excluded; correlated counters in one group. If the order of the runs matters,
    the null moves whole stretches of runs. What is associated with slow runs need not cause them;
    only an intervention shows that.

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> faults = np.where(np.arange(60) % 4 == 0, 900, 100) + random.integers(0, 50, 60)
    >>> seconds = 1 + faults / 1000 + random.normal(0, 0.01, 60)
    >>> runs = pd.DataFrame({"seconds": seconds, "page_faults": faults})
    >>> explain(runs, permutations=200, seed=1)
    Explanation(page_faults, p = 0.002, 15 of 60 runs slow)
    """
    judged = outcome_of(runs, outcome)
    higher = judged.higher_is_better if higher_is_better is None else higher_is_better
    runs, values = _finished(runs, judged.name)
    used, labels, threshold = _labels(runs, values, cutoff, seed, higher)
    in_order = positions(runs, order)
    slow = labels.to_numpy()[in_order]
    screen = Screen(runs.iloc[in_order], judged.name, tuple(exclude), consequences, higher)
    start = _nothing_found(
        labels=labels,
        cutoff=used,
        threshold=threshold,
        excluded=screen.excluded(),
        outcome=judged.name,
        order=_time_order(values[in_order], slow, seed, higher),
        higher_is_better=higher,
        unit=judged.unit,
    )
    obstacle = _obstacle(labels, screen.usable().size)
    if obstacle:
        return replace(start, summary=obstacle)
    search = Search(screen, None if _to_be_searched(used) else slow)
    result = _search(start, search, in_order, seed, permutations, workers or default_workers())
    return replace(result, summary=summary_of(result, permutations))


def _nothing_found(**known: Any) -> Explanation:
    """An explanation before the search."""
    nan = float("nan")
    return Explanation(
        found=False,
        p_value=nan,
        factors=pd.DataFrame(columns=FACTOR_COLUMNS),
        tree=None,
        features=[],
        accuracy=nan,
        accuracy_interval=(nan, nan),
        **known,
    )


def _finished(runs: pd.DataFrame, outcome: str) -> tuple[pd.DataFrame, np.ndarray]:
    if outcome not in runs.columns:
        raise InputError(
            f"no column {outcome!r} to explain",
            fix=f"the table has: {', '.join(map(str, runs.columns))}",
        )
    if "status" in runs.columns:
        runs = runs[runs["status"] == "ok"]
    try:
        values = runs[outcome].to_numpy(float)
    except (TypeError, ValueError):
        raise InputError("not a column of numbers", where=outcome) from None
    if not np.isfinite(values).all():
        raise InputError(
            "a value is missing or infinite",
            where=f"{outcome}, row {runs.index[~np.isfinite(values)][0]}",
            fix="use only the runs whose status is 'ok'",
        )
    return runs, values


def _labels(
    runs: pd.DataFrame,
    values: np.ndarray,
    cutoff: float | str | Cutoff | Classes | None,
    seed: int,
    higher_is_better: bool,
) -> tuple[Cutoff, pd.Series, float]:
    """The cutoff, which runs are slow, and the threshold used."""
    if isinstance(cutoff, Classes):
        return _of_classes(runs, cutoff, higher_is_better)
    used = _as_cutoff(values, cutoff, seed, higher_is_better)
    threshold = used.value if used.value is not None else _worst_quarter(values, higher_is_better)
    slow = values < threshold if higher_is_better else values > threshold
    return used, pd.Series(slow, index=runs.index, name="slow"), threshold


def _of_classes(
    runs: pd.DataFrame, classes: Classes, higher_is_better: bool
) -> tuple[Cutoff, pd.Series, float]:
    missing = runs.index.difference(classes.marked.index)
    if len(missing):
        raise InputError(
            f"run {missing[0]!r} has no class",
            fix="classify the outcome column of the same table: classify(runs['seconds'], …)",
        )
    slow = classes.marked.reindex(runs.index).rename("slow")
    bound = classes.bounds[0] if len(classes.bounds) == 1 else float("nan")
    share = float(slow.mean())
    cutoff = Cutoff(bound, classes.how, share, classes.evidence, higher_is_better=higher_is_better)
    return cutoff, slow, bound


def _as_cutoff(
    values: np.ndarray, cutoff: float | str | Cutoff | None, seed: int, higher_is_better: bool
) -> Cutoff:
    if cutoff is None:
        return find_cutoff(values, seed, higher_is_better)
    if isinstance(cutoff, Cutoff):
        return cutoff
    if cutoff == "search":
        evidence = "The counters place the cutoff."
        return Cutoff(None, "searched", 0.0, evidence, higher_is_better=higher_is_better)
    if isinstance(cutoff, str):
        raise InputError(
            f"{cutoff!r} is no cutoff", fix="give a value, a Cutoff, Classes or 'search'"
        )
    slow = values < cutoff if higher_is_better else values > cutoff
    return Cutoff(
        float(cutoff),
        "given",
        float(np.mean(slow)),
        "The cutoff was chosen by the user.",
        higher_is_better=higher_is_better,
    )


def _to_be_searched(cutoff: Cutoff) -> bool:
    return cutoff.kind == "searched" and cutoff.value is None


def _time_order(
    values: np.ndarray, slow: np.ndarray, seed: int, higher_is_better: bool
) -> TimeOrder:
    """The time order of the outcomes, or of the labels: a few slow runs in a row hardly show among
    all ranks.
    """
    of_values = time_order(values, seed, higher_is_better)
    of_labels = time_order(slow.astype(float), seed)
    return of_labels if of_labels.found and of_labels.block > of_values.block else of_values


def _worst_quarter(values: np.ndarray, higher_is_better: bool) -> float:
    if not values.size:
        return float("nan")
    return float(np.percentile(values, 25 if higher_is_better else 75))


def _obstacle(labels: pd.Series, columns: int) -> str | None:
    """Why there is nothing to search, or None."""
    slow, fast = int(labels.sum()), int((~labels).sum())
    if len(labels) < FEWEST_VALUES:
        return f"Too few runs: {len(labels)}; at least {FEWEST_VALUES} are needed."
    if min(slow, fast) < FEWEST_SLOW:
        return (
            f"Too few runs in a class: {slow} slow, {fast} others; at least {FEWEST_SLOW} of each"
            " are needed."
        )
    if not columns:
        return "No column is left that could explain anything; `excluded` has the reasons."
    return None


def _search(
    start: Explanation,
    search: Search,
    in_order: np.ndarray,
    seed: int,
    permutations: int,
    workers: int,
) -> Explanation:
    random = np.random.default_rng(seed)
    seen = search.run()
    groups = search.groups(seen.columns)
    leaders = [group[0] for group in groups]
    values = search.values[:, leaders]
    predicted = trees.cross_validated(values, seen.slow, random)
    accuracy = trees.balanced_accuracy(seen.slow, predicted)
    result = replace(
        _with_searched_cutoff(start, search, seen, in_order),
        accuracy=accuracy,
        features=[search.screen.columns.columns[place] for place in leaders],
        accuracy_interval=trees.accuracy_interval(seen.slow, predicted, random),
    )
    null: Null | None = None
    if permutations:
        block = start.order.block if start.order else 1
        null = null_distribution(search, accuracy, block, permutations, SIGNIFICANCE, seed, workers)
        found = null.p_value <= SIGNIFICANCE
        result = replace(result, p_value=null.p_value, found=found)
        if not found:
            return result
    table = _group_table(search, seen, groups, null, seed, workers)
    factors = _rank(table, search, groups, null, seed)
    return replace(result, tree=trees.fit(values, seen.slow), factors=factors)


def _with_searched_cutoff(
    start: Explanation, search: Search, seen: SearchResult, in_order: np.ndarray
) -> Explanation:
    """With the labels and the threshold of a cutoff that was searched for."""
    if not _to_be_searched(start.cutoff):
        return start
    slow = np.empty(len(in_order), bool)
    slow[in_order] = seen.slow
    times = search.screen.times
    edges = np.array([times[~seen.slow].max(), times[seen.slow].min()])
    if start.higher_is_better:
        edges = 1 / edges if times.min() > 0 else -edges
    value = float(np.sort(edges).mean())
    return replace(
        start,
        labels=pd.Series(slow, start.labels.index, name="slow"),
        cutoff=replace(start.cutoff, value=value, share_slow=float(slow.mean())),
        threshold=value,
    )


def _rank(
    table: pd.DataFrame, search: Search, groups: list[np.ndarray], null: Null | None, seed: int
) -> pd.DataFrame:
    """The table of `_group_table` in the order of the groups' ranks."""
    ranked = table.sort_values(["counts", "importance", "strength"], ascending=False, kind="stable")
    chosen = ranked.index[ranked["counts"]][:MOST_SHARED] if null else ranked.index[:0]
    if len(chosen):
        leaders = [groups[place][0] for place in chosen]
        ranked.loc[chosen, "variance_share"] = trees.variance_shares(
            search.values[:, leaders], search.screen.times, seed
        )
    ranked = _order_rivals(ranked)
    return ranked.set_axis(pd.RangeIndex(1, len(ranked) + 1, name="rank"))[FACTOR_COLUMNS]


def _group_table(
    search: Search,
    seen: SearchResult,
    groups: list[np.ndarray],
    null: Null | None,
    seed: int,
    workers: int,
) -> pd.DataFrame:
    """The groups before they are ranked; also counts (as a separate factor) and strength."""
    leaders, slow = [group[0] for group in groups], seen.slow
    values, names = search.values[:, leaders].astype(float), search.screen.columns.columns
    number = {place: number for number, place in enumerate(seen.columns)}
    members = [[number[place] for place in group] for group in groups]
    separation = trees.separations(values, slow)
    ranks = search.screen.ranks[:, leaders]
    drift = np.abs(standard_ranks(np.arange(slow.size)) @ ranks) / slow.size
    p_values = [null.column_p_values[group].min() if null else np.nan for group in members]
    table = {
        "factor": names[leaders],
        "members": [tuple(names[group]) for group in groups],
        **_stability(search.values[:, leaders], slow, null is not None, seed, workers),
        "direction": np.where(separation >= 0.5, "higher", "lower"),
        "slow_median": np.median(values[slow], axis=0),
        "fast_median": np.median(values[~slow], axis=0),
        "separation": separation,
        "variance_share": np.nan,
        "drifts": drift >= DRIFTS,
        "p_value": p_values,
        "counts": np.array(p_values) <= FACTOR_LEVEL,
        "strength": [seen.strength[group].max() for group in members],
    }
    return pd.DataFrame(table)


def _order_rivals(ranked: pd.DataFrame) -> pd.DataFrame:
    """Groups that separate the classes equally well, in the order of what they explain of the
    outcome itself: the labels can't tell them apart.
    """
    rival = ranked["counts"] & (ranked["root_share"] >= RIVAL) & ranked["variance_share"].notna()
    if rival.sum() < 2 or not rival.iloc[0]:
        return ranked
    first = ranked[rival].sort_values("variance_share", ascending=False, kind="stable")
    return pd.concat([first, ranked[~rival]])


def _stability(
    values: np.ndarray, slow: np.ndarray, resampled: bool, seed: int, workers: int
) -> dict[str, np.ndarray]:
    """Importance with its interval and the share of first splits; not resampled: the importance in
    the folds only.
    """
    if not resampled:
        blank = np.full(values.shape[1], np.nan)
        importance = trees.fold_importance(values, slow, np.random.default_rng(seed))
        return {"importance": importance, "low": blank, "high": blank, "root_share": blank}
    importances, roots = trees.bootstrap(values, slow, seed, workers)
    low, high = column_intervals(importances)
    shares = np.array([(roots == column).mean() for column in range(values.shape[1])])
    return {
        "importance": np.nanmean(importances, axis=0),
        "low": low,
        "high": high,
        "root_share": shares,
    }
