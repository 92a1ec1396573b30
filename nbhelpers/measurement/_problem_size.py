"""The search for the problem size whose run takes a wanted time when nothing disturbs it."""

import statistics
import time
from collections.abc import Callable

from ..errors import InputError, RunError
from ..workloads import Workload
from .run import run_once

# runs of a check, and the time they are spread over: a slow moment is rarely as long
CHECK_RUNS = 8
SPREAD_S = 2.0
QUICK_STEPS = 5
CHECKS, CHECK_TOLERANCE = 3, 0.08


def find_size(
    make: Callable[[int], Workload],
    size: int,
    target_seconds: float,
    exponent: float,
    runs: int,
    tolerance: float,
) -> int:
    """Return the size for which a run takes about `target_seconds`: a quick search by the fastest
    of a few runs, then checks with runs that are spread over `SPREAD_S` seconds.
    """

    def fastest_seconds(workload: Workload) -> float:
        return min(_seconds(workload) for _ in range(runs))

    quick = _search(make, size, target_seconds, exponent, fastest_seconds, QUICK_STEPS, tolerance)
    return _search(
        make, quick, target_seconds, exponent, undisturbed_seconds, CHECKS, CHECK_TOLERANCE
    )


def _search(
    make: Callable[[int], Workload],
    size: int,
    target_seconds: float,
    exponent: float,
    seconds_of: Callable[[Workload], float],
    steps: int,
    tolerance: float,
) -> int:
    """The best of at most `steps` sizes, each computed from the one before by the cost model."""
    best: tuple[float, int] | None = None
    for _ in range(steps):
        try:
            workload = make(size)
        except InputError:
            if best is None:
                raise
            # smaller, or larger, than the program takes: the nearest size so far is the answer
            break
        seconds = seconds_of(workload)
        distance = abs(seconds / target_seconds - 1)
        best = min(best or (distance, size), (distance, size))
        factor = (target_seconds / seconds) ** (1 / exponent)
        next_size = max(1, round(size * min(10.0, max(0.1, factor))))
        if distance <= tolerance or next_size == size:
            break
        size = next_size
    assert best is not None  # the first size was measured, or make() raised
    return best[1]


def undisturbed_seconds(workload: Workload) -> float:
    """What a run takes when nothing disturbs it: the lower quartile of `CHECK_RUNS` runs that are
    spread over `SPREAD_S` seconds.
    """
    began = time.monotonic()
    times = []
    for number in range(CHECK_RUNS):
        time.sleep(max(0.0, began + number * SPREAD_S / CHECK_RUNS - time.monotonic()))
        times.append(_seconds(workload))
    return statistics.quantiles(times, n=4)[0]


def _seconds(workload: Workload) -> float:
    """The time of a run, less what its threads waited for a CPU on average."""
    row = run_once(workload)
    if row["status"] != "ok":
        raise RunError(
            f"a run to find the size of '{workload.name}' ended with status '{row['status']}'",
            where=" ".join(workload.command),
            why=row["message"],
        )
    waited = (row.get("runqueue_wait_ns") or 0) * 1e-9 / (row.get("threads") or 1)
    return row["seconds"] - waited if waited < row["seconds"] else row["seconds"]
