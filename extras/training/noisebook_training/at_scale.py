"""A training job on many more replicas than were recorded, under noise of its hosts.

Owns the draw of replicas, and the replay in which a worker's detours lengthen what it does.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from nbhelpers.progress import each
from nbhelpers.simulation import Detours, Noise
from nbhelpers.simulation.machines import spread_over
from nbhelpers.statistics import bootstrap_interval

from .scenarios import WhatIf, what_if
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


def noisy_step_s(result: WhatIf, lasts_s: np.ndarray, noise: Noise) -> float:
    """How long a step takes whose operations last so long without noise, float64 [O, R]; the
    noise's ranks are replica × stages + stage.
    """
    stages, lasts_ns = result.job.stages, lasts_s * 1e9
    ends = np.empty_like(lasts_ns)
    for before, group, joint in result.graph.groups():
        begin = ends[before].max(axis=0, initial=0)
        if joint:
            begin = np.full_like(begin, begin.max())
        for operation in group:
            ranks = np.arange(len(begin)) * stages + result.job.stage[operation]
            which, phase = noise.rank_trace[ranks], noise.phase_ns[ranks]
            for number in np.unique(which):
                own = which == number
                work = begin[own], lasts_ns[operation, own], phase[own]
                ends[operation, own] = ends_under(noise.traces[number], *work)
    return float(ends[result.graph.last].max() / 1e9)


def ends_under(
    trace: Detours, begin_ns: np.ndarray, work_ns: np.ndarray, phase_ns: np.ndarray
) -> np.ndarray:
    """When work that begins at a time is over, if the CPU's detours take it away meanwhile.

    Examples
    --------
    >>> trace = Detours(np.array([5.0]), np.array([2.0]), 10.0)
    >>> ends_under(trace, np.array([0, 0, 6]), np.array([5, 6, 1]), np.zeros(3)).tolist()
    [5.0, 8.0, 8.0]
    """
    table, *whole = trace.exact_table
    start, free_before = table.T / 1e3
    period, free = np.array(whole) / 1e3
    lost = np.append(start - free_before, period - free)
    periods, at = np.divmod(begin_ns + phase_ns, period)
    struck = np.searchsorted(start, at, "right") - 1
    since = at - start[struck] - np.diff(lost)[struck]
    done = np.where(struck < 0, at, free_before[struck] + np.maximum(0, since))
    more, left = np.divmod(done + work_ns, free)
    end = (periods + more) * period + left + lost[np.searchsorted(free_before, left, "left")]
    return np.maximum(begin_ns, end - phase_ns)


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
    lasts_s = np.clip(drawn_seconds(result, replicas, seed), 0, None)
    noise = spread_over(traces, replicas * result.job.stages, seed)
    quiet = result.graph.step_seconds(lasts_s[:, None])[0]
    return float(quiet), noisy_step_s(result, lasts_s, noise)
