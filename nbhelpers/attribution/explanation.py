"""Which counters are associated with the slow runs: one call that answers with a factor, or with
none.

Owns the explanation. The choice of columns is in `screening`, the search in `search`, its p-value
in `null`, the ranked factors in `factors`, the tree in `tree`, the words in `_words`.
"""

import copy
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..outcomes import outcome_of
from ..statistics.order import TimeOrder, positions, time_order
from . import tree as trees
from ._words import as_html, summary_of
from .classes import Classes
from .cutoff import FEWEST_VALUES, Cutoff, find_cutoff
from .factors import FACTOR_COLUMNS, Grouped, factor_table, grouped_places, led_groups
from .known_counters import TIME_UNITS
from .leaders import Differences
from .null import null_distribution
from .screening import Consequences, Screen, check_names
from .search import Search, Table

# of the whole search: campaigns are searched often, so one false find in a hundred, not in twenty
SIGNIFICANCE = 0.01
PERMUTATIONS = 1000
FEWEST_SLOW = 4  # slow runs, and fast ones


@dataclass(frozen=True, eq=False)
class Explanation:
    """What separates the slow runs from the others.

    Attributes
    ----------
    found
        Whether anything does, at a p-value of at most 0.01.
    p_value
        Of the whole search, by rearranged outcomes; NaN if there was nothing to search, or no null
        was computed.
    factors
        DataFrame, a row a group of counters that move together, a category or a pair; empty if
        nothing was found. Index rank: first what is a factor on its own, then by importance. Rivals
        for the first split are ordered by the share of the outcome's variance that they explain. A
        symptom comes after the factors that are known to show it, as far as they are found.
        Columns: factor (the leader of the group: by what is known of its members, then by effect);
        members (all of them, the leader first); kind ("class": its clearest sign is between slow
        and fast runs; "continuous": over all run times; "category"; "interaction": of two columns
        of which neither is a factor alone, or of both ends of one); importance (the loss of
        balanced accuracy on unseen runs when the factor is shuffled, mean over bootstrapped trees)
        with its 95 % interval low and high; root_share (of these trees, those that split on it
        first); direction ("higher" or "lower" in slow runs, or where they are); slow_median,
        fast_median; separation (chance that a slow run has the larger value; of a category,
        balanced accuracy of its worst levels); variance_share (of the outcome, on unseen runs,
        overlaps divided; NaN for groups that are no factors); drifts (it follows the position in
        the campaign); p_value (of the leader alone, corrected for all that was searched).
    tree
        Fitted `DecisionTreeClassifier` of depth at most 3 on the leaders of all groups, None if
        nothing was found among columns of numbers.
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
        Whether the order of the runs matters; if so, the rearranged outcomes keep it. None: no null
        was computed.
    searched
        What was searched, in words.
    surrogates
        What the outcomes were compared with, in words.
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
    searched: str = ""
    surrogates: str = ""

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
        Rearranged outcomes of the null, at least 200 for a p-value of 0.01. 0: neither null nor
        intervals, no search for pairs, and nothing is claimed.
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
        No such column, not numbers, or two columns of one name.

    Notes
    -----
    The question of Frachtenberg (VGO, 2026), with guards against false finds: one joint search, of
    single columns by the classes and by the outcome's ranks, of categories and of pairs, under one
    null that repeats all of it on rearranged outcomes; rearrangements that keep the order of the
    runs where it matters (`null.null_distribution`); consequences of a longer run excluded;
    correlated counters in one group. A decision tree of the leaders shows how they divide the runs;
    its accuracy is that on unseen runs. What is associated with slow runs need not cause them; only
    an intervention shows that. A cause that comes in a regular beat cannot be told from anything
    else of that beat.

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> faults = np.where(random.random(60) < 0.25, 900, 100) + random.integers(0, 50, 60)
    >>> seconds = 1 + faults / 1000 + random.normal(0, 0.01, 60)
    >>> runs = pd.DataFrame({"seconds": seconds, "page_faults": faults})
    >>> explain(runs, permutations=200, seed=1)
    Explanation(page_faults, p = 0.005, 12 of 60 runs slow)
    """
    start, seen = search_of(
        runs, outcome, cutoff, exclude, seed, permutations, higher_is_better, consequences, order
    )
    if seen is None:
        return start
    result = _judged(start, seen, seed, permutations, workers or default_workers())
    return replace(result, summary=summary_of(result, permutations))


def search_of(
    runs: pd.DataFrame,
    outcome: str | None,
    cutoff: float | str | Cutoff | Classes | None,
    exclude: Iterable[str],
    seed: int,
    permutations: int,
    higher_is_better: bool | None,
    consequences: Consequences,
    order: str | None,
) -> tuple[Explanation, Grouped | None]:
    """The search of `explain`, before it is judged; None where there is nothing to search."""
    check_names(runs, exclude := tuple(exclude))
    judged = outcome_of(runs, outcome)
    higher = judged.higher_is_better if higher_is_better is None else higher_is_better
    runs, values = _finished(runs, judged.name)
    used, labels, threshold = _labels(runs, values, cutoff, seed, higher)
    in_order = positions(runs, order)
    slow = labels.to_numpy()[in_order]
    known = None if _to_be_searched(used) else slow
    ordered = runs.iloc[in_order]
    screen = Screen(ordered, judged.name, exclude, consequences, higher, known)
    start = _nothing_found(
        labels=labels,
        cutoff=used,
        threshold=threshold,
        excluded=screen.excluded(),
        outcome=judged.name,
        order=_time_order(values[in_order], slow, seed, higher) if permutations else None,
        higher_is_better=higher,
        unit=judged.unit,
    )
    obstacle = _obstacle(labels, screen.columns.shape[1] + len(screen.categories))
    if obstacle:
        return replace(start, summary=obstacle), None
    classes = known is None or used.kind != "one class"
    seconds = values[in_order] * TIME_UNITS.get(judged.unit, np.nan)
    seen = _searched(screen, ordered, known, classes, seconds, pairs=bool(permutations))
    return _with_searched_cutoff(start, seen, in_order) if known is None else start, seen


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


def _searched(
    screen: Screen,
    runs: pd.DataFrame,
    slow: np.ndarray | None,
    classes: bool,
    seconds: np.ndarray,
    pairs: bool,
) -> Grouped:
    """The search of the outcomes as they are, in groups; `seconds` are NaN if it is no time."""
    names, values = list(screen.columns.columns), screen.columns.to_numpy()
    search = Search(Table.of(values, screen.categories, pairs), screen.times, slow, classes)
    found = search.run()
    labels = search.labels_of(found) if slow is None else slow
    groups = grouped_places(values, found)
    shown = [names[place] for group in groups for place in group]
    lost = seconds if np.isfinite(seconds).all() else None
    differences = Differences.of(runs, shown, labels, lost)
    groups = led_groups(groups, found, names, differences, screen.numeric)
    categories = screen.categories
    return Grouped(search, found, names, values, categories, labels, groups, differences)


def _judged(
    start: Explanation, seen: Grouped, seed: int, permutations: int, workers: int
) -> Explanation:
    """The search with its p-value; and the factors, if something was found."""
    folds = folds_of(seen, seed)
    result = replace(_with_accuracy(start, seen, folds), searched=_counted(seen.search))
    null = None
    if permutations:
        null = null_distribution(seen.search, start.order, permutations, SIGNIFICANCE, seed)
        found = null.p_value <= SIGNIFICANCE
        result = replace(result, p_value=null.p_value, found=found, surrogates=null.surrogates)
        if not found:
            return result
    tree = trees.fit(seen.led_values, seen.slow) if seen.groups else None
    factors = factor_table(seen, null, folds, seed, workers)
    return replace(result, tree=tree, factors=factors)


def folds_of(seen: Grouped, seed: int) -> trees.FoldTrees | None:
    """Trees of the leaders, each fitted without a fold; None without a leader."""
    return trees.FoldTrees.of(seen.led_values, seen.slow, seed) if seen.groups else None


def _with_accuracy(start: Explanation, seen: Grouped, folds: trees.FoldTrees | None) -> Explanation:
    """With the leaders, and how well a tree of them predicts unseen runs."""
    if folds is None:
        return start
    predicted, random = folds.predictions(), copy.deepcopy(folds.random)
    return replace(
        start,
        accuracy=trees.balanced_accuracy(seen.slow, predicted),
        accuracy_interval=trees.accuracy_interval(seen.slow, predicted, random),
        features=[seen.names[place] for place in seen.leaders],
    )


def _counted(search: Search) -> str:
    """What was searched, in words."""
    table = search.table
    counts = {
        "columns": table.ranks.shape[1],
        "categories": table.degrees.size,
        "pairs": table.products.shape[1],
    }
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def _with_searched_cutoff(start: Explanation, seen: Grouped, in_order: np.ndarray) -> Explanation:
    """With the labels and the threshold of a cutoff that was searched for."""
    slow = np.empty(len(in_order), bool)
    slow[in_order] = seen.slow
    times = seen.search.times
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


def default_workers() -> int:
    """Threads for the trees (scikit-learn lets go of the interpreter's lock): the CPUs of this
    process, at most four.
    """
    return min(4, len(os.sched_getaffinity(0)))
