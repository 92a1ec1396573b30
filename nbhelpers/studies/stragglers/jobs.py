"""The three public jobs beside their published answers, and planted slow workers."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ...training import WhatIf, slow_stages, slow_workers

NOBODY = "–"


def jobs_table(results: Mapping[str, WhatIf], answers: pd.DataFrame) -> pd.DataFrame:
    """Each job: its size, its slow-down beside the published, and who is named.

    Parameters
    ----------
    results
        By the job's name.
    answers
        The published: `job`, `part`, `slowdown`.

    Returns
    -------
    pandas.DataFrame
        `job`, `replicas`, `stages`, `steps`, `slowdown`, `published`, `difference_percent`,
        `worker` (named, replica/stage), `stage` (named where no worker is), `share` (of the excess
        time that goes with the named).
    """
    published = answers[answers["part"] == "job"].set_index("job")["slowdown"]
    rows = []
    for name, result in results.items():
        workers, stages = slow_workers(result), slow_stages(result)
        named = workers if len(workers) else stages
        rows.append(
            {
                "job": name,
                "replicas": result.job.replicas,
                "stages": result.job.stages,
                "steps": len(result.job.steps),
                "slowdown": result.slowdown,
                "published": published[name],
                "difference_percent": 100 * (result.slowdown / published[name] - 1),
                "worker": f"{workers.replica[0]}/{workers.stage[0]}" if len(workers) else NOBODY,
                "stage": str(stages.stage[0]) if len(stages) and not len(workers) else NOBODY,
                "share": named["share"].iloc[0] if len(named) else float("nan"),
            }
        )
    return pd.DataFrame(rows)


def jobs_sentence(jobs: pd.DataFrame) -> str:
    """Who makes each job slow, and by how much."""
    named = "; ".join(_named(row) for row in jobs.itertuples())
    worst = jobs["difference_percent"].abs().max()
    published = ", ".join(f"{value:.3f}" for value in jobs["published"])
    return (
        f"{named}. The slow-downs are the published {published} within"
        f" {worst:.5f} % (n = {len(jobs)} jobs)."
    )


def _named(row: Any) -> str:
    if row.worker != NOBODY:
        replica, stage = row.worker.split("/")
        who = f"stage {stage} of replica {replica}"
    elif row.stage != NOBODY:
        who = f"no single worker, but stage {row.stage} of all replicas"
    else:
        who = "nobody in particular"
    share = f", {row.share:.0%} of the excess time" if row.share == row.share else ""
    return f"{row.job} (slow-down {row.slowdown:.3f}): {who}{share}"


def workers_table(results: Mapping[str, WhatIf]) -> pd.DataFrame:
    """`WhatIf.by("worker")` of each job, with `job` first."""
    parts = [result.by("worker").assign(job=name) for name, result in results.items()]
    table = pd.concat(parts, ignore_index=True)
    return table[["job", *table.columns.drop("job")]]


def planted_table(cases: pd.DataFrame) -> pd.DataFrame:
    """Planted cases by job and factor: how many were named, and how many others."""
    return (
        cases.groupby(["job", "factor"])
        .agg(
            cases=("named", "size"),
            named=("named", "sum"),
            first=("first", "sum"),
            others=("others", "sum"),
        )
        .reset_index()
    )


def planted_sentence(cases: pd.DataFrame) -> str:
    """How many planted workers were named, and how many that were not."""
    slowed = cases["factor"] > 1
    wrong = int(cases["others"].sum() + cases.loc[~slowed, "named"].sum())
    return (
        f"{cases.loc[slowed, 'first'].sum()} of {slowed.sum()} slowed workers are named before all"
        f" others; {wrong} workers that were not slowed are named (n = {len(cases)} jobs, of which"
        f" {(~slowed).sum()} without a slowed worker)."
    )
