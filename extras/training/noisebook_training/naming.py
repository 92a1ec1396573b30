"""Which workers, and which stage, make a job slow.

Owns the rule by which they are named, and the planting that tests the rule.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from nbhelpers.errors import InputError

from .scenarios import WhatIf, what_if
from .trace import COMPUTING, TrainingJob

MARGIN = 0.05
CONFIDENCE = 0.9999


def computing_seconds(job: TrainingJob) -> np.ndarray:
    """How long each worker computes in each step, float64 [R, P, S]."""
    computes = np.isin(job.kind, COMPUTING)
    stages = [job.duration_s[computes & (job.stage == p)].sum(0) for p in range(job.stages)]
    return np.stack(stages).transpose(2, 0, 1)


def slower_than_peers(job: TrainingJob, confidence: float = CONFIDENCE) -> pd.DataFrame:
    """How much longer each worker computes than the same stage of the other replicas.

    Parameters
    ----------
    confidence
        Probability that no worker's lower bound is above the truth, for all workers together.

    Returns
    -------
    pandas.DataFrame
        One row a worker: `replica`, `stage`, `ratio` to the median of its peers (geometric mean
        over steps), `ratio_low` (its lower bound: Student's t over steps, Bonferroni over workers).

    Raises
    ------
    InputError
        Fewer than two replicas, or fewer than five steps.
    """
    steps = len(job.steps)
    if job.replicas < 2 or steps < 5:
        raise InputError(
            f"{job.replicas} replicas and {steps} steps are too few to compare workers",
            where=job.name,
            why="a worker is compared with its stage in other replicas, step by step",
            fix="record two replicas and five steps or more",
        )
    from scipy import stats

    seconds = np.log(computing_seconds(job))
    above = np.stack(
        [seconds[r] - np.median(np.delete(seconds, r, 0), 0) for r in range(job.replicas)]
    )
    mean, error = above.mean(2), above.std(2, ddof=1) / np.sqrt(steps)
    quantile = stats.t.ppf(1 - (1 - confidence) / mean.size, steps - 1)
    replica, stage = np.indices(mean.shape)
    return pd.DataFrame(
        {
            "replica": replica.ravel(),
            "stage": stage.ravel(),
            "ratio": np.exp(mean).ravel(),
            "ratio_low": np.exp(mean - quantile * error).ravel(),
        }
    )


def slow_workers(
    result: WhatIf, margin: float = MARGIN, confidence: float = CONFIDENCE
) -> pd.DataFrame:
    """The workers that compute longer than their peers, and the job's slow-down without each.

    Parameters
    ----------
    margin
        A worker is named if it computes longer than its peers by more than this share, at the
        lower bound.

    Returns
    -------
    pandas.DataFrame
        The columns of `slower_than_peers` and, from the replays, `only`, `without` and `share`
        of `WhatIf.by`; the worker whose mending helps most comes first.

    Examples
    --------
    >>> from noisebook_training import published_job, what_if
    >>> slow_workers(what_if(published_job("AR")))[["replica", "stage"]].values.tolist()
    [[0, 0]]
    """
    slower = slower_than_peers(result.job, confidence)
    named = slower[slower["ratio_low"] > 1 + margin].reset_index(drop=True)
    replays = result.workers(list(zip(named["replica"], named["stage"])))
    return (
        named.join(replays[["only", "without", "share"]])
        .sort_values("without", kind="stable")
        .reset_index(drop=True)
    )


def slow_stages(result: WhatIf, share: float = 0.5) -> pd.DataFrame:
    """The stages without which at least this share of the excess time is gone (`WhatIf.by`)."""
    stages = result.by("stage").sort_values("without", kind="stable")
    return stages[stages["share"] >= share].reset_index(drop=True)


def planted(
    jobs: Sequence[TrainingJob], count: int, factors: Sequence[float], seed: int = 0
) -> pd.DataFrame:
    """Slow one worker of a job, at random, again and again; who is named?

    Parameters
    ----------
    jobs
        Taken in turn. In each case the replicas are exchanged within each stage and step first,
        which leaves nobody slow for long.
    count
        Cases with a slowed worker, and as many without.
    factors
        How many times as long the slowed worker computes; drawn at random.

    Returns
    -------
    pandas.DataFrame
        One row a case: `job`, `factor` (1: nobody was slowed), `replica`, `stage`, `named` (the
        slowed worker was), `first` (and before all others), `others` (others that were named).
    """
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        row for case in range(count) for row in _case(jobs[case % len(jobs)], factors, rng)
    )


def exchanged(job: TrainingJob, rng: np.random.Generator) -> TrainingJob:
    """The job with the replicas of each stage exchanged at random in each step: nobody stays slow.

    What belongs to communication stays where it was: only durations of computations move.
    """
    duration = job.duration_s.copy()
    computes = np.isin(job.kind, COMPUTING)
    for stage in range(job.stages):
        rows = np.flatnonzero(computes & (job.stage == stage))
        order = rng.permuted(np.tile(np.arange(job.replicas), (len(job.steps), 1)), axis=1)
        duration[rows] = np.take_along_axis(duration[rows], order[None], axis=2)
    return replace(job, duration_s=duration)


def _case(
    job: TrainingJob, factors: Sequence[float], rng: np.random.Generator
) -> Iterator[dict[str, object]]:
    """A case with a slowed worker, and the same without."""
    quiet = exchanged(job, rng)
    replica, stage = int(rng.integers(job.replicas)), int(rng.integers(job.stages))
    for factor in (float(rng.choice(factors)), 1.0):
        named = slow_workers(what_if(quiet.slowed(factor, replica, stage)))
        right = (named["replica"] == replica) & (named["stage"] == stage)
        yield {
            "job": job.name,
            "factor": factor,
            "replica": replica,
            "stage": stage,
            "named": bool(right.any()),
            "first": bool(right[:1].any()),
            "others": int((~right).sum()),
        }
