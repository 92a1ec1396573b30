"""A training job on many more replicas than were recorded, under noise of its hosts.

Owns the draw of replicas.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from nbhelpers.progress import each
from nbhelpers.simulation import Detours, simulate
from nbhelpers.simulation.machines import spread_over
from nbhelpers.statistics import bootstrap_interval

from .scenarios import WhatIf, what_if
from .schedules import FREE_NETWORK, step_schedule
from .trace import published_job


def drawn_seconds(result: WhatIf, replicas: int, seed: int = 0) -> np.ndarray:
    """Times of that many replicas, each those of a recorded replica in a recorded step.

    Returns
    -------
    numpy.ndarray
        float64 [O, replicas].
    """
    lanes = result.net_s.reshape(len(result.net_s), -1)
    return lanes[:, np.random.default_rng(seed).integers(0, lanes.shape[1], replicas)]


def jobs_at_scale(
    jobs: Sequence[str], traces: Sequence[Detours], replicas: int, seeds: int
) -> pd.DataFrame:
    """A step's slow-down by noise of the hosts: public jobs (AR without the replica of its slow
    worker) on a few, more and that many replicas.

    Every operation of a worker is lengthened, as if it needed its host all the time: an upper
    bound where an accelerator works alone.

    Parameters
    ----------
    jobs
        Their names.
    traces
        Recorded detours; each worker draws one and a place in it.
    replicas
        The most.
    seeds
        Replicates of each case: replicas' times, traces and places are drawn anew.

    Returns
    -------
    pandas.DataFrame
        `job`, `replicas`, `ranks`, `step_s` (without noise, median), the slow-down's `median`,
        `low`, `high` (95 % bootstrap interval over seeds), `alone` (that of a lone computation),
        `imbalance` (the step over that of ideal durations, median), `seeds`.
    """
    alone = float(np.mean([1 / (1 - trace.overhead) for trace in traces]))
    counts = sorted({max(2, replicas // 64), max(2, replicas // 8), replicas})
    rows = []
    for result, count in each(
        list(product(map(_without_straggler, jobs), counts)), "noise on a training job"
    ):
        quiet, noisy = np.array(
            [_quiet_and_noisy(result, traces, count, seed) for seed in range(seeds)]
        ).T
        slowdown = noisy / quiet
        low, high = bootstrap_interval(slowdown, "median") if seeds > 1 else (np.nan, np.nan)
        rows.append(
            {
                "job": result.job.name,
                "replicas": count,
                "ranks": count * result.job.stages,
                "step_s": np.median(quiet),
                "median": np.median(slowdown),
                "low": low,
                "high": high,
                "alone": alone,
                "imbalance": np.median(quiet) / result.ideal_step_s,
                "seeds": seeds,
            }
        )
    return pd.DataFrame(rows)


def _without_straggler(name: str) -> WhatIf:
    job = published_job(name)
    return what_if(job.of_replicas([1, 2, 3]) if name == "AR" else job)


def _quiet_and_noisy(
    result: WhatIf, traces: Sequence[Detours], replicas: int, seed: int
) -> tuple[float, float]:
    """Seconds of a step without and with noise, on the same draw of replicas."""
    schedule = step_schedule(result, replicas, drawn_seconds(result, replicas, seed))
    noise = spread_over(traces, schedule.ranks, seed)
    quiet, noisy = (simulate(schedule, FREE_NETWORK, each) for each in (None, noise))
    return quiet.makespan_ns / 1e9, noisy.makespan_ns / 1e9
