"""The three tests against SciPy's, and the blocks of rounds against drift."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import anderson_ksamp, levene, mannwhitneyu
from statsmodels.stats.multitest import multipletests

from nbhelpers.attribution import layer_effect
from nbhelpers.statistics import compare
from nbhelpers.statistics.difference import difference_tests, holm


@pytest.mark.parametrize("shift, scale", [(0, 1), (0.3, 1), (0, 1.3), (0.15, 1.15)])
def test_p_values_agree_with_scipys(shift, scale):
    random = np.random.default_rng(3)
    before, after = random.normal(0, 1, 90), shift + scale * random.normal(0, 1, 70)
    table = difference_tests(before, after)
    expected = [mannwhitneyu(before, after).pvalue, levene(before, after, center="median").pvalue]
    assert table["p_value"].iloc[:2].to_numpy() == pytest.approx(expected, abs=0.04)


def test_the_distribution_statistic_is_anderson_and_darlings():
    random = np.random.default_rng(4)
    before, after = random.normal(0, 1, 60), random.normal(0.6, 1, 60)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = anderson_ksamp([before, after], midrank=False).pvalue
    assert difference_tests(before, after).loc["distribution", "p_value"] == pytest.approx(
        expected, abs=0.01
    )


def test_holm_agrees_with_statsmodels():
    for p_values in ([0.01, 0.04, 0.03], [0.5, 0.2, 0.9], [0.001, 0.001, 0.06]):
        assert holm(np.array(p_values)) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_equal_samples_seldom_differ():
    random = np.random.default_rng(5)
    found = [
        difference_tests(random.exponential(1, 40), random.exponential(1, 40), seed=seed)[
            "differs"
        ].any()
        for seed in range(60)
    ]
    assert sum(found) <= 8


def rounds_of(effect, count=60, drift=3.0, seed=0):
    random = np.random.default_rng(seed)
    level = 10 + drift * np.sin(np.linspace(0, 6, count))
    sides = [
        pd.DataFrame(
            {
                "seconds": level * factor + random.normal(0, 0.1, count),
                "round": range(count),
                "status": "ok",
                "start_ns": np.arange(count) * 2 + side,
            }
        )
        for side, factor in enumerate((1, 1 + effect))
    ]
    return tuple(sides)


def test_rounds_keep_drift_out_of_interval_and_tests():
    before, after = rounds_of(0.02)
    blocked, plain = compare(before, after), compare(before["seconds"], after["seconds"])
    assert blocked.rounds == 60 and plain.rounds == 0
    width = {
        name: result.table.loc["mean", "high"] - result.table.loc["mean", "low"]
        for name, result in (("blocked", blocked), ("plain", plain))
    }
    assert width["blocked"] < width["plain"] / 5
    assert blocked.tests.loc["location", "differs"] and not plain.tests.loc["location", "differs"]
    assert (
        blocked.better == "worse"
        and plain.better == "no difference shown"
        and compare(before, after, higher_is_better=True).better == "better"
    )
    assert "60 rounds" in blocked.verdict


def test_the_blocked_interval_covers_the_truth():
    covered = []
    for seed in range(25):
        result = compare(*rounds_of(0.01, count=30, seed=seed))
        covered.append(result.table.loc["mean", "low"] <= 1.01 <= result.table.loc["mean", "high"])
    assert np.mean(covered) >= 0.8


def test_rounds_of_unequal_size():
    before, after = rounds_of(0.02)
    after = pd.concat([after, after.iloc[:7]])
    result = compare(before, after.drop(index=30))
    assert (
        result.rounds == 59
        and result.table.loc["mean", "low"]
        < result.table.loc["mean", "ratio"]
        < result.table.loc["mean", "high"]
    )


def test_rounds_of_two_campaigns_one_after_the_other_are_not_the_same_rounds():
    before, after = rounds_of(0.0)
    after["start_ns"] += 10**9
    result = compare(before, after)
    assert result.rounds == 0 and "drift" in result.verdict


def test_the_quantile_shift():
    random = np.random.default_rng(6)
    before = random.normal(1, 0.1, 300)
    shift = compare(before, np.where(before > 1.1, before + 0.5, before)).shift
    assert shift.loc[0.5, "shift"] == 0 and shift.loc[0.95, "shift"] == pytest.approx(0.5, abs=0.01)
    assert (shift["low"] <= shift["shift"] + 1e-9).all() and (
        shift["shift"] <= shift["high"] + 1e-9
    ).all()


def test_metadata_that_differ_are_listed():
    values = np.random.default_rng(7).normal(1, 0.1, 20)
    differs = compare(
        values,
        values,
        provenance=(
            {"kernel": "6.1", "cpu": {"smt": "on", "count": 4}},
            {"kernel": "6.1", "cpu": {"smt": "off", "count": 4}, "new": 1},
        ),
    ).differs
    assert differs.loc["cpu.smt"].tolist() == ["on", "off"] and list(differs.index) == [
        "cpu.smt",
        "new",
    ]
    assert differs.loc["new", "before"] is None


def test_a_layer_that_changes_nothing_and_one_that_does():
    random = np.random.default_rng(8)
    quiet, loud = random.normal(1, 0.02, 100), random.normal(1.05, 0.05, 100)
    none = layer_effect(quiet, random.normal(1, 0.02, 100), "perf")
    some = layer_effect(quiet, loud, "perf")
    assert (
        not none.changes
        and "is ruled out" in none.sentence
        and some.changes
        and some.sentence.startswith("Perf changes")
    )
    assert "\n" not in repr(some)


def test_a_difference_of_shape_alone_is_told():
    random = np.random.default_rng(9)
    before = random.normal(0, 1, 400) + 20
    after = random.choice([-1, 1], 400) + random.normal(0, 0.05, 400) + 20
    assert "Yet the distributions differ" in compare(before, after).verdict
