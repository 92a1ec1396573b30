"""Where each rule stops, against the number of runs that theory asks for; what each says."""

import numpy as np
import pytest
from scipy.stats import binom

from nbhelpers.statistics import quantile_interval
from nbhelpers.statistics.stopping import Narrow, Seen, Tails


def stops_at(rule, values, every=1):
    """After how many runs a rule stops; None: not within these."""
    counts = range(every, len(values) + 1, every)
    return next((count for count in counts if rule.decide(values[:count]).stop), None)


def test_a_quantile_interval_covers_whatever_the_distribution():
    random = np.random.default_rng(4)
    for draw, truth in (
        (lambda: random.exponential(1, 500), -np.log(0.05)),
        (lambda: random.uniform(0, 1, 500), 0.95),
    ):
        ends = (quantile_interval(draw(), 0.95) for _ in range(200))
        assert 0.93 <= np.mean([low <= truth <= high for low, high in ends]) <= 1


def fewest(share):
    """Values that an upper end needs."""
    sizes = range(30, 1000)
    return next(n for n in sizes if np.isfinite(quantile_interval(np.arange(n), share)[1]))


def test_the_interval_of_a_quantile_has_no_upper_end_of_few_runs():
    assert fewest(0.99) == 368  # 0.99 ** n <= 0.025
    assert fewest(0.95) == 72  # 0.95 ** n <= 0.025
    assert "too few" in Narrow("p99").decide(np.arange(300)).reason
    assert quantile_interval([], 0.5) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    "weight, times, probability, runs",
    [(0.05, 1, 0.95, 59), (0.05, 2, 0.95, 93), (0.01, 3, 0.9, 531)],
)
def test_a_rare_mode_would_have_been_seen(weight, times, probability, runs):
    assert stops_at(Seen(weight, times, probability), np.ones(1000)) == runs
    assert binom.sf(times - 1, runs, weight) >= probability
    assert binom.sf(times - 1, runs - 1, weight) < probability


def test_the_rule_for_tails_has_seen_the_tail():
    seen = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        values = random.normal(1, 0.01, 1500) * np.where(random.random(1500) < 0.05, 1.5, 1)
        seen.append((values[: stops_at(Tails(0.15), values, 25)] > 1.25).sum())
    assert np.mean(np.array(seen) >= 3) > 0.9
