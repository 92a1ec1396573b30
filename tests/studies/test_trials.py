"""Mitigations tried by hand: the table says that one helps only where it does."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.mitigation.treatment import why_unproven
from nbhelpers.studies.trials import candidates, judge_runs, measured_again, trial_runs, trial_table
from nbhelpers.workloads import Workload, binary_folder

RETURNED = Workload(
    "returned memory",
    "external",
    (str(binary_folder() / "victim"), "allocate", "230", "0"),
    env={"MALLOC_MMAP_THRESHOLD_": "65536"},
    start="mark",
)


def test_returned_memory_is_kept_by_the_mitigation(binaries, tmp_path):
    runs = trial_runs(tmp_path, RETURNED, ["malloc-keeps-memory", "prefault"], 3)
    faults = runs.groupby("mitigation")["minor_faults"].median()
    assert set(faults.index) == {"none", "malloc-keeps-memory"}  # what is advice only isn't tried
    assert faults["malloc-keeps-memory"] < 0.2 * faults["none"]
    again = trial_runs(tmp_path, RETURNED, [], 3, recorded_only=True)
    assert again["run"].tolist() == runs["run"].tolist()


@pytest.mark.long
def test_a_mitigation_that_comes_later_is_tried_beside_the_untreated_runs_of_its_own_time(
    binaries, tmp_path
):
    first = trial_runs(tmp_path, RETURNED, ["malloc-keeps-memory"], 8)
    runs = trial_runs(tmp_path, RETURNED, ["malloc-keeps-memory", "flush-first"], 8)
    assert runs["run"].tolist()[:16] == first["run"].tolist()
    counts = {"baseline": 16, "malloc-keeps-memory": 8, "flush-first": 8}
    assert runs["cell"].value_counts().to_dict() == counts
    rounds = trial_table(judge_runs(runs)).set_index("mitigation")["rounds"].to_dict()
    assert rounds == {"malloc-keeps-memory": "0-7", "flush-first": "8-15"}
    gone = trial_runs(tmp_path, RETURNED, [], 8)
    assert gone["run"].tolist() == runs["run"].tolist() and len(trial_table(judge_runs(gone))) == 2


def invented(ratio, seed=4):
    random = np.random.default_rng(seed)
    scales = {"baseline": 1.0, "useless": 1.0, "jemalloc": ratio}
    runs = pd.DataFrame({"cell": [*scales] * 30, "round": np.repeat(range(30), 3)})
    noise = 1 + 0.01 * random.standard_normal(len(runs))
    runs["seconds"] = runs["cell"].map(scales) * noise
    return runs.assign(start_ns=runs.index, status="ok")


def test_the_table_says_what_helped_only_where_it_was_shown_twice():
    judged = judge_runs(invented(0.8))
    once = trial_table(judged)
    assert once["mitigation"].tolist() == ["jemalloc", "useless"]
    assert once.loc[0, "verdict"] == "seems to help, not confirmed"
    assert once.loc[0, "mean_low"] < 0.8 < once.loc[0, "mean_high"] and (once["runs"] == 30).all()
    twice = trial_table(judged, {"jemalloc": judge_runs(invented(0.8, seed=5))["jemalloc"]})
    assert twice.loc[0, "verdict"] == "helps"
    gone = trial_table(judged, {"jemalloc": judge_runs(invented(1.0, seed=5))["jemalloc"]})
    assert gone.loc[0, "verdict"] == "not when measured again"


def test_what_seems_to_help_is_measured_again_in_other_rounds(binaries, tmp_path):
    first = judge_runs(invented(0.8).replace("jemalloc", "malloc-keeps-memory"))
    again = measured_again(tmp_path / "again", RETURNED, first, 3)
    assert set(again) == {"malloc-keeps-memory"} and again["malloc-keeps-memory"].faster.units == 3
    assert measured_again(tmp_path / "no", RETURNED, first, 3, 1, True) == {}


def test_what_may_help_says_why_the_rest_is_not_tried(binaries):
    table = candidates("minor_faults_per_s", RETURNED)
    rows = table.set_index("mitigation")
    assert set(rows["factor"]) == {"page-faults"} and rows.loc["malloc-keeps-memory", "tried"]
    assert not rows.loc["prefault", "tried"] and "automated" in rows.loc["prefault", "reason"]
    assert (rows["tried"] == (rows["reason"] == "")).all()


def test_what_no_run_shows_to_act_on_the_program_is_not_tried(binaries):
    """It has one thread: no limit of malloc's arenas holds it back."""
    assert why_unproven("flush-first", RETURNED) == ""
    assert "which no limit holds back" in why_unproven("malloc-arenas", RETURNED)
