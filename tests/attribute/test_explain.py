"""The explanation of campaigns whose cause is known, and of campaigns without one."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribute import Cutoff, correlated_groups, explain, predictors
from nbhelpers.errors import InputError


def test_noise_has_no_story(noise):
    found = [explain(noise(np.random.default_rng(seed)), seed=seed).found for seed in range(8)]
    assert sum(found) <= 1


def test_noise_with_two_modes_has_no_story(noise):
    found = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        runs = noise(random)
        runs["seconds"] += 0.1 * (random.random(len(runs)) < 0.3)
        explanation = explain(runs, seed=seed)
        assert explanation.cutoff.kind == "modes"
        found.append(explanation.found)
    assert sum(found) <= 1


def test_the_planted_cause_comes_first_with_its_copies(planted):
    explanation = explain(planted(np.random.default_rng(4)))
    assert explanation.found and explanation.p_value <= 0.01
    first = explanation.factors.iloc[0]
    assert set(first["members"]) == {"cause_per_s", *(f"copy{number}_per_s" for number in range(4))}
    assert first["direction"] == "higher" and first["slow_median"] > 2 * first["fast_median"]
    assert first["root_share"] > 0.9 and first["p_value"] < 0.01
    assert explanation.accuracy > 0.9
    low, high = explanation.accuracy_interval
    assert low <= explanation.accuracy <= high
    assert explanation.tree.get_depth() <= 3
    assert list(explanation.factors.index) == list(range(1, len(explanation.factors) + 1))
    assert explanation.factors["importance"].is_monotonic_decreasing


def test_labels_are_the_runs_above_the_cutoff(planted):
    runs = planted(np.random.default_rng(4)).set_index(pd.Index(range(1000, 1120)))
    explanation = explain(runs, cutoff=0.45)
    assert explanation.labels.equals((runs["seconds"] > 0.45).rename("slow"))


def test_consequences_and_bookkeeping_are_never_causes(planted):
    kept, excluded = predictors(planted(np.random.default_rng(4)))
    assert "by definition" in excluded["wall_seconds"] and "by definition" in excluded["user_s"]
    assert excluded["run"] == excluded["start_ns"] == "bookkeeping"
    assert excluded["always_two"] == "does not vary"
    assert "cause_per_s is used" in excluded["cause"]
    assert "page_faults_per_s" in excluded
    assert "cause_per_s" in kept and "seconds" not in kept


@pytest.mark.parametrize("with_totals", [True, False])
def test_fixed_work_over_a_longer_time_is_no_cause(with_totals):
    found = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        seconds = np.r_[random.normal(1, 0.01, 70), random.normal(1.5, 0.01, 30)]
        runs = {"seconds": seconds, "other": random.normal(size=100)}
        for number in range(12):
            total = random.poisson(200, 100)
            runs |= {f"work{number}_per_s": total / seconds} | ({f"work{number}": total} if with_totals else {})
        kept, excluded = predictors(pd.DataFrame(runs))
        assert all(f"work{number}_per_s" in excluded for number in range(12))
        found.append(explain(pd.DataFrame(runs), seed=seed).found)
    assert sum(found) <= 1


def test_work_that_is_partly_fixed_is_no_cause():
    random = np.random.default_rng(8)
    seconds = np.r_[random.normal(1, 0.01, 70), random.normal(1.5, 0.01, 30)]
    total = random.normal(100 + 100 * seconds, 3)
    runs = pd.DataFrame({"seconds": seconds, "work": total, "work_per_s": total / seconds, "other": random.normal(size=100)})
    assert {name: excluded[:16] for name, excluded in predictors(runs)[1].items()} == dict.fromkeys(["work", "work_per_s"], "its total rises ")


def test_a_lack_that_slows_is_searched_as_a_total():
    random = np.random.default_rng(8)
    slow = random.random(100) < 0.3
    seconds = random.normal(1, 0.01, 100) + 0.3 * slow
    total = random.normal(100 - 50 * slow, 5)
    explanation = explain(pd.DataFrame({"seconds": seconds, "hits": total, "hits_per_s": total / seconds, "other": random.normal(size=100)}))
    assert explanation.factors.iloc[0][["factor", "direction"]].tolist() == ["hits", "lower"]


def test_missing_whole_numbers(planted):
    runs = planted(np.random.default_rng(4))
    runs["switches"] = pd.array([None, *range(len(runs) - 1)], dtype="Int64")
    assert predictors(runs)[0]["switches"].notna().all()


def test_a_consequence_of_unknown_name_is_recognised():
    random = np.random.default_rng(9)
    seconds = random.lognormal(0, 0.1, 60)
    runs = pd.DataFrame({"seconds": seconds, "cycles_in_disguise": 3e9 * seconds * random.normal(1, 0.001, 60)})
    assert "follows the run time" in predictors(runs)[1]["cycles_in_disguise"]


def test_failed_runs_are_not_explained(planted):
    runs = planted(np.random.default_rng(4))
    runs.loc[:9, "status"] = "timeout"
    runs.loc[:9, "seconds"] = np.nan
    assert len(explain(runs).labels) == len(runs) - 10


def test_missing_counters(planted):
    runs = planted(np.random.default_rng(4))
    runs.loc[::3, "noise0_per_s"] = np.nan
    runs.loc[:3, "cause_per_s"] = np.nan
    kept, excluded = predictors(runs)
    assert "missing in 33%" in excluded["noise0_per_s"]
    assert kept["cause_per_s"].notna().all()


def test_too_few_runs_say_so(noise):
    explanation = explain(noise(np.random.default_rng(0), runs=8))
    assert not explanation.found and np.isnan(explanation.p_value)
    assert "Too few runs: 8" in explanation.summary
    assert "Too few runs: 0" in explain(noise(np.random.default_rng(0)).head(0)).summary


def test_a_cutoff_that_labels_nothing_says_so(noise):
    explanation = explain(noise(np.random.default_rng(0)), cutoff=99)
    assert not explanation.found and "0 slow" in explanation.summary


def test_one_class_falls_back_to_the_slowest_quarter_and_says_so(noise):
    explanation = explain(noise(np.random.default_rng(0)), cutoff=Cutoff(None, "one class", 0.0, ""))
    assert explanation.labels.mean() == pytest.approx(0.25, abs=0.02)
    assert "no class of slow runs" in explanation.summary and "Nothing among these" in explanation.summary


def test_no_column_left(noise):
    runs = noise(np.random.default_rng(0))[["run", "seconds", "wall_seconds"]]
    assert "No column is left" in explain(runs).summary


def test_exclude(planted):
    runs = planted(np.random.default_rng(4))
    names = ["cause", "cause_per_s", *(f"copy{number}_per_s" for number in range(4))]
    assert not explain(runs, exclude=names).found
    with pytest.raises(InputError, match="did you mean 'cause_per_s'"):
        explain(runs, exclude=["cause_pers"])


def test_errors_name_the_column(noise):
    runs = noise(np.random.default_rng(0))
    with pytest.raises(InputError, match="no column 'sconds'"):
        explain(runs, outcome="sconds")
    with pytest.raises(InputError, match="not a column of numbers"):
        explain(runs, outcome="status")


def test_same_seed_same_explanation(planted):
    runs = planted(np.random.default_rng(4))
    one, other = explain(runs, seed=3), explain(runs, seed=3)
    pd.testing.assert_frame_equal(one.factors, other.factors)
    assert one.p_value == other.p_value and one.summary == other.summary


def test_shows_itself(planted):
    explanation = explain(planted(np.random.default_rng(4)))
    assert "per_s" in repr(explanation) and "\n" not in repr(explanation)
    page = explanation._repr_html_()
    assert "columns were not searched" in page and "copy2_per_s" in page


def test_groups_hold_what_moves_together():
    random = np.random.default_rng(1)
    base, other = random.normal(size=(2, 100))
    table = pd.DataFrame({"a": base, "b": -base + 0.1 * random.normal(size=100), "c": np.exp(3 * base), "d": other})
    assert sorted(map(sorted, correlated_groups(table))) == [["a", "b", "c"], ["d"]]
    assert correlated_groups(table[["d"]]) == [["d"]]
