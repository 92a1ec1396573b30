"""The p-value of a search: the same search of rearranged outcomes, again and again.

Owns the one null that corrects for everything searched, and the choice of rearrangements. Of 43
undisturbed tables plain shuffles "explain" 8, circular shifts 5, these rearrangements 4.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np
import pandas as pd

from ..progress import task
from ..statistics.order import SUSPECTED, TimeOrder, has_trend, period_of, time_order
from ..statistics.surrogates import (
    beats,
    block_orders,
    circular_orders,
    level_windows,
    neighbourhood,
    phase_orders,
    tenth_orders,
    without_beats,
)
from .search import Search, Table, flattened, standardised

ENOUGH = 10  # surrogates that did as well: the p-value is large, and known well enough
BATCH = 50  # surrogates at once
FEWEST_SHIFTED = 50  # runs whose circular shifts reach a p-value of 0.01


@dataclass(frozen=True, eq=False)
class Null:
    """A search compared with searches of rearranged outcomes.

    Attributes
    ----------
    p_value
        p-value of the whole search.
    column_p_values, category_p_values
        p-values of each column and category, corrected for everything that was searched (Westfall
        and Young's maximum).
    surrogates
        What the outcomes were compared with, in words.
    """

    p_value: float
    column_p_values: np.ndarray
    category_p_values: np.ndarray
    surrogates: str


def null_distribution(
    search: Search, order: TimeOrder | None, count: int, level: float, seed: int
) -> Null:
    """The p-value of a search: how often a search of rearranged outcomes sees as much.

    Parameters
    ----------
    search
        The search of the outcomes as they are.
    order
        What the order of the runs has to do with the outcome; None: nothing.
    count
        Rearrangements of each kind.
    level
        p-value that decides; a kind that is not rejected at it ends the work.
    seed
        Seed of the rearrangements.

    Notes
    -----
    One maximum over everything searched: single columns by classes and by the outcome's ranks, and
    categories. Each counts by its own p-value, corrected for the size and the share of its family.

    Where the order of the runs matters, or may (p at most 0.1), single runs can't be exchanged. If
    only how far they are from the middle has an order (noisy hours), they are exchanged within each
    tenth of the campaign. Without a trend and a period, all circular shifts are the null, forwards
    and backwards: of causes in two stretches of 15 runs these find 11 of 40, the others none. Else
    three nulls must all be rejected. The first moves blocks of runs, so that neighbours stay alike.
    The second keeps the spectrum of the outcome and draws its phases, so that its autocorrelation
    and its periods stay. The third does so with what is left when the outcome's beats, its share of
    the run before, and the level of each tenth of the campaign are taken out of outcome and
    columns. So a common beat, drift or step explains nothing.
    Work stops early after ten rearrangements that did as well (Besag and Clifford 1991).
    """
    kinds = _kinds(search, order, np.random.default_rng(seed))
    nulls: list[Null] = []
    most = count * len(kinds)
    with task(f"searching run times rearranged at most {most:,} times", unit="times") as shown:
        for kind in kinds:
            nulls.append(_against(search, kind, count, shown.update))
            if nulls[-1].p_value > level:
                break
    return Null(
        max(null.p_value for null in nulls),
        np.max([null.column_p_values for null in nulls], axis=0),
        np.max([null.category_p_values for null in nulls], axis=0),
        ", ".join(kind.name for kind in kinds),
    )


@dataclass(frozen=True, eq=False)
class Rearranged:
    """Columns and an outcome, and the outcome in orders that it could have had as well.

    Attributes
    ----------
    name
        What the orders keep, in words.
    columns
        DataFrame of standard ranks, a row a run.
    outcome
        Standard ranks of the n runs.
    surrogates
        The outcome, rearranged (count × n).
    """

    name: str
    columns: pd.DataFrame
    outcome: np.ndarray
    surrogates: np.ndarray


def rearranged(
    columns: pd.DataFrame, outcome: pd.Series, count: int = 999, seed: int = 0
) -> list[Rearranged]:
    """Rearrange an outcome in ways that keep what the order of the runs has to do with it.

    An association counts if it is stronger than in the rearranged outcomes of each kind: one kind
    where runs can be exchanged or shifted, three where they can't (see `null_distribution`).

    Parameters
    ----------
    columns
        Numbers, a row a run, in the order of measuring.
    outcome
        Outcomes of the same runs.
    count
        Rearrangements of each kind; fewer, if there are no more.
    seed
        Seed of the rearrangements.

    Examples
    --------
    >>> runs = pd.DataFrame({"faults": range(40), "seconds": np.random.default_rng(1).random(40)})
    >>> [free] = rearranged(runs[["faults"]], runs["seconds"], 99)
    >>> free.name, free.surrogates.shape
    ('single runs', (99, 40))
    """
    times = outcome.to_numpy(float)
    whole = Search(Table.of(columns.to_numpy(float)), times, times > np.median(times))
    search = whole.of(whole.table, whole.rows[:1])
    kinds = _kinds(search, time_order(times, seed), np.random.default_rng(seed))
    return [
        Rearranged(
            kind.name,
            pd.DataFrame(kind.table.ranks, columns.index, columns.columns),
            kind.rows[0],
            kind.gain * kind.rows[0][kind.orders(min(count, kind.most))],
        )
        for kind in kinds
    ]


@dataclass(frozen=True, eq=False)
class _Kind:
    """A way to rearrange, and the table and the rows of outcomes that it holds for."""

    name: str
    orders: Callable[[int], np.ndarray]
    table: Table
    rows: np.ndarray
    # what was taken out of the outcomes leaves them fewer degrees of freedom than rearranged ones
    gain: float = 1.0
    most: int = 1_000_000  # orders there are


def _kinds(search: Search, order: TimeOrder | None, random: np.random.Generator) -> list[_Kind]:
    """One kind where runs can be exchanged or shifted, three where their order matters or may."""
    size, ranks = len(search.times), search.rows[0]
    if order is None or order.is_sorted:
        return [_plain(search, random)]
    if order.p_value > SUSPECTED:
        if time_order(np.abs(ranks)).p_value > SUSPECTED:
            return [_plain(search, random)]
        orders = partial(tenth_orders, size, random=random)
        return [_Kind("single runs within tenths", orders, search.table, search.rows)]
    if size < FEWEST_SHIFTED or has_trend(ranks) or period_of(ranks):
        return _nulls(search, order, random)
    shifts = iter(circular_orders(size, random))
    now = search.table, search.rows
    most = 2 * size - 1
    return [_Kind("circular shifts", lambda n: np.array([*islice(shifts, n)]), *now, most=most)]


def _plain(search: Search, random: np.random.Generator) -> _Kind:
    orders = partial(block_orders, len(search.times), 1, random=random)
    return _Kind("single runs", orders, search.table, search.rows)


def _nulls(search: Search, order: TimeOrder, random: np.random.Generator) -> list[_Kind]:
    size = len(search.times)
    windows = level_windows(size, order.changes)
    signal = _signal(search.rows)
    frequencies = beats(signal)
    left = (frequencies, neighbourhood(without_beats(signal, frequencies)), windows)
    inside = _without_changes(flattened(search.rows.T, *left), order.changes).T
    block = "single runs" if order.block == 1 else f"blocks of {order.block} runs"
    blocks = partial(block_orders, size, order.block, random=random)
    phases, of_rest = (partial(phase_orders, of, random=random) for of in (signal, _signal(inside)))
    gain = float(np.sqrt(size / max(size - 2 * frequencies.size - windows[-1] - 1, size / 4)))
    flat = replace(search.table, ranks=flattened(search.table.ranks, *left))
    rest = "random phases of what is left without beats and drift"
    return [
        _Kind(block, blocks, search.table, search.rows),
        _Kind("random phases", phases, search.table, search.rows),
        _Kind(rest, of_rest, flat, inside, gain),
    ]


def _without_changes(rows: np.ndarray, changes: tuple[int, ...]) -> np.ndarray:
    """Outcomes (n × rows) without the runs about a change of level, whose place is not certain."""
    near = np.unique([place for change in changes for place in range(change - 2, change + 2)])
    left = rows.copy()
    if 0 < near.size < len(rows) / 3:
        left[near.clip(0, len(rows) - 1).astype(int)] = 0
    return standardised(left)


def _signal(rows: np.ndarray) -> np.ndarray:
    """What keeps its spectrum: the outcome, and the labels, if they are not searched for."""
    return rows[0] + 2 * rows[1] if len(rows) == 2 else rows[0]


def _against(search: Search, kind: _Kind, count: int, searched: Callable[[int], object]) -> Null:
    """The search compared with one kind of rearrangement."""
    seen = search.of(kind.table, kind.rows).run()
    values: list[np.ndarray] = []
    done = as_good = 0
    count = min(count, kind.most)
    while done < count and as_good < ENOUGH:
        orders = kind.orders(min(BATCH, count - done))
        values.append(search.largest(orders, kind.table, kind.gain * kind.rows))
        done += len(orders)
        as_good += int((values[-1] >= seen.best - 1e-9).sum())
        searched(len(orders))
    largest = np.concatenate(values)

    def p_values(scores: np.ndarray) -> np.ndarray:
        exceeding = largest.size - np.searchsorted(np.sort(largest), scores - 1e-9)
        return (exceeding + 1) / (largest.size + 1)

    return Null(
        float(p_values(np.array([seen.best]))[0]),
        p_values(seen.columns),
        p_values(seen.categories),
        kind.name,
    )
