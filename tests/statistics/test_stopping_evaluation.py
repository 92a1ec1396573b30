"""Rules replayed on records: the tables against the rules themselves and against intervals worked
out here.
"""

import numpy as np
import pytest

from nbhelpers.errors import InputError
from nbhelpers.statistics import evaluate_rules, running_statistic, stopping, stopping_sentence

VALUES = np.random.default_rng(2).normal(1, 0.05, 120)
VALUES[70] = 1.9  # the first slow run comes late


def test_each_rule_stops_where_its_replay_does_and_the_errors_are_against_all_runs():
    table = evaluate_rules(VALUES, "cv").set_index("rule")
    assert set(table.index) == set(stopping.RULES)
    for name in ("count", "confidence interval", "rare mode", "Kolmogorov-Smirnov"):
        stop = stopping.evaluate_rule(stopping.RULES[name], VALUES)
        assert table.loc[name, ["runs", "stopped", "reason"]].tolist() == [
            stop.runs,
            stop.stopped,
            stop.reason,
        ]
    early, whole = VALUES[:30], VALUES.std(ddof=1) / VALUES.mean()
    assert table.loc["count", "value"] == pytest.approx(early.std(ddof=1) / early.mean())
    assert (
        table.loc["count", "error_percent"]
        == pytest.approx(100 * (early.std(ddof=1) / early.mean() / whole - 1))
        and table.loc["count", "error_percent"] < -30
    )
    assert table.loc["count", "mean_error_percent"] == pytest.approx(
        100 * (early.mean() / VALUES.mean() - 1)
    )
    assert not table.loc["for tails", "stopped"] and table.loc["for tails", "error_percent"] == 0
    assert stopping_sentence(table.reset_index(), 120).startswith(
        f"{table['stopped'].sum()} of 13 stopping rules stop within 120 runs, the first"
        f" ({table.index[0]})"
    )
    assert (
        stopping_sentence(evaluate_rules(VALUES[:4]), 4)
        == "None of 13 stopping rules stops within 4 runs."
    )
    assert (
        table["stopped"].is_monotonic_decreasing
        and table.loc[table["stopped"], "runs"].is_monotonic_increasing
    )


def test_the_time_of_the_runs_counts_where_it_is_given():
    rules = {"duration": stopping.Duration(30)}
    assert evaluate_rules(VALUES, rules=rules, seconds=np.full(120, 1.5)).loc[0, "runs"] == 20
    assert (
        evaluate_rules(VALUES, rules=rules, seconds=np.full(120, 0.1)).loc[0, "stopped"]
        == np.False_
    )


def test_the_course_ends_with_all_runs_and_its_interval_covers_the_truth():
    course = running_statistic(VALUES, "mean", every=7)
    assert course["runs"].tolist() == [*range(10, 121, 7), 120]
    assert course["value"].iloc[-1] == pytest.approx(VALUES.mean())
    half = 1.96 * VALUES.std(ddof=1) / np.sqrt(VALUES.size)
    assert (course["high"] - course["low"]).iloc[-1] / 2 == pytest.approx(half, rel=0.2)


def test_a_handful_of_runs_is_enough_and_one_is_not():
    assert (
        running_statistic(VALUES[:3])["runs"].tolist() == [3]
        and (evaluate_rules(VALUES[:3], every=5)["runs"] == 3).all()
    )
    for table in (running_statistic, evaluate_rules):
        with pytest.raises(InputError, match="too few"):
            table(VALUES[:1])
        with pytest.raises(InputError, match="after every 0"):
            table(VALUES, every=0)
