"""A training job on many more replicas than were recorded, under noise of its hosts.

Owns the draw of replicas, and who is named there.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from nbhelpers.progress import each
from nbhelpers.simulation import Detours, Noise, simulate
from nbhelpers.simulation.machines import spread_over
from nbhelpers.simulation.result import Result
from nbhelpers.statistics import bootstrap_interval

from .scenarios import WhatIf, what_if
from .schedules import FREE_NETWORK, step_schedule
from .trace import COMPUTING, published_job

CANDIDATES = 5


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


def stragglers_at_scale(
    traces: Sequence[Detours], replicas: int, factor: float, cases: int
) -> pd.DataFrame:
    """Who makes a noisy job slow? One worker of job AR, its own slow one left out, is slowed at
    random; it is sought without knowing, again and again.

    The workers that take most time of the critical path are made ideal one at a time, durations and
    noise. The one without which the step is shortest is named.

    Returns
    -------
    pandas.DataFrame
        One row a case: `ranks`, `factor`, `slowdown` (over ideal durations without noise),
        `without` (the same without the named worker), `path_share` (of the step, in which the named
        is on the critical path), `right` (the named is the slowed one).
    """
    result = _without_straggler("AR")
    return pd.DataFrame(
        _sought(result, traces, replicas, factor, case)
        for case in each(range(cases), "seeking a slowed worker")
    )


def _without_straggler(name: str) -> WhatIf:
    job = published_job(name)
    return what_if(job.of_replicas([1, 2, 3]) if name == "AR" else job)


def _sought(
    result: WhatIf, traces: Sequence[Detours], replicas: int, factor: float, seed: int
) -> dict[str, object]:
    """A case of `stragglers_at_scale`."""
    job, stages = result.job, result.job.stages
    rng = np.random.default_rng(seed)
    slowed = (int(rng.integers(replicas)), int(rng.integers(stages)))
    seconds = drawn_seconds(result, replicas, seed)
    seconds[np.isin(job.kind, COMPUTING) & (job.stage == slowed[1]), slowed[0]] *= factor
    noise = spread_over(traces, replicas * stages, seed)
    full = _step(result, seconds, noise, critical_path=True)
    path = full.path()
    on_path = (path["end_ns"] - path["begin_ns"]).groupby(path["rank"]).sum().nlargest(CANDIDATES)
    without_s = {}
    for rank in map(int, on_path.index):
        mended = _mended(result, seconds, *divmod(rank, stages))
        without_s[rank] = _seconds(_step(result, mended, _spared(noise, rank)))
    named = min(without_s, key=without_s.__getitem__)
    return {
        "ranks": replicas * stages,
        "factor": factor,
        "slowdown": _seconds(full) / result.ideal_step_s,
        "without": without_s[named] / result.ideal_step_s,
        "path_share": on_path[named] / full.finish_ns.max(),
        "right": divmod(named, stages) == slowed,
    }


def _quiet_and_noisy(
    result: WhatIf, traces: Sequence[Detours], replicas: int, seed: int
) -> tuple[float, float]:
    """Seconds of a step without and with noise, on the same draw of replicas."""
    schedule = step_schedule(result, replicas, drawn_seconds(result, replicas, seed))
    noise = spread_over(traces, schedule.ranks, seed)
    quiet, noisy = (simulate(schedule, FREE_NETWORK, each) for each in (None, noise))
    return _seconds(quiet), _seconds(noisy)


def _step(
    result: WhatIf, seconds: np.ndarray, noise: Noise | None, critical_path: bool = False
) -> Result:
    schedule = step_schedule(result, seconds.shape[1], seconds)
    return simulate(schedule, FREE_NETWORK, noise, critical_path=critical_path)


def _seconds(result: Result) -> float:
    return float(result.finish_ns.max()) / 1e9


def _mended(result: WhatIf, seconds: np.ndarray, replica: int, stage: int) -> np.ndarray:
    mended, rows = seconds.copy(), result.job.stage == stage
    mended[rows, replica] = result.ideal_s[rows]
    return mended


def _spared(noise: Noise, rank: int) -> Noise:
    """The same noise, but none on one rank."""
    which = noise.rank_trace.copy()
    which[rank] = -1
    return Noise(noise.traces, which, noise.phase_ns, noise.seed, noise.cosched)
