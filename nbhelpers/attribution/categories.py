"""Columns whose values are names or places: which of them may explain slow runs, and their levels.

Owns the line between a category and a text, and the test of one category.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .known_counters import known_names

FEWEST = 3  # runs of a level; rarer ones are one level together
MOST_RARE = 0.2  # share of the runs that may be of rare levels
OTHERS = "others"


@dataclass(frozen=True, eq=False)
class Category:
    """A column as levels.

    Attributes
    ----------
    name
        Column.
    levels
        Names of the levels.
    codes
        Level of each run.
    """

    name: str
    levels: tuple[str, ...]
    codes: np.ndarray

    def one_hot(self) -> np.ndarray:
        """n × levels; the columns have length 1."""
        hot = self.codes[:, None] == np.arange(len(self.levels))
        return hot / np.sqrt(hot.sum(axis=0))


def category_of(column: pd.Series) -> Category | str:
    """A column of texts as a category, or the reason why it is none."""
    name = str(column.name)
    if name in known_names("design"):
        return "bookkeeping: what was run, not what happened"
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        return "bookkeeping: a time"
    missing = column.isna().mean()
    if missing > 0.2:
        return f"missing in {missing:.0%} of the runs"
    return _levels(name, level_names(column))


def level_names(column: pd.Series) -> pd.Series:
    """The level of each run as text; of 3.0 it is 3."""
    names = column.astype(object).where(column.notna(), "missing").map(str)
    return names.str.removesuffix(".0") if pd.api.types.is_numeric_dtype(column) else names


def numbered(name: str, values: np.ndarray) -> Category | None:
    """A column of whole numbers that return as a category: a CPU, a node. None: it is none."""
    levels = np.unique(values)
    if levels.size < 3 or (levels != np.round(levels)).any():
        return None
    found = _levels(name, pd.Series(values.astype(int)).map(str))
    return found if isinstance(found, Category) else None


def _levels(name: str, texts: pd.Series) -> Category | str:
    counts = texts.value_counts(sort=False)
    if len(counts) < 2:
        return "does not vary"
    rare = counts.index[counts < FEWEST]
    if len(rare) > 1 and counts[rare].sum() > MOST_RARE * len(texts):
        return f"a text: {len(counts)} different values"
    pooled = texts.where(~texts.isin(rare), OTHERS)
    codes, levels = pd.factorize(pooled, sort=True)
    if len(levels) < 2 or np.bincount(codes).min() < FEWEST and len(levels) == 2:
        return "all but one or two runs are alike"
    return Category(name, tuple(map(str, levels)), codes)


def worst_levels(category: Category, badness: np.ndarray) -> tuple[str, ...]:
    """Levels whose runs are worse than the others: those above the widest gap between the levels'
    medians.
    """
    medians = np.array(
        [np.median(badness[category.codes == code]) for code in range(len(category.levels))]
    )
    order = np.argsort(-medians, kind="stable")
    widest = 1 + int(np.argmax(-np.diff(medians[order])))
    return tuple(category.levels[code] for code in order[:widest])
