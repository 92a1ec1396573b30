"""The rule and what it says of runs whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbhelpers.studies.findings import (
    CONTRADICTED,
    SUPPORTED,
    UNSEEN,
    Finding,
    finding_sentences,
    findings_table,
    interval_verdict,
)
from nbhelpers.studies.persson import persson_findings

from .helpers import made_runs


def slowdowns(**models: tuple) -> dict:
    """{(model, config): ratio} from each model's ratios in the configs Rm, TP and RmHK."""
    return {
        (model, config): ratio
        for model, ratios in models.items()
        for config, ratio in zip(("Rm", "TP", "RmHK"), ratios, strict=True)
    }


HEAVY = slowdowns(omp=(1.5, 1.5, 1.2), sycl=(1.2, 1.2, 1.1))


def verdicts(runs, absent=None) -> dict:
    table = findings_table(persson_findings(runs, absent or {}))
    return {
        finding.split(" (")[0]: said for finding, said in zip(table["finding"], table["verdict"])
    }


@pytest.mark.parametrize(
    ("direction", "low", "high", "said"),
    [
        ("below", -0.2, -0.1, SUPPORTED),
        ("below", 0.1, 0.2, CONTRADICTED),
        ("below", -0.1, 0.1, UNSEEN),
        ("above", 0.1, 0.2, SUPPORTED),
        ("above", -0.2, -0.1, CONTRADICTED),
        ("above", -0.1, 0.1, UNSEEN),
        ("no gain", -0.02, 0.1, SUPPORTED),
        ("no gain", 0.1, 0.2, SUPPORTED),
        ("no gain", -0.2, -0.01, CONTRADICTED),
        ("no gain", -0.2, 0.1, UNSEEN),
    ],
)
def test_the_rule_looks_at_the_interval_alone(direction, low, high, said):
    assert interval_verdict(direction, low, high) == said


def test_the_papers_world_supports_the_papers_findings():
    seconds = {
        (program, model, config): value
        for model in ("omp", "sycl")
        for program, config, value in (
            ("stream", "RmHK", 0.9),
            ("nbody", "RmHK", 1.7),
            ("nbody", "TP", 0.9),
        )
    }
    runs = made_runs(HEAVY, seconds=seconds, spreads={"RmHK": 0.002})
    runs.loc[runs.model == "sycl", "seconds"] *= 1.3
    assert set(verdicts(runs).values()) == {SUPPORTED}


def test_the_opposite_world_contradicts_them():
    runs = made_runs(
        slowdowns(omp=(1.2, 1.05, 1.4), sycl=(1.4, 1.2, 1.7)),
        seconds={("stream", model, "RmHK"): 1.4 for model in ("omp", "sycl")}
        | {("nbody", model, "RmHK"): 0.8 for model in ("omp", "sycl")}
        | {("nbody", model, "TP"): 1.2 for model in ("omp", "sycl")},
        spreads={"RmHK": 0.04},
    )
    runs.loc[runs.model == "sycl", "seconds"] *= 0.8
    assert set(verdicts(runs).values()) == {CONTRADICTED}


def test_heavy_noise_is_the_planted_one_where_there_is_any():
    weak, heavy = made_runs({}), made_runs(HEAVY, seed=1)
    planted = heavy[heavy.trace == "#1"].assign(trace="planted-omp")
    both = verdicts(pd.concat([weak, planted], ignore_index=True))
    assert (
        both["housekeeping helps under heavy noise"] == SUPPORTED
        and verdicts(weak)["housekeeping helps under heavy noise"] == UNSEEN
    )


def test_noise_that_slows_nothing_is_not_heavy():
    said = verdicts(made_runs({}))
    assert (
        said["housekeeping helps under heavy noise"]
        == said["pinning alone does not help"]
        == said["SYCL is more resilient"]
        == UNSEEN
    )


def test_without_sycl_or_a_configuration_nothing_is_said_of_them():
    runs = made_runs(HEAVY, models=("omp",))
    table = findings_table(
        persson_findings(runs[runs.config != "RmHK"], {"sycl": "not installed"})
    ).set_index("finding")
    row = table.loc["SYCL is slower (undisturbed, SYCL / OpenMP)"]
    assert row.verdict == UNSEEN and row.why == "not installed" and np.isnan(row.effect_percent)
    assert "RmHK was not measured" in set(table["why"])
    assert len(finding_sentences(table.reset_index(), ["omp"])) >= 1


def test_the_interval_is_students_and_p_is_adjusted_for_the_number_of_findings():
    effects = np.random.default_rng(1).normal(0.1, 0.2, 20)
    table = findings_table(
        [
            Finding("a", "s", "above", effects),
            Finding("b", "s", "above", -effects),
            Finding("c", "s", "below", effects[:3]),
        ]
    )
    low, high = stats.t.interval(
        0.95, 19, loc=effects.mean(), scale=effects.std(ddof=1) / np.sqrt(20)
    )
    assert np.allclose(
        table.loc[0, ["low_percent", "high_percent"]].astype(float), 100 * np.expm1([low, high])
    )
    p = stats.ttest_1samp(effects, 0).pvalue
    assert np.isclose(table.loc[0, "p_value"], p) and np.isclose(
        table.loc[0, "p_holm"], min(1, 2 * p)
    )
    assert "3 pairs of runs" in table.loc[2, "why"] and table.loc[2, "verdict"] == UNSEEN


def test_a_finding_that_one_pair_decides_is_judged_otherwise_by_the_trimmed_mean():
    effects = np.append(np.random.default_rng(3).normal(0.1, 0.05, 19), -4)
    table = findings_table([Finding("a", "s", "above", effects)])
    row = table.iloc[0]
    expected = stats.mstats.trimmed_mean_ci(effects, limits=(0.1, 0.1))
    assert np.allclose(
        row[["trimmed_low_percent", "trimmed_high_percent"]].astype(float), 100 * np.expm1(expected)
    )
    assert np.isclose(row["trimmed_percent"], 100 * np.expm1(stats.trim_mean(effects, 0.1)))
    assert (row["verdict"], row["trimmed_verdict"]) == (UNSEEN, SUPPORTED)
    assert finding_sentences(table, ["omp"])[-1].startswith(
        f"Judged by the trimmed mean it is otherwise: a: {SUPPORTED}, +8.7 % ("
    )
    even = findings_table([Finding("a", "s", "above", effects[:19])])
    assert not any("trimmed" in said for said in finding_sentences(even, ["omp"]))


def test_too_many_false_alarms_are_not_raised():
    """Where nothing differs, a verdict other than 'can't be seen' is an error; two-sided at 5 % it
    comes in one of twenty.
    """
    random = np.random.default_rng(2)
    said = findings_table(
        [Finding("a", "s", "below", random.normal(0, 1, 18)) for _ in range(200)]
    )["verdict"]
    assert 1 <= (said != UNSEEN).sum() <= 25


def test_what_the_hypervisor_took_of_one_side_is_held_fixed():
    steal = np.linspace(0, 0.1, 12)
    table = findings_table(
        [
            Finding(
                "a",
                "s",
                "above",
                2.0 * steal + np.random.default_rng(3).normal(0, 1e-3, 12),
                steal=steal,
            ),
            Finding("b", "s", "above", steal),
        ]
    )
    assert (
        table.loc[0, "effect_percent"] > 10
        and abs(table.loc[0, "adjusted_percent"]) < 0.3
        and np.isnan(table.loc[1, "adjusted_percent"])
    )
    assert persson_findings(made_runs(HEAVY), {})[0].steal.size == 48
