"""What noisebook why prints fits a screen, and begins with who took the time."""

import sys

import pandas as pd
import pytest

from nbhelpers.answers import CANNOT_TELL
from nbhelpers.attribution.who import SlowRuns
from nbhelpers.machine import doctor
from nbhelpers.studies.program_study import ProgramStudy, program_from_options
from nbhelpers.studies.program_study.summary import COLUMNS, SEEN, next_command, terminal_text
from nbhelpers.studies.program_study.took import Later, Took
from nbhelpers.studies.program_study.verdicts import Verdict

# every fourth run has four times as much to do
CODE = """import os, sys
path = sys.argv[1]
count = os.path.getsize(path) if os.path.exists(path) else 0
open(path, "a").write("x")
sum(i * i for i in range(1_500_000 if count % 4 == 3 else 400_000))
"""


@pytest.mark.long
@pytest.mark.alone
def test_the_cause_comes_first_and_all_fits_25_lines(tmp_path):
    if doctor().capabilities.tracer != "tracepoints":
        pytest.skip("this user may not record tracepoints")
    command = [sys.executable, "-S", "-c", CODE, str(tmp_path / "count")]
    study = ProgramStudy(program_from_options(command), tmp_path / "study", seconds=14, runs=20)
    lines = terminal_text(study, "page.html", "folder").splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= COLUMNS
    slow = study.took.slow
    assert slow.is_class and slow.slow.mean() == pytest.approx(1 / 4, abs=0.1)
    best = study.took.table.iloc[0]
    assert best["part"] == "computing" and best["explained_share"] == pytest.approx(1, abs=0.3)
    assert "They computed" in " ".join(lines[:3]) and f"({SEEN})" in " ".join(lines[:4])
    study.judge_by(chance=0.0, most=2.0)  # as a cell of page 01
    assert study.took.best is None and study.verdict("who").answer == "no"


LONGER, READ = "They computed 200 ms longer: more work", "read 3 times as many bytes"


@pytest.mark.parametrize(
    "name, low, when, said",
    [
        (
            "io_read_chars",
            300.0,
            "",
            f"{LONGER}. They read 3 times as many bytes as any other run.",
        ),
        ("io_read_chars", 101.0, "", f"{LONGER}, or a slower CPU."),
        ("context_switches", 300.0, "", f"{LONGER}, or a slower CPU."),
        ("context_switches", 300.0, "every 4th run", f"{LONGER}. No CPU is slower every 4th run."),
    ],
)
def test_runs_that_compute_longer_and_read_more_do_more_work(name, low, when, said):
    row = {"slow_high": 400.0, "others_high": 100.0, "more": 200.0, "p_value": 0.001}
    computed = row | {"part": "computing", "name": "the program", "slow_low": 200.0}
    table = pd.DataFrame([computed, row | {"part": "counter", "name": name, "slow_low": low}])
    slow = SlowRuns(pd.Series([False, True]), True, when, 1.0)
    assert Took(slow, pd.DataFrame(), table, (0.1, 0.1)).words() == said


def test_a_loop_that_is_slower_beside_slow_runs_says_that_the_cpu_was():
    row = {"part": "computing", "name": "the program", "slow_low": 200.0, "slow_high": 400.0}
    table = pd.DataFrame([row | {"others_high": 100.0, "more": 40.0, "p_value": 0.001}])
    slow = SlowRuns(pd.Series([False, True]), True, "", 1.0)
    took = Took(slow, pd.DataFrame(), table, (0.1, 0.1), speed=0.79)
    said = "They computed 40 ms longer: a slower CPU or memory."
    assert took.words() == f"{said} A loop beside them ran at 79 % of its usual speed."
    assert took.name in said and "turbostat" in next_command(took, "sleep 0.01")


@pytest.mark.parametrize(
    "part, name, said",
    [
        ("runnable", "backupd", "backupd"),
        ("computing", "the program", "the program's own computing"),
        ("taken", "", CANNOT_TELL),
    ],
)
def test_the_answer_has_the_name_of_the_headline_though_no_remedy_is_confirmed(
    part, name, said, tmp_path
):
    row = {"part": part, "name": name, "slow_low": 200.0, "slow_high": 430.0, "others_high": 13.0}
    table = pd.DataFrame(
        [row | {"more": 300.0, "explained_share": 1.0, "p_value": 0.001 if name else 0.4}]
    )
    slow = SlowRuns(pd.Series([False, True]), True, "", 1.0)
    study = ProgramStudy(program_from_options("sleep 0.01"), tmp_path)
    took = Took(
        slow, pd.DataFrame(), table, (0.1, 0.1), tested=Later("runnable", name, 0.02, 20, 20)
    )
    study.__dict__["took"] = took
    asked = ["spread", "remedy", "anomaly", "proof", "cause", "noise"]
    known = dict.fromkeys(asked, CANNOT_TELL)
    known["who"] = "yes" if name else "no"
    study._found.update({about: Verdict("", word, "so") for about, word in known.items()})
    assert study.answer().answer == said and (said in study.headline()) == (part == "runnable")
    again = "The first 20 traced runs name it, the next 20 again (p = 0.020)."
    assert (f"{again} (seen again in other runs) Try" in study.headline()) == (part == "runnable")
    study._found["anomaly"] = Verdict("", "60 % of it", "so", 0.6, 0.52, 0.7)
    assert ("(replayed)" in study.headline()) == bool(name)
    study._found["noise"] = Verdict("", "", "87 %. Most is python (thread).", 0.87)
    assert ("others had: 87 %. Most is python" in study.headline()) == (not name)
