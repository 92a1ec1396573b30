"""Which counters are associated with the slow runs: one call that answers with a factor, or with
none.

Owns the explanation. The choice of columns is in `screening`, the search in `search`, its p-value
in `null`, the ranked factors in `factors`, the tree in `tree`, the words in `_words`.

Of the held-out recorded causes it names 16 of 27, and something in 4 of 44 tables without one. The
strongest rank correlation among its columns, with Bonferroni's correction, names 15 and 7; without
a test 22 and 44 (benchmarks/known_causes/bench.py --half held-out). Of 114 sealed causes it names
49, that correlation 49, without a test 67; something in 5, 24 and all of 240 tables without one
(sealed.py; by McNemar's test of the two p = 1 and below 0.001). That correlation without the
judgement of consequences names a cause in 336 of 520 tables that have none, this in 4; of 220 that
have one 113 and 152 rightly (benchmarks/attribution_structure.py --first 7000). Of ten structures
that were written after the code, it names something in 4 of 1,000 tables (95 % bound 0.9 %; at
most 2 of 100 of one structure), that correlation in 273 (the same, `unseen`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score

from ..errors import InputError
from ..outcomes import check_column, outcome_of
from ..statistics.intervals import finite
from ..statistics.order import TimeOrder, is_sorted, order_column, positions, time_order
from . import tree as trees
from ._words import as_html, summary_of
from .cutoff import FEWEST_VALUES, Cutoff, find_cutoff
from .factors import FACTOR_COLUMNS, Grouped, factor_table, grouped_places
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
        p-value of the whole search, from rearranged outcomes; NaN if there was nothing to search,
        or no null was computed.
    factors
        DataFrame, a row a group of counters that move together, or a category; empty if nothing was
        found. Index rank: first what is a factor on its own, then by rank correlation with the
        outcome. Columns: factor (the member of the group that is correlated most with the
        outcome); members (all of them, that one first); kind ("class": its clearest sign is between
        slow and fast runs; "continuous": over all run times; "category"); correlation (by ranks,
        with the outcome); direction ("higher" or "lower" in slow runs, or where they are);
        slow_median, fast_median; separation (chance that a slow run has the larger value; of a
        category, balanced accuracy of its worst levels); drifts (it follows the position in the
        campaign); p_value (of the first member alone, corrected for all that was searched).
    guess
        Where nothing was found: the row that would be first in `factors`, its p-value missing.
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
        Value of the outcome beyond which a run counts as slow here; NaN if there are no runs.
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
        Unit of the outcome.
    """

    labels: pd.Series
    cutoff: Cutoff
    threshold: float
    excluded: dict[str, str] = field(repr=False)
    found: bool = False
    p_value: float = np.nan
    factors: pd.DataFrame = field(default_factory=partial(pd.DataFrame, columns=FACTOR_COLUMNS))
    guess: pd.DataFrame = field(default_factory=partial(pd.DataFrame, columns=FACTOR_COLUMNS))
    tree: Any = None
    features: list[str] = field(default_factory=list)
    accuracy: float = np.nan
    accuracy_interval: tuple[float, float] = np.nan, np.nan
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
    cutoff: float | None = None,
    exclude: Iterable[str] = (),
    seed: int = 0,
    permutations: int = PERMUTATIONS,
    *,
    higher_is_better: bool | None = None,
    consequences: Consequences = None,
) -> Explanation:
    """Look for counters that separate the slow runs from the others, and say how sure that is.

    Parameters
    ----------
    runs
        Runs table, a row a run; rows whose `status` is not "ok" are excluded. Start times or run
        numbers tell the order of measuring, else the order of the rows.
    outcome
        Column to explain; positive, if counters are given as totals and rates. None: the column
        that the program is judged by (`outcomes.outcome_of`), with unit and direction.
    cutoff
        Value beyond which a run is slow. None: `find_cutoff`; if it finds one class only, the
        slowest quarter is explained, and the summary says so.
    exclude
        Columns that may not explain.
    seed
        Seed of folds, shuffles and bootstraps; the same runs and seed give the same explanation.
    permutations
        Rearranged outcomes of the null, at least 200 for a p-value of 0.01. 0: no null,
        and nothing is claimed.
    higher_is_better
        The outcome is a throughput or the like; None: as the table says.
    consequences
        What is known of columns, by name: True or a reason (grows with the run time), False (does
        not).

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
    single columns by the classes and by the outcome's ranks, and of categories, under one null that
    repeats all of it on rearranged outcomes; rearrangements that keep the order of the
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
    check_names(runs, exclude := tuple(exclude))
    judged = outcome_of(runs, outcome)
    higher = judged.higher_is_better if higher_is_better is None else higher_is_better
    runs, values = _finished(runs, judged.name)
    used, labels, threshold = _labels(runs, values, cutoff, seed, higher)
    in_order = positions(runs)
    slow = labels.to_numpy()[in_order]
    ordered = runs.iloc[in_order]
    screen = Screen(ordered, judged.name, exclude, consequences, higher, slow)
    found_order = _time_order(values[in_order], slow, seed) if permutations else None
    if found_order and order_column(runs) is None:
        found_order = replace(found_order, sorted_by=_sorted_by(screen.columns))
    start = Explanation(
        labels=labels,
        cutoff=used,
        threshold=threshold,
        excluded=screen.excluded(),
        outcome=judged.name,
        order=found_order,
        higher_is_better=higher,
        unit=judged.unit,
    )
    obstacle = _obstacle(labels, screen.columns.shape[1] + len(screen.categories))
    if obstacle:
        return replace(start, summary=obstacle)
    seen = _searched(screen, slow, classes=used.kind != "one class")
    result = _judged(start, seen, seed, permutations)
    return replace(result, summary=summary_of(result, permutations))


def _finished(runs: pd.DataFrame, outcome: str) -> tuple[pd.DataFrame, np.ndarray]:
    check_column(runs, outcome)
    if "status" in runs.columns:
        runs = runs[runs["status"] == "ok"]
    try:
        return runs, finite(runs[outcome])
    except (TypeError, ValueError):
        raise InputError("not a column of numbers", where=outcome) from None


def _labels(
    runs: pd.DataFrame,
    values: np.ndarray,
    cutoff: float | None,
    seed: int,
    higher_is_better: bool,
) -> tuple[Cutoff, pd.Series, float]:
    """The cutoff, which runs are slow, and the threshold used."""
    if cutoff is None:
        used = find_cutoff(values, seed, higher_is_better)
    else:
        why = "The cutoff was chosen by the user."
        used = Cutoff(float(cutoff), "given", 0.0, why, higher_is_better)
        used = replace(used, share_slow=float(used.slow(values).mean()))
    threshold = used.value if used.value is not None else _worst_quarter(values, higher_is_better)
    slow = values < threshold if higher_is_better else values > threshold
    return used, pd.Series(slow, index=runs.index, name="slow"), threshold


def _time_order(values: np.ndarray, slow: np.ndarray, seed: int) -> TimeOrder:
    """The time order of the outcomes, or of the labels: a few slow runs in a row hardly show among
    all ranks. A table that is sorted by the outcome has lost its order.
    """
    if is_sorted(values):
        return TimeOrder(False, 1.0, 0.0, 0.0, (), 1, values.size, is_sorted=True)
    of_values = time_order(values, seed)
    of_labels = time_order(slow.astype(float), seed)
    return of_labels if of_labels.found and of_labels.block > of_values.block else of_values


def _sorted_by(columns: pd.DataFrame) -> str:
    """A column that rises or falls throughout, as in a table that was sorted by it; "": none."""
    return next((str(name) for name in columns if is_sorted(columns[name].to_numpy())), "")


def _worst_quarter(values: np.ndarray, higher_is_better: bool) -> float:
    """The limit of the worst quarter; where that is the worst value (a coarse clock), the one
    before it.
    """
    if not values.size:
        return float("nan")
    sign = -1 if higher_is_better else 1
    limit = np.percentile(sign * values, 75)
    better = sign * values[sign * values < limit]
    at_end = limit == (sign * values).max() and better.size
    return float(sign * (better.max() if at_end else limit))


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


def _searched(screen: Screen, slow: np.ndarray, classes: bool) -> Grouped:
    """The search of the outcomes as they are, in groups."""
    names, values = list(screen.columns.columns), screen.columns.to_numpy()
    search = Search(Table.of(values, screen.categories), screen.times, slow, classes)
    found = search.run()
    groups = grouped_places(values, found)
    return Grouped(search, found, names, values, screen.categories, slow, groups)


def _judged(start: Explanation, seen: Grouped, seed: int, permutations: int) -> Explanation:
    """The search with its p-value; and the factors, if something was found."""
    result = replace(_with_accuracy(start, seen, seed), searched=_counted(seen.search))
    null = None
    if permutations:
        null = null_distribution(seen.search, start.order, permutations, SIGNIFICANCE, seed)
        found = null.p_value <= SIGNIFICANCE
        result = replace(result, p_value=null.p_value, found=found, surrogates=null.surrogates)
        if not found:
            return replace(result, guess=factor_table(seen, None).head(1))
    if seen.groups:
        tree = trees.unfitted(seen.slow.size).fit(seen.led_values, seen.slow)
        result = replace(result, tree=tree)
    return replace(result, factors=factor_table(seen, null))


def _with_accuracy(start: Explanation, seen: Grouped, seed: int) -> Explanation:
    """With the leaders, and how well a tree of them predicts unseen runs."""
    if not seen.groups:
        return start
    predicted = trees.held_out(seen.led_values, seen.slow, seed)
    return replace(
        start,
        accuracy=float(balanced_accuracy_score(seen.slow, predicted)),
        accuracy_interval=trees.accuracy_interval(seen.slow, predicted, seed),
        features=[seen.names[place] for place in seen.leaders],
    )


def _counted(search: Search) -> str:
    """What was searched, in words."""
    table = search.table
    counts = {"columns": table.ranks.shape[1], "categories": table.degrees.size}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)
