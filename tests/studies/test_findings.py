"""What is said of runs whose truth is known, and of the papers' own tables."""

import dataclasses

import numpy as np
import pandas as pd
from scipy import stats

from nbhelpers.machine import Cpu, Topology
from nbhelpers.statistics.claims import (
    INCONCLUSIVE,
    NONE,
    NOT_MEASURABLE,
    REPRODUCED,
    REVERSED,
    Claim,
    Evidence,
)
from nbhelpers.studies.findings import Finding, findings_table, other_housekeeping
from nbhelpers.workloads import configurations

from .helpers import made_runs, persson_findings, printed_tables
from .simulated import DESIGN


def slowdowns(**models: tuple) -> dict:
    """{(model, config): ratio} from each model's ratios in the configs Rm, TP and RmHK."""
    return {
        (model, config): ratio
        for model, ratios in models.items()
        for config, ratio in zip(("Rm", "TP", "RmHK"), ratios, strict=True)
    }


HEAVY = slowdowns(omp=(1.5, 1.5, 1.2), sycl=(1.2, 1.2, 1.1))


def in_both_models(*rows: tuple) -> dict:
    """{(program, model, config): seconds} of rows (program, config, seconds)."""
    return {
        (program, model, config): seconds
        for program, config, seconds in rows
        for model in ("omp", "sycl")
    }


def verdicts(runs, design=DESIGN) -> dict:
    table = findings_table(persson_findings(runs, design))
    return dict(zip(table["finding"].str.split(" \\(").str[0], table["verdict"], strict=True))


def a_finding(effects, direction="above", **more) -> Finding:
    return Finding(Claim("a", direction, **more), Evidence(np.asarray(effects)))


def test_the_papers_world_reproduces_the_papers_findings():
    seconds = in_both_models(("stream", "RmHK", 0.9), ("nbody", "RmHK", 1.7), ("nbody", "TP", 0.9))
    runs = made_runs(HEAVY, seconds=seconds, spreads={"RmHK": 0.002})
    runs.loc[runs.model == "sycl", "seconds"] *= 1.3
    assert set(verdicts(runs).values()) == {REPRODUCED}


def test_the_opposite_world_reverses_them():
    ratios = slowdowns(omp=(1.2, 1.05, 1.4), sycl=(1.4, 1.2, 1.7))
    seconds = in_both_models(("stream", "RmHK", 1.4), ("nbody", "RmHK", 0.8), ("nbody", "TP", 1.2))
    runs = made_runs(ratios, seconds=seconds, spreads={"RmHK": 0.04})
    runs.loc[runs.model == "sycl", "seconds"] *= 0.8
    assert set(verdicts(runs).values()) == {REVERSED}


def test_where_nothing_differs_and_the_runs_are_many_there_is_no_effect():
    said = verdicts(made_runs(slowdowns(omp=(1.3,) * 3, sycl=(1.3,) * 3), rounds=60))
    gain = said.pop("pinning alone does not help")
    steadier = said.pop("cores that are left free make runs steadier")
    assert gain == REPRODUCED and steadier in (NONE, INCONCLUSIVE)
    assert set(said.values()) == {NONE}


def test_half_of_the_cpus_is_another_treatment_than_an_eighth():
    two = configurations(Topology(tuple(Cpu(cpu, cpu, 0, 0, ()) for cpu in range(2))))
    small = dataclasses.replace(DESIGN, listed=two)
    assert other_housekeeping(DESIGN, "RmHK") == "" == other_housekeeping(DESIGN, "absent")
    table = findings_table(persson_findings(made_runs(HEAVY), small)).set_index("finding")
    house = table[table.index.str.contains("RmHK / Rm")]
    assert len(house) == 4 and set(house["verdict"]) == {NOT_MEASURABLE}
    assert house["why"].str.contains("takes 50 % of the CPUs here, 12.5 % in the paper").all()
    assert (house["effect_percent"] < -5).any()  # its effect is shown all the same


def test_a_ratio_of_ratios_comes_with_the_run_times_themselves():
    """Housekeeping bears the noise better and is slower under it."""
    runs = made_runs(HEAVY, seconds=in_both_models(("nbody", "RmHK", 2.0)))
    table = findings_table(persson_findings(runs, DESIGN)).set_index("finding")
    row = table.loc["housekeeping helps under heavy noise (slowdown RmHK / Rm)"]
    noisy = runs[runs.trace == "#1"].groupby(["program", "model", "config"])["seconds"].mean()
    ratios = noisy.xs("RmHK", level="config") / noisy.xs("Rm", level="config")
    assert np.isclose(row.run_time_percent, 100 * (stats.gmean(ratios) - 1), atol=0.2)
    assert row.longer_cells == f"{(ratios > 1).sum()} of 6"
    assert row.effect_percent < -10


def test_more_traces_of_the_same_rounds_are_no_more_evidence():
    """A trace that is measured again and again must not make an interval shorter."""
    runs = made_runs(HEAVY, spread=0.05)
    again = [runs[runs.trace == "#1"].assign(trace=f"#{number}") for number in (2, 3, 4)]
    many = findings_table(persson_findings(pd.concat([runs, *again]), DESIGN))
    one = findings_table(persson_findings(runs, DESIGN))
    names = ["effect_percent", "low_percent", "high_percent", "p_value", "rounds"]
    of_slowdowns = one["finding"].str.contains("slowdown")
    assert np.allclose(one.loc[of_slowdowns, names], many.loc[of_slowdowns, names], equal_nan=True)


def test_p_is_adjusted_for_all_claims_and_the_corrected_p_decides():
    effects = np.random.default_rng(1).normal(0.05, 0.2, 19)
    alone = findings_table([a_finding(effects)]).loc[0]
    p = stats.ttest_1samp(effects, 0).pvalue
    assert np.isclose(alone.p_value, p) and alone.verdict == REPRODUCED and 0.01 < p < 0.05
    others = [a_finding(np.random.default_rng(n).normal(0, 1, 20)) for n in range(2, 9)]
    among = findings_table([a_finding(effects), *others]).loc[0]
    assert np.isclose(among.p_corrected, 8 * p) and among.verdict == INCONCLUSIVE
    assert np.isclose(among.low_percent, alone.low_percent) and among.low_percent > 0


def test_a_condition_is_judged_once_and_its_failure_is_a_reason():
    condition = Claim("noise", "above"), Evidence(np.random.default_rng(4).normal(0, 1, 9))
    effects = np.random.default_rng(1).normal(1, 0.1, 9)
    pair = [
        Finding(Claim(name, "above"), Evidence(effects), condition, "no noise") for name in "ab"
    ]
    table = findings_table(pair)
    assert set(table["verdict"]) == {NOT_MEASURABLE}
    shown = Claim("noise", "above"), Evidence(effects + 1)
    there = findings_table([dataclasses.replace(one, condition=shown) for one in pair])
    assert set(there["verdict"]) == {REPRODUCED}
    ratio = there["p_corrected"].max() / there["p_value"].min()
    assert np.isclose(ratio, 2) or ratio <= 3


def test_a_finding_that_one_round_decides_is_judged_otherwise_by_the_trimmed_mean():
    effects = np.append(np.random.default_rng(3).normal(0.1, 0.05, 19), -4)
    table = findings_table([a_finding(effects)])
    row = table.iloc[0]
    expected = stats.mstats.trimmed_mean_ci(effects, limits=(0.1, 0.1))
    ends = row[["trimmed_low_percent", "trimmed_high_percent"]].astype(float)
    assert np.allclose(ends, 100 * np.expm1(expected))
    assert np.isclose(row["trimmed_percent"], 100 * np.expm1(stats.trim_mean(effects, 0.1)))
    assert (row["verdict"], row["trimmed_verdict"]) == (INCONCLUSIVE, REPRODUCED)


def test_what_the_hypervisor_took_of_one_side_is_held_fixed():
    steal = np.linspace(0, 0.1, 12)
    noise = np.random.default_rng(3).normal(0, 1e-3, 12)
    finding = dataclasses.replace(a_finding(2.0 * steal + noise), steal=steal)
    table = findings_table([finding, a_finding(steal)])
    assert table.loc[0, "effect_percent"] > 10 and abs(table.loc[0, "adjusted_percent"]) < 0.3
    assert np.isnan(table.loc[1, "adjusted_percent"])
    assert persson_findings(made_runs(HEAVY), DESIGN)[0].steal.size == 48


def test_the_papers_own_tables_are_judged_by_the_same_rule():
    published = pd.concat(printed_tables())
    table = findings_table(persson_findings(made_runs(HEAVY), DESIGN))
    table = table.set_index(table["finding"].str.split(" \\(").str[0])
    # by hand: slowdown factors of pinned over roaming threads, a mean a trace, then a program
    published["log"] = np.log(1 + published["increase_percent"] / 100)
    rows = ["benchmark", "platform", "noise_config"]
    wide = published.pivot_table("log", rows, ["model", "smt", "config"])
    logs = wide.xs("TP", level="config", axis=1) - wide.xs("Rm", level="config", axis=1)
    by_program = logs.mean(axis=1).groupby("benchmark").mean()
    pinning = table.loc["pinning alone does not help"]
    assert np.isclose(pinning.paper_percent, 100 * np.expm1(by_program.mean()))
    assert (pinning.paper_verdict, pinning.paper_why) == (REPRODUCED, "10 traces")
    assert table.loc["SYCL is slower", "paper_verdict"] == REPRODUCED
    alone = table.loc["a compute-bound program gains by pinning in average noise"]
    assert alone.paper_why.startswith("2 programs on platforms; at least 6")
    steadier = table.loc["cores that are left free make runs steadier"]
    assert steadier.paper_verdict == NOT_MEASURABLE and "table 2" in steadier.paper_why
    assert table["paper_units"].max() == 10
