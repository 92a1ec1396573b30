"""Patterns on a grid of ranks: halo exchanges in one to three dimensions, wavefronts. Rank = x + nx
(y + ny z).
"""

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

import numpy as np

from ..errors import InputError
from ._building import Building, checked
from .schedule import Schedule


def grid(ranks: int, dimensions: int) -> tuple[int, ...]:
    """The sides of a grid of ranks, as close to a cube as divisors allow, the largest first."""
    shape, left = [], checked(ranks)
    for dimension in range(dimensions, 0, -1):
        most = round(left ** (1 / dimension))
        shape.append(next(side for side in range(most, 0, -1) if left % side == 0))
        left //= shape[-1]
    return tuple(sorted(shape, reverse=True))


def _neighbour(
    shape: Sequence[int], offset: Sequence[int], periodic: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The rank one step away in a direction, and which ranks have one."""
    rank, moved = np.arange(prod(shape)), []
    real = np.ones(len(rank), bool)
    for side, step, at in zip(shape, offset, np.unravel_index(rank, shape, "F"), strict=True):
        moved.append(at + step)
        real &= (side > 1) | (step == 0)
        if not periodic:
            real &= (moved[-1] >= 0) & (moved[-1] < side)
    return np.ravel_multi_index(moved, shape, "wrap", "F"), real


def _directions(dimensions: int, points: int | None) -> list[tuple[int, ...]]:
    """Along the axes first (+x, −x, +y, …), then the diagonals."""
    axes = [tuple(sign * axis) for axis in np.eye(dimensions, dtype=int) for sign in (1, -1)]
    if points in (None, 2 * dimensions + 1):
        return axes
    if points != 3**dimensions:
        raise InputError(
            f"no stencil of {points} points in {dimensions} dimensions",
            why=f"there are {2 * dimensions + 1} and {3**dimensions}",
        )
    return axes + [
        offset for offset in product((-1, 0, 1), repeat=dimensions) if sum(map(abs, offset)) > 1
    ]


def halo(
    shape: Sequence[int],
    bytes: int | Sequence[int] = 1,
    points: int | None = None,
    periodic: bool = True,
) -> Schedule:
    """Every rank exchanges its halo with its neighbours on a grid, all receives posted first,
    nothing waiting (MPI_Irecv, MPI_Isend).

    Parameters
    ----------
    shape
        Ranks along each of one to three axes.
    bytes
        Bytes of a face, one number or one an axis; edges and corners have 8.
    points
        Points of the stencil: 5 (default) or 9 in two dimensions, 7 (default) or 27 in three.
    periodic
        The grid closes upon itself. Along an axis of one rank nothing is exchanged; across two,
        both messages are.

    Notes
    -----
    A periodic grid (all sides > 1) takes P (points − 1) messages; an open one
    2 Σ_axes P (n − 1) / n along its axes.
    """
    if not 1 <= len(shape) <= 3:
        raise InputError(f"a grid of {len(shape)} dimensions", why="one to three are possible")
    build = Building(checked(prod(shape)), f"halo on {' x '.join(map(str, shape))}")
    faces = np.broadcast_to(bytes, len(shape))
    directions = _directions(len(shape), points)
    sizes = [
        int(faces[np.flatnonzero(offset)[0]]) if sum(map(abs, offset)) == 1 else 8
        for offset in directions
    ]
    found = [_neighbour(shape, offset, periodic) for offset in directions]
    back = [directions.index(tuple(-step for step in offset)) for offset in directions]
    for append, tags in ((build.recv, back), (build.send, range(len(back)))):
        for tag, size, (there, real) in zip(tags, sizes, found, strict=True):
            append(np.flatnonzero(real), there[real], size, tag=tag)
    return build.schedule()


def sweep(
    shape: Sequence[int],
    bytes: int | Sequence[int] = 1,
    blocks: int = 1,
    compute_ns: np.ndarray | int = 0,
    corners: Sequence[tuple[int, ...]] | None = None,
) -> Schedule:
    """Wavefronts over a grid of ranks (Sweep3D, KBA): from each corner in turn, block after block,
    blocking messages.

    Parameters
    ----------
    shape
        Ranks along two (or one, or three) axes.
    bytes
        Bytes of a message, one number or one an axis.
    blocks
        Computations of each rank a corner: it receives from upstream along each axis, computes,
        sends downstream.
    compute_ns
        Computing time of a block in ns, one number or int[P].
    corners
        Where the wavefronts start, 0 or 1 an axis; default: every corner twice, as the eight
        octants of a three-dimensional problem divided among a two-dimensional grid.

    Notes
    -----
    corners · blocks · Σ_axes P (n − 1) / n messages. From one corner the last rank ends after
    (Σ (n − 1) + blocks) steps.
    """
    build = Building(checked(prod(shape)), f"sweep over {' x '.join(map(str, shape))}")
    corners = corners or sorted([*product((0, 1), repeat=len(shape))] * 2)
    sizes, rank = np.broadcast_to(bytes, len(shape)), np.arange(prod(shape))
    last = [np.full(len(rank), -1, np.int32)]
    for corner in corners:
        axes = np.diag(1 - 2 * np.array(corner))
        down, up = ([_neighbour(shape, sign * one, False) for one in axes] for sign in (1, -1))
        for _ in range(blocks):
            last = _step(build, rank, up, down, sizes, compute_ns, last)
    return build.schedule()


def _step(
    build: Building,
    rank: np.ndarray,
    up: list,
    down: list,
    sizes: np.ndarray,
    compute_ns: np.ndarray | int,
    last: list,
) -> list:
    def on(kind: Callable[..., np.ndarray], places: tuple, size: int, after: list) -> np.ndarray:
        there, real = places
        numbers = np.full(len(rank), -1, np.int32)
        numbers[real] = kind(
            rank[real], there[real], int(size), after=tuple(before[real] for before in after)
        )
        return numbers

    received = [on(build.recv, places, size, last) for places, size in zip(up, sizes, strict=True)]
    computed = build.calc(rank, compute_ns, after=(*received, *last))
    return [computed] + [
        on(build.send, places, size, [computed]) for places, size in zip(down, sizes, strict=True)
    ]
