"""Skeletons of applications: the communication of Sweep3D, POP, AMG, SAGE and CTH with computation
between, as far as it was published.

What is published, and used: the numbers of collectives of one run of Sweep3D and POP (Hoefler,
Schneider, Lumsdaine, "Characterizing the Influence of System Noise on Large-Scale Applications by
Simulation", SC 2010, slides on both); how often POP, SAGE and CTH reduce, relative to each other,
and how many bytes (Ferreira, Bridges, Brightwell, "Characterizing Application Sensitivity to OS
Interference Using Kernel-Level Noise Injection", SC 2008, section 6). Everything else (grids, sizes
of halos, lengths of computations, order) is our choice, can be set, and decides how much noise is
absorbed: compare shapes, not seconds.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from ..errors import InputError
from . import patterns
from .schedule import Schedule

SWEEP3D_COLLECTIVES = {"bcast": 4, "barrier": 3, "allreduce": 32}
POP_COLLECTIVES = {"bcast": 703, "barrier": 575, "allreduce": 608}
POP_ALLREDUCES_PER_SAGE = 20


def spread(counts: dict[str, int]) -> list[str]:
    """The names, each as often as its count, spread evenly: {"a": 4, "b": 2} ─► a b a a b a."""
    places = sorted(
        ((i + 0.5) / count, name) for name, count in counts.items() for i in range(count)
    )
    return [name for _, name in places]


def scaled(counts: dict[str, int], share: float) -> dict[str, int]:
    """A shorter run: a share of every count, at least one of each that there is any of."""
    if not 0 < share <= 1:
        raise InputError(f"a share of {share}", why="it has to be above 0, and 1 is the whole run")
    return {name: max(1, round(count * share)) if count else 0 for name, count in counts.items()}


def sweep3d(
    shape: Sequence[int],
    share: float = 1.0,
    *,
    blocks: int = 10,
    block_bytes: int = 36_000,
    block_ns: int = 100_000,
    reduced_bytes: int = 8,
) -> Schedule:
    """Sweep3D: discrete ordinates, wavefronts from all corners of a two-dimensional grid of ranks,
    a reduction at the end of each iteration.

    Published (SC 2010): 4 broadcasts, 3 barriers, 32 all-reductions, and 92.4 % of the operations
    blocking point-to-point messages. Ours: broadcasts at the start, one iteration of eight octants
    before each all-reduction, `blocks` blocks an octant of `block_ns` each; the messages of 36,000
    bytes are those of the sample trace that the reference simulator comes with (2 x 2 ranks).
    """
    ranks, counts = prod(shape), scaled(SWEEP3D_COLLECTIVES, share)
    iteration = patterns.sweep(shape, block_bytes, blocks, block_ns)
    reduction = patterns.recursive_doubling_allreduce(ranks, reduced_bytes)
    barriers = [patterns.barrier(ranks)] * counts["barrier"]
    parts = (
        [patterns.binomial_bcast(ranks, 64)] * counts["bcast"]
        + barriers[:1]
        + [iteration, reduction] * counts["allreduce"]
        + barriers[1:]
    )
    return _named(parts, [0] * len(parts), f"Sweep3D on {' x '.join(map(str, shape))}")


def pop(
    shape: Sequence[int],
    share: float = 1.0,
    *,
    compute_ns: int = 500_000,
    halo_bytes: int = 2048,
    halos: bool = True,
) -> Schedule:
    """POP, the Parallel Ocean Program: a solver that reduces 8 bytes again and again, with 9-point
    halos on a two-dimensional grid.

    Published (SC 2010): 703 broadcasts, 575 barriers, 608 all-reductions, 0.2 % non-blocking
    point-to-point operations; POP reduces 20 times as often as SAGE and CTH in the same time (SC
    2008). Ours: the collectives evenly mixed, `compute_ns` before every all-reduction, a halo of
    `halo_bytes` a face before it (`halos=False`: collectives only).
    """
    ranks, counts = prod(shape), scaled(POP_COLLECTIVES, share)
    halo = patterns.halo(shape, halo_bytes, points=9)
    kinds = {
        "bcast": [patterns.binomial_bcast(ranks, 64)],
        "barrier": [patterns.barrier(ranks)],
        "allreduce": [halo] * halos + [patterns.recursive_doubling_allreduce(ranks, 8)],
    }
    parts: list[Schedule] = []
    grains: list = []
    for name in spread(counts):
        parts += kinds[name]
        grains += [compute_ns if name == "allreduce" else 0] + [0] * (len(kinds[name]) - 1)
    return _named(parts, grains, f"POP on {' x '.join(map(str, shape))}")


def sage(
    shape: Sequence[int],
    iterations: int,
    *,
    compute_ns: int = POP_ALLREDUCES_PER_SAGE * 500_000,
    halo_bytes: int = 32_768,
) -> Schedule:
    """SAGE, adaptive grid hydrodynamics: long computations, non-blocking neighbours, 8-byte
    all-reductions.

    Published (SC 2008): all-reductions of 8 bytes on average, a twentieth as often as POP's; time
    in MPI_Allreduce and MPI_Wait, hardly any broadcast. Ours: the grid in three dimensions,
    `halo_bytes` a face, one reduction an iteration; 20 times the computation of `pop` between two
    reductions.
    """
    parts = [
        patterns.halo(shape, halo_bytes),
        patterns.recursive_doubling_allreduce(prod(shape), 8),
    ]
    return _named(
        parts * iterations, [compute_ns, 0] * iterations, f"SAGE on {' x '.join(map(str, shape))}"
    )


def cth(
    shape: Sequence[int],
    iterations: int,
    *,
    compute_ns: int = POP_ALLREDUCES_PER_SAGE * 500_000,
    halo_bytes: int = 131_072,
    bcast_every: int = 1,
) -> Schedule:
    """CTH, shock physics: like SAGE, but larger collectives: all-reductions of 32 bytes and
    broadcasts of 1 KiB.

    Published (SC 2008): all-reductions as many as SAGE's, 32 bytes on average; broadcasts of 1024
    bytes on average; time spread over all-reductions, broadcasts, sends and waits. Ours: the grid
    in three dimensions, `halo_bytes` a face, a broadcast every `bcast_every` iterations.
    """
    ranks = prod(shape)
    halo = patterns.halo(shape, halo_bytes)
    reduction = patterns.recursive_doubling_allreduce(ranks, 32)
    bcast = patterns.binomial_bcast(ranks, 1024)
    parts: list[Schedule] = []
    grains: list = []
    for i in range(iterations):
        parts += [halo, reduction] + [bcast] * (i % bcast_every == 0)
        grains += [compute_ns] + [0] * (len(parts) - len(grains) - 1)
    return _named(parts, grains, f"CTH on {' x '.join(map(str, shape))}")


def amg(
    shape: Sequence[int],
    cycles: int,
    *,
    compute_ns: int = 200_000,
    halo_bytes: int = 8192,
    levels: int | None = None,
    reductions: int = 2,
) -> Schedule:
    """AMG 2006, algebraic multigrid: V-cycles of 27-point halos on ever coarser grids, each on
    every second rank an axis, and reductions.

    Published (SC 2010): collective and point-to-point messages mixed; more than 4 % lost to noise
    on one system, very little on others; no counts. Ours: all of it. From level to level, the grid
    halves along each axis (and an eighth of the ranks is left), computation falls to an eighth,
    faces to a quarter; `reductions` all-reductions of 8 bytes a cycle, as a conjugate-gradient
    solver around it makes.
    """
    ranks = prod(shape)
    coarse = _coarser(shape)[:levels]
    grids = [
        patterns.embed(
            patterns.halo(
                sides, max(8, halo_bytes // 4**level), points=3 ** len(sides), periodic=False
            ),
            members,
            ranks,
        )
        for level, (sides, members) in enumerate(coarse)
    ]
    grains = [
        max(0, compute_ns // 8**level) * np.isin(np.arange(ranks), members)
        for level, (_, members) in enumerate(coarse)
    ]
    down_and_up = [*range(len(grids)), *reversed(range(len(grids) - 1))]
    parts = [grids[level] for level in down_and_up] + [
        patterns.recursive_doubling_allreduce(ranks, 8)
    ] * reductions
    return _named(
        parts * cycles,
        ([grains[level] for level in down_and_up] + [0] * reductions) * cycles,
        f"AMG on {' x '.join(map(str, shape))}",
    )


def _coarser(shape: Sequence[int]) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """The grids of a V-cycle and the ranks that hold a part of each, from fine to coarse, down to
    one rank.
    """
    places = np.arange(prod(shape)).reshape(tuple(reversed(shape)))
    found = [(tuple(shape), places.reshape(-1))]
    while places.size > 1:
        places = places[tuple(slice(None, None, 2) for _ in shape)]
        found.append((tuple(reversed(places.shape)), places.reshape(-1)))
    return found


def _named(parts: list[Schedule], grains: list, name: str) -> Schedule:
    return patterns.compose(parts, grains, name=name)
