"""One search for classes, run times, categories and pairs, where the truth is known."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain
from nbhelpers.attribution.leaders import Differences, causes_first, led
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
    explained = [explain(waves(seed), seed=seed) for seed in range(6)]
    assert sum(one.found for one in explained) <= 1
    assert all(one.order.found and "random phases" in one.surrogates for one in explained)


def test_a_cause_is_found_through_a_period():
    runs = waves(3)
    on = np.random.default_rng(5).random(RUNS) < 0.3
    runs["seconds"] += 4 * on
    runs["culprit"] = np.random.default_rng(6).normal(size=RUNS) + 5 * on
    assert explain(runs).factors.iloc[0]["factor"] == "culprit"


def test_two_counters_that_only_work_together_are_found():
    random = np.random.default_rng(1)
    counters = columns(random)
    both = (counters["c2"] > 0) ^ (counters["c7"] > 0)
    seconds = random.normal(1, 0.01, RUNS) + 0.1 * both
    explanation = explain(pd.DataFrame({"seconds": seconds} | counters))
    first = explanation.factors.iloc[0]
    assert first["kind"] == "interaction" and first["members"] == ("c2", "c7")
    assert first["direction"] == "one high and the other low"
    assert "c2 and c7 together" in explanation.summary


def test_both_ends_of_a_counter_are_found():
    random = np.random.default_rng(2)
    counters = columns(random)
    seconds = random.normal(1, 0.01, RUNS) + 0.1 * (np.abs(counters["c4"]) > 1)
    first = explain(pd.DataFrame({"seconds": seconds} | counters)).factors.iloc[0]
    assert first[["factor", "direction"]].tolist() == ["c4", "at both ends"]


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


def test_a_category_alone_is_enough():
    random = np.random.default_rng(4)
    node = random.choice(["near", "far"], RUNS)
    seconds = random.normal(1, 0.02, RUNS) + 0.1 * (node == "far")
    explanation = explain(pd.DataFrame({"seconds": seconds, "node": node}))
    assert explanation.found and explanation.tree is None and np.isnan(explanation.accuracy)
    assert explanation.factors.iloc[0]["direction"] == "at far"


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
    assert explanation.searched == "3 columns, 1 categories, 6 pairs"


def test_two_columns_of_one_name_are_refused():
    runs = pd.DataFrame(np.ones((20, 3)), columns=["seconds", "faults", "faults"])
    with pytest.raises(InputError, match="two columns have the name 'faults'") as refused:
        explain(runs)
    assert "duplicated()" in refused.value.fix


def test_a_wide_table_is_searched():
    random = np.random.default_rng(7)
    slow, values = random.random(100) < 0.3, random.normal(size=(100, 2000))
    values[:, 1234] += 4 * slow
    runs = pd.DataFrame(values, columns=[f"c{number}" for number in range(2000)])
    explanation = explain(runs.assign(seconds=1 + 0.2 * slow + random.normal(0, 0.02, 100)))
    assert explanation.factors.iloc[0]["factor"] == "c1234"


# Leaders
# --------------------------------------------------------------------------------------------------


def order_of(amounts, effects=None, lost_s=0.05, counted=("cpu-contention", "page-faults")):
    members = list(amounts)
    effects = effects or [5.0] * len(members)
    places = led(members, effects, Differences(amounts, lost_s), set(counted))
    return [members[place] for place in places]


def test_what_cannot_have_cost_so_much_does_not_lead():
    # 0.05 s by 20 interrupts would be 2.5 ms each
    few = order_of({"irq_CAL_per_s": 20.0, "runqueue_wait_ns_per_s": 5e7})
    many = order_of({"runqueue_wait_ns_per_s": 5e7, "irq_CAL_per_s": 2000.0})
    assert few[0] == "runqueue_wait_ns_per_s" and many[0] == "irq_CAL_per_s"


def test_a_symptom_goes_behind_what_it_is_of():
    led_by = order_of({"context_switches": 12.0, "cgroup_nr_throttled": 12.0})
    assert led_by[0] == "cgroup_nr_throttled"


def test_memory_of_the_machine_and_its_faults_alone_do_not_lead():
    amounts = {"anon_huge_machine_kb": 3e4, "vm_pgfault": 5e3, "others_busy_s": 0.1}
    assert order_of(amounts)[0] == "others_busy_s"
    assert order_of({"vm_pgfault": 5e3, "page_faults": 5e3})[0] == "page_faults"


def test_an_unknown_counter_leads_by_its_effect():
    assert order_of({"probes": 3.0, "retries": 9.0}, [4.0, 6.0])[0] == "retries"


def test_a_faint_member_does_not_lead():
    amounts = {"page_faults": 5e3, "cgroup_nr_throttled": 12.0}
    assert order_of(amounts, [9.0, 2.0])[0] == "page_faults"


@pytest.mark.parametrize(
    "leaders, effects, amounts, order",
    [
        # what others did is a symptom of the interrupts that they sent; system time, of faults
        (["others_busy_s", "irq_CAL"], [5, 5], [0.1, 6000], ["irq_CAL", "others_busy_s"]),
        (
            ["system_s", "x", "minor_faults"],
            [5, 3, 4],
            [0.05, 1, 9000],
            ["minor_faults", "system_s", "x"],
        ),
        # too few for what was lost; much fainter; the other way round; nothing is known
        (["others_busy_s", "irq_CAL"], [5, 5], [0.1, 30], ["others_busy_s", "irq_CAL"]),
        (["others_busy_s", "irq_CAL"], [5, 2], [0.1, 6000], ["others_busy_s", "irq_CAL"]),
        (["irq_CAL", "others_busy_s"], [5, 5], [6000, 0.1], ["irq_CAL", "others_busy_s"]),
        (["x", "retries"], [2, 5], [1, 1], ["x", "retries"]),
    ],
)
def test_a_symptom_comes_after_its_cause(leaders, effects, amounts, order):
    places = causes_first(leaders, effects, Differences(dict(zip(leaders, amounts)), 0.05))
    assert [leaders[place] for place in places] == order
