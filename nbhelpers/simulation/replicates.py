"""The same simulation with other phases of the noise, many times, on all cores.

Owns the seeds of replicates; what is replicated is any call that takes noise and gives a result.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..progress import each
from .noise import Noise
from .result import Result


@dataclass(frozen=True)
class Replicates:
    """What the replicates took.

    Parameters
    ----------
    slowdown
        float64[n]; the time of each over that without noise.
    ideal_ns
        Without noise.
    """

    slowdown: np.ndarray
    ideal_ns: float


def seeds_of(n: int, seed: int) -> np.ndarray:
    """The seeds of n replicates, uint32[n]; the first m of more are those of m."""
    return np.random.SeedSequence(seed).generate_state(n)


def replicate(
    call: Callable[[Noise | None], Result],
    noise: Noise,
    n: int = 30,
    seed: int = 0,
    *,
    workers: int | None = None,
) -> Replicates:
    """Repeat a simulation with phases drawn anew.

    Parameters
    ----------
    call
        What is simulated, a function of the noise: `lambda noise: simulate(schedule, noise=noise)`,
        or `functools.partial`.
    noise
        Whose phases are drawn anew for each replicate (`Noise.with_seed`); its traces are shared by
        all.
    n
        How many. The seed of each follows from `seed`, so that the results don't depend on the
        workers.
    workers
        Threads; None: one a core. They share all arrays, and the simulator runs without Python's
        lock.

    Raises
    ------
    InputError
        n below 1, or noise without phases to draw.

    Examples
    --------
    >>> from nbhelpers.simulation import patterns, periodic, simulate
    >>> noise = Noise.on_ranks(periodic(1000, 100), 64)
    >>> schedule = patterns.dissemination(64, 1)
    >>> found = replicate(lambda noise: simulate(schedule, noise=noise), noise, n=5)
    >>> found.ideal_ns, len(found.slowdown)
    (33000.0, 5)
    """
    if isinstance(n, bool) or int(n) != n or n < 1:
        raise InputError(
            f"n = {n!r} replicates", fix="at least one, and 30 for an interval worth the name"
        )
    if not isinstance(noise, Noise):
        raise InputError(
            f"the noise is {type(noise).__name__}",
            why="only phases on ranks can be drawn anew",
            fix="Noise.on_ranks(trace, ranks)",
        )

    def one(drawn: np.uint32) -> float:
        return float(call(noise.with_seed(int(drawn))).finish_ns.max())

    ideal_ns = float(call(None).finish_ns.max())
    noise.tables()  # the traces' tables, once for all threads
    seeds = seeds_of(int(n), seed)
    with ThreadPoolExecutor(workers or len(os.sched_getaffinity(0))) as pool:
        took = list(each(pool.map(one, seeds), "simulating", "replicates", len(seeds)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return Replicates(np.array(took) / ideal_ns, ideal_ns)
