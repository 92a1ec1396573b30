"""The search for counters that are associated with the slow runs, and its p-value.

The search can be repeated on shuffled outcomes.

Owns what the null repeats: the choice of columns, the labels (or the search for a cutoff), the
groups, the separation, the tree.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ..progress import task
from ..statistics.order import shuffles
from . import tree as trees
from .screening import Screen, correlation_groups, correlation_strength

ENOUGH = 10  # shuffles that did as well: the p-value is large, and known well enough
BATCH = 8  # shuffles handed out at once; fixed, so that the number of workers changes nothing
WINDOWS = 10  # stretches of a campaign within which neighbours are exchanged
SHORTEST_WINDOW = 8  # runs
CANDIDATES = 100  # cutoffs of a search for one
LEAST_SHARE = 0.05  # of the runs on either side of a cutoff that is searched for


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What one search saw.

    Attributes
    ----------
    columns, strength
        Places of the columns searched; how clearly each separates the runs, in standard errors.
    slow
        Labels of the runs.
    """

    columns: np.ndarray
    slow: np.ndarray
    strength: np.ndarray


class Search:
    """One search, repeatable.

    Parameters
    ----------
    screen
        The choice of columns, of runs in the order in which they were measured.
    slow
        Which runs are slow; None: the counters place the cutoff (maximally selected rank statistic,
        Lausen and Schumacher 1992).
    """

    def __init__(self, screen: Screen, slow: np.ndarray | None):
        self.screen = screen
        self.values = screen.columns.to_numpy(np.float32)
        self._slow = slow
        self._correlations = correlation_strength(screen.columns.to_numpy())

    def run(
        self, order: np.ndarray | None = None, windows: np.ndarray | None = None
    ) -> SearchResult:
        """Search once.

        Parameters
        ----------
        order
            Rearrangement of the outcomes; None: as they are.
        windows
            Window of each run; the difference within each window counts then.
        """
        columns = self.screen.usable(order)
        times = self.screen.times if order is None else self.screen.times[order]
        ranks = self.screen.ranks[:, columns]
        strength: np.ndarray | None
        if self._slow is None:
            slow, strength = _best_labels(times, ranks)
        else:
            slow, strength = self._slow if order is None else self._slow[order], None
        if windows is not None:
            strength = _strengths_within(slow, ranks, windows)
        elif strength is None:
            strength = _strengths(slow[None].astype(float), ranks)[0]
        return SearchResult(columns, slow, strength)

    def groups(self, columns: np.ndarray) -> list[np.ndarray]:
        """Places of the columns that move together, each group led by its most central member."""
        groups = correlation_groups(self._correlations[np.ix_(columns, columns)])
        return [columns[members] for members in groups]

    def accuracy(self, seen: SearchResult, random: np.random.Generator) -> float:
        """Balanced accuracy on unseen runs of a tree of the leaders; 0.5 if no column is left."""
        if not seen.columns.size:
            return 0.5
        leaders = [group[0] for group in self.groups(seen.columns)]
        predicted = trees.cross_validated(self.values[:, leaders], seen.slow, random)
        return trees.balanced_accuracy(seen.slow, predicted)


def _strengths(labels: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Rank-sum statistics in standard errors, of each row of labels and column of ranks."""
    size, count = labels.shape[1], labels.sum(axis=1)
    variances = np.maximum(count * (size - count) / max(size - 1, 1), 1e-12)
    return np.abs(labels @ ranks) / np.sqrt(variances)[:, None]


def _strengths_within(slow: np.ndarray, ranks: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """The same with the mean of each window taken out of labels and ranks."""
    sizes = np.bincount(windows)
    labels = slow - (np.bincount(windows, slow) / sizes)[windows]
    first = np.flatnonzero(np.diff(windows, prepend=-1))
    inside = ranks - (np.add.reduceat(ranks, first, axis=0) / sizes[:, None])[windows]
    lengths = np.sqrt((labels @ labels) * (inside**2).sum(axis=0))
    return np.abs(labels @ inside) / np.maximum(lengths, 1e-12) * np.sqrt(slow.size)


def _best_labels(times: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels by the cutoff at which some column separates best, and the strengths of all columns
    there.
    """
    cuts = np.unique(np.quantile(times, np.linspace(LEAST_SHARE, 1 - LEAST_SHARE, CANDIDATES)))
    labels = times > cuts[:, None]
    labels = labels[(labels.sum(axis=1) >= 4) & ((~labels).sum(axis=1) >= 4)]
    if not len(labels) or not ranks.shape[1]:
        return times > np.median(times), np.zeros(ranks.shape[1])
    strengths = _strengths(labels.astype(float), ranks)
    best = int(np.argmax(strengths.max(axis=1)))
    return labels[best], strengths[best]


@dataclass(frozen=True, eq=False)
class Null:
    """A search compared with searches of shuffled outcomes.

    Attributes
    ----------
    p_value
        Of the search.
    column_p_values
        Of each searched column alone, corrected for the number of columns (Westfall and Young's
        maximum).
    """

    p_value: float
    column_p_values: np.ndarray


def null_distribution(
    search: Search,
    accuracy: float,
    block: int,
    permutations: int,
    level: float,
    seed: int,
    workers: int | None = None,
) -> Null:
    """The p-value of a search: how often a search of shuffled outcomes sees as much.

    Two statistics: how clearly the best column alone separates (cheap, so five times as many
    shuffles), and how well a tree predicts, which sees what only several columns together do. The
    smaller p-value is doubled. The tree's null is skipped where the first has decided. The cutoff
    of `find_cutoff` does not depend on the order of the outcomes, so a shuffle leaves it where it
    was. Either stops early after ten shuffles that did as well (Besag and Clifford 1991).

    Where the order of the runs matters (`block` above 1), single runs can't be exchanged, and two
    nulls must both be rejected. One moves blocks of runs, so that neighbours stay alike. The other
    exchanges neighbours only, within a tenth of the campaign, so that a shared drift stays.

    Parameters
    ----------
    search, accuracy
        The search of the outcomes as they are, and the accuracy of its tree.
    block
        Runs that are moved together.
    permutations
        Shuffles of the tree's null.
    level
        p-value that decides.
    seed
        Of the shuffles.
    workers
        Threads; None: `default_workers`.
    """
    null = _Shuffles(search, accuracy, permutations, level, seed, workers)
    size = len(search.screen.times)
    moved = null.against(shuffles(size, block, np.random.default_rng(seed)))
    if block == 1 or moved.p_value > level:
        return moved
    windows = np.arange(size) // max(SHORTEST_WINDOW, -(-size // WINDOWS))
    exchanged = null.against(_exchanges(windows, np.random.default_rng(seed)), windows)
    return Null(
        max(moved.p_value, exchanged.p_value),
        np.maximum(moved.column_p_values, exchanged.column_p_values),
    )


def _exchanges(windows: np.ndarray, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Endless rearrangements within windows."""
    while True:
        yield np.argsort(windows + random.random(windows.size))


@dataclass(frozen=True, eq=False)
class _Shuffles:
    search: Search
    accuracy: float
    permutations: int
    level: float
    seed: int
    workers: int | None

    def against(self, orders: Iterator[np.ndarray], windows: np.ndarray | None = None) -> Null:
        """The search compared with those of rearranged outcomes."""
        strength = self.search.run(windows=windows).strength
        strongest = strength.max(initial=0)

        def strongest_of(order: np.ndarray, _: np.random.Generator) -> float:
            return self.search.run(order, windows).strength.max(initial=0)

        def accuracy_of(order: np.ndarray, random: np.random.Generator) -> float:
            return self.search.accuracy(self.search.run(order), random)

        count = 5 * self.permutations
        largest = _collect(strongest_of, orders, count, strongest, self.seed, 1)
        as_strong = (largest[:, None] >= strength - 1e-9).sum(axis=0)
        column_p_values = (as_strong + 1) / (largest.size + 1)
        best = _share(largest, strongest, count)
        if 2 * best <= self.level:
            return Null(2 * best, column_p_values)
        accuracies = _collect(
            accuracy_of, orders, self.permutations, self.accuracy, self.seed + 1, self.workers
        )
        smaller = min(best, _share(accuracies, self.accuracy, self.permutations))
        return Null(min(1.0, 2 * smaller), column_p_values)


def _collect(
    statistic: Callable[[np.ndarray, np.random.Generator], float],
    orders: Iterator[np.ndarray],
    count: int,
    seen: float,
    seed: int,
    workers: int | None,
) -> np.ndarray:
    """The statistic of up to `count` shuffles, in batches, until enough did as well."""
    seeds = np.random.SeedSequence(seed).spawn(count)
    values: list[float] = []
    with (
        ThreadPoolExecutor(workers or default_workers()) as pool,
        task("searching shuffled run times", count, "times") as shown,
    ):
        work: Iterator = zip(map(np.random.default_rng, seeds), orders)
        while batch := list(islice(work, min(BATCH, count - len(values)))):
            values += (
                [statistic(order, random) for random, order in batch]
                if workers == 1
                else pool.map(lambda pair: statistic(*pair[::-1]), batch)
            )
            shown.at(len(values))
            if sum(value >= seen - 1e-9 for value in values) >= ENOUGH:
                break
    return np.array(values)


def _share(values: np.ndarray, seen: float, count: int) -> float:
    as_good = int((values >= seen - 1e-9).sum())
    return as_good / values.size if values.size < count else (as_good + 1) / (values.size + 1)


def default_workers() -> int:
    """Threads for the trees (scikit-learn lets go of the interpreter's lock): the CPUs of this
    process, at most four.
    """
    return min(4, len(os.sched_getaffinity(0)))
