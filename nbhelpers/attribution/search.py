"""The search for columns that are associated with the outcome.

Owns the joint search: of classes and of the outcome itself, by single columns, categories and
pairs. Its p-value is owned by `null`.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2, norm

from ..statistics.order import standard_ranks
from ..statistics.surrogates import without_beats, without_level, without_past
from .categories import Category

LARGEST = 20_000_000  # numbers of one product of matrices
CANDIDATES = 100  # cutoffs of a search for one
FEWEST_CANDIDATES = 20
LEAST_SHARE = 0.05  # of the runs on either side of a cutoff that is searched for
MOST_PAIRED = 120  # columns whose pairs are searched
SHARES = {"column": 0.8, "category": 0.1, "interaction": 0.1}  # of the error, for each family
CLASS, CONTINUOUS, CATEGORY, INTERACTION = "class", "continuous", "category", "interaction"
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
    products, pairs
        n × p: standard ranks of products of two columns' ranks; their places, p × 2.
    """

    ranks: np.ndarray
    levels: np.ndarray
    starts: np.ndarray
    degrees: np.ndarray
    products: np.ndarray
    pairs: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, categories: Sequence[Category], pairs: bool = True) -> "Table":
        """Of the columns' values, the categories and, unless left out, pairs of columns."""
        ranks = standard_ranks(values).astype(np.float32)
        hot = [category.one_hot() for category in categories]
        widths = np.array([block.shape[1] for block in hot], int)
        levels = np.hstack(hot) if hot else np.zeros((len(values), 0))
        products, places = _products(ranks if pairs else ranks[:, :0])
        return cls(
            ranks,
            levels.astype(np.float32),
            np.cumsum(widths) - widths,
            widths - 1,
            products,
            places,
        )

    def flattened(self, *order: Any) -> "Table":
        """The same with what the order has to do with the outcome taken out of columns and products
        (see `flattened`).
        """
        ranks, products = (flattened(part, *order) for part in (self.ranks, self.products))
        return Table(ranks, self.levels, self.starts, self.degrees, products, self.pairs)


def _products(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each two columns (a column with itself: both of its ends), as standard ranks.

    Of wide tables those columns are paired that have the most different values.
    """
    count = ranks.shape[1]
    chosen = np.arange(count)
    if count > MOST_PAIRED:
        different = (np.diff(np.sort(ranks, axis=0), axis=0) > 0).sum(axis=0)
        chosen = np.sort(np.argsort(-different, kind="stable")[:MOST_PAIRED])
    one, two = np.triu_indices(chosen.size)
    products = ranks[:, chosen[one]] * ranks[:, chosen[two]]
    found = standard_ranks(products).astype(np.float32)
    # of a column with two values the product with itself does not vary
    varies = found.std(axis=0) > 0.5
    return found[:, varies], np.column_stack([chosen[one], chosen[two]])[varies]


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
    """How clearly each column, category and pair is associated with the outcome.

    Attributes
    ----------
    columns, categories, pairs
        Score of each: minus the log of its own p-value, corrected within and for the families.
    strengths
        Of the columns, in standard errors.
    by_class
        Whether a column is clearer by the classes than by the outcome itself.
    row
        The row of outcomes by which the best column is found.
    """

    columns: np.ndarray
    categories: np.ndarray
    pairs: np.ndarray
    strengths: np.ndarray
    by_class: np.ndarray
    row: int

    @property
    def best(self) -> float:
        """Score of the best of all."""
        parts = (self.columns, self.categories, self.pairs)
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
        Which runs are slow; None: the columns place the cutoff (maximally selected rank statistic,
        Lausen and Schumacher 1992).
    classes
        False: the slow runs are no class but the slowest quarter; they get less of the error.
    """

    def __init__(
        self, table: Table, times: np.ndarray, slow: np.ndarray | None, classes: bool = True
    ):
        self.table, self.times = table, times
        most = CANDIDATES if table.ranks.shape[1] <= 200 else FEWEST_CANDIDATES
        self.labels = _candidate_labels(times, most) if slow is None else slow[None]
        rows = [standard_ranks(times)[None], self.labels.astype(float)]
        self.rows = standardised(np.vstack(rows).T).T
        # of each row of outcomes, the log of what its share of the error is less
        self.handicaps = np.zeros(len(self.rows)) if classes else np.log([1.0, NO_CLASS])

    def of(self, table: Table, rows: np.ndarray) -> "Search":
        """The same search of another table and other rows of outcomes."""
        other = copy.copy(self)
        other.table, other.rows = table, rows
        return other

    def run(self) -> Found:
        """Search the outcomes as they are."""
        root = np.sqrt(len(self.times))
        strengths = np.abs(self.rows @ self.table.ranks) / root
        by_row = self._scores(strengths, "column")
        pairs = self._scores(np.abs(self.rows @ self.table.products) / root, "interaction")
        return Found(
            by_row.max(axis=0),
            (self._category_scores(self.rows) - self.handicaps[:, None]).max(axis=0),
            pairs.max(axis=0),
            strengths.max(axis=0),
            by_row[1:].max(axis=0, initial=-np.inf) >= by_row[0],
            int(by_row.max(axis=1).argmax()) if by_row.size else 0,
        )

    def _scores(self, strengths: np.ndarray, kind: str) -> np.ndarray:
        """Of strengths (rows × any number of columns of this kind)."""
        count = max(self._size(kind), 1)
        log_p = np.log(2) + norm.logsf(strengths) + np.log(count / self._share(kind))
        return -log_p - self.handicaps[:, None]

    def labels_of(self, found: Found) -> np.ndarray:
        """The labels by which the best column was found, of a searched cutoff."""
        return self.labels[max(found.row - 1, 0)] if found.row else self._best_labels()

    def _best_labels(self) -> np.ndarray:
        strengths = np.abs(self.rows[1:] @ self.table.ranks).max(axis=1)
        return self.labels[int(strengths.argmax())]

    def largest(self, orders: np.ndarray, table: Table, rows: np.ndarray) -> np.ndarray:
        """The best score of each rearrangement (count × n) of the rows of outcomes."""
        per = max(1, LARGEST // (max(table.ranks.shape[1], table.products.shape[1], 1) * len(rows)))
        parts = [
            self._largest(rows[:, orders[first : first + per]], table)
            for first in range(0, len(orders), per)
        ]
        return np.concatenate(parts)

    def _largest(self, outcomes: np.ndarray, table: Table) -> np.ndarray:
        """Of rows × count × n outcomes, for each of the count."""
        rows, count, size = outcomes.shape
        flat = outcomes.reshape(rows * count, size)
        best = np.full(count, -np.inf)
        for kind, values in (("column", table.ranks), ("interaction", table.products)):
            if values.shape[1]:
                strongest = np.abs(flat @ values).max(axis=1).reshape(rows, count)
                best = np.maximum(best, self._scores(strongest / np.sqrt(size), kind).max(axis=0))
        if table.levels.shape[1]:
            scores = self._category_scores(flat).max(axis=1).reshape(rows, count)
            best = np.maximum(best, (scores - self.handicaps[:, None]).max(axis=0))
        return best

    def _category_scores(self, rows: np.ndarray) -> np.ndarray:
        """Kruskal and Wallis's statistic of each row and category, as a score."""
        table = self.table
        if not table.levels.shape[1]:
            return np.zeros((len(rows), 0))
        heights = np.add.reduceat((rows @ table.levels) ** 2, table.starts, axis=1)
        p_values = chi2.logsf(heights, table.degrees)
        return -(p_values + np.log(table.degrees.size / self._share("category")))

    def _size(self, kind: str) -> int:
        """How many of this kind are searched."""
        sizes = {
            "column": self.table.ranks.shape[1],
            "category": self.table.degrees.size,
            "interaction": self.table.products.shape[1],
        }
        return sizes[kind]

    def _share(self, kind: str) -> float:
        """Of the error; families that are not there leave theirs to the others."""
        return SHARES[kind] / sum(
            share for name, share in SHARES.items() if name == kind or self._size(name)
        )


def _candidate_labels(times: np.ndarray, most: int) -> np.ndarray:
    """Labels by each of the cutoffs."""
    cuts = np.unique(np.quantile(times, np.linspace(LEAST_SHARE, 1 - LEAST_SHARE, most)))
    labels = times > cuts[:, None]
    labels = labels[(labels.sum(axis=1) >= 4) & ((~labels).sum(axis=1) >= 4)]
    return labels if len(labels) else (times > np.median(times))[None]
