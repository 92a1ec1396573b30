"""Who is named as slow: planted workers, nobody where nobody stays slow, the known culprit."""

import numpy as np
import pytest
from noisebook_training import published_job, what_if
from noisebook_training.naming import (
    computing_seconds,
    exchanged,
    links,
    named,
    slow_stages,
    slow_workers,
    slower_than_peers,
)
from noisebook_training.scenarios import late_seconds, played
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


@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.long)])
def test_a_slowed_worker_is_named_and_nobody_else(count):
    rng, jobs = np.random.default_rng(11), quiet_jobs()
    for case in range(count):
        job = exchanged(jobs[case % 3], rng)
        worker = [int(rng.integers(job.replicas)), int(rng.integers(job.stages))]
        slow = slow_workers(what_if(job.slowed(rng.choice([1.3, 1.5, 2.0]), *worker)))
        assert slow[["replica", "stage"]].to_numpy().tolist() == [worker]
        assert slow_workers(what_if(job.slowed(1.02, *worker))).empty


def test_a_recording_is_played_again_as_it_was():
    result = what_if(published_job("ST"))
    again = played(result, np.clip(result.net_s, 0, None), late_seconds(result))
    assert again.step_s == pytest.approx(result.job.step_s, abs=1e-4)
    assert what_if(again).net_s == pytest.approx(np.clip(result.net_s, 0, None), abs=1e-9)


@pytest.mark.parametrize("kind", ["some steps", "link", "card", "host", "step"])
def test_what_is_planted_in_replica_1_is_named(kind):
    quiet = what_if(exchanged(published_job("ST"), np.random.default_rng(2)))
    net_s, link = np.clip(quiet.net_s, 0, None), links(quiet.job)
    late_s = np.zeros_like(net_s)
    computes = np.isin(quiet.job.kind, COMPUTING) & (quiet.job.stage == 1)
    names = {"some steps": "worker 1/1", "link": "link 1/1", "card": "card 1/1"}
    if kind == "some steps":
        net_s[computes, 5:11, 1] *= 3
    elif kind in ("link", "card"):
        net_s[(link == 1) | (link == 0) & (kind == "card"), :, 1] *= 100
    elif kind == "host":
        late_s[np.flatnonzero(computes)[0], :, 1] = 0.5
    else:
        net_s[computes, 7] *= 20
    names |= {"host": "host 1/1", "step": f"step {quiet.job.steps[7]}"}
    assert named(what_if(played(quiet, net_s, late_s)))["name"].tolist() == [names[kind]]


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
