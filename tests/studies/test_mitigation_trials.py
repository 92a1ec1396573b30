"""Mitigations tried by hand: a known cause is mitigated for real, and the table says so only where
it is.
"""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.measurement import run_once
from nbhelpers.mitigation import treat_workload
from nbhelpers.statistics import compare
from nbhelpers.studies.mitigation_trials import (
    compare_trials,
    matrix_product,
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
    runs = trial_runs(tmp_path, "returned-memory", ["malloc-keeps-memory", "malloc-arenas"], 8)
    assert runs["run"].tolist()[:16] == first["run"].tolist() and runs[
        "cell"
    ].value_counts().to_dict() == {"baseline": 16, "malloc-keeps-memory": 8, "malloc-arenas": 8}
    table = trial_table(compare_trials(runs)).set_index("mitigation")
    assert (
        table["rounds"].to_dict() == {"malloc-keeps-memory": "0-7", "malloc-arenas": "8-15"}
        and (table["runs"] == 8).all()
    )
    gone = trial_runs(tmp_path, "returned-memory", [], 8)
    assert (
        gone["run"].tolist() == runs["run"].tolist() and len(trial_table(compare_trials(gone))) == 2
    )


def invented(ratio):
    random = np.random.default_rng(4)
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


def test_the_table_says_what_helped_and_the_sentence_by_how_much():
    compared = compare_trials(invented(0.8))
    table = trial_table(compared)
    assert table["mitigation"].tolist() == ["jemalloc", "useless"] and table[
        "verdict"
    ].tolist() == ["helps", "no difference shown"]
    assert (
        table.loc[0, "mean_low"] < 0.8 < table.loc[0, "mean_high"] and (table["runs"] == 30).all()
    )
    assert "1 of 2 mitigations help; the best, jemalloc" in trial_sentence(table, "Test")
    assert (
        trial_sentence(trial_table(compare_trials(invented(1.0))), "Test")
        == "Test: none of 2 mitigations is shown to help."
    )


def test_the_statistics_of_a_trial_are_those_of_the_runs_and_stand_beside_the_papers():
    runs = invented(0.8)
    table = trial_statistics(compare_trials(runs)).set_index(["mitigation", "statistic"])
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


def test_p_values_are_corrected_for_the_number_of_mitigations():
    runs = invented(0.99)
    untreated = runs[runs["cell"] == "baseline"]
    alone = {
        name: compare(untreated, runs[runs["cell"] == name]).tests["p_holm"].min()
        for name in ("useless", "jemalloc")
    }
    table = trial_table(compare_trials(runs)).set_index("mitigation")
    smaller = min(alone, key=alone.get)
    assert table.loc[smaller, "p_corrected"] == pytest.approx(min(1, 2 * alone[smaller]))


def test_nothing_tried_is_no_failure_and_says_what_is_missing(monkeypatch):
    monkeypatch.setattr("nbhelpers.mitigation.program.find_library", lambda name: None)
    runs = invented(0.8)
    compared = compare_trials(runs[runs["cell"] == "baseline"])
    assert compared == {} and len(trial_table(compared)) == len(trial_statistics(compared)) == 0
    assert trial_sentence(trial_table(compared), "Test") == "Test: no mitigation was tried."
    told = untried_sentence(["jemalloc", "tcmalloc"], compared, matrix_product(100))
    assert (
        "jemalloc was not tried: there is no library jemalloc here (apt-get install libjemalloc2)"
        in told
        and "tcmalloc was not tried" in told
    )
    assert untried_sentence(["jemalloc", "useless"], compare_trials(runs)) == ""


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
