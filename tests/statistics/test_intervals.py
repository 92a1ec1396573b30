"""Intervals against theory: Student's t by hand, the delta method for ratios, and coverage by
simulation.
"""

import numpy as np
import pytest

from nbhelpers.errors import InputError
from nbhelpers.statistics import mean_interval, percentile_interval
from nbhelpers.statistics.intervals import shortest_interval, values_held


def test_mean_interval_of_numbers_worked_out_by_hand():
    interval = mean_interval([1.0, 2.0, 3.0, 4.0])  # s = sqrt(5/3), t(0.975, 3) = 3.18245
    assert interval.value == 2.5 and interval.size == 4
    assert interval.high - interval.value == pytest.approx(3.18245 * (5 / 3) ** 0.5 / 2, rel=1e-5)


def test_the_percentile_interval_is_that_of_numpy_and_passes_over_what_is_not_finite():
    draws = np.random.default_rng(3).normal(1, 0.1, (2000, 3))
    expected = np.percentile(draws, [2.5, 97.5], axis=0)
    assert percentile_interval(draws[:, 0]) == tuple(expected[:, 0])
    assert percentile_interval([*draws[:, 0], np.nan, np.inf]) == tuple(expected[:, 0])
    assert np.isnan(percentile_interval([np.nan])).all()


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("size", [2, 7, 20, 61])
def test_the_shortest_interval_is_that_of_all_pairs_of_values(size, share):
    values = np.random.default_rng(size).lognormal(0, 1, size)
    low, high = shortest_interval(values, share)
    within = (values >= values[:, None, None]) & (values <= values[:, None])
    enough = (within.mean(axis=2) >= share - 1e-12) & (values >= values[:, None])
    holds = [(values[b] - values[a], values[a], values[b]) for a, b in np.argwhere(enough)]
    least = min(hold for hold in holds if size > 2 or hold[0] > 0)
    assert (low, high) == least[1:]
    assert np.sum((values >= low) & (values <= high)) == max(2, values_held(size, share))


def test_the_shortest_interval_of_few_and_of_odd_values():
    assert shortest_interval([3.0]) == (3.0, 3.0)
    assert shortest_interval([2.0, 1.0, 4.0]) == (1.0, 4.0)
    assert shortest_interval([1.0] * 30) == (1.0, 1.0)
    assert [values_held(100, hundredth / 100) for hundredth in range(2, 101)] == [*range(2, 101)]
    for values in ([], [1.0, np.nan], [1.0, np.inf]):
        with pytest.raises(InputError, match="value"):
            shortest_interval(values)
