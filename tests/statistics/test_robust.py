"""Trimmed means and medians against scipy's, and against samples whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbhelpers.statistics import compare
from nbhelpers.statistics.robust import (
    error_columns,
    robust_ratio,
    trimmed_interval,
    trimmed_mean,
    trimmed_ratio,
)


def disturbed(random: np.random.Generator, runs: int, chance: float = 1 / 32) -> np.ndarray:
    """Runs of 1 s that differ by 5 %; a few take twice as long."""
    slow = random.random(runs) < chance
    return np.exp(random.normal(0, 0.05, runs)) * np.where(slow, 2, 1)


def cell(values: np.ndarray, rounds: bool = False, first: int = 0) -> pd.DataFrame:
    runs = np.arange(first, first + len(values))
    table = pd.DataFrame({"run": runs, "seconds": values}, index=runs)
    return table.assign(round=range(len(values))) if rounds else table


@pytest.mark.parametrize("runs", [5, 8, 9, 10, 19, 20, 49, 60, 199])
def test_the_trimmed_mean_is_scipys_with_at_least_one_value_left_out_at_each_end(runs):
    values = np.random.default_rng(runs).lognormal(0, 1, (3, runs))
    share = max(0.1, (1 + 1e-9) / runs)
    assert np.allclose(trimmed_mean(values, axis=1), stats.trim_mean(values, share, axis=1))
    assert trimmed_mean(values[0]) == pytest.approx(stats.trim_mean(values[0], share))


def test_the_interval_is_that_of_tukey_and_mclaughlin():
    values = np.random.default_rng(1).lognormal(0, 0.3, 40)
    found = trimmed_interval(values)
    theirs = stats.mstats.trimmed_mean_ci(values, limits=(0.1, 0.1))
    assert np.allclose((found.low, found.high), theirs) and found.size == 40


def test_the_interval_holds_the_truth_where_a_few_runs_take_twice_as_long():
    """Of 16 runs; the mean's bootstrap interval, which cannot know of runs that it has not seen,
    holds the true mean far less often.
    """
    random = np.random.default_rng(2)
    truth = stats.trim_mean(disturbed(random, 1_000_000), 1 / 16)
    found = [trimmed_interval(disturbed(random, 16)) for _ in range(600)]
    covered = np.mean([interval.low <= truth <= interval.high for interval in found])
    assert 0.92 < covered < 0.98


def test_one_run_decides_a_mean_and_no_trimmed_mean():
    values = np.append(np.random.default_rng(3).normal(0.3, 0.004, 15), 1.46)
    found = error_columns(values, 1.0)
    assert max(found["trimmed_ratio_high"], found["median_ratio_high"]) < 0.31 < found["ratio"]
    assert found["median_ratio"] == np.median(values)


def test_a_ratio_of_independent_cells_has_yuens_error_and_welchs_freedom():
    random = np.random.default_rng(5)
    above, below = random.lognormal(0.5, 0.2, 30), random.lognormal(0, 0.1, 20)
    found = robust_ratio([(cell(above), cell(below))])["trimmed"]
    means = [stats.trim_mean(values, 0.1) for values in (above, below)]
    spreads = [stats.mstats.trimmed_stde(values, limits=(0.1, 0.1)) for values in (above, below)]
    errors = np.divide(spreads, means)
    variance = errors[0] ** 2 + errors[1] ** 2
    freedom = variance**2 / (errors[0] ** 4 / (24 - 1) + errors[1] ** 4 / (16 - 1))
    ratio = means[0] / means[1]
    half = stats.t.ppf(0.975, freedom) * ratio * np.sqrt(variance)
    assert np.allclose(found[:3], (ratio, ratio - half, ratio + half)) and found.size == 20


def test_what_disturbs_a_round_is_no_part_of_the_ratio():
    random = np.random.default_rng(6)
    rounds = random.lognormal(0, 0.3, 12)
    exact = robust_ratio([(cell(2 * rounds, True), cell(rounds, True))])
    assert np.allclose(exact["trimmed"][:3], 2) and np.allclose(exact["median"][:3], 2)
    above = 2 * rounds * random.normal(1, 0.01, 12)
    both = [robust_ratio([(cell(above, paired), cell(rounds, paired))]) for paired in (True, False)]
    for name in ("median", "trimmed"):
        widths = [found[name].high - found[name].low for found in both]
        assert widths[0] < widths[1] / 3, name


def test_the_interval_of_a_ratio_in_rounds_holds_the_truth():
    random, covered = np.random.default_rng(7), []
    for _ in range(400):
        rounds = random.lognormal(0, 0.1, 16)
        above, below = (cell(rounds * disturbed(random, 16), True) for _ in range(2))
        found = trimmed_ratio([(above, below)])
        covered.append(found.low <= 1 <= found.high)
    assert 0.92 < np.mean(covered) < 0.99


def test_of_several_pairs_the_mean_ratio_counts_and_a_shared_cell_counts_once():
    random = np.random.default_rng(8)
    calm = cell(random.lognormal(0, 0.1, 10))
    slow = [cell(random.lognormal(0.5, 0.1, 10), first=first) for first in (10, 20)]
    found = robust_ratio([(runs, calm) for runs in slow])
    for name, statistic in (("median", np.median), ("trimmed", lambda x: stats.trim_mean(x, 0.1))):
        ratios = [statistic(runs["seconds"]) / statistic(calm["seconds"]) for runs in slow]
        assert found[name].value == pytest.approx(np.mean(ratios)), name
    alone = cell(calm["seconds"].to_numpy() + 1e-9, first=30)
    apart = robust_ratio([(slow[0], calm), (slow[1], alone)])
    shared, single = (one["trimmed"].high - one["trimmed"].low for one in (found, apart))
    assert shared > single


def test_a_comparison_says_where_the_trimmed_mean_shows_something_else():
    random = np.random.default_rng(9)
    before = random.normal(0.3, 0.004, 16)
    after = np.append(random.normal(0.3, 0.004, 15), 1.46)
    result = compare(before, after)
    row = result.table.loc["trimmed"]
    ratio = stats.trim_mean(after, 1 / 16) / stats.trim_mean(before, 1 / 16)
    assert row.ratio == pytest.approx(ratio) and row.low < ratio < row.high < 1.05
    assert "By the trimmed mean no difference is shown" in result.verdict
    assert "trimmed" not in compare(before, random.normal(0.33, 0.004, 16)).verdict
    assert result.better == "no difference shown"
    assert result.by_trimmed and result.by_trimmed in result.verdict
