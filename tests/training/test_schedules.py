"""A job's step in the engine against its replay, and slow workers that are sought there."""

import numpy as np
import pytest

from nbhelpers.simulation import Detours, Noise, periodic, simulate
from nbhelpers.training import noise_at_scale, published_job, what_if
from nbhelpers.training.at_scale import drawn_seconds, straggler_at_scale
from nbhelpers.training.schedules import FREE_NETWORK, step_schedule

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
    assert engine_s(result, seconds) == pytest.approx(replay[0, 0], abs=1e-6)


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
    table = noise_at_scale(RESULTS["ST"], [periodic(100, 250)], [2, 8], seeds=3)
    assert table["ranks"].tolist() == [8, 32]
    assert table["alone"].tolist() == pytest.approx([1 / 0.975] * 2)
    assert ((table["low"] <= table["median"]) & (table["median"] <= table["high"])).all()
    assert (abs(table["median"] - 1 / 0.975) < 0.01).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_slowed_worker_is_found_among_noisy_ones(seed):
    result = what_if(published_job("AR").of_replicas([1, 2, 3]))
    traces = [Detours(np.array([0.0, 3e5]), np.array([2e4, 1e4]), 1e6, "two detours")]
    found = straggler_at_scale(result, traces, 12, factor=1.3, seed=seed)
    assert found["slowed"][0] and not found["slowed"][1:].any()
    assert found["without"][0] < 0.97 * found["slowdown"][0]


def test_nobody_is_slowed_by_a_factor_of_one():
    found = straggler_at_scale(RESULTS["ST"], [periodic(10, 10)], 4, seed=2)
    assert not found["slowed"].any()
    assert (found["without"] > 0.98 * found["slowdown"]).all()
