"""Quantile regression against lines whose slopes are known."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.statistics import quantile_effect


def fanned(count=400):
    """The slow end grows with the factor, the median does not."""
    random = np.random.default_rng(0)
    faults = random.uniform(0, 10, count)
    return pd.DataFrame(
        {
            "faults": faults,
            "seconds": 1 + 0.02 * faults * random.uniform(-1, 1, count),
            "status": "ok",
        }
    )


def test_a_factor_that_moves_the_ends_only():
    table = quantile_effect(fanned(), "faults", quantiles=(0.1, 0.5, 0.9))
    assert table["slope"].to_numpy() == pytest.approx([-0.016, 0, 0.016], abs=0.002)
    assert (table["low"] <= table["slope"]).all() and (table["slope"] <= table["high"]).all()
    assert (
        table.loc[0.9, "low"] > 0 > table.loc[0.1, "high"]
        and table.loc[0.5, "low"] < 0 < table.loc[0.5, "high"]
    )


def test_units_and_percent():
    runs = fanned().assign(faults=lambda runs: runs["faults"] * 1e9)
    table = quantile_effect(runs, "faults", quantiles=(0.9,))
    plain = quantile_effect(fanned(), "faults", quantiles=(0.9,))
    assert table.loc[0.9, "slope"] == pytest.approx(plain.loc[0.9, "slope"] / 1e9, rel=1e-3)
    assert plain.loc[0.9, "effect_percent"] == pytest.approx(100 * 0.016 * 8, rel=0.15)


def test_a_counter_that_is_mostly_zero():
    random = np.random.default_rng(1)
    events = np.where(random.random(200) < 0.1, random.poisson(5, 200), 0)
    runs = pd.DataFrame(
        {"events": events, "seconds": 1 + 0.1 * events + random.normal(0, 0.01, 200)}
    )
    assert quantile_effect(runs, "events", quantiles=(0.5,)).loc[0.5, "slope"] == pytest.approx(
        0.1, abs=0.01
    )


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda runs: runs.head(5), "too few"),
        (lambda runs: runs.assign(faults=1), "does not vary"),
        (lambda runs: runs.drop(columns="faults"), "no column 'faults'"),
    ],
)
def test_what_can_not_be_fitted(change, words):
    with pytest.raises(InputError, match=words):
        quantile_effect(change(fanned()), "faults")
