"""Intervals and comparisons against direct computations."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import sem, t, trim_mean, ttest_ind

from nbhelpers.errors import InputError
from nbhelpers.statistics import bootstrap_interval, bootstrap_ratio, cell_statistics, compare
from nbhelpers.statistics.intervals import STATISTICS


@pytest.mark.parametrize("values, words", [([1.0], "too few"), ([1.0, np.nan], "row 1")])
def test_unusable_values_are_refused(values, words):
    with pytest.raises(InputError, match=words):
        bootstrap_interval(values)
    with pytest.raises(InputError, match=words):
        bootstrap_ratio([1.0, 2.0], values)


def test_comparison_agrees_with_pandas():
    random = np.random.default_rng(4)
    before = pd.DataFrame({"seconds": random.normal(1, 0.1, 80)})
    after = pd.DataFrame({"seconds": random.normal(0.8, 0.02, 80)})
    table = compare(before, after).table
    expected = {
        "mean": pd.Series.mean,
        "median": pd.Series.median,
        "sd": pd.Series.std,
        "max": pd.Series.max,
        "cv": lambda values: values.std() / values.mean(),
        "p95": lambda values: values.quantile(0.95),
        "trimmed": lambda values: trim_mean(values, 0.1),
    }
    assert list(table.index.drop("trimmed")) == list(STATISTICS) and table.index[2] == "trimmed"
    for name, function in expected.items():
        old, new = function(before["seconds"]), function(after["seconds"])
        assert table.loc[name, ["before", "ratio"]].tolist() == pytest.approx([old, new / old])
    assert (table["low"] <= table["ratio"]).all() and (table["ratio"] <= table["high"] + 1e-9).all()


def test_verdict_tells_a_gain_from_none():
    random = np.random.default_rng(5)
    slow, fast = random.normal(1, 0.02, 60), random.normal(0.9, 0.02, 60)
    assert f"mean is {1 - fast.mean() / slow.mean():.1%} lower" in compare(slow, fast).verdict
    same = compare(slow, slow[::-1])
    assert same.verdict.startswith("The mean is the same to within 1 %") and same.judged
    few = compare(slow[:12], slow[12:24]).verdict
    assert few.startswith("No difference of the mean is shown") and "would settle it" in few


def test_verdict_warns_of_two_blocks():
    values = np.random.default_rng(6).normal(1, 0.02, 20)
    first = pd.DataFrame({"seconds": values, "start_ns": np.arange(20), "status": "ok"})
    later = first.assign(start_ns=np.arange(20) + 100)
    mixed = first.assign(start_ns=np.arange(20) + 1)
    assert "drift" in compare(first, later).verdict
    assert "drift" not in compare(first, mixed).verdict


def test_comparison_passes_over_failed_runs():
    runs = pd.DataFrame({"seconds": [1.0, 1.1, 99.0], "status": ["ok", "ok", "timeout"]})
    assert compare(runs, [1.0, 1.1]).table.loc["max", "before"] == 1.1


def test_summary_of_cells():
    runs = pd.DataFrame({"cell": ["b", "a"] * 10, "seconds": np.arange(20.0) + 1, "status": "ok"})
    table = cell_statistics(runs)
    assert list(table.index) == ["b", "a"] and table.loc["a", "runs"] == 10
    assert table.loc["b", "mean"] == pytest.approx(runs.loc[runs["cell"] == "b", "seconds"].mean())
    assert (table["mean_low"] < table["mean"]).all() and (table["mean"] < table["mean_high"]).all()
    with pytest.raises(InputError, match="no column 'cel'"):
        cell_statistics(runs, by="cel")


def test_of_a_campaign_that_grew_only_what_was_measured_together_is_compared():
    """The machine was twice as slow before the new cell came; neither few rounds nor many may take
    that for its doing.
    """
    for rounds in (3, 20):
        random = np.random.default_rng(rounds)
        rows = [
            (cell, epoch, epoch * rounds + number, place)
            for epoch in (0, 1)
            for number in range(rounds)
            for place, cell in enumerate(("a", "b", "new")[: 2 + epoch])
        ]
        runs = pd.DataFrame(rows, columns=["cell", "epoch", "round", "place"])
        noise = 1 + 0.01 * random.standard_normal(len(runs))
        runs = runs.assign(start_ns=100 * runs["round"] + runs["place"], status="ok")
        runs["seconds"] = (2 - runs["epoch"]) * noise
        parts = dict(list(runs.groupby("cell")))
        result = compare(parts["a"], parts["new"])
        assert 0.97 < result.table.loc["mean", "ratio"] < 1.03
        assert result.measured_in == f"{rounds}-{2 * rounds - 1}"
        assert compare(parts["a"], parts["b"]).measured_in == f"0-{2 * rounds - 1}"


@pytest.mark.long
def test_what_is_said_of_equal_runs_is_seldom_wrong():
    """By round and without, with heavy tails: mean and variation are judged together."""
    random, wrong, times = np.random.default_rng(31), 0, 40
    for number in range(times):
        shared = np.exp(0.1 * random.standard_t(3, 12))
        times = shared * np.exp(0.1 * random.standard_t(3, (2, 12)))
        sides = [pd.DataFrame({"seconds": side, "round": range(12)}) for side in times]
        pair = sides if number % 2 else [side["seconds"].to_numpy() for side in sides]
        found = compare(*pair, seed=number)
        wrong += " lower," in found.verdict or " higher," in found.verdict
        assert (found.better == "no difference shown") or "The mean is" in found.verdict
    assert wrong <= 6  # a rate of 5 % exceeds it in three of a thousand tests


def test_the_verdict_on_means_is_by_welch_and_by_rounds_students():
    random = np.random.default_rng(3)
    before, after = random.normal(10, 0.5, 14), random.normal(10.6, 1.0, 20)
    known = compare(before, after).judged["mean"]
    welch = ttest_ind(after / after.mean(), before / before.mean(), equal_var=False)
    effect = np.log(after.mean() / before.mean())
    error = np.hypot(sem(after) / after.mean(), sem(before) / before.mean())
    assert np.isclose(known.p_value, 2 * t.sf(effect / error, welch.df))
    rounds = [pd.DataFrame({"seconds": x, "round": range(14)}) for x in (before, after[:14])]
    moves = after[:14] / after[:14].mean() - before / before.mean()
    effect = np.log(after[:14].mean() / before.mean())
    paired = compare(*rounds).judged["mean"]
    assert np.isclose(paired.p_value, 2 * t.sf(abs(effect) / sem(moves), 13))


def test_of_two_runs_a_spread_has_no_interval():
    two, six = [1.0, 1.2], [1.0, 1.2, 1.1, 1.3, 0.9, 1.0]
    for name in ("sd", "cv"):
        assert np.isnan(bootstrap_interval(two, name)).all()
        assert np.isnan(bootstrap_ratio(two, six, name)).all()
        assert bootstrap_interval(six, name)[0] > 0
    assert np.isfinite(bootstrap_interval(two, "mean")).all()


def test_a_variation_that_few_far_runs_make_is_not_called_none():
    random = np.random.default_rng(6)
    before, after = random.normal(1, 0.06, 60), random.normal(1, 0.06, 60)
    before[:6] *= 1.25
    found = compare(before, after)
    assert found.table.loc["cv", "high"] < 1
    assert "few far runs can make" in found.verdict
    assert "lower" not in found.verdict.partition("corrected")[2], "no and yes in one sentence"
