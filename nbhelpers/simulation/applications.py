"""Skeletons of applications: the communication of Sweep3D, POP, AMG, SAGE and CTH with computation
between, as far as it was published.

What is published, and used: the MPI calls of one run of Sweep3D, as a schedule (data/published);
the numbers of collectives of Sweep3D and POP, and the share of point-to-point messages (Hoefler,
Schneider, Lumsdaine, "Characterizing the Influence of System Noise on Large-Scale Applications by
Simulation", SC 2010, slides on both); how often POP, SAGE and CTH reduce, relative to each other,
and how many bytes (Ferreira, Bridges, Brightwell, "Characterizing Application Sensitivity to OS
Interference Using Kernel-Level Noise Injection", SC 2008, section 6). Everything else (grids, sizes
of halos, lengths of computations, order) is our choice and can be set.

The lengths of computations follow from one number: SAGE computes for 10 ms between two reductions,
fitted to its published slow-down under 10 Hz × 2500 µs, which is therefore no reproduction. CTH
reduces as often, POP 20 times as often. `nbhelpers.studies.scale.experiments` varies what was
chosen; the source of each number stands in data/published/hoefler2010-skeletons2.csv.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ..errors import InputError
from ..places import shipped
from . import patterns
from .goal import read_goal
from .schedule import Schedule

SWEEP3D_COLLECTIVES = {"bcast": 4, "barrier": 3, "allreduce": 32}
SWEEP3D_ITERATIONS, SWEEP3D_BLOCKS = 12, 15  # of the trace: 12 x 8 octants x 15 blocks
POP_COLLECTIVES = {"bcast": 703, "barrier": 575, "allreduce": 608}
POP_HALOS = 5  # 8 messages each: 0.2 % of all messages on 32,768 ranks
STEP_NS = 10_000_000  # computation of SAGE and CTH between two reductions


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


def traced_sweep3d() -> Schedule:
    """Sweep3D on 2 x 2 ranks as it ran: the schedule of its published trace, with collectives as
    the reference simulator makes them of messages.
    """
    schedule = read_goal(shipped() / "data" / "published" / "sweep3d-2x2.goal.xz")
    return replace(schedule, name="Sweep3D as traced")


def sweep3d(
    shape: Sequence[int],
    share: float = 1.0,
    *,
    blocks: int = SWEEP3D_BLOCKS,
) -> Schedule:
    """Sweep3D: discrete ordinates, wavefronts from all corners of a two-dimensional grid of ranks,
    two reductions at the end of each iteration.

    Published (SC 2010 and the trace): 4 broadcasts, 3 barriers, 32 all-reductions; 12 iterations of
    eight octants, 15 blocks an octant, messages of 36,000 bytes, blocks of 27.1 ms (mean, n = 5844;
    the quartiles are 25.3 and 28.0 ms). Ours: weak scaling, each rank computes as on 2 x 2 ranks.
    """
    ranks, counts = prod(shape), scaled(SWEEP3D_COLLECTIVES, share)
    iterations = max(1, round(SWEEP3D_ITERATIONS * share))
    iteration = patterns.sweep(shape, 36_000, blocks, 27_100_000)
    reduction = patterns.recursive_doubling_allreduce(ranks, 8)
    barriers = [patterns.barrier(ranks)] * counts["barrier"]
    after = min(2, counts["allreduce"] // iterations)
    parts = (
        [patterns.binomial_bcast(ranks, 64)] * counts["bcast"]
        + barriers[:2]
        + [iteration, *[reduction] * after] * iterations
        + barriers[2:]
        + [reduction] * (counts["allreduce"] - after * iterations)
    )
    return patterns.compose(parts, [0] * len(parts), name=f"Sweep3D on {_by(shape)}")


def pop(
    shape: Sequence[int],
    share: float = 1.0,
    *,
    compute_ns: int = 330_000,
    reductions: int = 1,
    solver_ns: int = 5_000,
    collectives: Mapping[str, int] = POP_COLLECTIVES,
    halo_bytes: int = 2048,
    halos: int = POP_HALOS,
    reduction: Callable[[int, int], Schedule] = patterns.recursive_doubling_allreduce,
) -> Schedule:
    """POP, the Parallel Ocean Program: a solver that reduces 8 bytes again and again, with a few
    9-point halos on a two-dimensional grid.

    Published (SC 2010): 703 broadcasts, 575 barriers, 608 all-reductions, 0.2 % of the messages
    non-blocking point-to-point; POP reduces 20 times as often as SAGE and CTH in the same time (SC
    2008). Ours: the collectives evenly mixed, `compute_ns` before every all-reduction, which with
    the collectives themselves makes a twentieth of SAGE's step; `halos` exchanges of `halo_bytes` a
    face in the whole run; `reduction`, a pattern.

    A step has two phases (SC 2008, section 4.2): the baroclinic one computes, the solver of the
    barotropic one reduces. With several `reductions` a step, each has `solver_ns` before it, and
    the rest of the same computation comes in one piece before the first. Neither number is
    published; at equal `compute_ns` they change little: under 10 Hz × 2500 µs on 2500 ranks 1, 10
    and 30 reductions a step gave slow-downs of 21.8, 22.3 and 22.5.
    """
    ranks, counts = prod(shape), scaled(dict(collectives), share)
    counts["halo"] = round(halos * share) if halos else 0
    kinds = {
        "bcast": patterns.binomial_bcast(ranks, 64),
        "barrier": patterns.barrier(ranks),
        "allreduce": reduction(ranks, 8),
        "halo": patterns.halo(shape, halo_bytes, points=9),
    }
    names = spread(counts)
    works = iter(_two_phases(counts["allreduce"], compute_ns, reductions, solver_ns))
    grains = [next(works) if name == "allreduce" else 0 for name in names]
    return patterns.compose([kinds[name] for name in names], grains, name=f"POP on {_by(shape)}")


def _two_phases(count: int, compute_ns: int, reductions: int, solver_ns: int) -> list[int]:
    """The computation before each all-reduction; its mean is `compute_ns`, whatever the phases."""
    steps = max(1, round(count / reductions))
    solver_ns = min(solver_ns, compute_ns) if steps < count else 0
    first = round((compute_ns - solver_ns) * count / steps)
    begins = {-(-step * count // steps) for step in range(steps)}
    return [solver_ns + (first if i in begins else 0) for i in range(count)]


def sage(
    shape: Sequence[int],
    iterations: int,
    *,
    compute_ns: int = STEP_NS,
    halo_bytes: int = 32_768,
    imbalance: float = 0.0,
) -> Schedule:
    """SAGE, adaptive grid hydrodynamics: long computations, non-blocking neighbours, 8-byte
    all-reductions.

    Published (SC 2008): all-reductions of 8 bytes on average, a twentieth as often as POP's; time
    in MPI_Allreduce and MPI_Wait, hardly any broadcast. Ours: the grid in three dimensions,
    `halo_bytes` a face, one reduction an iteration; `imbalance`: each rank's computation of each
    iteration lies within this share of `compute_ns`, evenly distributed.
    """
    halo = patterns.halo(shape, halo_bytes)
    reduction = patterns.recursive_doubling_allreduce(prod(shape), 8)
    return _in_steps("SAGE", shape, [halo, reduction], iterations, compute_ns, imbalance)


def cth(
    shape: Sequence[int],
    iterations: int,
    *,
    compute_ns: int = STEP_NS,
    halo_bytes: int = 40_960,
    imbalance: float = 0.0,
) -> Schedule:
    """CTH, shock physics: like SAGE, but larger collectives: all-reductions of 32 bytes and
    broadcasts of 1 KiB.

    Published (SC 2008): all-reductions as many as SAGE's, 32 bytes on average; broadcasts of 1024
    bytes on average; 60 % of the time of communication in sends, receives and waits. Ours: the grid
    in three dimensions, `halo_bytes` a face, a broadcast an iteration; `imbalance` as of
    `sage`.
    """
    parts = [
        patterns.halo(shape, halo_bytes),
        patterns.recursive_doubling_allreduce(prod(shape), 32),
        patterns.binomial_bcast(prod(shape), 1024),
    ]
    return _in_steps("CTH", shape, parts, iterations, compute_ns, imbalance)


def _in_steps(
    name: str,
    shape: Sequence[int],
    parts: list[Schedule],
    iterations: int,
    compute_ns: int,
    imbalance: float,
) -> Schedule:
    """A computation and then the parts, again and again; uneven ones are always the same draws."""
    if not 0 <= imbalance <= 1:
        raise InputError(f"an imbalance of {imbalance}", why="it is a share, from 0 to 1")
    drawn = np.random.default_rng(0).uniform(-1, 1, (iterations, prod(shape)))
    uneven = np.round(compute_ns * (1 + imbalance * drawn)).astype(np.int64)
    grains: list[np.ndarray | int] = [0] * (len(parts) * iterations)
    grains[:: len(parts)] = uneven if imbalance else [compute_ns] * iterations
    return patterns.compose(parts * iterations, grains, name=f"{name} on {_by(shape)}")


def amg(
    shape: Sequence[int],
    cycles: int,
    *,
    compute_ns: int = 200_000,
    halo_bytes: int = 8192,
) -> Schedule:
    """AMG 2006, algebraic multigrid: V-cycles of 27-point halos on ever coarser grids, each on
    every second rank an axis, and reductions.

    Published (SC 2010): collective and point-to-point messages mixed; more than 4 % lost to noise
    on one system, very little on others; no counts. Ours: all of it. From level to level, the grid
    halves along each axis (and an eighth of the ranks is left), computation falls to an eighth,
    faces to a quarter; two all-reductions of 8 bytes a cycle, as a conjugate-gradient solver around
    it makes.
    """
    ranks = prod(shape)
    coarse = _coarser(shape)
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
    ] * 2
    return patterns.compose(
        parts * cycles,
        ([grains[level] for level in down_and_up] + [0, 0]) * cycles,
        name=f"AMG on {_by(shape)}",
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


def _by(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))
