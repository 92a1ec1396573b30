"""Intervals against theory: Student's t by hand, the delta method for ratios, and coverage by
simulation.
"""

import numpy as np
import pytest

from nbhelpers.errors import InputError
from nbhelpers.statistics import mean_interval, replay_ratio


def test_mean_interval_of_numbers_worked_out_by_hand():
    interval = mean_interval([1.0, 2.0, 3.0, 4.0])  # s = sqrt(5/3), t(0.975, 3) = 3.18245
    assert interval.value == 2.5 and interval.count == 4
    assert interval.high - interval.value == pytest.approx(3.18245 * (5 / 3) ** 0.5 / 2, rel=1e-5)
    assert interval.half_width_share == pytest.approx((interval.high - interval.low) / 5)


def test_replay_ratio_agrees_with_the_delta_method_and_covers_the_truth():
    random = np.random.default_rng(7)
    disturbed, replayed = random.normal(0.5, 0.05, 80), random.normal(0.51, 0.05, 60)
    ratio = replay_ratio(disturbed, replayed)
    error = ratio.value * np.hypot(
        disturbed.std() / disturbed.mean() / 80**0.5, replayed.std() / replayed.mean() / 60**0.5
    )
    assert ratio.value == pytest.approx(replayed.mean() / disturbed.mean())
    assert ratio.high - ratio.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    hits = [
        replay_ratio(
            random.exponential(1, 40) + 1, random.exponential(1, 40) + 1, seed=i, repeats=400
        )
        for i in range(200)
    ]
    assert 0.88 <= np.mean([hit.low <= 1 <= hit.high for hit in hits]) <= 0.99
    assert replay_ratio(disturbed, replayed) == ratio


@pytest.mark.parametrize("values", [[], [1.0], [1.0, float("nan")]])
def test_too_little_is_refused(values):
    with pytest.raises(InputError):
        mean_interval(values)
    with pytest.raises(InputError):
        replay_ratio([1.0, 2.0], values)
