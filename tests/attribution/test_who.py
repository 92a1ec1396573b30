"""Who took the time: planted names are found, shuffled run times name nobody."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from nbhelpers.account import owned_ms
from nbhelpers.attribution import slow_runs, who_took_it
from nbhelpers.attribution.who import CHANCE, EXPLAINS, counters_of, in_words, output_of
from nbhelpers.places import shipped
from nbhelpers.studies.baseline import Baseline
from nbhelpers.studies.program_study.took import Thresholds, _printed, _tested

from ..cells import run_cells

RANDOM = np.random.default_rng(7)


def campaign(slow, runs=40, names=60):
    """Costs of runs with noise, and what names took of them; `backupd` has that of the slow."""
    lost = pd.DataFrame(RANDOM.gamma(2, 0.5, (runs, names)))
    lost.columns = pd.MultiIndex.from_product([["taken"], [f"kworker/{n}" for n in range(names)]])
    lost["runnable", "backupd"] = 0.0
    lost.loc[slow, ("runnable", "backupd")] = RANDOM.uniform(200, 430, len(slow))
    costs = pd.Series(RANDOM.normal(0.4, 0.005, runs)) + lost.sum(axis=1) / 1e3
    return costs, lost


@pytest.mark.parametrize(
    "slow, when",
    [([3, 9, 20, 31], ""), (list(range(3, 40, 4)), "every 4th run"), (list(range(30, 40)), "last")],
)
def test_who_was_planted_comes_first(slow, when):
    costs, lost = campaign(slow)
    found = slow_runs(costs)
    assert np.flatnonzero(found.slow).tolist() == slow and when in found.pattern
    best = who_took_it(costs, lost, slow=found.slow).iloc[0]
    assert best["name"] == "backupd" and best["p_value"] < 0.01
    assert best["explained_share"] == pytest.approx(1, abs=0.1)
    theirs = spearmanr(costs, lost["runnable", "backupd"]).statistic
    assert best["spearman"] == pytest.approx(theirs)
    said = in_words(best)
    assert said.startswith("They waited 2") and "`backupd` had (" in said and "of what they" in said


@pytest.mark.parametrize("is_again", [True, False])
def test_the_name_of_the_earlier_runs_is_tested_in_the_later_ones(is_again):
    """By the study, and by the cells of page 01."""
    costs, lost = campaign(range(3, 40, 4))
    if not is_again:
        costs[20:] = np.roll(costs[20:], 2)
    found = _tested(costs, lost, 1, EXPLAINS)
    assert found[:2] == ("runnable", "backupd") and found[3:] == (20, 20)
    assert (found.p_value <= CHANCE) == is_again != ("not beyond" in str(found))
    assert _tested(costs[:15], lost, 1, EXPLAINS) is None
    runs, took = costs.rename("region_seconds").rename_axis("run"), SimpleNamespace(lost_ms=lost)
    study = SimpleNamespace(missing=lambda step: "", took=took, thresholds=Thresholds())
    page = run_cells(
        "01-your-program", "halves", of_traced=runs.reset_index(), program=study, seed=1
    )
    assert page["halves"].loc["second", "p_value"].item() == found.p_value


def test_one_slow_run_has_its_name_and_hardly_a_claim():
    costs, lost = campaign([17])
    found = slow_runs(costs)
    assert found.slow.sum() == 1 and found.is_class
    best = who_took_it(costs, lost, slow=found.slow).iloc[0]
    assert best["name"] == "backupd" and best["p_value"] > 0.02  # of 40 runs, a chance one of 40


def test_a_counter_that_only_says_that_a_run_was_long_is_left_out():
    runs = pd.DataFrame(
        {"ticks": [10.0, 10, 10, 20], "reads": [5.0, 5, 5, 5], "user_s": [1, 1, 1, 4]}
    )
    seconds = np.array([1.0, 1, 1, 2])
    runs = runs.join((runs.div(seconds, axis=0)).add_suffix("_per_s"))
    kept = counters_of(runs.assign(seconds=seconds), pd.Series(seconds > 1), ["seconds"])
    assert list(kept) == ["user_s"]
    counted = {"input": [100.0, 100, 100, 200], "ticks": [100.0, 90, 110, 200]}
    runs = pd.DataFrame(counted | {"region_seconds": [1.0, 0.9, 1.1, 2.0]})
    runs = runs.join(runs[list(counted)].div(runs["region_seconds"], axis=0).add_suffix("_per_s"))
    assert list(counters_of(runs, runs["region_seconds"] > 1.5, [])) == ["input"]


def test_every_fourth_run_is_found_though_the_machine_has_two_speeds_by_itself():
    random = np.random.default_rng(3)
    speeds = np.where((np.arange(60) // 7) % 2, 1.25, 1.0) * random.normal(1, 0.03, 60)
    larger = np.where(np.arange(60) % 4 == 3, 1.4, 1.0)
    found = slow_runs(pd.Series(speeds * larger))
    assert found.pattern == "every 4th run" and found.slow.sum() == 15
    assert "every" not in slow_runs(pd.Series(speeds)).pattern


def test_recorded_runs_are_slow_because_they_compute_longer_and_shuffled_ones_for_no_reason():
    """The host's CPU was slower (page 15); names take no more than a few ms."""
    stage10 = Baseline(shipped() / "data/recorded/10-trace-collection", recorded_only=True)
    traced = stage10.traced.head(24)
    lost = owned_ms(stage10.folder / "traces", traced)
    runs = traced.set_index("run")["region_seconds"]
    best = who_took_it(runs, lost).iloc[0]
    assert best["part"] == "computing" and best["explained_share"] > 0.8
    chance = np.random.default_rng(1)
    named = 0
    for _ in range(10):
        shuffled = pd.Series(chance.permutation(runs.to_numpy()), runs.index)
        best = who_took_it(shuffled, lost).iloc[0]
        named += bool(best["p_value"] <= CHANCE and best["explained_share"] >= EXPLAINS)
    assert named <= 2  # half a run is expected


def test_other_output_tells_slow_runs_apart_where_other_load_hides_them():
    random = np.random.default_rng(2)
    slow = np.arange(40) % 4 == 3
    costs = pd.Series(random.normal(0.5, 0.04, 40) + 0.1 * slow)
    runs = pd.DataFrame({"output_lines": np.where(slow, 1024, 731), "output_digest": "a"})
    runs.loc[slow, "output_digest"] = "b"
    found = slow_runs(costs, also=[runs["output_lines"].astype(float)])
    assert found.slow.tolist() == slow.tolist() and found.pattern == "every 4th run"
    best = who_took_it(costs, output_of(runs), slow=found.slow).iloc[0]
    assert in_words(best) == "They print other output (1,024 lines, ordinary 731)."
    assert best["p_value"] < 0.01
    said = _printed(runs.assign(user_s=np.where(slow, 0.207, 0.148)), seed=1)
    assert "10 of 40 runs print other output (1,024 lines, ordinary 731, every 4th run)" in said
    assert said.endswith("their user time is 0.207 s, ordinary 0.148 s.")
    # output that has nothing to do with the costs makes no class
    other = pd.Series(random.permutation(runs["output_lines"].to_numpy(float)))
    assert not slow_runs(pd.Series(random.normal(0.5, 0.04, 40)), also=[other]).is_class
    assert output_of(runs.assign(output_lines=7, output_digest=range(40))).empty
