"""Work under detours against the engine, and a job's step on more replicas."""

import numpy as np
import pytest
from noisebook_training import jobs_at_scale, published_job, what_if
from noisebook_training.at_scale import drawn_seconds, ends_under, noisy_step_s

from nbhelpers.simulation import LogGOPS, Noise, periodic, simulate
from nbhelpers.simulation.detours import pareto
from nbhelpers.simulation.schedule import CALC, Schedule


@pytest.mark.parametrize("seed", range(5))
def test_work_under_detours_ends_as_in_the_engine(seed):
    trace, rng = pareto(500, 10, 1.2, 5000, seconds=0.2, seed=seed), np.random.default_rng(seed)
    noise = Noise.on_ranks(trace, 200, seed=seed)
    first, second = rng.integers(1, 10**8, (2, 200))
    counts, sizes = np.full(200, 2), np.column_stack([first, second]).ravel()
    after = np.arange(200) * 2
    schedule = Schedule.from_arrays(
        counts, np.full(400, CALC), np.zeros(400, int), sizes, requires=(after + 1, after)
    )
    engine = simulate(schedule, LogGOPS(L=0, o=0, g=0, G=0, O=0), noise).finish_ns
    between = ends_under(trace, np.zeros(200), first, noise.phase_ns)
    assert ends_under(trace, between, second, noise.phase_ns) == pytest.approx(engine, abs=2)


def test_drawn_replicas_are_recorded_ones():
    result = what_if(published_job("ST"))
    drawn = drawn_seconds(result, 9, seed=1)
    recorded = {tuple(lane) for lane in result.net_s.reshape(len(result.net_s), -1).T}
    assert drawn.shape == (106, 9) and {tuple(lane) for lane in drawn.T} <= recorded


def test_noise_costs_a_lone_long_chain_what_it_takes_and_none_costs_nothing():
    result = what_if(published_job("ST"))
    lasts = np.clip(result.net_s[:, 0], 0, None)
    noise = Noise.on_ranks(periodic(1000, 100), 8, seed=0)
    quiet = result.graph.step_seconds(lasts[:, None])[0]
    assert noisy_step_s(result, lasts, noise) / quiet == pytest.approx(1 / 0.9, rel=0.005)
    none = Noise.on_ranks(periodic(1e-3, 1e-3), 8, phases_ns=10**9)
    assert noisy_step_s(result, lasts, none) == pytest.approx(quiet)


def test_the_table_of_noise_at_scale():
    table = jobs_at_scale(["ST"], [periodic(100, 250)], 8, seeds=3)
    assert table["ranks"].tolist() == [8, 32]
    assert table["alone"].tolist() == pytest.approx([1 / 0.975] * 2)
    assert ((table["low"] <= table["median"]) & (table["median"] <= table["high"])).all()
    assert (abs(table["median"] - 1 / 0.975) < 0.01).all()
