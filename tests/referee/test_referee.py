"""The referee: real programs in turn, the right verdict, and everything that is written of it."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbhelpers.cli import main
from nbhelpers.errors import InputError, RunError, Unavailable
from nbhelpers.measurement import finished, recorded_runs
from nbhelpers.page import outside_loads
from nbhelpers.referee.curve import operating_curve
from nbhelpers.referee.duel import Duel, NamedFiles, quads_of
from nbhelpers.referee.outliers import far_runs, more_on_one_side
from nbhelpers.referee.revisions import built_revisions, placed
from nbhelpers.referee.ruling import decide, read_ruling, ruling_of
from nbhelpers.referee.sheet import comment, write_sheet
from nbhelpers.referee.sides import Side, configured
from nbhelpers.statistics.sequential import OPEN, WITHIN, WORSE
from nbhelpers.workloads import program

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch, binaries):
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path / "state"))


def sleeping(seconds):
    return Side(program(["sleep", str(seconds)]))


def measured(change, quads=60, spread=0.01, seed=1):
    """Runs of a duel with known times."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(2 * quads):
        drift = 1 + 0.001 * number
        old, new = drift * np.exp(random.normal(0, spread, 2)) * [1, 1 + change]
        rows += [
            {"round": number, "cell": "old", "seconds": old},
            {"round": number, "cell": "new", "seconds": new},
        ]
    return pd.DataFrame(rows).assign(status="ok").rename_axis("run").reset_index()


def test_a_slower_program_is_worse_and_the_same_call_measures_nothing_more(tmp_path):
    ruling = decide(sleeping(0.005), sleeping(0.03), tmp_path)
    assert ruling.worse and ruling.change > 1 and ruling.low > 0
    runs = recorded_runs(tmp_path)
    assert len(runs) == 2 * ruling.pairs
    again = decide(sleeping(0.005), sleeping(0.03), tmp_path)
    assert again.sentence == ruling.sentence and len(recorded_runs(tmp_path)) == len(runs)


def test_the_order_is_a_coin_a_quad_and_starts_are_random(tmp_path):
    duel = Duel(tmp_path, sleeping(0.001), sleeping(0.001), quads=6)
    runs = finished(duel.run()).sort_values("t0_ns")
    orders = ["".join(cell[0] for cell in quad) for quad in runs["cell"].to_numpy().reshape(-1, 4)]
    assert set(orders) == {"onno", "noon"}
    assert runs["padding_bytes"].nunique() > 20 and runs["start_wait_ms"].between(0, 10).all()
    assert len(quads_of(runs)) == 6
    assert len(quads_of(runs[runs["run"] != runs["run"].max()])) == 5, "a quad has four runs"


def test_a_budget_that_is_spent_says_what_is_missing(tmp_path):
    ruling = decide(sleeping(0.005), sleeping(0.00501), tmp_path, seconds=0)
    assert ruling.open and ruling.pairs == 8 and "more pairs" in ruling.sentence
    more = decide(sleeping(0.005), sleeping(0.00501), tmp_path, pairs=12)
    assert 8 < more.pairs <= 12
    with pytest.raises(InputError, match="at least 8"):
        decide(sleeping(0.005), sleeping(0.005), pairs=4)


def test_waiting_for_the_machine_is_not_in_the_budget(tmp_path):
    holder = (
        "import sys, time; from nbhelpers.machine import measuring\n"
        "with measuring(): print('held', flush=True); time.sleep(2)"
    )
    held = subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE, text=True)
    assert held.stdout.readline() == "held\n"
    ruling = decide(sleeping(0.005), sleeping(0.00501), tmp_path, margin=1e-4, seconds=1.5)
    assert held.wait(timeout=60) == 0
    assert ruling.pairs > 16


def test_rulings_on_known_times():
    assert ruling_of(measured(0.02), "a", "b").verdict == WORSE
    assert ruling_of(measured(0.0), "a", "b").verdict == WITHIN
    wide = ruling_of(measured(0.0, quads=10, spread=0.5), "a", "b")
    assert wide.verdict == OPEN and wide.more_pairs is None or wide.more_pairs > 0
    slow = measured(0.02).replace({"old": "new", "new": "old"})
    assert ruling_of(slow, "a", "b").better


def test_whose_runs_failed_is_said():
    runs = measured(0.02, quads=15)
    runs.loc[runs.index[runs["cell"] == "old"][:4], "status"] = "exit 1"
    assert (
        "Runs failed (old 4 of 30, new 0 of 30); they are excluded."
        in ruling_of(runs, "a", "b").notes
    )


def test_an_interval_with_one_end_says_so():
    ruling = replace(ruling_of(measured(0.02), "a", "b"), low=0.01, high=None)
    assert "at least +1.0 % at 99 %" in ruling.sentence
    assert "at most +3.0 % at 99 %" in replace(ruling, low=None, high=0.03).sentence


def test_a_rate_is_judged_by_its_reciprocal():
    runs = measured(0.05)
    runs = runs.assign(rate=1 / runs["seconds"], outcome="rate")
    runs["reports"] = json.dumps({"rate": ["1/s", "higher"]})
    ruling = ruling_of(runs, "a", "b")
    assert ruling.worse and ruling.outcome == "1 / rate"


def test_far_runs_are_named_and_count():
    runs = measured(0.0)
    new = runs.index[runs["cell"] == "new"]
    runs.loc[new[:15], "seconds"] *= 3
    far = far_runs(runs)
    assert set(far["run"]) == set(runs.loc[new[:15], "run"])
    assert "old 0 of 120, new 15 of 120" in more_on_one_side(runs, far)
    ruling = ruling_of(runs, "a", "b")
    assert ruling.mean_change > 0.15 > 0.01 > abs(ruling.change)
    assert any("not equally frequent" in note for note in ruling.notes)


def test_the_record_the_comment_and_the_page(tmp_path):
    runs = measured(0.02)
    runs.loc[5, "seconds"] *= 4
    ruling = ruling_of(runs, "./a <x>", "./b", folder=tmp_path)
    assert read_ruling(ruling.write(tmp_path / "ruling.json")) == ruling
    text = comment(ruling)
    assert text.startswith("**🔴 worse**") and "| median, s |" in text and "far" in text
    curve = operating_curve(np.array(ruling.ratios * 3), changes=[0.0, 0.05], campaigns=50)
    page = write_sheet(tmp_path / "ab.html", ruling, curve).read_text()
    assert "<svg" in page and "<td>./a &lt;x&gt;</td>" in page and "median pairs" in page
    assert "<strong>Worse (run time +" in page and f'"number">{ruling.medians[0]:.4g}</td>' in page
    assert not outside_loads(page)
    with pytest.raises(InputError, match="no record of the referee"):
        (tmp_path / "other.json").write_text("{}")
        read_ruling(tmp_path / "other.json")


def test_the_operating_curve_has_few_false_alarms_and_power_that_grows():
    quads = 0.02 * np.random.default_rng(3).standard_t(3, (80, 2)) + 0.3
    curve = operating_curve(quads, changes=[0.0, 0.02, 0.1], pairs=[20, 100, 200], seed=4)
    none = curve[curve["change"] == 0]
    assert (none["worse"] + none["better"]).max() <= 0.02
    power = curve.set_index(["change", "pairs"])["worse"]
    assert power[0.02].is_monotonic_increasing and power[0.1, 100] == 1.0
    with pytest.raises(InputError, match="20 pairs say too little"):
        operating_curve(quads[:10])


def test_settings_make_two_sides():
    side = configured(program("sleep 0.01"), {"A": "1"}, ["aslr-off"])
    assert side.text == "sleep 0.01, A=1, aslr-off" and ("A", "1") in side.workload.env
    watched = configured(program("sleep 0.01"), watched=True)
    assert [one.name for one in watched.attachments] == ["none"]


def test_another_script_is_another_program(tmp_path):
    script = tmp_path / "a.py"
    script.write_text("pass")
    workload = program([sys.executable, str(script)])
    before = NamedFiles(workload).identity
    script.write_text("print()")
    assert NamedFiles(workload).identity != before


@pytest.fixture
def repository(tmp_path):
    """Two commits of a program that is built by copying; the second one sleeps longer."""
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", folder, *who, *words], check=True, capture_output=True)

    git("init", "-b", "main")
    for seconds in ("0.002", "0.03"):
        (folder / "source").write_text(f"#!/bin/sh\nexec sleep {seconds}\n")
        git("add", ".")
        git("commit", "-m", seconds)
    return folder


BUILD = "install -m 755 source program"


def test_without_git_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="git is not installed"), built_revisions(["main"], ""):
        pass


def test_two_revisions_are_built_apart_and_removed(repository):
    with built_revisions(["HEAD~1", "main"], BUILD, repository) as folders:
        assert len({len(str(folder)) for folder in folders}) == 1, "paths of one length"
        texts = [(folder / "program").read_text() for folder in folders]
        assert "0.002" in texts[0] and "0.03" in texts[1]
    assert not any(folder.exists() for folder in folders)
    listed = ["git", "-C", repository, "worktree", "list"]
    assert len(subprocess.check_output(listed).splitlines()) == 1
    with (
        pytest.raises(InputError, match="no revision 'nowhere'"),
        built_revisions(["main", "nowhere"], "", repository),
    ):
        pass
    with (
        pytest.raises(RunError, match="the build failed with status 3"),
        built_revisions(["main"], "exit 3", repository),
    ):
        pass
    assert placed(["program", "x"], folders[0]) == ["program", "x"]


def test_the_command_compares_revisions_and_says_so_by_its_status(
    repository, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(repository)
    words = ["ab", "--git", "HEAD~1", "HEAD", "--build", BUILD, "--folder", str(tmp_path / "ab")]
    assert main([*words, "--json", "--", "./program"]) == 4
    record = json.loads(capsys.readouterr().out)
    assert record["verdict"] == WORSE and record["new"] == "./program of HEAD"
    assert main(["ab", "--comment", str(tmp_path / "ab/ruling.json")]) == 0
    assert capsys.readouterr().out.startswith("**🔴 worse**")
    assert (tmp_path / "ab/ab.html").exists()


def test_the_command_and_its_statuses(tmp_path, capsys):
    folder = ["--no-page", "--folder", str(tmp_path / "a")]
    assert main(["ab", *folder, "--", "sleep", "0.03", "--", "sleep", "0.003"]) == 0
    assert capsys.readouterr().out.startswith("better (run time -")
    words = ["--old", "sleep 0.01", "--new", "sleep 0.0101", "--budget", "0"]
    assert main(["ab", "--no-page", "--folder", str(tmp_path / "b"), *words]) == 5
    assert "to go on: the same command with --folder" in capsys.readouterr().err
    few = ["ab", *folder, "--curve", "--budget", "0", "--", "sleep", "0.001"]
    assert main(few) == 0 and "no operating curve: 8 pairs say" in capsys.readouterr().err
    for wrong, message in (
        (["ab", "--margin", "0", "--", "true", "--", "true"], "a percentage above 0"),
        (["ab", "--pairs", "3", "--", "true", "--", "true"], "--pairs 8 or more"),
        (["ab", "a 1", "b 1"], "noisebook ab --old 'a 1' --new 'b 1'"),
        (["ab", "a", "1", "--", "b", "1"], "noisebook ab [options] -- a 1 -- b 1"),
        (["ab", "--", "sleep", "0.01"], "which two programs?"),
        (["ab", "--old", "a"], "give both"),
        (["ab", "--new-env", "A", "--", "true"], "NAME=VALUE"),
        (["ab", "--git", "a", "b", "--shell", "x"], "needs the program"),
        (["ab", "--new-env", "A=1"], "which program?"),
    ):
        assert (
            main([*wrong, *folder] if "--" not in wrong else [*wrong[:1], *folder, *wrong[1:]]) == 2
        )
        assert message in capsys.readouterr().err


def test_the_plugin_gives_tests_a_referee(pytester, tmp_path):
    pytester.makepyfile(
        """
        def test_slower(referee):
            assert not referee("sleep 0.003", "sleep 0.03").worse

        def test_of_nothing(referee):
            referee("./nowhere", "sleep 0.03")
        """
    )
    done = pytester.runpytest_subprocess()
    done.assert_outcomes(failed=2)
    assert "there is no such program" in done.stdout.str()
    assert "programs.py" not in done.stdout.str(), "our own code is no news to them"
    done.stdout.fnmatch_lines(["*= referee =*", "*::test_slower: worse*"])
