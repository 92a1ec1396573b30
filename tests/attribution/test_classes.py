"""Each rule on samples whose classes are known, and on plain ones."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import classify, find_cutoff
from nbhelpers.errors import InputError


def normal(seed=0, count=200, sd=0.01):
    return np.random.default_rng(seed).normal(1, sd, count)


def counts(classes):
    return classes.labels.value_counts(sort=False).to_dict()


@pytest.mark.parametrize(
    "how", ["cutoff", "modes", "right tail", "left tail", "outliers", "warm-up", "slow-down"]
)
def test_a_plain_sample_is_one_class_by_any_rule(how):
    single = [len(counts(classify(normal(seed), how, seed=seed))) == 1 for seed in range(8)]
    assert sum(single) >= 6


def test_three_modes_are_three_classes():
    values = np.concatenate([normal(1), normal(2) + 0.2, normal(3)[:100] + 0.5])
    np.random.default_rng(0).shuffle(values)
    classes = classify(values, "modes")
    assert counts(classes) == {"mode 1": 200, "mode 2": 200, "mode 3": 100}
    assert np.array_equal(classes.marked, values > 1.3) and len(classes.bounds) == 2
    assert counts(classify(-values, "modes", higher_is_better=True)) == counts(classes)
    assert classes.table(values)["median"].round(1).tolist() == [1.0, 1.2, 1.5]


@pytest.mark.parametrize(
    "sign, how, higher_is_better, name",
    [
        (1, "right tail", False, "slow tail"),
        (-1, "left tail", False, "fast tail"),
        (-1, "left tail", True, "slow tail"),
        (1, "right tail", True, "fast tail"),
    ],
)
def test_tails_on_either_side(sign, how, higher_is_better, name):
    values = normal(4)
    values[:12] += 0.05 + np.random.default_rng(1).exponential(0.03, 12)
    classes = classify(sign * values + 3, how, higher_is_better=higher_is_better)
    assert classes.marked[:12].all() and classes.marked[12:].sum() <= 2
    assert set(classes.labels[classes.marked]) == {name}


def test_outliers_on_both_sides():
    values = normal(5)
    values[[3, 50]], values[70] = 1.3, 0.8
    classes = classify(values, "outliers")
    assert set(np.flatnonzero(classes.marked)) == {3, 50, 70}
    assert counts(classes) == {"fast outlier": 1, "typical": 197, "slow outlier": 2}
    assert classify(values, "outliers", higher_is_better=True).labels[70] == "slow outlier"


@pytest.mark.parametrize(
    "how, place, name", [("warm-up", slice(0, 15), "early"), ("slow-down", slice(160, 200), "late")]
)
def test_warm_up_and_slow_down(how, place, name):
    values = normal(6)
    values[place] += 0.05
    classes = classify(values, how)
    truth = np.zeros(200, bool)
    truth[place] = True
    assert (classes.marked != truth).sum() <= 2 and set(classes.labels[classes.marked]) == {name}
    assert not classify(values, "slow-down" if how == "warm-up" else "warm-up").marked.any()
    assert (classify(2 - values, how, higher_is_better=True).marked == classes.marked).all()


@pytest.mark.parametrize("how, parts", [("median", 2), ("tertiles", 3), ("quartiles", 4)])
def test_quantiles_agree_with_pandas(how, parts):
    values = normal(7, 120)
    expected = pd.qcut(values, parts, labels=False)
    assert np.array_equal(classify(values, how).labels.cat.codes, expected)
    assert np.array_equal(
        classify(values, how, higher_is_better=True).labels.cat.codes, parts - 1 - expected
    )


def test_thresholds_and_runs_by_hand():
    series = pd.Series([1.0, 2, 3, 4], index=[10, 11, 12, 13])
    assert classify(series, at=[3.5, 1.5]).labels.tolist() == ["fast", "medium", "medium", "slow"]
    assert classify(series, at=2).marked.tolist() == [False, False, True, True]
    assert classify(series, at=2, higher_is_better=True).marked.tolist() == [
        True,
        False,
        False,
        False,
    ]
    assert classify(series, runs=[11, 13]).marked.tolist() == [False, True, False, True]
    assert classify(series, runs=[True, False, False, False]).marked.tolist() == [
        True,
        False,
        False,
        False,
    ]


def test_the_automatic_cutoff_is_find_cutoffs():
    values = np.concatenate([normal(8), normal(9)[:50] + 0.1])
    cutoff = find_cutoff(values)
    assert np.array_equal(classify(values).marked, cutoff.slow(values)) and classify(
        values
    ).bounds == (cutoff.value,)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"how": "mode"}, "choose from"),
        ({"at": 1, "runs": [0]}, "both"),
        ({"runs": [999]}, "no run 999"),
    ],
)
def test_mistakes_are_told(arguments, words):
    with pytest.raises(InputError, match=words):
        classify(normal(), **arguments)


def test_shows_itself():
    classes = classify(normal(), "median")
    assert (
        repr(classes) == "Classes(median: 100 fast, 100 slow)"
        and "100 slow" in classes._repr_html_()
    )
