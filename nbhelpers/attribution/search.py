"""The search for columns that are associated with the outcome.

Owns the joint search: of classes and of the outcome itself, by single columns and categories. Its
p-value is owned by `null`.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc
from scipy.stats import chi2, norm

from ..statistics.order import standard_ranks
from ..statistics.surrogates import without_beats, without_level, without_past
from .categories import Category

LARGEST = 20_000_000  # numbers of one product of matrices
SHARES = {"column": 0.9, "category": 0.1}  # of the error, for each family
CLASS, CONTINUOUS, CATEGORY = "class", "continuous", "category"
NO_CLASS = 8.0  # by so much the slowest quarter gets less of the error than the outcome itself


@dataclass(frozen=True, eq=False)
class Table:
    """What is searched, as matrices.

    Attributes
    ----------
    ranks
        n × k: standard ranks of the columns.
    levels, starts, degrees
        n × levels of all categories; where each category begins; its levels less one.
    sizes
        Runs of each level.
    """

    ranks: np.ndarray
    levels: np.ndarray
    starts: np.ndarray
    degrees: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, categories: Sequence[Category] = ()) -> "Table":
        """Build the matrices from the values of columns, and from categories."""
        hot = [category.one_hot() for category in categories]
        widths = np.array([block.shape[1] for block in hot], int)
        levels = np.hstack(hot) if hot else np.zeros((len(values), 0))
        return cls(
            standard_ranks(values).astype(np.float32),
            levels.astype(np.float32),
            np.cumsum(widths) - widths,
            widths - 1,
            (levels > 0).sum(axis=0),
        )


def flattened(
    values: np.ndarray, frequencies: np.ndarray, share: float, windows: np.ndarray
) -> np.ndarray:
    """Columns without waves of these frequencies, without this share of the run before, and without
    the mean of each window.
    """
    left = without_past(without_beats(values, frequencies), share)
    return standardised(without_level(left, windows))


def standardised(values: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and standard deviation 1 (0 throughout if all are equal)."""
    centred = values - values.mean(axis=0)
    return (centred / np.maximum(centred.std(axis=0), 1e-6)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Found:
    """How clearly each column and category is associated with the outcome.

    Attributes
    ----------
    columns, categories
        Score of each: minus the log of its own p-value, corrected within and for the families.
    correlations
        Rank correlation of each column with the outcome.
    by_class
        Whether a column is clearer by the classes than by the outcome itself.
    """

    columns: np.ndarray
    categories: np.ndarray
    correlations: np.ndarray
    by_class: np.ndarray

    @property
    def best(self) -> float:
        """Score of the best of all."""
        parts = (self.columns, self.categories)
        return max((float(part.max()) for part in parts if part.size), default=-np.inf)


class Search:
    """One search, repeatable on rearranged outcomes.

    Parameters
    ----------
    table
        What is searched; runs in the order in which they were measured.
    times
        Outcome, larger is longer.
    slow
        Which runs are slow.
    classes
        False: the slow runs are no class but the slowest quarter; they get less of the error.
    """

    def __init__(self, table: Table, times: np.ndarray, slow: np.ndarray, classes: bool = True):
        self.table, self.times, self.share_slow = table, times, float(slow.mean())
        self.rows = standardised(np.column_stack([standard_ranks(times), slow.astype(float)])).T
        # of each row of outcomes, the log of what its share of the error is less
        self.handicaps = np.zeros(len(self.rows)) if classes else np.log([1.0, NO_CLASS])

    def of(self, table: Table, rows: np.ndarray) -> "Search":
        """The same search of another table and other rows of outcomes."""
        other = copy.copy(self)
        other.table, other.rows = table, rows
        return other

    def run(self) -> Found:
        """Search the outcomes as they are."""
        correlations = self.rows @ self.table.ranks / len(self.times)
        by_row = self._scores(np.abs(correlations) * np.sqrt(len(self.times)))
        return Found(
            by_row.max(axis=0),
            (self._category_scores(self.rows) - self.handicaps[:, None]).max(axis=0),
            correlations[0],
            by_row[1] >= by_row[0],
        )

    def _scores(self, strengths: np.ndarray) -> np.ndarray:
        """Scores of the strengths of columns (rows × any number), in standard errors."""
        count = max(self.table.ranks.shape[1], 1)
        log_p = np.log(2) + norm.logsf(strengths) + np.log(count / self._share("column"))
        return -log_p - self.handicaps[:, None]

    def largest(self, orders: np.ndarray, table: Table, rows: np.ndarray) -> np.ndarray:
        """The best score of each rearrangement (count × n) of the rows of outcomes."""
        width = table.ranks.shape[1] + table.levels.shape[1]
        per = max(1, LARGEST // (max(width, 1) * len(rows)))
        parts = [
            self._largest(rows[:, orders[first : first + per]], table)
            for first in range(0, len(orders), per)
        ]
        return np.concatenate(parts)

    def _largest(self, outcomes: np.ndarray, table: Table) -> np.ndarray:
        """The largest statistic of rows × count × n outcomes, for each of the count."""
        rows, count, size = outcomes.shape
        flat = outcomes.reshape(rows * count, size)
        best = np.full(count, -np.inf)
        if table.ranks.shape[1]:
            strongest = np.abs(flat @ table.ranks).max(axis=1).reshape(rows, count)
            best = np.maximum(best, self._scores(strongest / np.sqrt(size)).max(axis=0))
        if table.levels.shape[1]:
            scores = self._category_scores(outcomes).max(axis=2)
            best = np.maximum(best, (scores - self.handicaps[:, None]).max(axis=0))
        return best

    def _category_scores(self, rows: np.ndarray) -> np.ndarray:
        """Scores of the categories (first axis as the rows, last axis a category): by Kruskal and
        Wallis's statistic, and by the level that has more of the slow runs than its share.
        """
        table = self.table
        if not table.levels.shape[1]:
            return np.zeros((*rows.shape[:-1], 0))
        sums = rows @ table.levels
        heights = np.add.reduceat(sums**2, table.starts, axis=-1)
        log_p = chi2.logsf(heights, table.degrees)
        worst = np.minimum.reduceat(self._level_log_p(sums[-1]), table.starts, axis=-1)
        log_p[-1] = np.minimum(log_p[-1], worst + np.log(table.degrees + 1)) + np.log(2)
        return -(log_p + np.log(table.degrees.size / self._share("category")))

    def _level_log_p(self, sums: np.ndarray) -> np.ndarray:
        """Log of the binomial chance that a level has as many slow runs, from sums of labels."""
        share, sizes = self.share_slow, self.table.sizes
        slow = sizes * share + sums * np.sqrt(sizes * share * (1 - share))
        chance = betainc(np.clip(slow, 1e-9, sizes), sizes - np.clip(slow, 0, sizes) + 1, share)
        return np.log(np.maximum(chance, 1e-300))

    def _share(self, kind: str) -> float:
        """The share of the error; a family that is not there leaves its own to the other."""
        sizes = {"column": self.table.ranks.shape[1], "category": self.table.degrees.size}
        return SHARES[kind] / sum(
            share for name, share in SHARES.items() if name == kind or sizes[name]
        )
