"""Training jobs on many replicas under measured noise: tables and sentences."""

from collections.abc import Sequence

import pandas as pd

from ...progress import each
from ...simulation.noise import Detours
from ...training import noise_at_scale, published_job, what_if
from ...training.at_scale import straggler_at_scale
from ...training.trace import TrainingJob


def jobs_at_scale(
    jobs: Sequence[str], traces: Sequence[Detours], replicas: int, seeds: int
) -> pd.DataFrame:
    """`noise_at_scale` of public jobs (AR without the replica of its slow worker), on a few, more
    and that many replicas.
    """
    steps = sorted({max(2, replicas // 64), max(2, replicas // 8), replicas})
    parts = [noise_at_scale(what_if(_quiet_job(job)), traces, steps, seeds) for job in jobs]
    return pd.concat(parts, ignore_index=True)


def _quiet_job(name: str) -> TrainingJob:
    job = published_job(name)
    return job.of_replicas([1, 2, 3]) if name == "AR" else job


def stragglers_at_scale(
    traces: Sequence[Detours], replicas: int, factor: float, cases: int
) -> pd.DataFrame:
    """One slowed worker among many replicas of job AR, its own slow one left out, under noise;
    sought again and again (`straggler_at_scale`).

    Returns
    -------
    pandas.DataFrame
        One row a case: `ranks`, `factor`, `slowdown`, `without` (the named worker), `path_share`,
        `right` (the named is the slowed one).
    """
    result = what_if(_quiet_job("AR"))
    rows = []
    for case in each(range(cases), "seeking a slowed worker"):
        first = straggler_at_scale(result, traces, replicas, factor, seed=case).iloc[0]
        rows.append(
            {
                "ranks": replicas * result.job.stages,
                "factor": factor,
                "slowdown": first["slowdown"],
                "without": first["without"],
                "path_share": first["path_share"],
                "right": bool(first["slowed"]),
            }
        )
    return pd.DataFrame(rows)


def noise_sentence(scaled: pd.DataFrame) -> str:
    """What noise costs a job on most ranks, beside what it costs a lone computation."""
    row = scaled.loc[scaled["ranks"].idxmax()]
    interval = f" ({row['low']:.3f} to {row['high']:.3f})" if row["low"] == row["low"] else ""
    return (
        f"On {row['ranks']:,} ranks this noise makes a step of {row['job']} {row['median']:.3f} ×"
        f" as long{interval}, and a lone computation {row['alone']:.3f} × as long. Unequal times"
        f" alone make the step {row['imbalance']:.3f} × as long (n = {row['seeds']} seeds)."
    )


def host_sentence(hosts: pd.DataFrame) -> str:
    """What noise costs a recorded job if its GPUs go on, beside what it costs if they stop too."""
    slowdowns = {}
    for row in hosts.itertuples():
        interval = f" ({row.low:.3f} to {row.high:.3f})" if row.low == row.low else ""
        slowdowns[row.struck] = f"{row.median:.3f} ×{interval}"
    one = hosts.iloc[0]
    return (
        f"Noise of the hosts alone makes these steps {slowdowns['hosts']} as long; if GPUs stopped"
        f" as well, {slowdowns['hosts and GPUs']} (n = {one['seeds']} seeds)."
        f" The GPUs work {one['busy']:.0%} of the time."
    )


def straggler_sentence(cases: pd.DataFrame) -> str:
    """How often the slowed worker was named at scale."""
    gain = (1 - cases["without"] / cases["slowdown"]).median()
    return (
        f"On {cases['ranks'].iloc[0]:,} noisy ranks the slowed worker is named in"
        f" {cases['right'].sum()} of {len(cases)} cases; without it a step is {gain:.1%} shorter"
        " (median)."
    )
