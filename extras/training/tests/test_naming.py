"""Who is named as slow: planted workers, nobody where nobody stays slow, the known culprit."""

import numpy as np
import pytest
from noisebook_training import published_job, what_if
from noisebook_training.naming import (
    computing_seconds,
    exchanged,
    planted,
    slow_stages,
    slow_workers,
    slower_than_peers,
)
from noisebook_training.trace import COMPUTING

from nbhelpers.errors import InputError


def quiet_jobs():
    """AR has a slow worker in replica 0."""
    return [
        published_job("ST"),
        published_job("AR").of_replicas([1, 2, 3]),
        published_job("SE"),
    ]


def test_the_three_jobs_have_the_culprits_that_were_published():
    named = {name: slow_workers(what_if(published_job(name))) for name in ("AR", "SE", "ST")}
    assert named["AR"][["replica", "stage"]].to_numpy().tolist() == [[0, 0]]
    assert not len(named["SE"]) and not len(named["ST"])
    assert named["AR"]["without"][0] == pytest.approx(1, abs=0.005)
    assert slow_stages(what_if(published_job("ST")))["stage"].tolist() == [3]
    assert slow_stages(what_if(published_job("SE")))["stage"].tolist() == [1]


@pytest.mark.long
def test_200_planted_slow_workers_are_all_named_and_nobody_else():
    cases = planted(quiet_jobs(), 200, [1.3, 1.5, 2.0], seed=11)
    slowed = cases["factor"] > 1
    assert slowed.sum() == 200
    assert cases.loc[slowed, "first"].all()
    assert not cases["others"].any() and not cases.loc[~slowed, "named"].any()


def test_planted_slow_workers_are_named():
    cases = planted(quiet_jobs(), 12, [1.3, 2.0], seed=3)
    assert len(cases) == 24
    assert (cases["first"] == (cases["factor"] > 1)).all() and not cases["others"].any()


def test_who_is_hardly_slower_is_not_named():
    cases = planted([published_job("ST")], 5, [1.02], seed=0)
    assert not cases["named"].any() and not cases["others"].any()


def test_the_ratio_to_peers_is_that_of_the_seconds():
    job = published_job("AR")
    seconds = computing_seconds(job)
    rows = np.isin(job.kind, COMPUTING) & (job.stage == 2)
    assert seconds[3, 2] == pytest.approx(job.duration_s[rows][:, :, 3].sum(0))
    ratio = np.exp(np.mean(np.log(seconds[0, 0] / np.median(seconds[1:, 0], 0))))
    row = slower_than_peers(job).iloc[0]
    assert row["ratio"] == pytest.approx(ratio) and row["ratio_low"] < row["ratio"]


def test_exchanged_replicas_have_the_same_seconds_in_another_order():
    job = published_job("AR")
    rng = np.random.default_rng(5)
    before, after = computing_seconds(job), computing_seconds(exchanged(job, rng))
    assert np.sort(after, axis=0) == pytest.approx(np.sort(before, axis=0))
    assert (after != before).any()


def test_one_replica_has_no_peers():
    with pytest.raises(InputError, match="too few"):
        slower_than_peers(published_job("ST").of_replicas([0]))
