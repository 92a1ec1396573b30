"""The explanation of campaigns whose cause is known, and of campaigns without one."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import Cutoff, classify, explain
from nbhelpers.attribution.groups import correlated_groups
from nbhelpers.attribution.screening import candidate_columns
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
    assert explanation.found and 0 < explanation.p_value <= 0.01
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


def test_ties_between_copies_are_said(planted):
    explanation = explain(planted(np.random.default_rng(4)))
    assert (
        "can't tell it apart from" in explanation.summary
        and "5 counters move together" in explanation.summary
    )


def test_the_variance_is_divided_among_the_factors():
    random = np.random.default_rng(1)
    places = random.permutation(400)
    one, two = places % 5 == 0, places // 5 % 5 == 0
    seconds = 1 + random.normal(0, 0.01, 400) + 0.2 * one + 0.1 * two
    table = pd.DataFrame(
        {
            "seconds": seconds,
            "one": one * 5 + random.normal(0, 0.3, 400),
            "two": two * 5 + random.normal(0, 0.3, 400),
        }
    )
    factors = explain(
        table.assign(**{f"noise{number}": random.normal(size=400) for number in range(6)}),
        cutoff=1.05,
    ).factors.set_index("factor")
    parts = np.var(0.2 * one), np.var(0.1 * two)
    assert factors.loc[["one", "two"], "variance_share"].to_numpy() == pytest.approx(
        np.array(parts) / np.var(seconds), abs=0.05
    )
    assert factors["variance_share"].drop(["one", "two"]).isna().all()


def test_a_factor_too_weak_for_a_tree_is_found_by_its_ranks():
    found = []
    for seed in range(4):
        random = np.random.default_rng(seed)
        slow = random.random(200) < 0.2
        counters = random.normal(size=(200, 20))
        counters[slow, 3] += 1.2
        runs = pd.DataFrame(counters, columns=[f"c{number}" for number in range(20)]).assign(
            seconds=random.normal(1, 0.01, 200) + 0.1 * slow
        )
        explanation = explain(runs, seed=seed)
        found.append(explanation.found and explanation.factors.iloc[0]["factor"] == "c3")
    assert sum(found) >= 3


def drifting(seed, walk):
    """Outcome and counters drift, each on its own account."""
    random = np.random.default_rng(seed)
    steps = random.normal(size=(160, 9))
    columns = np.cumsum(steps, axis=0) if walk else steps + np.linspace(0, 4, 160)[:, None]
    return pd.DataFrame(columns[:, 1:], columns=[f"c{number}" for number in range(8)]).assign(
        seconds=100 + columns[:, 0]
    )


@pytest.mark.parametrize("walk", [True, False], ids=["random walks", "trends"])
def test_common_drift_is_no_cause(walk):
    explained = [explain(drifting(seed, walk), seed=seed) for seed in range(3)]
    assert sum(explanation.found for explanation in explained) <= 1
    assert all(
        explanation.order.found and "as the order matters" in explanation.summary
        for explanation in explained
    )


def test_a_few_slow_runs_in_a_row_are_no_independent_evidence():
    runs = pd.DataFrame({"seconds": np.random.default_rng(0).normal(1, 0.01, 200)})
    runs.loc[100:109, "seconds"] += 0.2
    runs["slow_wave"] = np.sin(np.arange(200) / 60) + np.random.default_rng(1).normal(0, 0.05, 200)
    runs["other"] = np.random.default_rng(2).normal(size=200)
    explanation = explain(runs)
    assert explanation.order.block > 1 and not explanation.found


def test_a_searched_cutoff_can_be_used_again(planted):
    runs = planted(np.random.default_rng(4))
    searched = explain(runs, cutoff="search")
    again = explain(runs, cutoff=searched.cutoff)
    assert again.labels.equals(searched.labels) and again.threshold == searched.threshold


def test_a_cause_is_found_through_drift():
    runs = drifting(3, walk=False)
    on = np.random.default_rng(0).random(160) < 0.2
    runs["seconds"] += 8 * on
    runs["culprit"] = np.random.default_rng(1).normal(size=160) + 5 * on
    explanation = explain(runs)
    assert explanation.found and explanation.factors.iloc[0]["factor"] == "culprit"


def test_the_order_is_that_of_the_start_times_not_of_the_rows():
    runs = drifting(3, walk=False).assign(start_ns=np.arange(160))
    shuffled = runs.sample(frac=1, random_state=0)
    one, other = explain(runs), explain(shuffled)
    assert one.order == other.order and one.p_value == other.p_value
    assert (other.labels == (shuffled["seconds"] > other.threshold)).all()


def test_higher_is_better_is_the_mirror_image(planted):
    runs = planted(np.random.default_rng(4))
    throughput = runs.assign(rate=1 / runs["seconds"]).drop(columns="seconds")
    explanation = explain(throughput, "rate", higher_is_better=True)
    assert (
        explanation.found
        and "cause_per_s" in explanation.factors.iloc[0]["members"]
        and explanation.factors.iloc[0]["direction"] == "higher"
    )
    assert "below" in explanation.summary and explanation.labels.sum() == explain(runs).labels.sum()


def test_consequences_by_a_mapping(planted):
    runs = planted(np.random.default_rng(4))
    _, excluded = candidate_columns(
        runs, consequences={"cause": "it counts ticks", "user_s": False, "noise0": True}
    )
    assert (
        excluded["cause_per_s"] == "a consequence: it counts ticks"
        and "by definition" in excluded["noise0_per_s"]
    )
    assert "follows the run time" in excluded["user_s"]
    assert (
        "by definition" in candidate_columns(runs, consequences=["noise0_per_s"])[1]["noise0_per_s"]
    )


def test_without_a_null_nothing_is_claimed(planted):
    explanation = explain(planted(np.random.default_rng(4)), permutations=0)
    assert (
        not explanation.found
        and np.isnan(explanation.p_value)
        and "nothing is claimed" in explanation.summary
    )
    assert explanation.tree is not None and "cause_per_s" in explanation.factors.iloc[0]["members"]


def test_the_counters_can_place_the_cutoff(planted):
    runs = planted(np.random.default_rng(4))
    explanation = explain(runs, cutoff="search")
    assert (
        explanation.found
        and explanation.cutoff.kind == "searched"
        and "separates best" in explanation.summary
    )
    assert explanation.labels.equals((runs["seconds"] > explanation.threshold).rename("slow"))


def test_a_searched_cutoff_finds_no_story_in_noise(noise):
    assert (
        sum(
            explain(noise(np.random.default_rng(seed)), seed=seed, cutoff="search").found
            for seed in range(4)
        )
        <= 1
    )


def test_classes_are_explained(planted):
    runs = planted(np.random.default_rng(4))
    explanation = explain(
        runs, cutoff=classify(runs["seconds"], runs=runs.index[runs["seconds"] > 0.45])
    )
    assert explanation.found and "by hand" in explanation.summary
    with pytest.raises(InputError, match="has no class"):
        explain(runs, cutoff=classify(runs["seconds"].head(50), "median"))


def test_the_number_of_workers_changes_nothing(planted):
    runs = planted(np.random.default_rng(4))
    one, two = explain(runs, workers=1), explain(runs, workers=2)
    pd.testing.assert_frame_equal(one.factors, two.factors)
    assert one.p_value == two.p_value


def test_consequences_and_bookkeeping_are_never_causes(planted):
    kept, excluded = candidate_columns(planted(np.random.default_rng(4)))
    assert "by definition" in excluded["wall_seconds"] and "by definition" in excluded["user_s"]
    assert excluded["run"] == excluded["start_ns"] == "bookkeeping"
    assert excluded["always_two"] == "does not vary"
    assert "cause_per_s is used" in excluded["cause"]
    assert "page_faults_per_s" in excluded
    assert "cause_per_s" in kept and "seconds" not in kept


@pytest.mark.parametrize("with_totals", [True, False])
def test_fixed_work_over_a_longer_time_is_no_cause(with_totals):
    found = []
    for seed in range(3):
        random = np.random.default_rng(seed)
        seconds = np.r_[random.normal(1, 0.01, 70), random.normal(1.5, 0.01, 30)]
        runs = {"seconds": seconds, "other": random.normal(size=100)}
        for number in range(12):
            total = random.poisson(200, 100)
            runs |= {f"work{number}_per_s": total / seconds} | (
                {f"work{number}": total} if with_totals else {}
            )
        kept, excluded = candidate_columns(pd.DataFrame(runs))
        assert all(f"work{number}_per_s" in excluded for number in range(12))
        found.append(explain(pd.DataFrame(runs), seed=seed).found)
    assert sum(found) <= 1


def test_work_that_is_partly_fixed_is_no_cause():
    random = np.random.default_rng(8)
    seconds = np.r_[random.normal(1, 0.01, 70), random.normal(1.5, 0.01, 30)]
    total = random.normal(100 + 100 * seconds, 3)
    runs = pd.DataFrame(
        {
            "seconds": seconds,
            "work": total,
            "work_per_s": total / seconds,
            "other": random.normal(size=100),
        }
    )
    assert {
        name: excluded[:16] for name, excluded in candidate_columns(runs)[1].items()
    } == dict.fromkeys(["work", "work_per_s"], "its total rises ")


def test_a_lack_that_slows_is_searched_as_a_total():
    random = np.random.default_rng(8)
    slow = random.random(100) < 0.3
    seconds = random.normal(1, 0.01, 100) + 0.3 * slow
    total = random.normal(100 - 50 * slow, 5)
    explanation = explain(
        pd.DataFrame(
            {
                "seconds": seconds,
                "hits": total,
                "hits_per_s": total / seconds,
                "other": random.normal(size=100),
            }
        )
    )
    assert explanation.factors.iloc[0][["factor", "direction"]].tolist() == ["hits", "lower"]


def test_missing_whole_numbers(planted):
    runs = planted(np.random.default_rng(4))
    runs["switches"] = pd.array([None, *range(len(runs) - 1)], dtype="Int64")
    assert candidate_columns(runs)[0]["switches"].notna().all()


def test_a_consequence_of_unknown_name_is_recognised():
    random = np.random.default_rng(9)
    seconds = random.lognormal(0, 0.1, 60)
    runs = pd.DataFrame(
        {"seconds": seconds, "cycles_in_disguise": 3e9 * seconds * random.normal(1, 0.001, 60)}
    )
    assert "follows the run time" in candidate_columns(runs)[1]["cycles_in_disguise"]


def test_failed_runs_are_not_explained(planted):
    runs = planted(np.random.default_rng(4))
    runs.loc[:9, "status"] = "timeout"
    runs.loc[:9, "seconds"] = np.nan
    assert len(explain(runs).labels) == len(runs) - 10


def test_missing_counters(planted):
    runs = planted(np.random.default_rng(4))
    runs.loc[::3, "noise0_per_s"] = np.nan
    runs.loc[:3, "cause_per_s"] = np.nan
    kept, excluded = candidate_columns(runs)
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
    explanation = explain(
        noise(np.random.default_rng(0)), cutoff=Cutoff(None, "one class", 0.0, "")
    )
    assert explanation.labels.mean() == pytest.approx(0.25, abs=0.02)
    assert (
        "no class of slow runs" in explanation.summary
        and "Nothing among these" in explanation.summary
    )


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
    table = pd.DataFrame(
        {"a": base, "b": -base + 0.1 * random.normal(size=100), "c": np.exp(3 * base), "d": other}
    )
    assert sorted(map(sorted, correlated_groups(table))) == [["a", "b", "c"], ["d"]]
    assert correlated_groups(table[["d"]]) == [["d"]]


def rivals(seed, swapped=False):
    """Two counters that both separate slow from fast; the run time grows with one of them."""
    random = np.random.default_rng(seed)
    slow = random.random(80) < 0.25
    dose = random.uniform(0.5, 2, 80)
    table = {
        "bystander": random.poisson(50, 80) + slow * (150 + random.lognormal(5, 1.2, 80)),
        "cause": random.poisson(50, 80) + 400 * slow * dose,
    }
    table = {name: table[name] for name in sorted(table, reverse=swapped)} | {
        f"noise{number}": random.poisson(100, 80) for number in range(4)
    }
    return pd.DataFrame(
        table
        | {
            "seconds": 0.1 * (1 + 0.3 * slow * dose + 0.01 * random.standard_normal(80)),
            "run": np.arange(80),
        }
    )


@pytest.mark.parametrize("swapped", [False, True])
def test_of_counters_that_separate_equally_well_the_run_time_decides_and_not_their_place(
    swapped,
):
    factors = explain(rivals(3, swapped), cutoff=0.11, seed=1).factors.set_index("factor")
    assert (factors.loc[["cause", "bystander"], "separation"] == 1).all()
    assert factors.loc[["cause", "bystander"], "root_share"].between(0.3, 0.7).all()
    assert (
        factors.index[:2].tolist() == ["cause", "bystander"]
        and factors["variance_share"].iloc[0] > factors["variance_share"].iloc[1]
    )


@pytest.mark.parametrize("drift", [0, 600])
def test_a_cause_that_drifts_is_marked_and_said(planted, drift):
    runs = planted(np.random.default_rng(4), copies=0).drop(columns="cause")
    runs["cause_per_s"] += drift * np.linspace(0, 1, len(runs))
    found = explain(runs, permutations=100)
    assert found.factors["factor"].iloc[0] == "cause_per_s"
    assert found.factors["drifts"].iloc[0] == (drift > 0)
    assert ("it drifts through" in found.summary) == (drift > 0)
