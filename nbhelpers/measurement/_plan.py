"""Which runs of a campaign are missing, so that every two cells that are compared were measured in
turn often enough.

Pure: finished runs in, rounds out. Two cells count as compared in the rounds that hold both, and in
no others.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def missing_runs(
    done: Sequence[tuple[int, str]],
    cells: Sequence[Any],
    rounds: int,
    first: int,
    order: Callable[[int], Sequence[Any]],
) -> list[tuple[int, Any]]:
    """Rounds and cells that are still to be measured, in order.

    Parameters
    ----------
    done
        Round and cell of each finished run.
    cells
        Cells of the campaign, with `name` and `is_compared_with(other)`.
    rounds
        Rounds in which any two cells that are compared must both have been measured.
    first
        Round in which the present epoch begins; rounds before it are counted and never filled up,
        since what is measured now would not lie among their runs.
    order
        All cells in the order of a round.

    Notes
    -----
    A round holds the cells of all pairs that still lack rounds. Of a campaign that never grew this
    gives the rounds 0 to `rounds` - 1 with every cell in each.
    """
    place = {cell.name: at for at, cell in enumerate(cells)}
    wanted_pairs = _compared_pairs(cells)
    present = _present(done, place)
    before = np.array([seen for number, seen in present.items() if number < first], dtype=int)
    before = before.reshape(-1, len(cells))
    together = before.T @ before  # in how many rounds each two cells were both measured
    missing: list[tuple[int, Any]] = []
    number = first
    while (needed := (wanted_pairs & (together < rounds)).any(axis=1)).any():
        seen = present.get(number, np.zeros(len(cells), bool))
        lacking = needed & ~seen
        missing += [(number, cell) for cell in order(number) if lacking[place[cell.name]]]
        together += np.outer(seen | needed, seen | needed)
        number += 1
    return missing


def first_rounds(done: Sequence[tuple[int, str]], cells: Sequence[Any], rounds: int) -> int:
    """The number of the round before which every two cells that are compared were measured
    together `rounds` times, or the end of all rounds.
    """
    place = {cell.name: at for at, cell in enumerate(cells)}
    wanted_pairs = _compared_pairs(cells)
    together = np.zeros((len(cells), len(cells)), int)
    present = _present(done, place)
    for number in sorted(present):
        together += np.outer(present[number], present[number])
        if not (wanted_pairs & (together < rounds)).any():
            return number + 1
    return max(present, default=-1) + 1


def _compared_pairs(cells: Sequence[Any]) -> np.ndarray:
    """Which two cells are compared with each other (cells × cells)."""
    pairs = np.eye(len(cells), dtype=bool)
    for row, one in enumerate(cells):
        for column, other in enumerate(cells):
            if one.is_compared_with(other) and other.is_compared_with(one):
                pairs[row, column] = True
    return pairs


def _present(done: Sequence[tuple[int, str]], place: dict[str, int]) -> dict[int, np.ndarray]:
    """Round -> which cells were measured in it."""
    found: dict[int, np.ndarray] = {}
    for number, name in done:
        if name in place:
            found.setdefault(number, np.zeros(len(place), bool))[place[name]] = True
    return found
