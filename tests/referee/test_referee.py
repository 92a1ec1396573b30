"""The referee: real programs in turn, the right verdict, and everything that is written of it."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from nbhelpers.cli import main
from nbhelpers.errors import InputError
from nbhelpers.measurement import finished, recorded_runs
from nbhelpers.reading import read_json
from nbhelpers.referee.duel import Duel, NamedFiles, log_ratios
from nbhelpers.referee.ruling import (
    BUDGET_ENDS,
    decide,
    far_runs,
    more_on_one_side,
    ruling_of,
)
from nbhelpers.referee.sides import Side, configured
from nbhelpers.statistics.sequential import BETTER, OPEN, WITHIN, WORSE
from nbhelpers.workloads import program


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch, binaries):
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path / "state"))


def sleeping(seconds):
    return Side(program(["sleep", str(seconds)]))


def measured(change, pairs=120, spread=0.01, seed=1):
    """Runs of a duel with known times."""
    random, rounds = np.random.default_rng(seed), np.arange(pairs)
    times = np.exp(random.normal(0, spread, (pairs, 2))) * [1, 1 + change]
    seconds = (1 + 0.001 * rounds)[:, None] * times
    runs = pd.DataFrame({"round": np.repeat(rounds, 2), "cell": ["old", "new"] * pairs})
    return runs.assign(seconds=seconds.ravel(), status="ok", run=runs.index)


def test_a_slower_program_is_worse_and_the_same_call_measures_nothing_more(tmp_path):
    ruling = decide(sleeping(0.005), sleeping(0.1), tmp_path)
    assert ruling.verdict == WORSE and ruling.change > ruling.low > 0
    runs = recorded_runs(tmp_path)
    assert len(runs) == 2 * ruling.pairs
    again = decide(sleeping(0.005), sleeping(0.1), tmp_path)
    assert again.sentence == ruling.sentence and len(recorded_runs(tmp_path)) == len(runs)


def test_each_duel_has_a_coin_of_its_own_which_its_folder_keeps(tmp_path):
    sides = sleeping(0.001), sleeping(0.001)
    orders = set()
    for name in ("first", "second", "first"):
        decide(*sides, tmp_path / name, pairs=8, seconds=1e-9)
        orders.add(read_json(tmp_path / name / "campaign.json")["seed"])
    assert len(orders) == 2


def test_who_goes_first_is_a_coin_a_pair_and_starts_are_random(tmp_path):
    duel = Duel(tmp_path, sleeping(0.001), sleeping(0.001), pairs=12)
    runs = finished(duel.run()).sort_values("t0_ns")
    first = runs["cell"].to_numpy()[::2]
    assert set(first) == {"old", "new"} and (runs["cell"].to_numpy()[1::2] != first).all()
    assert runs["padding_bytes"].nunique() > 20 and runs["start_wait_ms"].between(0, 10).all()
    assert log_ratios(runs).size == 12
    assert log_ratios(runs[runs["run"] != runs["run"].max()]).size == 11, "a pair has two runs"


def test_a_budget_that_is_spent_says_what_is_missing(tmp_path):
    rare = {"level": 0.001}  # of eight pairs nothing is so rare
    ruling = decide(sleeping(0.005), sleeping(0.00501), tmp_path, seconds=0, **rare)
    assert ruling.verdict == OPEN and ruling.pairs == 8 and "more pairs" in ruling.sentence
    more = decide(sleeping(0.005), sleeping(0.00501), tmp_path, pairs=12, **rare)
    assert 8 < more.pairs <= 12
    with pytest.raises(InputError, match="at least 8"):
        decide(sleeping(0.005), sleeping(0.005), pairs=4)


def test_each_end_of_a_budget_takes_its_part_of_the_level_but_once(tmp_path):
    sides, rare = (sleeping(0.002), sleeping(0.002)), {"margin": 1e-6, "level": 0.003}
    assert decide(*sides, tmp_path, pairs=8, **rare).verdict == OPEN
    assert not (tmp_path / BUDGET_ENDS).exists(), "of eight pairs there is nothing to see"
    first = decide(*sides, tmp_path, pairs=10, **rare)
    assert read_json(tmp_path / BUDGET_ENDS) == {"pairs": [10]} and first.low is not None
    again = decide(*sides, tmp_path, pairs=10, **rare)
    assert again.sentence == first.sentence
    decide(*sides, tmp_path, pairs=25, **rare)
    assert read_json(tmp_path / BUDGET_ENDS) == {"pairs": [10, 25]}


@pytest.mark.long
def test_waiting_for_the_machine_is_not_in_the_budget(tmp_path):
    holder = (
        "import sys, time; from nbhelpers.machine import measuring\n"
        "with measuring(): print('held', flush=True); time.sleep(2)"
    )
    held = subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE, text=True)
    assert held.stdout.readline() == "held\n"
    ruling = decide(sleeping(0.005), sleeping(0.00501), tmp_path, margin=1e-4, seconds=1.5)
    assert held.wait(timeout=60) == 0
    assert ruling.pairs > 8


def test_rulings_on_known_times():
    assert ruling_of(measured(0.02), "a", "b").verdict == WORSE
    assert ruling_of(measured(0.0), "a", "b").verdict == WITHIN
    wide = ruling_of(measured(0.0, pairs=20, spread=0.5), "a", "b")
    assert wide.verdict == OPEN and wide.more_pairs is None or wide.more_pairs > 0
    slow = measured(0.02).replace({"old": "new", "new": "old"})
    assert ruling_of(slow, "a", "b").verdict == BETTER


def test_whose_runs_failed_is_said():
    runs = measured(0.02, pairs=30)
    runs.loc[runs.index[runs["cell"] == "old"][:4], "status"] = "exit 1"
    notes = ruling_of(runs, "a", "b").notes
    assert "old: 4 of 30 runs failed (exit status 1); they are excluded" in notes


def test_a_rate_is_judged_by_its_reciprocal():
    runs = measured(0.05)
    runs = runs.assign(rate=1 / runs["seconds"], outcome="rate")
    runs["reports"] = json.dumps({"rate": ["1/s", "higher"]})
    ruling = ruling_of(runs, "a", "b")
    assert ruling.verdict == WORSE and ruling.outcome == "1 / rate"


def test_far_runs_are_named_and_count():
    runs = measured(0.0)
    new = runs.index[runs["cell"] == "new"]
    runs.loc[new[::8], "seconds"] *= 3
    far = far_runs(runs)
    assert set(far["run"]) == set(runs.loc[new[::8], "run"])
    assert "old 0 of 120, new 15 of 120" in more_on_one_side(runs, far)
    ruling = ruling_of(runs, "a", "b")
    assert ruling.mean_change > 0.15 > 0.01 > abs(ruling.change)
    assert any("not equally frequent" in note for note in ruling.notes)


def test_the_record_is_json(tmp_path):
    ruling = ruling_of(measured(0.02), "./a <x>", "./b", folder=tmp_path)
    record = json.loads(json.dumps(ruling.as_dict()))
    assert record["verdict"] == WORSE and record["medians"] == list(ruling.medians)
    assert record["pairs"] == ruling.pairs and record["low"] == ruling.low


def test_settings_make_two_sides():
    side = configured(program("sleep 0.01"), {"A": "1"}, ["aslr-off"])
    assert side.text == "sleep 0.01, A=1, aslr-off" and ("A", "1") in side.workload.env
    assert Side(program(["sleep", "0.01 7.*7"])).text == "sleep '0.01 7.*7'"  # as a shell reads it
    watched = configured(program("sleep 0.01"), watched=True)
    assert [one.name for one in watched.attachments] == ["none"]


def test_another_script_is_another_program(tmp_path):
    script = tmp_path / "a.py"
    script.write_text("pass")
    workload = program([sys.executable, str(script)])
    before = NamedFiles(workload).identity
    script.write_text("print()")
    assert NamedFiles(workload).identity != before


@pytest.mark.long
def test_the_command_and_its_statuses(tmp_path, capsys):
    folder = ["--folder", str(tmp_path / "a")]
    assert main(["ab", *folder, "--", "sleep", "0.03", "--", "sleep", "0.003"]) == 0
    assert capsys.readouterr().out.startswith("better (run time -")
    told = ["ab", "--folder", str(tmp_path / "c"), "--json"]
    assert main([*told, "--", "sleep", "0.003", "--", "sleep", "0.03"]) == 4
    assert json.loads(capsys.readouterr().out)["verdict"] == WORSE
    assert (tmp_path / "c/ruling.json").exists()
    words = ["--budget", "0", "--level", "0.001", "--", "sleep", "0.01", "--", "sleep", "0.0101"]
    assert main(["ab", "--folder", str(tmp_path / "b"), *words]) == 5
    assert "to go on: the same command with --folder" in capsys.readouterr().err
