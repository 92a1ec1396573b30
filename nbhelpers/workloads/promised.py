"""What a configuration promises of a pinned program's threads: the CPUs of each.

Owns the reading of the promise from the environment by which the program is placed.
"""

import re

from . import sycl_env
from .workload import Workload


def promised_places(workload: Workload) -> tuple[tuple[int, ...], ...]:
    """The CPUs of each pinned thread; empty where threads roam or the runtime chooses.

    Parameters
    ----------
    workload
        Placed by `Configuration.of` or `Workload.placed`.

    Examples
    --------
    >>> env = {"OMP_NUM_THREADS": "2", "OMP_PLACES": "{0},{4},{8}"}
    >>> promised_places(Workload("any", "omp", ("/bin/true",), config="TP", env=env))
    ((0,), (4,))
    """
    env = dict(workload.env)
    listed = re.findall(r"\{([\d,]+)\}", env.get("OMP_PLACES", ""))
    ours = env.get(sycl_env.PLACES, "")
    if ours and ours != sycl_env.ROAMING:
        listed = ours.split(":")
    places = tuple(tuple(sorted(int(cpu) for cpu in place.split(","))) for place in listed)
    threads = env.get("OMP_NUM_THREADS", env.get(sycl_env.THREADS, str(len(places))))
    return places[: int(threads)] if workload.config.startswith("TP") else ()
