"""Which counters go with the slow runs: one call that answers with a factor, or says that there is
none.

Owns the explanation; the choice of columns, the search with its null, and the tree live next door,
its words in `_words`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from ..errors import InputError
from ..outcomes import outcome_of
from ..statistics.intervals import column_intervals
from ..statistics.order import TimeOrder, positions, standard_ranks, time_order
from . import tree as trees
from ._words import RIVAL, as_html, in_words
from .classes import Classes
from .cutoff import FEWEST_VALUES, Cutoff, find_cutoff
from .screening import Consequences, Screen
from .search import Null, Pass, Search, default_workers, null

# of the whole search: campaigns are searched often, so one false story in a hundred, not in twenty
SIGNIFICANCE = 0.01
PERMUTATIONS = 200
FEWEST_SLOW = 4  # slow runs, and fast ones
FACTOR_LEVEL = 0.05  # corrected p-value from which a group counts as a factor of its own
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
        was asked for.
    factors
        DataFrame, a row a group of counters that move together, ranked (index = rank): groups that
        separate on their own first, then by importance; of rivals for the first split, the one that
        explains more of the outcome's variance first; empty if nothing was found: factor (the most
        central member), members (all of them), importance (what the balanced accuracy on unseen
        runs loses when the factor's values are shuffled, mean over bootstrapped trees) with its 95
        % interval low and high, root_share (share of these trees that split on it first), direction
        ("higher" or "lower" in slow runs), slow_median, fast_median, separation (chance that a slow
        run has the larger value), variance_share (of the outcome, on unseen runs, overlaps divided;
        NaN for groups that do not count as factors), drifts (it follows the position in the
        campaign), p_value (of the group alone, corrected for the number of columns).
    tree
        Fitted `DecisionTreeClassifier` of depth at most 3 on the leaders of all groups, None if
        nothing was found.
    features
        Columns that the tree was given, in its order.
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
        What the order of the runs has to do with the outcome; where it matters, the shuffles kept
        blocks of neighbours together.
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
        Runs table, a row a run; rows whose `status` is not "ok" are passed over.
    outcome
        Column to explain; positive, if counters are given as totals and rates. None: what its
        program is judged by (`outcomes.outcome_of`), with unit and direction.
    cutoff
        Value beyond which a run is slow, a Cutoff, or Classes (whose marked runs are explained);
        "search": the value at which some counter separates best (the null searches it anew each
        time); None: `find_cutoff`. If there is one class only, the slowest quarter is taken, and
        the summary says so.
    exclude
        Columns that may not explain.
    seed
        Of folds, shuffles and bootstraps; the same runs and seed give the same explanation.
    permutations
        Shuffled outcomes of the tree's null (five times as many of the single columns'); at least
        200 for a p-value of 0.01. 0: no null and no intervals, for looking around: nothing is
        claimed then.
    higher_is_better
        The outcome is a throughput or the like; None: as the table says.
    consequences
        What is known of columns, by name: True or a reason (grows with the run time), False (does
        not).
    order
        Column that tells the order of measuring; None: start times or run numbers, else the rows as
        they stand.
    workers
        Threads; None: the CPUs of this process, at most four. The result does not depend on it.

    Returns
    -------
    Explanation : `found` is False if nothing separates the slow runs, and that is a normal answer.

    Raises
    ------
    InputError
        No such column, or not numbers.

    Notes
    -----
    A decision tree as in Frachtenberg (VGO, 2026), with what a search needs so as not to find a
    story in noise: accuracy on unseen runs, a null for the whole search (choice of columns and
    cutoff included), consequences kept out, correlated counters kept together. If the order of the
    runs matters, single runs can't be exchanged, and the null moves whole stretches of them. What
    goes with slow runs need not cause them; only an intervention shows that.
    """
    judged = outcome_of(runs, outcome)
    outcome = judged.name
    higher_is_better = judged.higher_is_better if higher_is_better is None else higher_is_better
    runs, values = _finished(runs, outcome)
    used, labels, threshold = _labels(runs, values, cutoff, seed, higher_is_better)
    in_order = positions(runs, order)
    screen = Screen(runs.iloc[in_order], outcome, tuple(exclude), consequences, higher_is_better)
    reasons = screen.reasons()
    excluded = {name: reasons[name] for name in screen.numeric if name in reasons}
    blank = Explanation(
        False,
        float("nan"),
        pd.DataFrame(columns=FACTOR_COLUMNS),
        None,
        [],
        float("nan"),
        (float("nan"), float("nan")),
        labels,
        used,
        threshold,
        excluded,
        outcome,
        _order(values[in_order], labels.to_numpy()[in_order], seed, higher_is_better),
        higher_is_better,
        unit=judged.unit,
    )
    obstacle = _obstacle(labels, screen.kept().size)
    if obstacle:
        return replace(blank, summary=obstacle)
    search = Search(screen, None if _to_be_searched(used) else labels.to_numpy()[in_order])
    result = _search(blank, search, in_order, seed, permutations, workers or default_workers())
    return replace(result, summary=in_words(result, permutations))


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
            fix="keep the runs whose status is 'ok'",
        )
    return runs, values


def _labels(
    runs: pd.DataFrame, values: np.ndarray, cutoff: object, seed: int, higher_is_better: bool
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
    return (
        Cutoff(
            bound,
            classes.how,
            float(slow.mean()),
            classes.evidence,
            higher_is_better=higher_is_better,
        ),
        slow,
        bound,
    )


def _as_cutoff(
    values: np.ndarray, cutoff: float | str | Cutoff | None, seed: int, higher_is_better: bool
) -> Cutoff:
    if cutoff is None:
        return find_cutoff(values, seed, higher_is_better)
    if isinstance(cutoff, Cutoff):
        return cutoff
    if cutoff == "search":
        return Cutoff(
            None,
            "searched",
            0.0,
            "The counters place the cutoff.",
            higher_is_better=higher_is_better,
        )
    if isinstance(cutoff, str):
        raise InputError(
            f"{cutoff!r} is no cutoff", fix="give a value, a Cutoff, Classes or 'search'"
        )
    slow = values < cutoff if higher_is_better else values > cutoff
    return Cutoff(
        float(cutoff),
        "given",
        float(np.mean(slow)),
        "The cutoff was given.",
        higher_is_better=higher_is_better,
    )


def _to_be_searched(cutoff: Cutoff) -> bool:
    return cutoff.kind == "searched" and cutoff.value is None


def _order(values: np.ndarray, slow: np.ndarray, seed: int, higher_is_better: bool) -> TimeOrder:
    """The order of the outcomes, or of the labels alone: a few slow runs in a row hardly show among
    all ranks.
    """
    of_values = time_order(values, seed, higher_is_better)
    of_labels = time_order(slow.astype(float), seed)
    return of_labels if of_labels.found and of_labels.block > of_values.block else of_values


def _worst_quarter(values: np.ndarray, higher_is_better: bool) -> float:
    return (
        float(np.percentile(values, 25 if higher_is_better else 75))
        if values.size
        else float("nan")
    )


def _obstacle(labels: pd.Series, kept: int) -> str | None:
    """Why there is nothing to search, or None."""
    slow, fast = int(labels.sum()), int((~labels).sum())
    if len(labels) < FEWEST_VALUES:
        return f"Too few runs: {len(labels)}; at least {FEWEST_VALUES} are needed."
    if min(slow, fast) < FEWEST_SLOW:
        return (
            f"Too few runs in a class: {slow} slow, {fast} others; at least {FEWEST_SLOW} of each"
            " are needed."
        )
    if not kept:
        return "No column is left that could explain anything; `excluded` has the reasons."
    return None


def _search(
    blank: Explanation,
    search: Search,
    in_order: np.ndarray,
    seed: int,
    permutations: int,
    workers: int,
) -> Explanation:
    seen = search.run()
    groups = search.groups(seen.kept)
    leaders = [group[0] for group in groups]
    values, random = search.values[:, leaders], np.random.default_rng(seed)
    predicted = trees.cross_validated(values, seen.slow, random)
    accuracy = trees.balanced_accuracy(seen.slow, predicted)
    result = replace(
        _relabelled(blank, search, seen, in_order),
        accuracy=accuracy,
        features=[search.screen.columns.columns[place] for place in leaders],
        accuracy_interval=trees.accuracy_interval(seen.slow, predicted, random),
    )
    held = (
        null(search, accuracy, blank.order.block, permutations, SIGNIFICANCE, seed, workers)
        if permutations
        else None
    )
    result = replace(
        result,
        p_value=held.p_value if held else float("nan"),
        found=held is not None and held.p_value <= SIGNIFICANCE,
    )
    if held is not None and not result.found:
        return result
    return replace(
        result,
        tree=trees.fit(values, seen.slow),
        factors=_rank(search, seen, groups, held, seed, workers),
    )


def _relabelled(
    blank: Explanation, search: Search, seen: Pass, in_order: np.ndarray
) -> Explanation:
    """With the labels and the threshold of a cutoff that was searched for."""
    if not _to_be_searched(blank.cutoff):
        return blank
    slow = np.empty(len(in_order), bool)
    slow[in_order] = seen.slow
    times = search.screen.times
    edges = np.array([times[~seen.slow].max(), times[seen.slow].min()])
    edges = np.sort(
        1 / edges
        if blank.higher_is_better and times.min() > 0
        else -edges
        if blank.higher_is_better
        else edges
    )
    value = float(edges.mean())
    used = replace(blank.cutoff, value=value, share_slow=float(slow.mean()))
    return replace(
        blank, labels=pd.Series(slow, blank.labels.index, name="slow"), cutoff=used, threshold=value
    )


def _rank(
    search: Search, seen: Pass, groups: list[np.ndarray], held: Null | None, seed: int, workers: int
) -> pd.DataFrame:
    leaders, slow = [group[0] for group in groups], seen.slow
    values, names = search.values[:, leaders].astype(float), search.screen.columns.columns
    number = {place: number for number, place in enumerate(seen.kept)}
    members = [[number[place] for place in group] for group in groups]
    strongest = np.array([seen.strength[group].max() for group in members])
    p_values = np.array([held.of_columns[group].min() for group in members]) if held else np.nan
    separation = trees.separations(values, slow)
    position = (
        np.abs(standard_ranks(np.arange(slow.size)) @ search.screen.ranks[:, leaders]) / slow.size
    )
    columns = {
        "factor": names[leaders],
        "members": [tuple(names[group]) for group in groups],
        **_stability(search.values[:, leaders], slow, held is not None, seed, workers),
        "direction": np.where(separation >= 0.5, "higher", "lower"),
        "slow_median": np.median(values[slow], axis=0),
        "fast_median": np.median(values[~slow], axis=0),
        "separation": separation,
        "variance_share": np.nan,
        "drifts": position >= DRIFTS,
        "p_value": p_values,
    }
    table = pd.DataFrame(columns).assign(
        counts=lambda table: table["p_value"] <= FACTOR_LEVEL, strength=strongest
    )
    ranked = table.sort_values(["counts", "importance", "strength"], ascending=False, kind="stable")
    chosen = ranked.index[ranked["counts"]][:MOST_SHARED] if held else ranked.index[:0]
    if len(chosen):
        ranked.loc[chosen, "variance_share"] = trees.variance_shares(
            search.values[:, leaders][:, chosen], search.screen.times, seed
        )
    ranked = _settled(ranked)
    return ranked.set_axis(pd.RangeIndex(1, len(ranked) + 1, name="rank"))[FACTOR_COLUMNS]


def _settled(ranked: pd.DataFrame) -> pd.DataFrame:
    """Groups that separate the classes equally well, in the order of what they explain of the
    outcome itself: the labels can't tell them apart.
    """
    rival = ranked["counts"] & (ranked["root_share"] >= RIVAL) & ranked["variance_share"].notna()
    if rival.sum() < 2 or not rival.iloc[0]:
        return ranked
    first = ranked[rival].sort_values("variance_share", ascending=False, kind="stable")
    return pd.concat([first, ranked[~rival]])


def _stability(
    values: np.ndarray, slow: np.ndarray, bootstraps: bool, seed: int, workers: int
) -> dict[str, np.ndarray]:
    """Importance with its interval and the share of first splits; without bootstraps, importance in
    the folds only.
    """
    if not bootstraps:
        blank = np.full(values.shape[1], np.nan)
        return {
            "importance": trees.fold_importance(values, slow, np.random.default_rng(seed)),
            "low": blank,
            "high": blank,
            "root_share": blank,
        }
    importances, roots = trees.bootstrap(values, slow, seed, workers)
    low, high = column_intervals(importances)
    shares = np.array([(roots == column).mean() for column in range(values.shape[1])])
    return {
        "importance": np.nanmean(importances, axis=0),
        "low": low,
        "high": high,
        "root_share": shares,
    }
