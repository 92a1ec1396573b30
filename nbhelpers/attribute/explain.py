"""Which counters go with the slow runs: one call that answers with a factor, or says that there is none.

Owns the explanation and its words; the tree and the choice of columns live next door.
"""

import html
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from ..errors import InputError
from . import tree as trees
from .cutoff import FEWEST_VALUES, Cutoff, find_cutoff
from .predictors import correlated_groups, predictors

SIGNIFICANCE = 0.01   # of the whole search: campaigns are searched often, so one false story in a hundred, not in twenty
PERMUTATIONS = 200
FEWEST_SLOW = 4       # slow runs, and fast ones
FACTOR_COLUMNS = ["factor", "members", "importance", "low", "high", "root_share", "direction", "slow_median", "fast_median",
                  "separation", "p_value"]


@dataclass(frozen=True, eq=False)
class Explanation:
    """What separates the slow runs from the others.

    Attributes
    ----------
    found : whether anything does, at a p-value of at most 0.01.
    p_value : of the whole search, by permutation of the outcome; NaN if there was nothing to search.
    factors : DataFrame, a row a group of counters that move together, ranked by importance (index = rank); empty if nothing was found:
        factor (the most central member), members (all of them), importance with its 95 % interval low and high (share of the
        tree, over bootstrapped trees), root_share (share of these trees that split on it first), direction ("higher" or "lower"
        in slow runs), slow_median, fast_median, separation (chance that a slow run has the larger value), p_value (of the factor
        alone, corrected for the number of factors).
    tree : fitted `DecisionTreeClassifier` of depth at most 3 on the factors of all groups, None if nothing was found.
    features : columns that the tree was given, in its order.
    accuracy, accuracy_interval : balanced accuracy on runs the tree had not seen, and its 95 % interval; 0.5 is guessing.
    labels : bool Series, True for the slow runs, with the index of the runs table.
    cutoff : the cutoff used or found.
    threshold : value of the outcome above which a run counts as slow here.
    excluded : reason for each column that was not searched.
    outcome : name of the column explained.
    summary : the result in words.
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
    summary: str = ""

    def __repr__(self) -> str:
        first = self.factors["factor"].iloc[0] if self.found else "nothing found"
        return f"Explanation({first}, p = {self.p_value:.3f}, {int(self.labels.sum())} of {len(self.labels)} runs slow)"

    def _repr_html_(self) -> str:
        return _as_html(self)


def explain(runs: pd.DataFrame, outcome: str = "seconds", cutoff: float | Cutoff | None = None, exclude: Iterable[str] = (),
            seed: int = 0, permutations: int = PERMUTATIONS) -> Explanation:
    """Look for counters that separate the slow runs from the others, and say how sure that is.

    Parameters
    ----------
    runs : runs table, a row a run; rows whose `status` is not "ok" are passed over.
    outcome : column to explain, larger = worse, positive.
    cutoff : value above which a run is slow, or a Cutoff; None: `find_cutoff`. If there is one class only, the slowest
        quarter is taken, and the summary says so.
    exclude : columns that may not explain.
    seed : of folds, permutations and bootstraps; the same runs and seed give the same explanation.
    permutations : shuffled outcomes of the null; at least 100 are needed for a p-value of 0.01.

    Returns
    -------
    Explanation : `found` is False if nothing separates the slow runs, and that is a normal answer.

    Raises
    ------
    InputError : no such column, or not numbers.

    Notes
    -----
    A decision tree as in Frachtenberg (VGO, 2026), with what a search needs so as not to find a story in noise: accuracy on
    unseen runs, a null for the whole search, consequences kept out, correlated counters kept together. What goes with slow
    runs need not cause them; only an intervention shows that.
    """
    runs, values = _finished(runs, outcome)
    kept, excluded = predictors(runs, outcome, tuple(exclude))
    used = _as_cutoff(values, cutoff, seed)
    threshold = used.value if used.value is not None else _upper_quartile(values)
    labels = pd.Series(values > threshold, index=runs.index, name="slow")
    blank = Explanation(False, float("nan"), pd.DataFrame(columns=FACTOR_COLUMNS), None, [], float("nan"),
                        (float("nan"), float("nan")), labels, used, threshold, excluded, outcome)
    obstacle = _obstacle(labels, kept)
    if obstacle:
        return replace(blank, summary=obstacle)
    searched = _search(blank, kept, np.random.default_rng(seed), permutations)
    return replace(searched, summary=_in_words(searched))


def _finished(runs: pd.DataFrame, outcome: str) -> tuple[pd.DataFrame, np.ndarray]:
    if outcome not in runs.columns:
        raise InputError(f"no column {outcome!r} to explain", mend=f"the table has: {', '.join(map(str, runs.columns))}")
    if "status" in runs.columns:
        runs = runs[runs["status"] == "ok"]
    try:
        values = runs[outcome].to_numpy(float)
    except (TypeError, ValueError):
        raise InputError("not a column of numbers", where=outcome) from None
    if not np.isfinite(values).all():
        raise InputError("a value is missing or infinite", where=f"{outcome}, row {runs.index[~np.isfinite(values)][0]}",
                         mend="keep the runs whose status is 'ok'")
    return runs, values


def _as_cutoff(values: np.ndarray, cutoff: float | Cutoff | None, seed: int) -> Cutoff:
    if cutoff is None:
        return find_cutoff(values, seed)
    if isinstance(cutoff, Cutoff):
        return cutoff
    return Cutoff(float(cutoff), "given", float(np.mean(values > cutoff)), "The cutoff was given.")


def _upper_quartile(values: np.ndarray) -> float:
    return float(np.percentile(values, 75)) if values.size else float("nan")


def _obstacle(labels: pd.Series, kept: pd.DataFrame) -> str | None:
    """Why there is nothing to search, or None."""
    slow, fast = int(labels.sum()), int((~labels).sum())
    if len(labels) < FEWEST_VALUES:
        return f"Too few runs: {len(labels)}; at least {FEWEST_VALUES} are needed."
    if min(slow, fast) < FEWEST_SLOW:
        return f"Too few runs in a class: {slow} slow, {fast} others; at least {FEWEST_SLOW} of each are needed."
    if kept.empty:
        return "No column is left that could explain anything; `excluded` has the reasons."
    return None


def _search(blank: Explanation, kept: pd.DataFrame, random: np.random.Generator, permutations: int) -> Explanation:
    groups = correlated_groups(kept)
    features = [group[0] for group in groups]
    values, slow = kept[features].to_numpy(np.float32), blank.labels.to_numpy()
    predicted = trees.cross_validated(values, slow, random)
    accuracy = trees.balanced_accuracy(slow, predicted)
    p_value = trees.permutation_p_value(values, slow, accuracy, random, permutations)
    result = replace(blank, p_value=p_value, accuracy=accuracy, found=p_value <= SIGNIFICANCE, features=features,
                     accuracy_interval=trees.accuracy_interval(slow, predicted, random))
    if not result.found:
        return result
    return replace(result, tree=trees.fit(values, slow), factors=_rank(groups, values, slow, random))


def _rank(groups: list[list[str]], values: np.ndarray, slow: np.ndarray, random: np.random.Generator) -> pd.DataFrame:
    importances, roots = trees.bootstrap_importances(values, slow, random)
    low, high = np.percentile(importances, [2.5, 97.5], axis=0)
    separation = trees.separations(values, slow)
    columns = {
        "factor": [group[0] for group in groups], "members": [tuple(group) for group in groups],
        "importance": importances.mean(axis=0), "low": low, "high": high,
        "root_share": [(roots == column).mean() for column in range(len(groups))],
        "direction": np.where(separation >= 0.5, "higher", "lower"),
        "slow_median": np.median(values[slow], axis=0).astype(float), "fast_median": np.median(values[~slow], axis=0).astype(float),
        "separation": separation, "p_value": trees.factor_p_values(values, slow, random),
    }
    ranked = pd.DataFrame(columns).sort_values(["importance", "p_value"], ascending=[False, True], kind="stable")
    return ranked.set_axis(pd.RangeIndex(1, len(ranked) + 1, name="rank"))[FACTOR_COLUMNS]


def _in_words(result: Explanation) -> str:
    slow, count = int(result.labels.sum()), len(result.labels)
    whose = f"{slow} of {count} runs above {result.threshold:.4g}"
    if result.cutoff.value is None:
        whose = f"There is no class of slow runs; looked at the slowest quarter instead ({whose})"
    else:
        whose = f"Slow are {whose}"
    low, high = result.accuracy_interval
    odds = f"p = {result.p_value:.3f}, accuracy on unseen runs {result.accuracy:.2f}, 95 % interval {low:.2f} to {high:.2f}"
    if not result.found:
        return f"{whose}. Nothing among these {len(result.features)} groups of counters separates them ({odds}; guessing: 0.50)."
    return f"{whose}. {_first_factor(result.factors.iloc[0])} ({odds})."


def _first_factor(factor: pd.Series) -> str:
    text = (f"They go with {factor['factor']}, {factor['direction']} in slow runs (median {factor['slow_median']:.4g} against "
            f"{factor['fast_median']:.4g}), first split in {factor['root_share']:.0%} of the bootstrapped trees")
    others = list(factor["members"][1:])
    return text + (f"; these runs can't tell it apart from {', '.join(others)}" if others else "")


def _as_html(result: Explanation) -> str:
    parts = [f"<p>{html.escape(result.summary)}</p>"]
    if result.found:
        shown = result.factors.head(8).assign(members=result.factors["members"].map(", ".join))
        parts.append(shown.to_html(float_format=lambda value: f"{value:.3g}", border=0))
    rows = "".join(f"<li><code>{html.escape(name)}</code>: {html.escape(why)}</li>" for name, why in result.excluded.items())
    parts.append(f"<details><summary>{len(result.excluded)} columns were not searched</summary><ul>{rows}</ul></details>")
    return "\n".join(parts)
