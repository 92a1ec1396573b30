"""What a configuration promises of a program's threads: how many, and on which CPUs each.

Owns the reading of the promise from the environment by which the program is placed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from . import sycl_env
from .workload import Workload

_THREAD_VARIABLES = ("OMP_NUM_THREADS", sycl_env.THREADS)


@dataclass(frozen=True)
class Promise:
    """What is promised of a program's threads.

    Parameters
    ----------
    threads
        How many work; None: not said.
    pinned
        Whether each has a place for itself.
    places
        The CPUs of each place; empty where the runtime chooses them.
    """

    threads: int | None
    pinned: bool
    places: tuple[tuple[int, ...], ...] = ()


def promise_of(workload: Workload) -> Promise:
    """What the placement of a workload promises.

    Parameters
    ----------
    workload
        Placed by `Configuration.of` or `Workload.placed`.

    Examples
    --------
    >>> placed = {"OMP_NUM_THREADS": "2", "OMP_PLACES": "{0},{4}"}
    >>> promise_of(Workload("any", "omp", ("/bin/true",), config="TP", env=tuple(placed.items())))
    Promise(threads=2, pinned=True, places=((0,), (4,)))
    """
    env = dict(workload.env)
    threads = next((int(env[name]) for name in _THREAD_VARIABLES if name in env), None)
    pinned = workload.config.startswith("TP")
    return Promise(threads, pinned, _places(env)[:threads] if pinned else ())


def _places(env: Mapping[str, str]) -> tuple[tuple[int, ...], ...]:
    """Those that are listed: OMP_PLACES={0},{4} and NOISEBOOK_PLACES=0:4."""
    listed = re.findall(r"\{([\d,]+)\}", env.get("OMP_PLACES", ""))
    ours = env.get(sycl_env.PLACES, "")
    if ours and ours != sycl_env.ROAMING:
        listed = ours.split(":")
    return tuple(tuple(sorted(int(cpu) for cpu in place.split(","))) for place in listed)
