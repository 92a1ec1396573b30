"""Mitigations tried by hand: a known cause is mitigated for real, and the table says so only where
it is.
"""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.measurement import run_once
from nbhelpers.mitigation import treat_workload
from nbhelpers.mitigation.treatment import why_unproven
from nbhelpers.studies.known_causes.campaigns import disturbed_victim
from nbhelpers.studies.mitigation_trials import (
    _shown,
    judge_runs,
    matrix_product,
    measured_again,
    mitigations_against,
    program_with_slow_path,
    published_product,
    trial_runs,
    trial_sentence,
    trial_statistics,
    trial_table,
    untried_sentence,
)
from nbhelpers.workloads import program


def test_returned_memory_is_kept_by_the_mitigation(binaries, tmp_path):
    runs = trial_runs(tmp_path, "returned-memory", ["malloc-keeps-memory", "prefault"], 3)
    faults = runs.groupby("mitigation")["minor_faults"].median()
    assert set(faults.index) == {"none", "malloc-keeps-memory"}  # what is advice only isn't tried
    assert faults["malloc-keeps-memory"] < 0.2 * faults["none"]
    assert (
        trial_runs(tmp_path, "returned-memory", [], 3, recorded_only=True)["run"].tolist()
        == runs["run"].tolist()
    )


def test_a_mitigation_that_comes_later_is_tried_beside_the_untreated_runs_of_its_own_time(
    binaries, tmp_path
):
    first = trial_runs(tmp_path, "returned-memory", ["malloc-keeps-memory"], 8)
    runs = trial_runs(tmp_path, "returned-memory", ["malloc-keeps-memory", "warm-files"], 8)
    assert runs["run"].tolist()[:16] == first["run"].tolist() and runs[
        "cell"
    ].value_counts().to_dict() == {"baseline": 16, "malloc-keeps-memory": 8, "warm-files": 8}
    table = trial_table(judge_runs(runs)).set_index("mitigation")
    assert (
        table["rounds"].to_dict() == {"malloc-keeps-memory": "0-7", "warm-files": "8-15"}
        and (table["runs"] == 8).all()
    )
    gone = trial_runs(tmp_path, "returned-memory", [], 8)
    assert gone["run"].tolist() == runs["run"].tolist() and len(trial_table(judge_runs(gone))) == 2


def invented(ratio, seed=4):
    random = np.random.default_rng(seed)
    rows = [
        {
            "cell": cell,
            "round": number,
            "start_ns": number * 10 + place,
            "status": "ok",
            "seconds": scale * (1 + 0.01 * random.standard_normal()),
        }
        for number in range(30)
        for place, (cell, scale) in enumerate(
            (("baseline", 1.0), ("useless", 1.0), ("jemalloc", ratio))
        )
    ]
    return pd.DataFrame(rows)


def test_the_table_says_what_helped_only_where_it_was_shown_twice():
    judged = judge_runs(invented(0.8))
    once = trial_table(judged)
    assert once["mitigation"].tolist() == ["jemalloc", "useless"]
    assert once.loc[0, "verdict"] == "seems to help, not confirmed"
    assert once.loc[0, "mean_low"] < 0.8 < once.loc[0, "mean_high"] and (once["runs"] == 30).all()
    told = trial_sentence(once, "Test")
    assert "none is confirmed to help" in told and "jemalloc" not in told
    twice = trial_table(judged, {"jemalloc": judge_runs(invented(0.8, seed=5))["jemalloc"]})
    assert twice.loc[0, "verdict"] == "helps"
    assert "1 of 2 mitigations help, each shown twice; the best, jemalloc" in trial_sentence(
        twice, "Test"
    )
    gone = trial_table(judged, {"jemalloc": judge_runs(invented(1.0, seed=5))["jemalloc"]})
    assert gone.loc[0, "verdict"] == "not when measured again"


def test_none_helps_only_where_each_is_shown_to_change_nothing():
    told = trial_sentence(trial_table(judge_runs(invented(1.0))), "Test")
    assert told.startswith("Test: none of 2 mitigations tried helps: each changes")
    few = trial_sentence(trial_table(judge_runs(invented(1.0).query("round < 7"))), "Test")
    assert "none is confirmed to help (7 rounds): 1 had too few rounds (about" in few


def test_what_seems_to_help_is_measured_again_in_other_rounds(binaries, tmp_path):
    first = judge_runs(invented(0.8).replace("jemalloc", "malloc-keeps-memory"))
    again = measured_again(tmp_path / "again", "returned-memory", first, 3)
    assert set(again) == {"malloc-keeps-memory"} and again["malloc-keeps-memory"].faster.units == 3
    assert measured_again(tmp_path / "no", "returned-memory", first, 3, 1, True) == {}


def test_the_statistics_of_a_trial_are_those_of_the_runs_and_stand_beside_the_papers():
    runs = invented(0.8)
    table = trial_statistics(judge_runs(runs)).set_index(["mitigation", "statistic"])
    p95 = runs.groupby("cell")["seconds"].quantile(0.95)
    assert (
        table.loc[("jemalloc", "p95"), "ratio"] == pytest.approx(p95["jemalloc"] / p95["baseline"])
        and (table["runs"] == 30).all()
    )
    assert (table["low"] <= table["ratio"]).all() and (table["ratio"] <= table["high"]).all()
    theirs = published_product()
    assert set(theirs["statistic"]) <= set(
        table.index.get_level_values("statistic")
    ) and theirs.set_index("statistic")["ratio"].to_dict() == {"p95": 0.79, "cv": 0.53}


def test_nothing_tried_is_no_failure_and_says_what_is_missing(monkeypatch):
    monkeypatch.setattr("nbhelpers.mitigation.program.find_library", lambda name: None)
    runs = invented(0.8)
    compared = judge_runs(runs[runs["cell"] == "baseline"])
    assert compared == {} and len(trial_table(compared)) == len(trial_statistics(compared)) == 0
    assert trial_sentence(trial_table(compared), "Test") == "Test: no mitigation was tried."
    told = untried_sentence(["jemalloc", "tcmalloc"], compared, matrix_product(100))
    assert (
        "jemalloc was not tried: there is no library jemalloc here (apt-get install libjemalloc2)"
        in told
        and "tcmalloc was not tried" in told
    )
    assert untried_sentence(["jemalloc", "useless"], judge_runs(runs)) == ""


def test_what_may_help_says_why_the_rest_is_not_tried():
    table = mitigations_against("minor_faults_per_s", program("true")).set_index("mitigation")
    assert not table.loc["prefault", "tried"] and "automated" in table.loc["prefault", "reason"]
    assert (table["tried"] == (table["reason"] == "")).all()
    with pytest.raises(InputError, match="no risk"):
        mitigations_against("page-faults", program("true"), risk="much")


def test_the_matrix_product_times_the_product_alone(tmp_path):
    row = run_once(matrix_product(10_000))
    assert row["status"] == "ok" and 0 < row["seconds"] < row["wall_seconds"]
    with pytest.raises(InputError, match="25 million"):
        matrix_product(1)


def test_a_slow_path_faults_its_memory_anew_in_some_runs_and_not_with_a_mitigation(
    binaries,
):
    faults = np.array([run_once(program_with_slow_path(100))["minor_faults"] for _ in range(16)])
    many, pages = faults > faults.mean(), 100 * 64  # of 4 KiB
    assert (
        np.ptp(faults) > 0.9 * pages
        and np.ptp(faults[many]) < 0.1 * pages
        and np.ptp(faults[~many]) < 0.1 * pages
    )
    workload, attachments = treat_workload("malloc-keeps-memory", program_with_slow_path(100))
    rows = [run_once(workload, attachments) for _ in range(8)]
    assert {row["status"] for row in rows} == {"ok"} and np.ptp(
        [row["minor_faults"] for row in rows]
    ) < 0.1 * pages
    with pytest.raises(InputError, match="at least one"):
        program_with_slow_path(0)


def test_what_no_run_shows_to_act_on_the_program_is_not_tried(binaries):
    """The victim has one thread: no limit of malloc's arenas holds it back."""
    workload, _ = disturbed_victim("returned-memory")
    assert why_unproven("warm-files", workload) == ""
    assert "which no limit holds back" in why_unproven("malloc-arenas", workload)
    rows = [("malloc-arenas", True, ""), ("warm-files", True, ""), ("pin-process", False, "why")]
    table = pd.DataFrame(rows, columns=["mitigation", "tried", "reason"])
    shown = _shown(table, workload)
    assert shown["tried"].tolist() == [False, True, False] and shown["reason"][2] == "why"
