"""Which workers, and which stage, make a job slow.

Owns the rule by which they are named, and the planting that tests the rule.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from nbhelpers.errors import InputError

from .dependencies import MESSAGES
from .scenarios import WhatIf, late_seconds, played
from .trace import COMPUTING, TrainingJob

MARGIN = 0.05
CONFIDENCE = 0.9999
NEARLY = 0.9
LEAST, OUT = 0.02, 4  # of the time; as much as the next part of the kind


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
        Fewer than two replicas, or fewer than three steps.
    """
    steps = len(job.steps)
    if job.replicas < 2 or steps < 3:
        raise InputError(
            f"{job.replicas} replicas and {steps} steps are too few to compare workers",
            where=job.name,
            why="a worker is compared with its stage in other replicas, step by step",
            fix="record two replicas and three steps or more",
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


def links(job: TrainingJob) -> np.ndarray:
    """The stage before each message's link, int [O]; -1 of what is no message."""
    from_before = np.isin(job.kind, ("forward-recv", "backward-send"))
    return np.where(np.isin(job.kind, MESSAGES), job.stage - from_before, -1)


def parts(result: WhatIf) -> pd.DataFrame:
    """How much of the steps' time is gone if a part alone is as it should be: computations take the
    median of their kind and stage, messages that of their kind.

    Returns
    -------
    pandas.DataFrame
        One row a part: `what` (worker: what it computes; host: its operations begin in time; link:
        messages to and from the next stage; card: all messages of a worker), `replica`, `stage` (of
        a link the one before it), `gain` (share of the recorded time).
    """
    job, link = result.job, links(result.job)
    replica, stage = (axis.ravel() for axis in np.indices((job.replicas, job.stages)))
    at, lanes = stage[:, None], replica[:, None] == np.arange(job.replicas)
    operations = {
        "worker": (at == job.stage) & np.isin(job.kind, COMPUTING),
        "link": at == link,
        "card": ((at == link) | (at == link + 1)) & (link >= 0),
    }
    gains = {"host": _host_gains(result)}
    result = replace(result, ideal_s=_typical_seconds(result))
    for what, which in operations.items():
        without = result.replayed({}, which, lanes)["without"].to_numpy()
        gains[what] = (result.slowdown - without) * result.ideal_step_s
    return pd.concat(
        pd.DataFrame({"what": what, "replica": replica, "stage": stage, "gain": gained})
        for what, gained in gains.items()
    ).assign(gain=lambda table: table["gain"] / job.step_s.mean())


def _typical_seconds(result: WhatIf) -> np.ndarray:
    """As `WhatIf.ideal_s`, but of each stage for itself where it computes."""
    job, typical = result.job, result.ideal_s.copy()
    if job.graph is not None:
        return np.where(np.isin(job.kind, COMPUTING), np.median(result.net_s, (1, 2)), typical)
    for kind, stage in product(COMPUTING[:2], range(job.stages)):
        rows = (job.kind == kind) & (job.stage == stage)
        typical[rows] = np.median(result.net_s[rows])
    return typical


def _host_gains(result: WhatIf) -> np.ndarray:
    """Seconds of a step, without the delays of each worker's host, float64 [R × P]."""
    job, late_s = result.job, late_seconds(result)
    net_s = np.clip(result.net_s, 0, None)
    found = []
    for replica, stage in np.ndindex(job.replicas, job.stages):
        mended = late_s.copy()
        mended[job.stage == stage, :, replica] = 0
        found.append(played(result, net_s, mended).step_s.mean())
    return played(result, net_s, late_s).step_s.mean() - np.array(found)


def named(result: WhatIf) -> pd.DataFrame:
    """Who or what makes a job slow.

    Named are the workers that compute longer than their peers in all steps (`slow_workers`), and
    the part (`parts`) whose mending gains 2 % and four times as much as that of any other of its
    kind: a worker that is slow in some steps, a host that comes late, a link, a network card. Where
    there is none, it is a step that stands out so, or a stage with half of the excess.

    Of 360 jobs that no threshold was chosen on (benchmarks/straggler_kinds.py 30 held-out), one of
    twelve kinds in each, 313 are named right, 87 % (95 % interval 83 to 90), and 12 wrong, 3.3 %
    (1.7 to 5.8). Of the 35 that are not named 17 cost less than 2 %.

    Returns
    -------
    pandas.DataFrame
        `name` ("worker 0/1": replica 0, stage 1; "link 0/1": to the next stage; "step 7", "stage
        2"), `gain`: the share of the job's time that is gone without it.

    Examples
    --------
    >>> from noisebook_training import published_job, what_if
    >>> named(what_if(published_job("AR")))["name"].tolist()
    ['worker 0/0']
    """
    job, of_all = result.job, parts(result)
    gain = of_all.set_index(["what", "replica", "stage"])["gain"]
    keys = [("worker", one.replica, one.stage) for one in slow_workers(result).itertuples()]
    out = [one for _, some in of_all.groupby("what") if (one := _standing_out(some))]
    most = max((gain[key] for key in out), default=0)
    # of parts that gain about as much a link, and not the card that it is a part of
    out.sort(key=lambda key: (gain[key] < NEARLY * most, key[0] == "card", -gain[key]))
    keys += [key for key in out[:1] if key not in keys]
    rows = [
        (f"{what} {replica}/{stage}", gain[what, replica, stage]) for what, replica, stage in keys
    ]
    if not rows and len(job.steps) > 4:  # of three the second latest is the median itself
        late = job.step_s - np.median(job.step_s)
        first, second = np.sort(late)[:-3:-1]
        if first / job.step_s.sum() >= LEAST and first >= OUT * second:
            rows = [(f"step {job.steps[late.argmax()]}", first / job.step_s.sum())]
    if not rows and job.stages > 1:
        excess = 1 - result.ideal_step_s / job.step_s.mean()
        stages = slow_stages(result)
        rows = [(f"stage {one.stage}", one.share * excess) for one in stages.itertuples()]
    return pd.DataFrame(rows, columns=["name", "gain"])


def _standing_out(some: pd.DataFrame) -> tuple[str, int, int] | None:
    """The part of a kind that gains much more than all others; cards that share a link count as
    one.
    """
    best = some.loc[some["gain"].to_numpy().argmax() == np.arange(len(some))].iloc[0]
    near = (some["replica"] == best["replica"]) & (
        (some["stage"] - best["stage"]).abs() <= (best["what"] == "card")
    )
    rest = some.loc[~near, "gain"].max()
    if best["gain"] < LEAST or best["gain"] < OUT * rest:
        return None
    return best["what"], int(best["replica"]), int(best["stage"])


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
