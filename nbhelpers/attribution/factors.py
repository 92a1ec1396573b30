"""The table of factors of an explanation: groups of counters, categories and pairs, ranked.

Owns the columns of that table, the groups' leaders and the order of the rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..statistics.intervals import column_intervals
from ..statistics.order import standard_ranks
from . import tree as trees
from .categories import Category, worst_levels
from .groups import correlation_groups, correlation_strength
from .leaders import Differences, causes_first, counted_of_process, led
from .null import Null
from .search import CATEGORY, CLASS, CONTINUOUS, INTERACTION, Found, Search

FACTOR_LEVEL = 0.05  # corrected p-value from which a group counts as a separate factor
# share of the bootstrapped trees that begin with another factor, from which it is named as a rival
RIVAL = 0.2
MOST_SHARED = 4  # factors among which the variance is divided: it takes 2**n models
MOST_GROUPED = 300  # columns of a wide table that are grouped: the clearest ones
MOST_PAIRS = 3  # pairs in the table
CLEARER = 3.0  # by so many orders of e a category or a pair goes before single columns
DRIFTS = 0.5  # rank correlation with the position in the campaign from which a counter drifts
FACTOR_COLUMNS = [
    "factor",
    "members",
    "kind",
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
class Grouped:
    """What was searched, in groups.

    Attributes
    ----------
    search, found
        The search, and what it saw.
    names, values
        Of the columns.
    categories
        Of the table.
    slow
        Which runs are slow.
    groups
        Places of the columns that move together, each group led by the one that stands for it.
    differences
        Between slow and other runs.
    """

    search: Search
    found: Found
    names: list[str]
    values: np.ndarray
    categories: list[Category]
    slow: np.ndarray
    groups: list[np.ndarray]
    differences: Differences

    @property
    def leaders(self) -> list[int]:
        """Places of the groups' leaders."""
        return [int(group[0]) for group in self.groups]

    @property
    def led_values(self) -> np.ndarray:
        """Of the leaders, float32."""
        return self.values[:, self.leaders].astype(np.float32)


def grouped_places(values: np.ndarray, found: Found) -> list[np.ndarray]:
    """Places of the columns that move together, each group led by its most central member; of a
    wide table only of the clearest columns.
    """
    places = np.arange(values.shape[1])
    if places.size > MOST_GROUPED:
        places = np.sort(np.argsort(-found.columns, kind="stable")[:MOST_GROUPED])
    groups = correlation_groups(correlation_strength(values[:, places]))
    return [places[group] for group in groups]


def led_groups(
    groups: list[np.ndarray],
    found: Found,
    names: list[str],
    differences: Differences,
    columns: list[str],
) -> list[np.ndarray]:
    """The groups, each with its leader first."""
    ordered, counted = [], counted_of_process(columns)
    for group in groups:
        members = [names[place] for place in group]
        strengths = found.strengths[group].tolist()
        ordered.append(group[led(members, strengths, differences, counted)])
    return ordered


def factor_table(
    seen: Grouped, null: Null | None, folds: trees.FoldTrees | None, seed: int, workers: int
) -> pd.DataFrame:
    """All factors, ranked; see `Explanation.factors`.

    Parameters
    ----------
    seen
        What was searched.
    null
        None: without intervals, and no factor counts.
    folds
        Trees of the leaders; None: there is no leader.
    seed, workers
        Of the bootstrapped trees.
    """
    table = _rank(_group_table(seen, null, folds, seed, workers), seen, null, seed)
    rows = _category_rows(seen, null) + _pair_rows(seen, null) if null else []
    if rows:
        more = pd.DataFrame(rows).sort_values("score", ascending=False, kind="stable")
        best = table.loc[table["counts"], "score"].max() if table["counts"].any() else -np.inf
        before = more["score"] > best + CLEARER
        after = int(table["counts"].sum())
        parts = [more[before], table[:after], more[~before], table[after:]]
        table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    table["drifts"] = table["drifts"].astype(bool)
    return table.set_axis(pd.RangeIndex(1, len(table) + 1, name="rank"))[FACTOR_COLUMNS]


def _group_table(
    seen: Grouped, null: Null | None, folds: trees.FoldTrees | None, seed: int, workers: int
) -> pd.DataFrame:
    """The groups before they are ranked; also counts (as a separate factor) and score."""
    leaders, slow = seen.leaders, seen.slow
    values, ranks = seen.values[:, leaders].astype(float), seen.search.table.ranks[:, leaders]
    separation = trees.separations(values, slow)
    drift = np.abs(standard_ranks(np.arange(slow.size)) @ ranks) / slow.size
    p_values = null.column_p_values[leaders] if null else np.full(len(leaders), np.nan)
    table = {
        "factor": [seen.names[place] for place in leaders],
        "members": [tuple(seen.names[place] for place in group) for group in seen.groups],
        "kind": np.where(seen.found.by_class[leaders], CLASS, CONTINUOUS),
        **_stability(folds, null is not None, seed, workers),
        "direction": np.where(separation >= 0.5, "higher", "lower"),
        "slow_median": np.median(values[slow], axis=0),
        "fast_median": np.median(values[~slow], axis=0),
        "separation": separation,
        "variance_share": np.nan,
        "drifts": drift >= DRIFTS,
        "p_value": p_values,
        "counts": p_values <= FACTOR_LEVEL,
        "score": seen.found.columns[leaders],
    }
    return pd.DataFrame(table)


def _rank(table: pd.DataFrame, seen: Grouped, null: Null | None, seed: int) -> pd.DataFrame:
    """The groups in the order of their ranks: first those that count, then by importance."""
    table = table.assign(place=seen.leaders)
    ranked = table.sort_values(["counts", "importance", "score"], ascending=False, kind="stable")
    chosen = ranked.index[ranked["counts"]][:MOST_SHARED] if null else ranked.index[:0]
    if len(chosen):
        values = seen.values[:, ranked.loc[chosen, "place"]].astype(np.float32)
        ranked.loc[chosen, "variance_share"] = trees.variance_shares(
            values, seen.search.times, seed
        )
    return _causes_first(_order_rivals(ranked), seen).reset_index(drop=True)


def _causes_first(ranked: pd.DataFrame, seen: Grouped) -> pd.DataFrame:
    """Of the groups that count, a symptom after its causes."""
    counts = ranked[ranked["counts"]]
    effects = seen.found.strengths[counts["place"].to_numpy(int)].tolist()
    order = causes_first(counts["factor"].tolist(), effects, seen.differences)
    return pd.concat([counts.iloc[order], ranked[~ranked["counts"]]]) if len(counts) else ranked


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
    folds: trees.FoldTrees | None, resampled: bool, seed: int, workers: int
) -> dict[str, np.ndarray]:
    """Importance with its interval and the share of first splits; not resampled: the importance in
    the folds only.
    """
    blank = np.full(0 if folds is None else folds.values.shape[1], np.nan)
    if folds is None or not resampled:
        importance = blank if folds is None else folds.importance()
        return {"importance": importance, "low": blank, "high": blank, "root_share": blank}
    values, slow = folds.values, folds.slow
    importances, roots = trees.bootstrap(values, slow, seed, workers)
    low, high = column_intervals(importances)
    shares = np.array([(roots == column).mean() for column in range(values.shape[1])])
    return {
        "importance": np.nanmean(importances, axis=0),
        "low": low,
        "high": high,
        "root_share": shares,
    }


# Categories and pairs
# --------------------------------------------------------------------------------------------------


def _category_rows(seen: Grouped, null: Null) -> list[dict]:
    """A row a category that counts, unless it is clearer as a number."""
    rows = []
    for number, category in enumerate(seen.categories):
        p_value, score = null.category_p_values[number], seen.found.categories[number]
        place = seen.names.index(category.name) if category.name in seen.names else None
        as_number = -np.inf if place is None else seen.found.columns[place]
        if p_value > FACTOR_LEVEL or as_number >= score:
            continue
        worst = worst_levels(category, seen.search.times)
        at = np.isin(category.codes, [category.levels.index(level) for level in worst])
        rows.append(
            _row(category.name, (category.name,), CATEGORY, f"at {' or '.join(worst)}", p_value)
            | {"score": score, **_levels_share(at, category.codes, seen)}
        )
    return rows


def _levels_share(at: np.ndarray, codes: np.ndarray, seen: Grouped) -> dict[str, float]:
    """How well the worst levels separate the slow runs, and the adjusted share of variance."""
    times = seen.search.times
    hot = codes[:, None] == np.unique(codes)
    means = (times @ hot) / hot.sum(axis=0)
    within = float(((times - means[np.searchsorted(np.unique(codes), codes)]) ** 2).sum())
    whole, levels = float(((times - times.mean()) ** 2).sum()), hot.shape[1]
    adjusted = 1 - within / whole * (times.size - 1) / max(times.size - levels, 1)
    separation = (at[seen.slow].mean() + 1 - at[~seen.slow].mean()) / 2
    return {"separation": float(separation), "variance_share": max(0.0, adjusted)}


def _pair_rows(seen: Grouped, null: Null) -> list[dict]:
    """A row a pair that counts, where neither of the two counts alone."""
    alone = set(np.flatnonzero(null.column_p_values <= FACTOR_LEVEL).tolist())
    rows: list[dict] = []
    taken: set[int] = set()
    for number in np.argsort(-seen.found.pairs, kind="stable"):
        pair = seen.search.table.pairs[number].tolist()
        p_value = null.pair_p_values[number]
        if p_value > FACTOR_LEVEL or len(rows) == MOST_PAIRS:
            break
        if (alone | taken) & set(pair):
            continue
        taken |= set(pair)
        rows.append(_pair_row(pair, seen, number, p_value))
    return rows


def _pair_row(pair: list[int], seen: Grouped, number: int, p_value: float) -> dict:
    product = seen.search.table.products[:, number]
    rising = float(product @ seen.search.rows[0]) > 0
    names = tuple(dict.fromkeys(seen.names[place] for place in pair))
    if len(names) == 1:
        direction = "at both ends" if rising else "in the middle"
    else:
        direction = "both high or both low" if rising else "one high and the other low"
    share = float(np.corrcoef(product, seen.search.times)[0, 1] ** 2)
    separation = trees.separations(product[:, None].astype(float), seen.slow)[0]
    more = {"score": seen.found.pairs[number], "separation": float(separation)}
    row = _row(" × ".join(names), names, INTERACTION, direction, p_value)
    return row | more | {"variance_share": share}


def _row(
    factor: str, members: tuple[str, ...], kind: str, direction: str, p_value: float
) -> dict[str, Any]:
    blank = dict.fromkeys(["importance", "low", "high", "slow_median", "fast_median"], np.nan)
    known: dict[str, Any] = {
        "factor": factor,
        "members": members,
        "kind": kind,
        "direction": direction,
    }
    return known | blank | {"root_share": 0.0, "drifts": False, "p_value": p_value, "counts": True}
