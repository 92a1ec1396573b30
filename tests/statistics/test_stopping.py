"""Where each rule stops, against the number of runs that theory asks for; what each says."""

import numpy as np
import pytest
from scipy.stats import binom, t
from sklearn.mixture import GaussianMixture as Reference

from nbhelpers.errors import InputError
from nbhelpers.statistics import quantile_interval, stopping
from nbhelpers.statistics._shape import fit_mixture
from nbhelpers.statistics.stopping import (
    RULES,
    Adaptive,
    AllOf,
    AnyOf,
    BlockBootstrap,
    ConfidenceInterval,
    Count,
    Duration,
    KolmogorovSmirnov,
    NarrowInterval,
    RareMode,
    RelativeStandardError,
    Rule,
    evaluate_rule,
)


def normal(seed=0, sd=0.1, count=600):
    return np.random.default_rng(seed).normal(1, sd, count)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_stops_sooner_or_later_and_says_why(name):
    rule = RULES[name]
    assert isinstance(rule, Rule)
    result = evaluate_rule(rule, normal(count=700), every=10)
    assert result.stopped and result.runs > 0 and len(result.reason) > 5
    assert not rule.decide(normal(count=3), 0.1).stop


def test_count_and_duration():
    assert evaluate_rule(Count(17), normal()).runs == 17
    assert evaluate_rule(Duration(10), np.full(100, 0.5)).runs == 20
    assert evaluate_rule(Duration(10), np.full(100, 0.5), seconds=np.ones(100)).runs == 10


def test_the_standard_error_stops_where_its_formula_does():
    values = normal()
    expected = next(
        n for n in range(10, 600) if values[:n].std(ddof=1) / np.sqrt(n) <= 0.01 * values[:n].mean()
    )
    assert evaluate_rule(RelativeStandardError(0.01), values).runs == expected


def test_the_confidence_interval_stops_where_students_does():
    values = normal(1)
    halves = {
        n: t.ppf(0.975, n - 1) * values[:n].std(ddof=1) / np.sqrt(n) / values[:n].mean()
        for n in range(10, 600)
    }
    assert evaluate_rule(ConfidenceInterval(0.02), values).runs == next(
        n for n in halves if halves[n] <= 0.02
    )


def test_dependent_runs_count_for_less():
    random = np.random.default_rng(3)
    values = np.zeros(1500)
    for place in range(1, 1500):
        values[place] = 0.9 * values[place - 1] + random.normal(0, 0.05)
    values += 1
    plain = evaluate_rule(ConfidenceInterval(0.03), values, every=5).runs
    blocks = evaluate_rule(BlockBootstrap(0.03), values, every=5).runs
    assert blocks > 3 * plain


def test_a_quantile_interval_covers_whatever_the_distribution():
    random = np.random.default_rng(4)
    for draw, truth in (
        (lambda: random.exponential(1, 500), -np.log(0.05)),
        (lambda: random.uniform(0, 1, 500), 0.95),
    ):
        covered = [
            low <= truth <= high
            for low, high in (quantile_interval(draw(), 0.95) for _ in range(400))
        ]
        assert 0.93 <= np.mean(covered) <= 1


def fewest(share):
    """Values that an upper end needs."""
    sizes = range(30, 1000)
    return next(n for n in sizes if np.isfinite(quantile_interval(np.arange(n), share)[1]))


def test_the_interval_of_a_quantile_has_no_upper_end_of_few_runs():
    assert fewest(0.99) == 368  # 0.99 ** n <= 0.025
    assert fewest(0.95) == 72  # 0.95 ** n <= 0.025
    assert "too few" in NarrowInterval("p99").decide(normal(count=300)).reason
    assert quantile_interval([], 0.5) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    "weight, times, probability, runs",
    [(0.05, 1, 0.95, 59), (0.05, 2, 0.95, 93), (0.01, 3, 0.9, 531)],
)
def test_a_rare_mode_would_have_been_seen(weight, times, probability, runs):
    rule = RareMode(weight, times, probability)
    assert rule.runs == runs == evaluate_rule(rule, np.ones(1000)).runs
    assert (
        1 - binom.cdf(times - 1, runs, weight)
        >= probability
        > 1 - binom.cdf(times - 1, runs - 1, weight)
    )


def test_the_rule_for_tails_has_seen_the_tail():
    stops = []
    for seed in range(30):
        random = np.random.default_rng(seed)
        values = random.normal(1, 0.01, 1500) * np.where(random.random(1500) < 0.05, 1.5, 1)
        stopped = evaluate_rule(stopping.for_tails(0.15), values, every=10)
        stops.append((values[: stopped.runs] > 1.25).sum())
    assert np.mean(np.array(stops) >= 3) > 0.9


def test_halves_of_a_drifting_record_never_agree():
    drifting = np.linspace(1, 2, 400)
    assert not evaluate_rule(KolmogorovSmirnov(0.1), drifting, every=20).stopped
    assert evaluate_rule(KolmogorovSmirnov(0.1), normal(), every=20).stopped


@pytest.mark.parametrize(
    "kind, values",
    [
        ("constant", np.ones(100)),
        ("one mode", normal(2)),
        (
            "modes",
            np.where(np.random.default_rng(1).random(300) < 0.4, 2, 1)
            + 0.2 * (normal(3, count=300) - 1),
        ),
        ("dependent", 1 + 0.01 * np.cumsum(np.random.default_rng(2).normal(size=300))),
        ("tail", np.random.default_rng(0).lognormal(0, 0.8, 300)),
    ],
)
def test_the_adaptive_rule_names_the_kind(kind, values):
    assert Adaptive().decide(values).reason.startswith(kind)


def test_the_adaptive_rule_waits_for_a_tail_that_it_has_not_seen():
    assert (
        evaluate_rule(Adaptive(), normal(sd=0.01, count=300)).runs == RareMode(0.05, 2).runs == 93
    )


def test_rules_combine():
    both, either = AllOf((Count(20), Duration(100))), AnyOf((Count(20), Duration(100)))
    assert not both.decide(np.ones(50), 10).stop and "100 s" in both.decide(np.ones(50), 10).reason
    assert either.decide(np.ones(50), 10) == stopping.Decision(True, "50 of 20 runs")


def test_a_record_that_ends_first_says_so():
    assert evaluate_rule(Count(50), normal(count=20)) == stopping.RuleEvaluation(
        20, "the record ended first: 20 of 50 runs", False
    )
    with pytest.raises(InputError, match="no runs"):
        evaluate_rule(Count(), [])


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_the_mixture_agrees_with_scikit_learns(share):
    random = np.random.default_rng(7)
    values = np.where(random.random(400) < share, 1.5, 1.0) + random.normal(0, 0.03, 400)
    ours, theirs = fit_mixture(values, 4), Reference(2, random_state=0).fit(values[:, None])
    order = np.argsort(theirs.means_[:, 0])
    assert np.allclose(ours.means, theirs.means_[order, 0], atol=1e-3) and np.allclose(
        ours.weights, theirs.weights_[order], atol=1e-3
    )
    assert len(fit_mixture(random.normal(1, 0.1, 300), 4).weights) == 1
