"""A job's step in the engine against its replay."""

import numpy as np
import pytest
from noisebook_training import jobs_at_scale, published_job, what_if
from noisebook_training.at_scale import drawn_seconds
from noisebook_training.schedules import FREE_NETWORK, step_schedule

from nbhelpers.simulation import Noise, periodic, simulate

RESULTS = {name: what_if(published_job(name)) for name in ("AR", "SE", "ST")}


def engine_s(result, seconds, noise=None):
    schedule = step_schedule(result, seconds.shape[1], seconds)
    return simulate(schedule, FREE_NETWORK, noise).finish_ns.max() / 1e9


@pytest.mark.parametrize("step", [0, 17])
@pytest.mark.parametrize("job", RESULTS)
def test_the_engine_takes_as_long_as_the_replay(job, step):
    result = RESULTS[job]
    ours = engine_s(result, result.net_s[:, step])
    assert ours == pytest.approx(result.replayed_s[step], abs=1e-6)


def test_more_replicas_take_as_long_as_a_replay_of_them():
    result = RESULTS["ST"]
    seconds = drawn_seconds(result, 37, seed=4)
    replay = result.graph.step_seconds(np.clip(seconds, 0, None)[:, None, :])
    assert engine_s(result, seconds) == pytest.approx(replay[0], abs=1e-6)


def test_drawn_replicas_are_recorded_ones():
    result = RESULTS["ST"]
    drawn = drawn_seconds(result, 9, seed=1)
    recorded = {tuple(lane) for lane in result.net_s.reshape(len(result.net_s), -1).T}
    assert drawn.shape == (106, 9) and {tuple(lane) for lane in drawn.T} <= recorded


def test_noise_costs_a_lone_long_chain_what_it_takes():
    result = RESULTS["ST"]
    noise = Noise.on_ranks(periodic(1000, 100), 8, seed=0)
    quiet = engine_s(result, result.net_s[:, 0])
    noisy = engine_s(result, result.net_s[:, 0], noise)
    assert noisy / quiet == pytest.approx(1 / 0.9, rel=0.005)


def test_the_table_of_noise_at_scale():
    table = jobs_at_scale(["ST"], [periodic(100, 250)], 8, seeds=3)
    assert table["ranks"].tolist() == [8, 32]
    assert table["alone"].tolist() == pytest.approx([1 / 0.975] * 2)
    assert ((table["low"] <= table["median"]) & (table["median"] <= table["high"])).all()
    assert (abs(table["median"] - 1 / 0.975) < 0.01).all()
