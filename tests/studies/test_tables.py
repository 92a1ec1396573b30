"""Tables against plain pandas expressions, and beside the published ones."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.report import figure_findings, figure_mitigations, published_table, save_table
from nbhelpers.studies.findings import findings_table
from nbhelpers.studies.persson import (
    comparable_rows,
    merge_table,
    persson_findings,
    replay_table,
    resilience_table,
    run_ratios,
    slowdown_table,
    spread_table,
    tracing_table,
)
from nbhelpers.studies.persson.campaigns import WorstTrace

from .helpers import made_runs

HEAVY = {("omp", "Rm"): 1.5, ("omp", "RmHK"): 1.2, ("sycl", "Rm"): 1.1}


@pytest.fixture(scope="module")
def runs():
    return made_runs(HEAVY)


def test_the_increase_is_the_ratio_of_the_means(runs):
    table = slowdown_table(runs, "nbody").set_index(["model", "config"])
    own = (
        runs[(runs.program == "nbody") & (runs.model == "omp") & (runs.config == "Rm")]
        .groupby("trace")["seconds"]
        .mean()
    )
    row = table.loc[("OMP", "Rm")]
    assert (
        np.isclose(row.increase_percent, 100 * (own["#1"] / own["undisturbed"] - 1))
        and row.low_percent < row.increase_percent < row.high_percent
    )
    assert (
        abs(row.adjusted_percent - 50) < 5
        and row.runs == 8
        and list(slowdown_table(runs, "nbody").config[:3]) == ["Rm", "RmHK", "TP"]
    )


def test_table_6_is_the_plain_mean_of_the_rows(runs):
    slowdowns = slowdown_table(runs)
    row = resilience_table(slowdowns).set_index(["model", "config"]).loc[("SYCL", "Rm")]
    chosen = slowdowns[(slowdowns.model == "SYCL") & (slowdowns.config == "Rm")]["increase_percent"]
    assert np.isclose(row.increase_percent, chosen.mean()) and row.rows == 3
    with_interval = (
        resilience_table(slowdowns, runs).set_index(["model", "config"]).loc[("OMP", "Rm")]
    )
    assert (
        with_interval.low_percent < with_interval.increase_percent < with_interval.high_percent
        and with_interval.low_percent > 45
    )
    planted = resilience_table(
        slowdowns.assign(trace="planted-omp"),
        runs.assign(trace=runs["trace"].replace("#1", "planted-omp")),
    )
    assert set(planted["noise"]) == {"planted"} and np.isclose(
        planted["increase_percent"].mean(), slowdowns["increase_percent"].mean()
    )


def test_the_papers_table_6_follows_from_its_tables_3_to_5_by_our_rule():
    rows = pd.concat([published_table(f"persson2025-table{number}") for number in (3, 4, 5)])
    ours = resilience_table(rows).set_index(["model", "config"])["increase_percent"]
    theirs = published_table("persson2025-table6").set_index(["model", "config"])[
        "increase_percent"
    ]
    assert (ours.reindex(theirs.index) - theirs).abs().max() <= 0.021


def test_published_values_stand_beside_ours(runs, tmp_path):
    saved = save_table(
        slowdown_table(runs, "stream"),
        "t4",
        "Ours.",
        tmp_path,
        published=comparable_rows(published_table("persson2025-table4")),
    ).frame
    row = saved.set_index(["model", "config"]).loc[("OMP", "Rm")]
    assert (row["seconds (published)"], row["increase_percent (published)"]) == (1.951, 2.6)
    spread = spread_table(runs.assign(trace="traced"))
    assert (
        save_table(spread, "t2", "Ours.", tmp_path, published=published_table("persson2025-table2"))
        .frame["sd_ms (published)"]
        .notna()
        .all()
    )


def test_the_spread_is_the_mean_of_the_programs_deviations(runs):
    calm = runs[runs.trace == "undisturbed"].assign(trace="traced")
    row = spread_table(calm).set_index(["model", "config"]).loc[("OMP", "TP")]
    expected = (
        calm[(calm.model == "omp") & (calm.config == "TP")]
        .groupby("program")["seconds"]
        .std()
        .mean()
        * 1e3
    )
    assert np.isclose(row.sd_ms, expected) and row.low_ms <= row.sd_ms <= row.high_ms * 1.2


def test_the_accuracy_of_a_replay(runs, tmp_path):
    more = [
        runs[
            (runs.program == "nbody")
            & (runs.model == "omp")
            & (runs.config == "Rm")
            & (runs["mode"] == "improved")
        ].assign(mode=mode)
        for mode in ("pessimistic", "faithful")
    ]
    own = runs[(runs.program == "nbody") & (runs.model == "omp") & (runs.config == "Rm")]
    undisturbed = own[own.trace == "undisturbed"]["seconds"].mean()
    stolen = own[own.trace == "#1"]["steal_s"].mean()
    worst = WorstTrace("nbody", "omp", "Rm", 1, 5, 2.0, {}, 70.0)
    table = replay_table(pd.concat([runs, *more]), [worst]).set_index("mode")
    mean = runs[
        (runs.program == "nbody")
        & (runs.model == "omp")
        & (runs.config == "Rm")
        & (runs["mode"] == "improved")
    ]["seconds"].mean()
    assert (
        np.isclose(table.loc["improved", "accuracy_percent"], 100 * abs(mean / 2 - 1))
        and len(table) == 3
    )
    merges = merge_table(table.reset_index())
    assert (
        np.isclose(merges.loc[0, "improved_percent"], table.loc["improved", "accuracy_percent"])
        and len(merges) == 1
    )
    assert save_table(
        merges, "m", "Ours.", tmp_path, published=published_table("persson2025-text1")
    ).frame.shape == (1, 9)
    none = replay_table(runs, [])
    assert save_table(
        merge_table(none), "n", "Ours.", tmp_path, published=published_table("persson2025-text1")
    ).frame.empty
    assert save_table(
        none,
        "o",
        "Ours.",
        tmp_path,
        published=comparable_rows(published_table("persson2025-table7")),
    ).frame.empty
    row = table.loc["faithful"]
    assert (
        abs(row.unexplained_share - 0.5) < 0.05
        and row.unexplained_low < row.unexplained_share < row.unexplained_high
    )
    assert (
        np.isclose(row.excess_ms, 1e3 * (2 - undisturbed))
        and np.isclose(row.steal_ms, 1e3 * stolen)
        and row.anomaly_steal_ms == 70
    )
    assert replay_table(runs, [WorstTrace("nbody", "none", "none", 1, -1, 1.0, {})]).empty


def test_tracing_is_compared_with_no_tracing(tmp_path):
    rows = [
        {
            "program": "nbody",
            "model": "omp",
            "config": "Rm",
            "trace": trace,
            "mode": "",
            "seconds": seconds * (1 + 0.01 * number),
            "trace_events": 10 if trace == "traced" else None,
        }
        for number in range(5)
        for trace, seconds in (("traced", 1.02), ("untraced", 1.0))
    ]
    row = tracing_table(pd.DataFrame(rows)).iloc[0]
    assert np.isclose(row.increase_percent, 2) and row.benchmark == "N-body"
    untraced = tracing_table(pd.DataFrame(rows).drop(columns="trace_events"))
    assert save_table(
        untraced, "t1", "Ours.", tmp_path, published=published_table("persson2025-table1")
    ).frame.empty


def test_every_injected_run_has_a_ratio_and_the_figures_are_drawn(runs):
    ratios = run_ratios(runs)
    assert len(ratios) == (runs["mode"] == "improved").sum()
    own = ratios[
        (ratios.benchmark == "N-body") & (ratios.model == "OMP") & (ratios.config == "Rm")
    ]["ratio"].mean()
    assert np.isclose(
        100 * (own - 1),
        slowdown_table(runs, "nbody")
        .set_index(["model", "config"])
        .loc[("OMP", "Rm"), "increase_percent"],
    )
    figure = figure_mitigations(slowdown_table(runs), ratios)
    assert [axes.get_title() for axes in figure.axes] == ["MiniFE", "Babelstream", "N-body"] or len(
        figure.axes
    ) == 3
    assert (
        len(figure_findings(findings_table(persson_findings(runs, {}))).axes[0].get_yticklabels())
        == 8
    )


def test_a_model_that_came_later_is_compared_with_the_runs_of_its_own_time():
    """OpenMP alone on a machine half as fast, then both on the machine as it is."""
    early = made_runs(
        HEAVY,
        models=("omp",),
        seconds={
            (program, "omp", config): 2.0
            for program in ("nbody", "stream", "minife")
            for config in ("Rm", "RmHK", "TP")
        },
    ).assign(epoch=0)
    late = made_runs(HEAVY, seed=1).assign(epoch=1, round=lambda runs: runs["round"] + 8)
    late["run"] += len(early)
    grown = pd.concat(
        [early[early.trace == "undisturbed"], late], ignore_index=True
    )  # the injected cells of before were put aside
    pd.testing.assert_frame_equal(slowdown_table(grown), slowdown_table(late))
    pd.testing.assert_frame_equal(
        resilience_table(slowdown_table(grown), grown), resilience_table(slowdown_table(late), late)
    )
    assert run_ratios(grown)["ratio"].tolist() == run_ratios(late)["ratio"].tolist()
    assert spread_table(grown.assign(trace="traced")).equals(
        spread_table(late.assign(trace="traced"))
    )
    both = pd.concat([early, late], ignore_index=True)
    found = findings_table(persson_findings(both, {})).set_index("finding")
    slower = found.loc["SYCL is slower (undisturbed, SYCL / OpenMP)"]
    assert slower["pairs"] == 8 * 9 and abs(slower["effect_percent"]) < 2
