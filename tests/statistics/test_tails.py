"""The tail model: against scipy's generalised Pareto distribution, and against longest values that
were drawn after the fit.
"""

import numpy as np
import pytest
from scipy import stats

from nbhelpers.errors import InputError
from nbhelpers.statistics.tails import (
    fit_tail,
    longest_ahead,
    longest_draws,
    return_level,
    return_period,
    threshold_for,
)

KNOWN = {
    "exponential": stats.expon(),
    "pareto": stats.pareto(1.5),
    "lognormal": stats.lognorm(1.0),
    "bounded": stats.beta(2, 2),
    "uniform": stats.uniform(),
}


@pytest.fixture(scope="module")
def tail():
    values = stats.genpareto(0.3, scale=2.0).rvs(4000, random_state=7) + 5.0
    return fit_tail(values, exposure=40.0, threshold=5.0)


def test_the_posterior_is_highest_where_the_likelihood_of_scipy_is(tail):
    values = stats.genpareto(0.3, scale=2.0).rvs(4000, random_state=7)
    shape, _, scale = stats.genpareto.fit(values, floc=0)
    middle, low, high = tail.shape_interval(0.99)
    assert middle == pytest.approx(shape, abs=0.04)
    assert low < shape < high
    assert np.average(tail.scale, weights=tail.weight) == pytest.approx(scale, rel=0.03)


def test_the_survival_is_that_of_scipy(tail):
    expected = stats.genpareto.sf(3.5, tail.shape, scale=tail.scale)
    assert tail.beyond(8.5) == pytest.approx(expected, rel=1e-9)


def test_the_longest_ahead_is_the_quantile_of_its_draws(tail):
    ahead = longest_ahead(tail, 400.0)
    draws = longest_draws(tail, 400.0, 40_000, np.random.default_rng(3))
    assert np.quantile(draws, [0.05, 0.5, 0.95]) == pytest.approx(
        [ahead.low, ahead.median, ahead.high], rel=0.03
    )


def test_return_level_and_return_period_are_each_others_inverse(tail):
    level = return_level(tail, 1000.0)
    assert return_period(tail, level.median).median == pytest.approx(1000.0, rel=0.03)
    exact = 5 + stats.genpareto(0.3, scale=2.0).isf(40.0 / (4000 * 1000.0))
    assert level.low < exact < level.high


def test_a_duration_below_the_threshold_and_a_short_recording_are_refused(tail):
    with pytest.raises(InputError, match="below the threshold"):
        return_period(tail, 4.0)
    with pytest.raises(InputError, match="7 durations"):
        fit_tail(range(1, 8), 1.0, threshold=0.0)
    with pytest.raises(InputError, match="exposure"):
        fit_tail(range(100), 0.0)
    with pytest.raises(InputError, match="finite"):
        fit_tail([1.0, np.nan] * 50, 1.0)


@pytest.mark.parametrize("count, above", [(20, 20), (100, 30), (1000, 100), (10_000, 200)])
def test_a_tenth_is_above_the_threshold_within_limits(count, above):
    values = np.random.default_rng(1).exponential(1, count)
    assert (values > threshold_for(values)).sum() == above


def test_nothing_above_the_threshold_is_foretold_as_the_threshold():
    tail = fit_tail(np.random.default_rng(2).exponential(1, 1000), 1000.0)
    assert longest_ahead(tail, 0.001).median == tail.threshold


def covered(known, times: int, repetitions: int, count: int = 500) -> int:
    """How many 90 % intervals hold the longest of `times` as many values, drawn afterwards."""
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(repetitions):
        tail = fit_tail(known.rvs(count, random_state=rng), 1.0)
        hits += known.rvs(count * times, random_state=rng).max() in longest_ahead(tail, times)
    return hits


@pytest.mark.parametrize("name", ["exponential", "bounded"])
def test_intervals_hold_what_is_drawn_afterwards(name):
    # of 20 at 90 %: fewer than 14 has a chance of 0.2 %
    assert covered(KNOWN[name], 10, 20) >= 14


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 10, 100])
@pytest.mark.parametrize("name", KNOWN)
def test_intervals_are_calibrated_on_known_distributions(name, times):
    # of 60 at 90 %: fewer than 45 has a chance of 0.03 %
    assert covered(KNOWN[name], times, 60) >= 45
