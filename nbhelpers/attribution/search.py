"""The whole search for counters that go with the slow runs, in a form that can be repeated on
shuffled outcomes, and its p-value.

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
from .screening import Screen, correlation_strength, grouped

ENOUGH = 10  # shuffles that did as well: the p-value is large, and known well enough
BATCH = 8  # shuffles handed out at once; fixed, so that the number of workers changes nothing
WINDOWS = 10  # stretches of a campaign within which neighbours are exchanged
SHORTEST_WINDOW = 8  # runs
CANDIDATES = 100  # cutoffs of a search for one
LEAST_SHARE = 0.05  # of the runs on either side of a cutoff that is searched for


@dataclass(frozen=True, eq=False)
class Pass:
    """What one search saw: the columns kept (places), the labels, how clearly each column separates
    them (standard errors).
    """

    kept: np.ndarray
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
        self.screen, self._slow = screen, slow
        self.values = screen.columns.to_numpy(np.float32)
        self._alike = correlation_strength(screen.columns.to_numpy())

    def run(self, order: np.ndarray | None = None, windows: np.ndarray | None = None) -> Pass:
        """Search, with the outcomes in this order (default: as they are); with windows, what counts
        is the difference within each.
        """
        kept = self.screen.kept(order)
        times = self.screen.times if order is None else self.screen.times[order]
        ranks = self.screen.ranks[:, kept]
        if self._slow is None:
            slow, strength = _best_labels(times, ranks)
        else:
            slow = self._slow if order is None else self._slow[order]
            strength = (
                None if windows is not None else _strengths(slow[None].astype(float), ranks)[0]
            )
        return Pass(
            kept, slow, strength if windows is None else _strengths_within(slow, ranks, windows)
        )

    def groups(self, kept: np.ndarray) -> list[np.ndarray]:
        """Places of the columns that move together, each group led by its most central member."""
        return [kept[members] for members in grouped(self._alike[np.ix_(kept, kept)])]

    def accuracy(self, seen: Pass, random: np.random.Generator) -> float:
        """Balanced accuracy, on runs that it had not seen, of a tree of the leaders; 0.5 if no
        column is left.
        """
        if not seen.kept.size:
            return 0.5
        leaders = [group[0] for group in self.groups(seen.kept)]
        predicted = trees.cross_validated(self.values[:, leaders], seen.slow, random)
        return trees.balanced_accuracy(seen.slow, predicted)


def _strengths(labels: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Rank-sum statistics in standard errors, for each row of labels and column of standard ranks."""
    size, count = labels.shape[1], labels.sum(axis=1)
    return (
        np.abs(labels @ ranks)
        / np.sqrt(np.maximum(count * (size - count) / max(size - 1, 1), 1e-12))[:, None]
    )


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
    """The search held against shuffled outcomes: its p-value, and that of each kept column alone.

    The latter are corrected for the number of columns (Westfall and Young's maximum).
    """

    p_value: float
    of_columns: np.ndarray


def null(
    search: Search,
    accuracy: float,
    block: int,
    permutations: int,
    level: float,
    seed: int,
    workers: int | None = None,
) -> Null:
    """The p-value of a search: how often a search of shuffled outcomes sees as much.

    Two statistics: how clearly the best column alone separates (five times as many shuffles: it is
    cheap), and how well a tree predicts, which sees what only several columns together do. The
    smaller p-value is doubled for the choice; the tree's null is left out where the first has
    decided. The cutoff of `find_cutoff` depends on the outcomes and not on whose they are, so a
    shuffle leaves it where it was. Either stops early once ten shuffles did as well (Besag and
    Clifford 1991).

    Where the order of the runs matters (`block` above 1), single runs can't be exchanged. Then two
    nulls must both be rejected: one moves blocks of runs, which keeps what neighbours have in
    common; the other exchanges neighbours only (within a tenth of the campaign), which keeps a
    drift that all share.
    """
    size = len(search.screen.times)
    moved = _held_against(
        search,
        accuracy,
        shuffles(size, block, np.random.default_rng(seed)),
        None,
        permutations,
        level,
        seed,
        workers,
    )
    if block == 1 or moved.p_value > level:
        return moved
    windows = np.arange(size) // max(SHORTEST_WINDOW, -(-size // WINDOWS))
    exchanged = _held_against(
        search,
        accuracy,
        _exchanges(windows, np.random.default_rng(seed)),
        windows,
        permutations,
        level,
        seed,
        workers,
    )
    return Null(
        max(moved.p_value, exchanged.p_value), np.maximum(moved.of_columns, exchanged.of_columns)
    )


def _exchanges(windows: np.ndarray, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Endless rearrangements within windows."""
    while True:
        yield np.argsort(windows + random.random(windows.size))


def _held_against(
    search: Search,
    accuracy: float,
    orders: Iterator[np.ndarray],
    windows: np.ndarray | None,
    permutations: int,
    level: float,
    seed: int,
    workers: int | None,
) -> Null:
    strength = search.run(windows=windows).strength
    seen = strength.max(initial=0)
    largest = _collect(
        lambda order, _: search.run(order, windows).strength.max(initial=0),
        orders,
        5 * permutations,
        seen,
        seed,
        1,
    )
    of_columns = ((largest[:, None] >= strength - 1e-9).sum(axis=0) + 1) / (largest.size + 1)
    best = _share(largest, seen, 5 * permutations)
    if 2 * best <= level:
        return Null(2 * best, of_columns)
    as_good = _collect(
        lambda order, random: search.accuracy(search.run(order), random),
        orders,
        permutations,
        accuracy,
        seed + 1,
        workers,
    )
    return Null(min(1.0, 2 * min(best, _share(as_good, accuracy, permutations))), of_columns)


def _collect(
    statistic: Callable,
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
