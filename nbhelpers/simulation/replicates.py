"""The same simulation with other phases of the noise, many times, on all cores.

Owns the seeds of replicates; what is replicated is any call that takes noise and gives a result.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..errors import InputError
from ..progress import each
from .noise import Noise
from .result import Result


def replicate(
    call: Callable[[Noise | None], Result],
    noise: Noise,
    n: int = 30,
    seed: int = 0,
) -> np.ndarray:
    """How long a simulation takes when phases are drawn anew again and again, ns, float64[n].

    It runs in a thread a core: they share all arrays, and the simulator runs without Python's lock.

    Parameters
    ----------
    call
        What is simulated, a function of the noise: `lambda noise: simulate(schedule, noise=noise)`,
        or `functools.partial`.
    noise
        Whose phases are drawn anew for each replicate (`Noise.with_seed`); its traces are shared by
        all.
    n
        How many. The seeds, of which the first m are those of m replicates, follow from `seed`.

    Raises
    ------
    InputError
        n below 1.

    Examples
    --------
    >>> from nbhelpers.simulation import patterns, periodic, simulate
    >>> noise = Noise.on_ranks(periodic(1000, 100), 64)
    >>> schedule = patterns.dissemination(64, 1)
    >>> len(replicate(lambda noise: simulate(schedule, noise=noise), noise, n=5))
    5
    """
    if int(n) != n or n < 1:
        raise InputError(
            f"n = {n!r} replicates", fix="at least one, and 30 for an interval worth the name"
        )

    def one(drawn: np.uint32) -> float:
        return call(noise.with_seed(int(drawn))).makespan_ns

    noise.tables()  # the traces' tables, once for all threads
    seeds = seeds_of(n, seed)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return np.array(list(each(pool.map(one, seeds), "simulating", "replicates", len(seeds))))


def seeds_of(n: int, seed: int = 0) -> np.ndarray:
    """The seeds of n replicates, in order."""
    return np.random.SeedSequence(seed).generate_state(int(n))
