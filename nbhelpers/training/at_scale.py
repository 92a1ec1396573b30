"""A training job on many more replicas than were recorded, under noise of its hosts.

Owns the draw of replicas, and who is named there.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..progress import each
from ..simulation import simulate, spread_over
from ..simulation.noise import Detours, Noise
from ..simulation.result import Result
from ..statistics import bootstrap_interval
from .scenarios import WhatIf
from .schedules import FREE_NETWORK, step_schedule
from .trace import COMPUTING

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


def noise_at_scale(
    result: WhatIf,
    traces: Sequence[Detours],
    replicas: Sequence[int],
    seeds: int = 10,
) -> pd.DataFrame:
    """A step's slow-down by noise of the hosts, on so many replicas.

    Every operation of a worker is lengthened, as if it needed its host all the time: an upper
    bound where an accelerator works alone.

    Parameters
    ----------
    traces
        Recorded detours; each worker draws one and a place in it.
    replicas
        Each a case.
    seeds
        Replicates of each case: replicas' times, traces and places are drawn anew.

    Returns
    -------
    pandas.DataFrame
        `job`, `replicas`, `ranks`, `step_s` (without noise, median), the slow-down's `median`,
        `low`, `high` (95 % bootstrap interval over seeds), `alone` (that of a lone computation),
        `imbalance` (the step over that of ideal
        durations, median), `seeds`.
    """
    alone = float(np.mean([1 / (1 - trace.overhead) for trace in traces]))
    rows = []
    for count in each(list(replicas), "noise on a training job"):
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


def straggler_at_scale(
    result: WhatIf,
    traces: Sequence[Detours],
    replicas: int,
    factor: float = 1.0,
    seed: int = 0,
) -> pd.DataFrame:
    """Who makes a noisy job slow? One worker is slowed, at random; it is sought without knowing.

    The workers that take most time of the critical path are made ideal one at a time, durations and
    noise. The one without which the step is shortest is named.

    Parameters
    ----------
    factor
        How many times as long the slowed worker computes.

    Returns
    -------
    pandas.DataFrame
        One row a candidate, the named one first: `replica`, `stage`, `path_share` (of the step on
        the critical path), `slowdown` (over ideal durations without noise), `without` (the same
        without this worker), `slowed` (it is the slowed one).
    """
    job, stages = result.job, result.job.stages
    rng = np.random.default_rng(seed)
    slowed = (int(rng.integers(replicas)), int(rng.integers(stages)))
    seconds = drawn_seconds(result, replicas, seed)
    seconds[np.isin(job.kind, COMPUTING) & (job.stage == slowed[1]), slowed[0]] *= factor
    noise = spread_over(traces, replicas * stages, seed)
    full = _step(result, seconds, noise, critical_path=True)
    path = full.path()
    on_path = (path["end_ns"] - path["begin_ns"]).groupby(path["rank"]).sum()
    rows = []
    for rank, taken_ns in on_path.nlargest(CANDIDATES).items():
        replica, stage = divmod(int(rank), stages)
        without = _step(result, _mended(result, seconds, replica, stage), _spared(noise, int(rank)))
        rows.append(
            {
                "replica": replica,
                "stage": stage,
                "path_share": taken_ns / full.finish_ns.max(),
                "slowdown": _seconds(full) / result.ideal_step_s,
                "without": _seconds(without) / result.ideal_step_s,
                "slowed": factor > 1 and (replica, stage) == slowed,
            }
        )
    return pd.DataFrame(rows).sort_values("without", kind="stable").reset_index(drop=True)


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
