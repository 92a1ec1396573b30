"""The explanation of campaigns whose cause is known, and of campaigns without one."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain
from nbhelpers.attribution.factors import correlation_groups, correlation_strength
from nbhelpers.attribution.screening import candidate_columns
from nbhelpers.errors import InputError
from nbhelpers.statistics.order import ORDER_COLUMNS


def test_noise_has_no_story(noise):
    found = [explain(noise(np.random.default_rng(seed)), seed=seed).found for seed in range(4)]
    assert sum(found) <= 1


def test_noise_with_two_modes_has_no_story(noise):
    found = []
    for seed in range(3):
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
    assert first["correlation"] > 0.3 and first["p_value"] < 0.01
    assert explanation.accuracy > 0.9
    low, high = explanation.accuracy_interval
    assert low <= explanation.accuracy <= high
    assert explanation.tree.get_depth() <= 3
    assert list(explanation.factors.index) == list(range(1, len(explanation.factors) + 1))


def drifting(seed, walk):
    """Outcome and counters drift, each on its own account."""
    random = np.random.default_rng(seed)
    steps = random.normal(size=(160, 9))
    columns = np.cumsum(steps, axis=0) if walk else steps + np.linspace(0, 4, 160)[:, None]
    return pd.DataFrame(columns[:, 1:]).add_prefix("c").assign(seconds=100 + columns[:, 0])


@pytest.mark.parametrize("walk", [True, False], ids=["random walks", "trends"])
def test_common_drift_is_no_cause(walk):
    explained = [explain(drifting(seed, walk), seed=seed) for seed in range(3)]
    assert sum(explanation.found for explanation in explained) <= 1
    assert all(explanation.order.found for explanation in explained)


def test_a_few_slow_runs_in_a_row_are_no_independent_evidence():
    runs = pd.DataFrame({"seconds": np.random.default_rng(0).normal(1, 0.01, 200)})
    runs.loc[100:109, "seconds"] += 0.2
    runs["slow_wave"] = np.sin(np.arange(200) / 60) + np.random.default_rng(1).normal(0, 0.05, 200)
    runs["other"] = np.random.default_rng(2).normal(size=200)
    explanation = explain(runs)
    assert explanation.order.block > 1 and not explanation.found


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


def test_a_table_that_is_sorted_by_the_run_time_is_searched_without_an_order_and_says_so(planted):
    runs = planted(np.random.default_rng(4)).drop(columns=list(ORDER_COLUMNS), errors="ignore")
    explanation = explain(runs.sort_values("seconds", ignore_index=True))
    assert explanation.found and "cause_per_s" in explanation.factors.iloc[0]["members"]
    assert not explanation.order.found and "sorted by the outcome" in explanation.summary
    by_cause = explain(runs.sort_values("cause_per_s", ignore_index=True))
    assert "Rows are sorted by cause_per_s" in by_cause.summary


def test_a_quarter_of_the_runs_at_the_top_of_a_coarse_clock_are_slow():
    """Times come in steps of 10 ms, so that no run is beyond the upper quartile."""
    random = np.random.default_rng(1)
    seconds = np.where(random.random(60) < 0.3, 0.12, np.where(random.random(60) < 0.5, 0.11, 0.1))
    probes = random.poisson(100 + 1e4 * (seconds - 0.1))
    runs = pd.DataFrame({"seconds": seconds, "probes": probes})
    found = explain(runs, permutations=200)
    assert (found.labels == (seconds == 0.12)).all() and found.features == ["probes"]
    assert not explain(runs, cutoff=1.0).found


def test_higher_is_better_is_the_mirror_image(planted):
    runs = planted(np.random.default_rng(4))
    throughput = runs.assign(rate=1 / runs["seconds"]).drop(columns="seconds")
    explanation = explain(throughput, "rate", higher_is_better=True)
    first = explanation.factors.iloc[0]
    assert explanation.found and first["direction"] == "higher"
    assert "cause_per_s" in first["members"]
    assert "below" in explanation.summary
    assert explanation.labels.sum() == explain(runs, permutations=0).labels.sum()


def test_without_a_null_nothing_is_claimed(planted):
    explanation = explain(planted(np.random.default_rng(4)), permutations=0)
    assert not explanation.found and np.isnan(explanation.p_value)
    assert explanation.tree is not None and "cause_per_s" in explanation.factors.iloc[0]["members"]


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
            runs[f"work{number}_per_s"] = total / seconds
            if with_totals:
                runs[f"work{number}"] = total
        kept, excluded = candidate_columns(pd.DataFrame(runs))
        assert all(f"work{number}_per_s" in excluded for number in range(12))
        found.append(explain(pd.DataFrame(runs), seed=seed).found)
    assert sum(found) <= 1


def test_work_that_is_partly_fixed_is_no_cause():
    random = np.random.default_rng(8)
    seconds = np.r_[random.normal(1, 0.01, 70), random.normal(1.5, 0.01, 30)]
    total = random.normal(100 + 100 * seconds, 3)
    runs = pd.DataFrame({"seconds": seconds, "work": total, "work_per_s": total / seconds})
    excluded = candidate_columns(runs.assign(other=random.normal(size=100)))[1]
    assert set(excluded) == {"work", "work_per_s"}
    assert all(reason.startswith("its total rises") for reason in excluded.values())


def test_a_lack_that_slows_is_searched_as_a_total():
    random = np.random.default_rng(8)
    slow = random.random(100) < 0.3
    seconds = random.normal(1, 0.01, 100) + 0.3 * slow
    total = random.normal(100 - 50 * slow, 5)
    runs = pd.DataFrame({"seconds": seconds, "hits": total, "hits_per_s": total / seconds})
    explanation = explain(runs.assign(other=random.normal(size=100)), permutations=0)
    assert explanation.factors.iloc[0][["factor", "direction"]].tolist() == ["hits", "lower"]


def test_failed_runs_are_not_explained(planted):
    runs = planted(np.random.default_rng(4))
    runs.loc[:9, "status"] = "timeout"
    runs.loc[:9, "seconds"] = np.nan
    assert len(explain(runs, permutations=0).labels) == len(runs) - 10


def test_missing_counters(planted):
    runs = planted(np.random.default_rng(4))
    runs.loc[::3, "noise0_per_s"] = np.nan
    runs.loc[:3, "cause_per_s"] = np.nan
    kept, excluded = candidate_columns(runs)
    assert "missing in 33%" in excluded["noise0_per_s"]
    assert kept["cause_per_s"].isna().sum() == 4  # no gap is filled
    assert explain(runs, permutations=0).factors.iloc[0]["factor"].startswith("cause")
    slow = runs["seconds"] > 0.48
    runs["noise1_per_s"] = runs["noise1_per_s"].mask(slow & (runs["run"] % 3 > 0))
    found = explain(runs.drop(columns=runs.filter(regex="cause|copy")))
    assert found.factors.iloc[0]["factor"] == "noise1_per_s is missing"


def test_too_few_runs_say_so(noise):
    explanation = explain(noise(np.random.default_rng(0), runs=8))
    assert not explanation.found and np.isnan(explanation.p_value)
    assert "Too few runs: 8" in explanation.summary
    assert "Too few runs: 0" in explain(noise(np.random.default_rng(0)).head(0)).summary


def test_exclude(planted):
    runs = planted(np.random.default_rng(4))
    names = ["cause", "cause_per_s", *(f"copy{number}_per_s" for number in range(4))]
    none = explain(runs, exclude=names)
    assert not none.found and none.factors.empty and len(none.guess) == 1
    assert f"that of {none.guess['factor'].iloc[0]}, " in none.summary and "a guess" in none.summary
    with pytest.raises(InputError, match="did you mean 'cause_per_s'"):
        explain(runs, exclude=["cause_pers"])


def test_groups_hold_what_moves_together():
    random = np.random.default_rng(1)
    base, other = random.normal(size=(2, 100))
    values = np.c_[base, -base + 0.1 * random.normal(size=100), np.exp(3 * base), other]
    groups = correlation_groups(correlation_strength(values))
    assert sorted(map(sorted, groups)) == [[0, 1, 2], [3]]
    assert correlation_groups(correlation_strength(values[:, 3:]))[0].tolist() == [0]


def rivals(seed, swapped=False):
    """Two counters that both separate slow from fast; the run time grows with one of them."""
    random = np.random.default_rng(seed)
    slow = random.random(80) < 0.25
    dose = random.uniform(0.5, 2, 80)
    table = {
        "bystander": random.poisson(50, 80) + slow * (150 + random.lognormal(5, 1.2, 80)),
        "cause": random.poisson(50, 80) + 400 * slow * dose,
    }
    runs = pd.DataFrame({name: table[name] for name in sorted(table, reverse=swapped)})
    runs = runs.assign(**{f"noise{number}": random.poisson(100, 80) for number in range(4)})
    runs["seconds"] = 0.1 * (1 + 0.3 * slow * dose + 0.01 * random.standard_normal(80))
    return runs.assign(run=range(80))


@pytest.mark.parametrize("swapped", [False, True])
def test_of_counters_that_separate_equally_well_the_run_time_decides(swapped):
    found = explain(rivals(3, swapped), cutoff=0.11, seed=1, permutations=0)
    factors = found.factors.set_index("factor")
    assert (factors.loc[["cause", "bystander"], "separation"] == 1).all()
    assert factors.index[:2].tolist() == ["cause", "bystander"]


@pytest.mark.parametrize("drift", [0, 600])
def test_a_cause_that_drifts_is_marked_and_said(planted, drift):
    runs = planted(np.random.default_rng(4), copies=0).drop(columns="cause")
    runs["cause_per_s"] += drift * np.linspace(0, 1, len(runs))
    found = explain(runs, permutations=100)
    assert found.factors["factor"].iloc[0] == "cause_per_s"
    assert found.factors["drifts"].iloc[0] == (drift > 0)
    assert ("it drifts through" in found.summary) == (drift > 0)
