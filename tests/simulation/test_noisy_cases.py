"""Slow-downs: a row a case, the median of the engine's own runs, each noise on its own network."""

from functools import partial

import numpy as np
import pytest

from nbhelpers.simulation import LogGOPS, Noise, patterns, periodic, simulate
from nbhelpers.simulation.noisy_cases import cases, propagation, slowdowns

HOURLY = {"10 Hz x 2500 us": periodic(10, 2500), "1000 Hz x 25 us": periodic(1000, 25)}
REGULAR = {"regular": periodic(1000, 100)}


def test_is_the_median_of_the_engines_runs_with_the_same_seeds():
    row = slowdowns(cases(noise=REGULAR, ranks=[8]), patterns.dissemination, REGULAR, seeds=5).loc[
        0
    ]
    schedule, noise = patterns.dissemination(8, 1), Noise.on_ranks([REGULAR["regular"]], 8, 0)
    seeds = np.random.SeedSequence(0).generate_state(5).tolist()
    took = [simulate(schedule, noise=noise.with_seed(seed)).makespan_ns for seed in seeds]
    ideal = simulate(schedule).makespan_ns
    assert row["median"] == pytest.approx(np.median(took) / ideal, rel=1e-12)
    assert (row["least"], row["most"]) == (min(took) / ideal, max(took) / ideal)
    assert row["least"] <= row["low"] <= row["median"] <= row["high"] <= row["most"]
    assert row["ideal_us"] == ideal / 1e3 and row["overhead_share"] == pytest.approx(0.1)


def test_struck_together_ranks_lose_less_than_struck_at_random():
    varied = cases(noise=REGULAR, ranks=[64], cosched=[False, True])
    alone, together = slowdowns(varied, patterns.dissemination, REGULAR, seeds=12)["median"]
    assert together < alone / 2


def test_noises_and_networks_of_the_same_names_go_together():
    networks = {name: LogGOPS(L=length) for name, length in zip(HOURLY, (1000, 9000))}
    varied = cases(noise=HOURLY, ranks=[4])
    table = slowdowns(varied, patterns.dissemination, HOURLY, networks, seeds=2)
    assert table["ideal_us"].tolist() == [2 * (2 * 1.5 + 1), 2 * (2 * 1.5 + 9)]


def test_programs_are_named_by_the_first_columns_and_seeds_by_the_case():
    programs = {("halo", 4): patterns.halo((2, 2), 8), ("barrier", 8): partial(patterns.barrier, 8)}
    varied = cases(kind=["halo"], ranks=[4], noise=HOURLY).assign(seeds=[2, 3])
    table = slowdowns(varied, programs, HOURLY, unit="ms")
    assert table["seeds"].tolist() == [2, 3] and table["ideal_ms"].nunique() == 1
    alone = slowdowns(cases(kind=["barrier"], ranks=[8]), programs)
    assert alone["ideal_us"][0] == simulate(patterns.barrier(8)).makespan_ns / 1e3


def test_a_delay_of_what_a_lone_rank_loses_is_propagated_once():
    programs = {"lone": patterns.compute(1, 10_000_000)}
    table = slowdowns(cases(program=programs, noise=REGULAR), programs, REGULAR, seeds=2)
    assert propagation(table)["propagated"][0] == pytest.approx(1, abs=0.11)
