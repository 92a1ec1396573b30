"""A covariate that explains the scatter narrows the interval, and one that is confounded no longer
counts as the factor's effect.
"""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.statistics import adjusted_effect


def runs_of(effect: float, confounded: bool, count: int = 200) -> pd.DataFrame:
    random = np.random.default_rng(1)
    traced = np.arange(count) % 2 == 1
    steal = random.exponential(0.02, count) + (0.03 * traced if confounded else 0)
    seconds = 0.4 * (1 + effect * traced) + steal + random.normal(0, 0.001, count)
    return pd.DataFrame(
        {"cell": np.where(traced, "traced", "untraced"), "steal_s": steal, "seconds": seconds}
    )


@pytest.mark.parametrize("effect", [0.0, 0.02])
def test_the_effect_is_found_with_the_covariate_held_fixed(effect):
    plain, adjusted = adjusted_effect(
        runs_of(effect, confounded=True), "cell", "traced", "untraced"
    ).to_dict("records")
    assert plain["effect_percent"] > 100 * effect + 4, "steal counts as the effect of tracing"
    # the published base is the mean of the untraced runs, which the steal is part of
    assert adjusted["low_percent"] <= 100 * effect <= adjusted["high_percent"] + 0.2
    assert adjusted["high_percent"] - adjusted["low_percent"] < 0.2 * (
        plain["high_percent"] - plain["low_percent"]
    )


def test_a_covariate_that_does_not_vary_or_is_missing_is_left_out():
    runs = runs_of(0.01, confounded=False).assign(steal_s=0.0)
    assert len(adjusted_effect(runs, "cell", "traced", "untraced")) == 1
    assert len(adjusted_effect(runs.drop(columns="steal_s"), "cell", "traced", "untraced")) == 1


def test_too_few_runs_are_an_error():
    with pytest.raises(InputError, match="at least three"):
        adjusted_effect(runs_of(0, False).head(5), "cell", "traced", "untraced")
