"""How accurate trees of shuffled tables are: about as good as guessing."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain
from nbhelpers.attribution.chance import accuracy_by_chance


def a_table(seed: int, columns: int = 12, runs: int = 80) -> pd.DataFrame:
    """An outcome that has nothing to do with the columns."""
    random = np.random.default_rng(seed)
    noise = {f"c{place}": random.normal(size=runs) for place in range(columns)}
    return pd.DataFrame({"latency": random.normal(10, 1, runs), **noise})


def test_trees_of_shuffled_tables_are_about_as_good_as_guessing():
    runs = a_table(1)
    chance = accuracy_by_chance(runs, explain(runs, "latency", permutations=0), seed=1)
    assert chance.shuffles == 40 and 0.4 < chance.median < 0.6 < chance.high < 0.8
    assert f"{chance.high:.2f}" in str(chance)


def test_of_tables_of_noise_few_trees_are_above_the_95th_percentile():
    above = 0
    for seed in range(10):
        runs = a_table(seed, columns=6, runs=60)
        found = explain(runs, "latency", permutations=0)
        above += found.accuracy > accuracy_by_chance(runs, found, seed=seed).high
    assert above <= 3  # more than 3 in 10 at 5 %: p = 0.001


@pytest.mark.parametrize("cutoff", [None, "search", 10.5])
def test_a_planted_factor_is_above_it_and_the_runs_stay_as_they_are(cutoff):
    runs = a_table(2)
    runs["faults"] = np.where(runs["latency"] > 10.5, 100.0, 10.0) + runs["c0"]
    before, found = runs.copy(), explain(runs, "latency", cutoff, permutations=0)
    chance = accuracy_by_chance(runs, found, seed=1)
    assert found.accuracy > 0.8 > chance.high
    pd.testing.assert_frame_equal(runs, before)
    assert accuracy_by_chance(runs, found, seed=1) == chance


def test_without_a_tree_there_is_nothing_to_compare():
    runs = a_table(3, runs=6)
    assert accuracy_by_chance(runs, explain(runs, "latency", permutations=0)) is None
    found = explain(a_table(3), "latency", permutations=0)
    assert accuracy_by_chance(a_table(3), replace(found, accuracy=float("nan"))) is None
