"""The statistics of fixed samples are what they were."""

from itertools import islice

import numpy as np
import pandas as pd
import pytest

from nbhelpers import statistics as s
from nbhelpers.statistics import (
    _rules,
    _shape,
    agreement,
    claims,
    contrast,
    difference,
    intervals,
    metadata,
    order,
    robust,
    sequential,
    stopping,
    surrogates,
    tails,
    variation,
)

from ..unchanged import check


def draws(seed: int) -> dict[str, np.ndarray]:
    """Samples of the shapes that run times have."""
    random = np.random.default_rng(seed)
    drift = np.cumsum(random.normal(0, 0.01, 90)) + random.normal(1, 0.01, 90)
    return {
        "skewed": random.lognormal(0, 0.2, 60),
        "modes": np.where(random.random(80) < 0.3, 1.4, 1.0) + random.normal(0, 0.02, 80),
        "drift": drift,
        "period": 1 + 0.05 * np.sin(np.arange(96) * 0.7) + random.normal(0, 0.01, 96),
        "steps": np.repeat([1.0, 1.2, 0.9], 30) + random.normal(0, 0.02, 90),
        "tail": random.pareto(2.5, 600) * 1e-4 + 1e-6,
        "few": random.normal(5, 1, 7),
        "tied": np.round(random.normal(3, 0.4, 50), 1),
    }


def runs_of(seed: int, shift: float = 1.0, cells: int = 1) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    rounds = np.repeat(np.arange(12), 4)
    level = random.normal(1, 0.05, 12)[rounds]
    table = pd.DataFrame(
        {
            "run": np.arange(48),
            "round": rounds,
            "seconds": shift * level * random.lognormal(0, 0.04, 48),
            "steal_s": random.exponential(0.01, 48),
            "status": "ok",
            "cell": [f"cell{number % cells}" for number in range(48)],
            "level": np.where(random.random(48) < 0.5, "on", "off"),
        }
    )
    table["seconds"] += 0.3 * table["steal_s"] + 0.05 * (table["level"] == "on")
    return table


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_intervals(seed):
    found: dict[str, object] = {}
    for name, values in draws(seed).items():
        found[name] = {
            "mean": intervals.mean_interval(values),
            "mean 80": intervals.mean_interval(values, 0.8),
            "percentile": intervals.percentile_interval(values, 0.9),
            "median": intervals.quantile_interval(values, 0.5),
            "upper": intervals.quantile_interval(values, 0.8, 0.9),
            "shortest": intervals.shortest_interval(values, 0.8),
            "held": [intervals.values_held(values.size, share) for share in (0.5, 0.9, 0.95)],
            "boot": {
                statistic: intervals.bootstrap_interval(values, statistic, seed, repeats=300)
                for statistic in s.STATISTICS
                if not intervals.too_few(statistic, values.size)
            },
            "few": {
                statistic: [size for size in range(2, 120) if intervals.too_few(statistic, size)]
                for statistic in s.STATISTICS
            },
            "ratio": intervals.bootstrap_ratio(values, values[::-1][:5], "median", seed, 0.9, 300),
            "mean ratio": intervals.mean_ratio(values, values[:6], seed=seed, repeats=300),
            "sums": intervals.ratio_of_sums_interval(values[:6], values[1:7], seed, 300),
            "robust": robust.robust_intervals(values, seed) if values.size > 7 else None,
            "trimmed": robust.trimmed_interval(values, 0.9),
            "trimmed mean": robust.trimmed_mean(values),
            "errors": robust.error_columns(values, 1.1),
            "farthest": robust.farthest(values),
        }
    check(f"intervals-{seed}", found)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_shape_and_order(seed):
    found: dict[str, object] = {}
    for name, values in draws(seed).items():
        random = np.random.default_rng(seed)
        windows = surrogates.level_windows(values.size, (values.size // 3,))
        beats = surrogates.beats(values)
        found[name] = {
            "mixture": _shape.fit_mixture(values, 3),
            "apart": _shape.fit_mixture(values, 3).apart,
            "lag": _shape.lag_one(values),
            "block": _shape.block_length(values),
            "order": order.time_order(values, seed),
            "order up": order.time_order(values, seed, higher_is_better=True).kind,
            "ranks": order.standard_ranks(values),
            "blocks": surrogates.block_orders(values.size, 4, 3, random),
            "phases": surrogates.phase_orders(values, 3, random),
            "windows": windows,
            "without level": surrogates.without_level(values, windows),
            "beats": beats,
            "without beats": surrogates.without_beats(values, beats),
            "neighbourhood": surrogates.neighbourhood(values),
            "without past": surrogates.without_past(values, 0.4),
            "shuffles": list(islice(surrogates.shuffles(values.size, 3, random), 3)),
        }
    found["windows"] = [
        surrogates.level_windows(size, changes)
        for size, changes in ((40, ()), (60, (5, 30)), (90, (10, 12, 70)), (200, (60, 61, 150)))
    ]
    check(f"order-{seed}", found)


def rules() -> dict[str, stopping.Rule]:
    return {
        "count": stopping.Count(20),
        "duration": stopping.Duration(15.0),
        "error": stopping.RelativeStandardError(0.01),
        "interval": stopping.ConfidenceInterval(0.03),
        "density": stopping.HighestDensityInterval(0.2),
        "blocks": stopping.BlockBootstrap(0.05, repeats=200),
        "mixture": stopping.GaussianMixture(0.1),
        "smirnov": stopping.KolmogorovSmirnov(0.1),
        "narrow": stopping.NarrowInterval("median", 0.03),
        "adaptive": stopping.Adaptive(0.1),
        "rare": stopping.RareMode(0.05, 3, 0.95),
        "tails": stopping.for_tails(0.2, most=70),
        "any": stopping.AnyOf([stopping.Count(30), stopping.RelativeStandardError(0.02)]),
        "all": stopping.AllOf([stopping.Count(30), stopping.RelativeStandardError(0.02)]),
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_stopping(seed):
    found: dict[str, object] = {}
    for name, values in draws(seed).items():
        if values.size >= 50:
            values = values[:90]
            seconds = np.cumsum(values) / 10
            found[name] = {
                "decisions": {
                    label: [rule.decide(values[:size], size / 3) for size in (5, 11, 32, 64)]
                    for label, rule in rules().items()
                },
                "evaluated": {
                    label: stopping.evaluate_rule(rule, values, np.diff(seconds, prepend=0), 5)
                    for label, rule in rules().items()
                },
            }
            stops = s.evaluate_rules(values, "cv", rules(), every=10, seed=seed)
            found[name] |= {  # type: ignore[operator]
                "stops": stops,
                "sentence": s.stopping_sentence(stops, values.size),
                "running": s.running_statistic(values, "median", 10, seed),
            }
    found["rare"] = [
        [_rules.RareMode(weight, times, probability).runs for times in (1, 2, 5)]
        for weight in (0.02, 0.1, 0.3)
        for probability in (0.5, 0.9, 0.99)
    ]
    check(f"stopping-{seed}", found)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shift", [0.8, 0.99, 1.0, 1.3])
def test_comparisons(seed, shift):
    before, after = runs_of(seed), runs_of(seed + 10, shift)
    result = s.compare(before, after, seed=seed)
    plainly = s.compare(before["seconds"].to_numpy(), after["seconds"].to_numpy()[:20], seed=seed)
    pairs = [(before, after)]
    old, new = before["seconds"].to_numpy(), after["seconds"].to_numpy()
    rounds = before["round"].to_numpy(), after["round"].to_numpy()
    evidence = contrast.mean_contrast(old, new, *rounds)
    spread = contrast.variation_contrast(old, new, *rounds)
    claim = claims.Claim("faster", "below", 0.02)
    found = {
        "compared": result,
        "words": [result.verdict, plainly.verdict, repr(result)],
        "plainly": plainly,
        "higher": s.compare(before, after, seed=seed, higher_is_better=True).verdict,
        "difference": difference.difference_tests(old, new, *rounds, seed=seed),
        "mean": [evidence.estimate, evidence.estimate.interval(0.9), evidence.by_unit],
        "number": contrast.over_number(new, 1.0).estimate,
        "spread": spread.estimate,
        "judged": claims.judge([(claim, evidence), (claim, spread)]),
        "sentences": [one.sentence() for one in claims.judge([(claim, evidence), (claim, spread)])],
        "robust": robust.robust_ratio(pairs, seed=seed),
        "trimmed": robust.trimmed_ratio(pairs),
        "costs": s.compare_costs(before, after, "steal_s", seed=seed),
    }
    check(f"comparison-{seed}-{shift}", found)


@pytest.mark.parametrize("seed", [1, 2])
def test_tables(seed):
    runs = runs_of(seed, cells=3)
    found = {
        "cells": s.cell_statistics(runs, seed=seed),
        "summary": robust.robust_summary(runs, seed=seed),
        "increase": robust.increase_columns({"a": [1.1, 1.3, 0.9], "b": [1.5, 1.2]}),
        "quantiles": s.quantile_effect(runs, "steal_s", "seconds", seed=seed),
        "adjusted": s.adjusted_effect(runs, "level", "on", "off", outcome="seconds"),
        "holm": difference.holm(np.array([0.01, 0.04, 0.03, 0.2])),
        "shaffer": claims.shaffer(np.array([[0.01, 0.6], [0.2, 0.04], [0.03, np.nan]])),
        "p": [claims.p_text(value) for value in (0.2, 0.04999, 0.01, 0.0004, 1e-9)],
        "differing": metadata.differing({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}, "d": 4}),
        "positions": order.positions(runs),
        "accepted": [
            agreement.accepted_range(low, high) for low, high in ((1.0, 1.2), (0.9, 1.0), (1.5, 4))
        ],
        "epochs": [len(one) for one in s.same_epochs(runs, runs[runs["round"] < 5])],
        "variations": [
            variation.log_variations(part) for part in runs["seconds"].to_numpy().reshape(12, 4)
        ],
    }
    check(f"tables-{seed}", found)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tails_and_sequences(seed):
    random = np.random.default_rng(seed)
    values = random.pareto(2.5, 700) * 1e-4 + 1e-6
    tail = tails.fit_tail(values, 60.0)
    quads = random.normal(0.01, 0.03, (8, 40, 2)) * (1 + np.arange(8))[:, None, None]
    sequence = sequential.ConfidenceSequence()
    states = []
    for first, second in random.normal(0.01 * seed, 0.02, (30, 2)):
        sequence.add(first, second)
        states.append([sequence.units, sequence.interval, sequence.estimate, sequence.verdict])
    found = {
        "tail": tail,
        "chosen": tails.fit_tail(values, 60.0, threshold=2e-5),
        "threshold": tails.threshold_for(values),
        "beyond": [tail.beyond(length) for length in (2e-4, 1e-3, 1e-2)],
        "shapes": [tail.shape_interval(level) for level in (0.5, 0.9)],
        "ahead": [tails.longest_ahead(tail, exposure) for exposure in (1.0, 60.0, 3600.0)],
        "levels": [tails.return_level(tail, exposure, 0.8) for exposure in (60.0, 3600.0)],
        "periods": [tails.return_period(tail, length) for length in (2e-4, 1e-3)],
        "drawn": tails.longest_draws(tail, 100.0, 40, np.random.default_rng(seed)),
        "sequence": states,
        "more": sequence.more_units,
        "median": sequential.pseudo_median(values[:31]),
    }
    check(f"tails-{seed}", found)
    settled = sequential.settle(quads, 0.02)
    check(f"sequences-{seed}", {"settled": settled, "scales": sequential.running_scales(quads)})
