"""Tables against plain pandas expressions, and beside the published ones."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import trim_mean

from nbhelpers.report import published_table, save_table
from nbhelpers.studies.findings import findings_table
from nbhelpers.studies.persson.tables import comparable_rows

from ..cells import run_cells
from ..shown import Shown
from .helpers import made_runs, persson_findings
from .simulated import DESIGN

EIGHTH = 1 / 8  # of eight runs a trimmed mean leaves out one at each end
HEAVY = {("omp", "Rm"): 1.5, ("omp", "RmHK"): 1.2, ("sycl", "Rm"): 1.1}


@pytest.fixture(scope="module")
def runs():
    return made_runs(HEAVY)


def slowdown_table(runs: pd.DataFrame, program: str | None = None) -> pd.DataFrame:
    """Tables 3 to 5, by the cells of page 40."""
    chosen = runs[runs["program"] == program] if program else runs
    noisy, calm = (chosen[chosen["mode"] == mode] for mode in ("improved", ""))
    return run_cells("40-mitigations", "slowdowns", noisy=noisy, calm=calm)["slowdowns"]


def replay_table(runs: pd.DataFrame, worst: pd.DataFrame) -> pd.DataFrame:
    """What the cells of page 42 make of injected runs and worst traces."""
    found = run_cells("42-fairness", "accuracy", injected=runs, worst=worst, study=Shown())
    return found["replays"]


def spread_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 2, by the cells of page 40."""
    return run_cells("40-mitigations", "spread", baseline=runs, study=Shown())["spread"]


def resilience_table(slowdowns: pd.DataFrame, runs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Table 6, by the cells of page 40; of printed rows without intervals."""
    missing = {"trace": "#1", "adjusted_percent": 0.0}
    rows = slowdowns.assign(**{name: x for name, x in missing.items() if name not in slowdowns})
    known = run_cells("40-mitigations", "resilience", slowdowns=rows)
    if runs is None:
        return known["resilience"].reset_index()
    known |= {"injected": runs, "study": Shown()}
    return run_cells("40-mitigations", "intervals", **known)["resilience"]


def anomaly(**more: object) -> pd.DataFrame:
    """A worst trace that took 2 s."""
    known = {"program": "nbody", "model": "omp", "config": "Rm", "trace": "#1", "run": 5}
    known |= {"anomaly_seconds": 2.0, "steal_ms": 70.0}
    return pd.DataFrame([known | more])


def of_cell(runs: pd.DataFrame, program: str = "nbody") -> pd.DataFrame:
    """Runs of one program, OpenMP, with all cores."""
    return runs[(runs.program == program) & (runs.model == "omp") & (runs.config == "Rm")]


def test_the_increase_is_the_ratio_of_the_means(runs):
    table = slowdown_table(runs, "nbody").set_index(["model", "config"])
    own = of_cell(runs).groupby("trace")["seconds"].mean()
    row = table.loc[("OMP", "Rm")]
    assert np.isclose(row.increase_percent, 100 * (own["#1"] / own["undisturbed"] - 1))
    assert row.low_percent < row.increase_percent < row.high_percent
    assert abs(row.adjusted_percent - 50) < 5 and row.runs == 8


@pytest.mark.parametrize("name", ["increase", "median", "trimmed"])
def test_table_6_is_the_plain_mean_of_the_rows(runs, name):
    slowdowns, column = slowdown_table(runs), f"{name}_percent"
    rows = slowdowns[(slowdowns.model == "OMP") & (slowdowns.config == "Rm")]
    row = resilience_table(slowdowns, runs).set_index(["model", "config"]).loc[("OMP", "Rm")]
    assert np.isclose(row[column], rows[column].mean())
    ends = ["low_percent", "high_percent"]
    low, high = row[ends if name == "increase" else [f"{name}_{end}" for end in ends]]
    assert 45 < low < row[column] < high < 55
    trace = runs["trace"].replace("#1", "planted-omp")
    planted = resilience_table(slowdowns.assign(trace="planted-omp"), runs.assign(trace=trace))
    assert set(planted["noise"]) == {"planted"}
    assert np.isclose(planted[column].mean(), slowdowns[column].mean())


def test_the_papers_table_6_follows_from_its_tables_3_to_5_by_our_rule():
    rows = pd.concat([published_table(f"persson2025-table{number}") for number in (3, 4, 5)])
    ours = resilience_table(rows).set_index(["model", "config"])["increase_percent"]
    printed = published_table("persson2025-table6").set_index(["model", "config"])
    theirs = printed["increase_percent"]
    assert (ours.reindex(theirs.index) - theirs).abs().max() <= 0.021


def test_the_spread_is_the_mean_of_the_programs_deviations(runs):
    calm = runs[runs.trace == "undisturbed"].assign(trace="traced")
    row = spread_table(calm).set_index(["model", "config"]).loc[("OMP", "TP")]
    own = calm[(calm.model == "omp") & (calm.config == "TP")].groupby("program")["seconds"]
    expected = own.std().mean() * 1e3
    assert np.isclose(row.sd_ms, expected) and row.low_ms <= row.sd_ms <= row.high_ms * 1.2


def test_the_accuracy_of_a_replay(runs, tmp_path):
    own = of_cell(runs)
    noisy, calm = own[own["mode"] == "improved"], own[own.trace == "undisturbed"]
    more = [noisy.assign(mode=mode) for mode in ("pessimistic", "faithful")]
    table = replay_table(pd.concat([runs, *more]), anomaly()).set_index("mode")
    assert len(table) == 3
    row, seconds = table.loc["improved"], noisy["seconds"]
    assert np.isclose(row.error_percent, 100 * abs(seconds.mean() / 2 - 1))
    assert np.isclose(row.median_ratio, seconds.median() / 2)
    assert np.isclose(row.trimmed_ratio, trim_mean(seconds, EIGHTH) / 2)
    assert row.trimmed_ratio_low < row.trimmed_ratio < row.trimmed_ratio_high
    row = table.loc["faithful"]
    assert abs(row.unexplained_share - 0.5) < 0.05
    assert row.unexplained_low < row.unexplained_share < row.unexplained_high
    assert np.isclose(row.excess_ms, 1e3 * (2 - calm["seconds"].mean()))
    assert np.isclose(row.steal_ms, 1e3 * noisy["steal_s"].mean()) and row.anomaly_steal_ms == 70
    assert replay_table(runs, anomaly(run=-1)).empty
    none, theirs = replay_table(runs, anomaly().iloc[:0]), published_table("persson2025-table7")
    shown = save_table(none, "o", "", tmp_path, published=comparable_rows(theirs))
    assert shown.frame.empty


def test_tracing_is_compared_with_no_tracing(tmp_path):
    number, traced = np.repeat(range(5), 2), np.tile([True, False], 5)
    runs = pd.DataFrame({"trace": np.where(traced, "traced", "untraced")})
    runs["seconds"] = np.where(traced, 1.02, 1.0) * (1 + 0.01 * number)
    runs["trace_events"] = np.where(traced, 10, np.nan)
    runs = runs.assign(program="nbody", model="omp", config="Rm", mode="", steal_s=0.0, epoch=0)
    given = {"design": SimpleNamespace(chosen=["Rm"]), "study": Shown()}
    row = run_cells("40-mitigations", "tracing", baseline=runs, **given)["overhead"].iloc[0]
    assert np.isclose(row.increase_percent, 2) and row.benchmark == "N-body"
    untraced = runs.drop(columns="trace_events")
    table = run_cells("40-mitigations", "tracing", baseline=untraced, **given)["overhead"]
    theirs = published_table("persson2025-table1")
    assert save_table(table, "t1", "Ours.", tmp_path, published=theirs).frame.empty


def test_a_model_that_came_later_is_compared_with_the_runs_of_its_own_time():
    """OpenMP alone on a machine half as fast, then both on the machine as it is."""
    cells = product(("nbody", "stream", "minife"), ("omp",), ("Rm", "RmHK", "TP"))
    early = made_runs(HEAVY, models=("omp",), seconds=dict.fromkeys(cells, 2.0)).assign(epoch=0)
    late = made_runs(HEAVY, seed=1).assign(epoch=1, round=lambda runs: runs["round"] + 8)
    late["run"] += len(early)
    # the injected cells of before were put aside
    grown = pd.concat([early[early.trace == "undisturbed"], late], ignore_index=True)
    slowdowns = slowdown_table(late)
    pd.testing.assert_frame_equal(slowdown_table(grown), slowdowns)
    known = resilience_table(slowdowns, late)
    pd.testing.assert_frame_equal(resilience_table(slowdowns, grown), known)
    spread = spread_table(late.assign(trace="traced"))
    assert spread_table(grown.assign(trace="traced")).equals(spread)
    both = pd.concat([early, late], ignore_index=True)
    found = findings_table(persson_findings(both, DESIGN)).set_index("finding")
    slower = found.loc["SYCL is slower (undisturbed, SYCL / OpenMP)"]
    assert slower["pairs"] == 8 * 9 and abs(slower["effect_percent"]) < 2


def test_two_runs_are_too_few_for_the_interval_of_a_spread():
    few = made_runs({}, rounds=2).query("trace == 'undisturbed'").assign(trace="traced")
    table = spread_table(few)
    assert table[["low_ms", "high_ms", "mad_low_ms", "mad_high_ms"]].isna().all(axis=None)
    assert set(table["why"]) == {"2 runs are too few for an interval"}
    many = made_runs({}).query("trace == 'undisturbed'").assign(trace="traced")
    assert (spread_table(many)["low_ms"] > 0).all() and set(spread_table(many)["why"]) == {""}
