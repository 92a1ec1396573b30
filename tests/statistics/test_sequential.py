"""The confidence sequence is right whatever the noise, agrees with itself, and stops in time."""

import numpy as np
import pytest

from nbhelpers.errors import InputError
from nbhelpers.statistics.sequential import (
    BETTER,
    OPEN,
    WITHIN,
    WORSE,
    ConfidenceSequence,
    pseudo_median,
    running_scales,
    settle,
)


def one_by_one(quads, **options):
    sequence = ConfidenceSequence(**options)
    for first, second in quads:
        sequence.add(first, second)
        if sequence.verdict != OPEN:
            break
    return sequence


def heavy_and_dependent(random, campaigns, size):
    """Ratios with a tail, whose spread wanders, and a drift that the first order feels."""
    wander = np.exp(np.cumsum(random.normal(0, 0.2, (campaigns, size, 1)), axis=1))
    noise = 0.02 * wander * random.standard_t(1.5, (campaigns, size, 2)) + 0.01
    return noise * random.choice([-1, 1], (campaigns, size, 1))


def test_false_answers_are_rare_whatever_the_noise():
    random = np.random.default_rng(20)
    for quads in (
        heavy_and_dependent(random, 600, 60),
        random.normal(0, 0.03, (600, 60, 2)),
        0.02 * random.choice([-1.0, 1.0], (600, 60, 1)) * random.exponential(1, (600, 60, 2)),
    ):
        wrong = np.isin(settle(quads).verdicts, [BETTER, WORSE])
        assert wrong.mean() <= 0.02, "the level is 0.01: 6 of 600 on average at most"


def test_a_true_change_at_the_margin_is_not_called_none():
    quads = np.random.default_rng(21).normal(np.log(1.01), 0.01, (500, 60, 2))
    assert np.mean(settle(quads).verdicts == WITHIN) <= 0.02


def test_the_interval_holds_the_true_change_at_all_looks():
    random = np.random.default_rng(22)
    missed = 0
    for _ in range(25):
        sequence = ConfidenceSequence(level=0.05)
        for first, second in 0.03 * random.standard_t(3, (40, 2)) + np.log(1.05):
            sequence.add(first, second)
        low, high = sequence.interval  # it only ever shrinks: the last holds it if all do
        missed += not low <= 0.05 <= high
    assert missed <= 4


@pytest.mark.parametrize("change, expected", [(0.0, WITHIN), (0.05, WORSE), (-0.05, BETTER)])
def test_many_campaigns_at_a_time_agree_with_one_by_one(change, expected):
    quads = np.random.default_rng(23).normal(np.log1p(change), 0.01, (8, 60, 2))
    found = settle(quads)
    single = [one_by_one(campaign) for campaign in quads]
    assert [one.verdict for one in single] == found.verdicts.tolist() == [expected] * 8
    assert [one.units for one in single] == found.units.tolist()


def test_the_interval_agrees_with_the_verdict():
    random = np.random.default_rng(24)
    for change in (-0.3, -0.02, 0.0, 0.004, 0.02, 0.3):
        sequence = one_by_one(random.normal(np.log1p(change), 0.02, (400, 2)))
        low, high = sequence.interval
        inside = {
            WORSE: low >= 0,
            BETTER: high <= 0,
            WITHIN: low >= -0.01 and high <= 0.01,
            OPEN: low < 0 < high,
        }
        assert inside[sequence.verdict], (change, sequence.verdict, low, high)


def test_pairs_needed_are_near_the_best_possible():
    """Of a test of fixed size with known normal noise; a sequence may stop earlier."""
    from scipy.stats import norm

    spread, change = 0.06, np.log(1.02)
    best = ((norm.ppf(0.995) + norm.ppf(0.9)) * spread / change) ** 2
    found = settle(np.random.default_rng(25).normal(change, spread, (200, 300, 2)))
    assert (found.verdicts == WORSE).mean() > 0.97
    assert 2 * found.units.mean() <= 1.3 * best


def test_the_forecast_is_of_the_right_size():
    random = np.random.default_rng(26)
    ratios = []
    for _ in range(20):
        quads = random.normal(np.log(1.02), 0.04, (400, 2))
        sequence = ConfidenceSequence()
        for first, second in quads[:15]:
            sequence.add(first, second)
        if sequence.verdict == OPEN and np.isfinite(sequence.more_units):
            ratios.append((15 + sequence.more_units) / one_by_one(quads).units)
    assert len(ratios) >= 10 and 0.4 < np.median(ratios) < 2.5


def test_swapped_sides_give_the_opposite_verdict():
    quads = np.random.default_rng(27).normal(0.03, 0.02, (60, 2))
    there, back = one_by_one(quads), one_by_one(-quads)
    assert (there.verdict, back.verdict) == (WORSE, BETTER) and there.units == back.units
    assert np.isclose(1 + there.estimate, 1 / (1 + back.estimate))


def test_the_scale_knows_no_sign():
    quads = np.random.default_rng(28).normal(0.1, 0.02, (1, 30, 2))
    signs = np.random.default_rng(29).choice([-1, 1], (1, 30, 1))
    assert np.allclose(running_scales(quads), running_scales(quads * signs))


def test_equal_times_are_within_the_margin():
    assert one_by_one(np.zeros((40, 2))).verdict == WITHIN


def test_what_cannot_be_used_is_refused():
    with pytest.raises(InputError, match="margin of 2"):
        ConfidenceSequence(margin=2)
    with pytest.raises(InputError, match="positive"):
        ConfidenceSequence().add(np.nan, 0)


def test_the_pseudo_median_is_not_moved_by_one_value():
    values = np.random.default_rng(30).normal(0, 1, 41)
    assert abs(pseudo_median(np.append(values, 1e6)) - pseudo_median(values)) < 0.2
