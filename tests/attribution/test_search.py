"""One search for classes, run times and categories, where the truth is known."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain
from nbhelpers.attribution.null import rearranged
from nbhelpers.errors import InputError

RUNS = 120


def columns(random, count=10):
    return {f"c{number}": random.normal(size=RUNS) for number in range(count)}


def waves(seed, period=7):
    """Outcome and counters of one period, each with a phase of its own."""
    random = np.random.default_rng(seed)
    phases = random.uniform(0, 2 * np.pi, 11)
    values = np.sin(2 * np.pi * np.arange(RUNS)[:, None] / period + phases)
    values += 0.3 * random.normal(size=values.shape)
    named = {f"c{number}": values[:, 1 + number] for number in range(10)}
    return pd.DataFrame({"seconds": 10 + values[:, 0]} | named)


def test_counters_of_the_same_period_explain_nothing():
    explained = [explain(waves(seed), seed=seed) for seed in range(4)]
    assert sum(one.found for one in explained) <= 1
    assert all(one.order.found and "random phases" in one.surrogates for one in explained)


def test_a_cause_is_found_through_a_period():
    runs = waves(3)
    on = np.random.default_rng(5).random(RUNS) < 0.3
    runs["seconds"] += 4 * on
    runs["culprit"] = np.random.default_rng(6).normal(size=RUNS) + 5 * on
    assert explain(runs).factors.iloc[0]["factor"] == "culprit"


def test_one_bad_place_of_many_is_found_by_four_runs():
    random = np.random.default_rng(4)
    cpu = np.r_[np.full(4, 63), np.arange(296) % 63][random.permutation(300)]
    seconds = random.normal(1, 0.02, 300) * np.where(cpu == 63, 1.3, 1)
    for place in (cpu, [f"node{number}" for number in cpu]):
        runs = pd.DataFrame({"seconds": seconds, "x": random.normal(size=300), "place": place})
        first = explain(runs, permutations=200).factors.iloc[0]
        assert first["factor"] == "place" and first["direction"].endswith("63")


@pytest.mark.parametrize("named", [True, False], ids=["texts", "numbers"])
def test_a_category_that_separates_is_found(named):
    random = np.random.default_rng(3)
    cpu = random.integers(0, 8, RUNS)
    seconds = random.normal(1, 0.02, RUNS) + 0.1 * (cpu == 3)
    place = [f"cpu{number}" for number in cpu] if named else cpu
    runs = pd.DataFrame({"seconds": seconds, "place": place} | columns(random))
    explanation = explain(runs)
    first = explanation.factors.iloc[0]
    assert first["factor"] == "place" and first["kind"] == "category"
    assert first["direction"] == ("at cpu3" if named else "at 3")
    assert explanation.p_value <= 0.01 and "slow at" in explanation.summary


def test_a_weak_dependence_over_all_run_times_is_found_as_such():
    random = np.random.default_rng(5)
    counters = columns(random)
    seconds = 1 + 0.01 * (0.5 * counters["c1"] + random.normal(size=RUNS))
    first = explain(pd.DataFrame({"seconds": seconds} | counters)).factors.iloc[0]
    assert first["factor"] == "c1" and first["kind"] == "continuous"


def test_every_column_is_searched_or_has_its_reason():
    random = np.random.default_rng(6)
    runs = pd.DataFrame({"seconds": random.normal(1, 0.02, RUNS)} | columns(random, 3))
    runs["when"] = pd.date_range("2026-01-01", periods=RUNS)
    runs["words"] = [f"run {number}" for number in range(RUNS)]
    runs["cell"], runs["truth"] = "one", random.choice(["a", "b"], RUNS)
    runs["host"], runs["cpu"] = "here", random.choice(["0", "1"], RUNS)
    runs["once"] = (np.arange(RUNS) == 7).astype(int)
    explanation = explain(runs)
    searched = {"seconds", "c0", "c1", "c2", "cpu"}
    assert set(explanation.excluded) == set(runs) - searched
    assert "what was run" in explanation.excluded["truth"]
    assert "text: 120 different" in explanation.excluded["words"]
    assert "fewer than 3 runs" in explanation.excluded["once"]
    assert explanation.searched == "3 columns, 1 categories"


def test_two_columns_of_one_name_are_refused():
    runs = pd.DataFrame(np.ones((20, 3)), columns=["seconds", "faults", "faults"])
    with pytest.raises(InputError, match="two columns have the name 'faults'") as refused:
        explain(runs)
    assert "duplicated()" in refused.value.fix


# The null in a page's cells
# --------------------------------------------------------------------------------------------------


def page_p_value(runs, seed):
    """As page 50 has it: the strongest rank correlation, and those of rearranged run times."""
    p_values = []
    for kind in rearranged(runs.drop(columns="seconds"), runs["seconds"], 199, seed):
        strongest = np.abs(kind.outcome @ kind.columns).max()
        largest = np.abs(kind.surrogates @ kind.columns.to_numpy()).max(axis=1)
        p_values.append((1 + (largest >= strongest).sum()) / 200)
    return max(p_values)


def test_rearranged_run_times_keep_periods_and_drifts():
    random = np.random.default_rng(8)
    drifts = pd.DataFrame(np.cumsum(random.normal(size=(RUNS, 9)), axis=0)).add_prefix("c")
    drifts["seconds"] = 100 + np.cumsum(random.normal(size=RUNS))
    tables = [waves(1), waves(2), waves(3), drifts]
    assert sum(page_p_value(table, 1) <= 0.01 for table in tables) == 0


def test_a_cause_in_bursts_is_found_by_shifts_and_noisy_hours_explain_nothing():
    random = np.random.default_rng(3)
    on = np.isin(np.arange(RUNS) // 8, [2, 7, 12])
    runs = pd.DataFrame({"seconds": random.normal(1, 0.02, RUNS) + 0.08 * on} | columns(random))
    found = explain(runs.assign(cause=random.normal(10, 1, RUNS) + 4 * on))
    assert found.factors.iloc[0]["factor"] == "cause" and found.surrogates == "circular shifts"
    scale = np.where(np.arange(RUNS) // 30 == 2, 5, 1)
    noisy = {name: scale * one for name, one in columns(random).items()}
    hours = pd.DataFrame({"seconds": 1 + 0.01 * scale * random.normal(size=RUNS)} | noisy)
    quarter = hours["seconds"].quantile(0.75)
    assert explain(hours, cutoff=quarter).surrogates == "single runs within tenths"


def test_rearranged_run_times_find_a_cause_and_hold_their_level():
    random = np.random.default_rng(9)
    tables = [
        pd.DataFrame(columns(random) | {"seconds": random.normal(size=RUNS)}) for _ in range(40)
    ]
    assert sum(page_p_value(table, 1) <= 0.05 for table in tables) <= 6
    tables[0]["seconds"] += tables[0]["c3"]
    assert page_p_value(tables[0], 1) == 1 / 200
