"""The interval is right whatever the noise and however often is looked, and finds what a test of
fixed size finds.
"""

import numpy as np
import pytest
from scipy.stats import ttest_1samp, wilcoxon

from nbhelpers.statistics import sequential
from nbhelpers.statistics.sequential import BETTER, OPEN, WITHIN, WORSE, Looks


def known_of(ratios, ends=(), **options):
    return Looks(**options).over(ratios, ends)


def heavy_and_dependent(random, campaigns, size):
    """Ratios with a tail, whose spread wanders, and a drift that who goes first feels."""
    wander = np.exp(np.cumsum(random.normal(0, 0.2, (campaigns, size)), axis=1))
    noise = 0.02 * wander * random.standard_t(1.5, (campaigns, size)) + 0.01
    return noise * random.choice([-1, 1], (campaigns, size))


@pytest.mark.parametrize("size", [8, 21, 40, 600])
def test_the_interval_ends_where_wilcoxons_test_begins_to_reject(size):
    values = np.random.default_rng(size).standard_t(3, size)
    for end, outward in zip(
        sequential.signed_rank_interval(values, 0.05), (-1e-9, 1e-9), strict=True
    ):
        assert wilcoxon(values - end - outward).pvalue <= 0.05
        assert wilcoxon(values - end + outward).pvalue > 0.05


def test_false_answers_are_rare_whatever_the_noise_and_however_often_a_budget_ends():
    random = np.random.default_rng(20)
    ends = [20, 40, 30, 10, 60, 50]
    for campaigns in (
        heavy_and_dependent(random, 400, 60),
        random.normal(0, 0.03, (400, 60)),
        0.02 * random.choice([-1.0, 1.0], (400, 60)) * random.exponential(1, (400, 60)),
    ):
        verdicts = [known_of(ratios, ends, level=0.05).verdict for ratios in campaigns]
        wrong = sum(verdict in (BETTER, WORSE) for verdict in verdicts)
        assert wrong <= 31, "20 are expected at most; more than 31 in one of 100 tests"


def test_a_true_change_at_the_margin_is_not_called_none():
    campaigns = np.random.default_rng(21).normal(np.log(1.01), 0.01, (200, 60))
    assert sum(known_of(ratios, [40, 60]).verdict == WITHIN for ratios in campaigns) <= 5


def test_the_interval_holds_the_true_change_at_all_looks():
    random = np.random.default_rng(22)
    missed = 0
    for _ in range(300):
        looks = Looks(level=0.05)
        for ratio in 0.03 * random.standard_t(3, 40) + np.log(1.05):
            looks.add(ratio)
        looks.end()
        low, high = looks.interval  # it only ever shrinks: the last holds it if all do
        missed += not low <= 0.05 <= high
    assert missed <= 24, "15 are expected at most"


def test_the_interval_agrees_with_the_verdict():
    random = np.random.default_rng(24)
    seen = set()
    for change in (-0.3, -0.02, 0.0, 0.004, 0.02, 0.3):
        looks = known_of(random.normal(np.log1p(change), 0.02, 60), [60])
        low, high = looks.interval
        inside = {WORSE: low >= 0, BETTER: high <= 0, OPEN: low < 0 < high}
        inside[WITHIN] = low >= -0.01 and high <= 0.01
        assert inside[looks.verdict], (change, looks.verdict, low, high)
        seen.add(looks.verdict)
    assert {WORSE, BETTER, WITHIN} <= seen


def test_it_finds_nine_tenths_of_what_students_test_finds_when_looked_at_once():
    campaigns = np.random.default_rng(25).normal(np.log(1.02), 0.056, (500, 80))
    found = sum(known_of(ratios, [80]).verdict == WORSE for ratios in campaigns)
    students = (ttest_1samp(campaigns, 0, axis=1).pvalue < 0.01).sum()
    assert found >= 0.9 * students > 250


def test_after_the_forecast_number_of_pairs_most_are_known_and_after_a_quarter_few():
    campaigns = np.random.default_rng(26).normal(np.log(1.015), 0.03, (60, 400))
    known = []
    for ratios in campaigns:
        looks = known_of(ratios[:30], [30])
        if looks.verdict == OPEN:
            counts = [min(400, int(30 + looks.more_units * share)) for share in (1, 0.25)]
            known.append([known_of(ratios[:one], [30, one]).verdict == WORSE for one in counts])
    most, few = np.mean(known, axis=0)
    assert len(known) > 10 and most > 0.5 > few
