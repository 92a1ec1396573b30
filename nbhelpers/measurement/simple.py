"""The simple calls: measure a program some times; find the problem size that takes a given time."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pandas as pd

from ..errors import InputError, RunError
from ..workloads import Workload, as_workload
from .attachment import Attachment
from .campaign import Campaign, Cell
from .layers import metrics as metric_layers
from .run import run_once

# runs of a check, and the time they are spread over: a slow moment is rarely as long
PROBES = 8
SPREAD_S = 2.0
CHECKS, CHECKED_TO = 3, 0.08


def measure(
    command: str | Sequence[str] | Workload | None = None,
    runs: int = 10,
    metrics: Sequence[str] | str = (),
    *,
    config: str | None = None,
    folder: str | os.PathLike | None = None,
    timeout_s: float | None = None,
    attachments: Sequence[Attachment] = (),
    progress: Callable[[int, int, float], object] | None = None,
    **described: object,
) -> pd.DataFrame:
    """Run a program some times and return the runs table.

    Parameters
    ----------
    command
        a `Workload`, or what `workloads.program` makes one of: a command line or its words.
    runs
        How many finished runs.
    metrics
        Names of metric layers, or "all"; see `metrics`.
    config
        a placement; see `Workload.placed`.
    folder
        Keeps the runs, so that the same call goes on after an interruption; None: in memory only.
    timeout_s
        Per run.
    attachments
        Further attachments; closed at the end.
    progress
        See `Campaign.run`.
    described
        Keywords of `workloads.program`: region, seconds, reports, outcome, description, shell, ….

    Raises
    ------
    InputError, RunError
        See `Campaign.run`, `program` and `metrics`.

    Examples
    --------
    >>> runs = measure("sleep 0.01", runs=3, metrics=["software"])
    >>> len(runs), (runs.seconds >= 0.01).all()
    (3, np.True_)
    """
    workload = as_workload(command, **described)
    workload = workload if timeout_s is None else replace(workload, timeout_s=timeout_s)
    workload = workload if config is None else workload.placed(config)
    layers = metric_layers(*([metrics] if isinstance(metrics, str) else metrics))
    return Campaign(
        folder, [Cell(workload.name, workload)], runs, attachments=(*attachments, *layers)
    ).run(progress)


def calibrate(
    make: Callable[[int], Workload],
    size: int,
    target_seconds: float = 0.4,
    exponent: float = 2.0,
    runs: int = 3,
    tolerance: float = 0.05,
) -> Workload:
    """The workload of the size for which a run takes about `target_seconds` on this machine when
    nothing disturbs it.

    Others on the machine only ever make a run longer, for a moment or for seconds. So the time that
    the threads waited for a CPU does not count, where the program tells it; and a quick search by
    the fastest of a few runs is followed by a check: runs of the size found, spread over `SPREAD_S`
    seconds, of which the lower quartile counts. Where that is off by more than `CHECKED_TO`, the
    size is corrected and checked again, at most `CHECKS` times in all.

    Parameters
    ----------
    make
        Gives the workload of a size, for example `nbody`.
    size
        Where to begin.
    target_seconds
        Of the timed region.
    exponent
        Run time grows as size**exponent; 2 for all pairs.
    runs
        Of each step of the search.
    tolerance
        Relative; the search stops within it.

    Raises
    ------
    InputError
        Target, exponent or size is not positive, or the program refuses the first size.
    RunError
        a run fails.

    Examples
    --------
    >>> from nbhelpers.workloads import program
    >>> found = calibrate(
    ...     lambda number: program(["sleep", f"{number / 1000}"]), 5, 0.02, exponent=1
    ... )
    >>> 0.01 < float(found.command[1]) < 0.03
    True
    """
    if min(target_seconds, exponent, size, runs) <= 0:
        raise InputError(
            f"target_seconds={target_seconds}, exponent={exponent}, size={size}, runs={runs}: all"
            " must be above 0"
        )

    def quick(workload: Workload) -> float:
        return min(_seconds(workload) for _ in range(runs))

    found = _search(make, size, target_seconds, exponent, quick, 5, tolerance)
    return make(
        _search(make, found, target_seconds, exponent, undisturbed_seconds, CHECKS, CHECKED_TO)
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
    """The best of so many sizes, each found from the one before by the cost model."""
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
        following = max(1, round(size * min(10.0, max(0.1, factor))))
        if distance <= tolerance or following == size:
            break
        size = following
    return best[1]


def undisturbed_seconds(workload: Workload) -> float:
    """What a run takes when nothing disturbs it: the lower quartile of runs that are spread over
    `SPREAD_S` seconds.
    """
    began, times = time.monotonic(), []
    for number in range(PROBES):
        time.sleep(max(0.0, began + number * SPREAD_S / PROBES - time.monotonic()))
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
