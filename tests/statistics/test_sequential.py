"""The confidence sequence is right whatever the noise, agrees with itself, and stops in time."""

import numpy as np
import pytest

from nbhelpers.statistics.sequential import BETTER, OPEN, WITHIN, WORSE, ConfidenceSequence


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


@pytest.mark.long
def test_false_answers_are_rare_whatever_the_noise():
    random = np.random.default_rng(20)
    for quads in (
        heavy_and_dependent(random, 15, 40),
        random.normal(0, 0.03, (15, 40, 2)),
        0.02 * random.choice([-1.0, 1.0], (15, 40, 1)) * random.exponential(1, (15, 40, 2)),
    ):
        wrong = [one_by_one(campaign).verdict in (BETTER, WORSE) for campaign in quads]
        assert sum(wrong) <= 2, "the level is 0.01: one of 100 on average at most"


def test_a_true_change_at_the_margin_is_not_called_none():
    quads = np.random.default_rng(21).normal(np.log(1.01), 0.01, (50, 60, 2))
    assert sum(one_by_one(campaign).verdict == WITHIN for campaign in quads) <= 2


@pytest.mark.long
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


def test_the_interval_agrees_with_the_verdict():
    random = np.random.default_rng(24)
    for change in (-0.3, -0.02, 0.0, 0.004, 0.02, 0.3):
        sequence = one_by_one(random.normal(np.log1p(change), 0.02, (400, 2)))
        low, high = sequence.interval
        inside = {WORSE: low >= 0, BETTER: high <= 0, OPEN: low < 0 < high}
        inside[WITHIN] = low >= -0.01 and high <= 0.01
        assert inside[sequence.verdict], (change, sequence.verdict, low, high)


@pytest.mark.long
def test_pairs_needed_are_near_the_best_possible():
    """Of a test of fixed size with known normal noise; a sequence may stop earlier."""
    from scipy.stats import norm

    spread, change = 0.06, np.log(1.02)
    best = ((norm.ppf(0.995) + norm.ppf(0.9)) * spread / change) ** 2
    quads = np.random.default_rng(25).normal(change, spread, (15, 300, 2))
    found = [one_by_one(campaign) for campaign in quads]
    assert sum(one.verdict == WORSE for one in found) >= 14
    assert 2 * np.mean([one.units for one in found]) <= 1.3 * best
