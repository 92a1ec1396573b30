"""The command line: errors are one message, statuses are as documented, and what it measures is
what the library measures.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nbhelpers.cli import DONE, PROGRAM_FAILED, REFUSED, STOPPED, main
from nbhelpers.errors import InputError
from nbhelpers.machine import doctor
from nbhelpers.noise import Signature
from nbhelpers.studies.program_study.plan import plan_study

from ..processes import run_python

REPOSITORY = Path(__file__).resolve().parents[2]


def long(*values):
    return [pytest.param(value, marks=pytest.mark.long) for value in values]


@pytest.mark.parametrize(
    "words, said",
    [
        (["wyh", "--", "true"], "Did you mean 'why'?"),
        (["run", "--rnus", "3", "--", "true"], "--runs"),
        (["run", "--runs=many", "--", "true"], "not a valid integer"),
        (["run", "--runs", "1", "--", "true"], "--runs"),
        (["explain", "--runs", "3", "--", "true"], "x>=12"),
        (["explain", "true", "--runs", "30"], "noisebook explain --runs 30 -- true; or"),
        (["unpack", "--profile", "shared-no", "no.zip"], "make paper DATA="),
        (["run", "--threads", "0", "--", "true"], "--threads"),
        (["run", "--timeout", "0", "--", "true"], "--timeout"),
        (["why", "--budget", "nan", "--", "true"], "nan is no number"),
        (["ab", "--budget", "inf", "--", "true", "--", "true"], "inf is no number"),
        (["why", "--risk", "medium", "--", "true"], "'none', 'low', 'high'"),
        (["run", "--seconds", "took", "--", "true"], "(?P<seconds>"),
        (["run", "--runs", "3"], "noisebook run --runs 3 -- ./program"),
        (["inject", "a.json", "--runs", "3"], "inject a.json --runs 3 -- ./program"),
        (["ab", "--margin", "0", "--", "true", "--", "true"], "--margin"),
        (["ab", "--pairs", "7", "--", "true", "--", "true"], "--pairs"),
        (["ab", "a 1", "b 1"], "noisebook ab -- ./a arguments"),
        (["ab", "--pairs", "9", "--", "sleep", "1"], "ab --pairs 9 -- ./a arguments"),
        (["ab", "--new-env", "A", "--", "true"], "NAME=VALUE"),
        (["ab", "--new-env", "A=1"], "which program?"),
        (["ab", "--new-mitigation", "jemaloc", "--", "true"], "did you mean 'jemalloc'"),
        (["run", "--shell", "true", "--", "true"], "give one of them"),
        (["compare", "build/quick"], "noisebook compare A.zip B.zip"),
        (["compare", "a.zip", "b.zip"], "cannot read it"),
        (["lab", "--profile", "nosuch"], "there is no profile 'nosuch'"),
        (["doctor", "--", "true"], "unexpected extra argument (true)"),
        (["run", "--region", "mark", "--", "true"], "marks"),
        (["run", "--report", "rate", "--", "true"], "NAME=REGEX"),
        (["inject", "none.json", "--threads", "2", "--", "true"], "trace --threads 2 -- true"),
        (["why", "--budget", "0.01", "--", "sleep", "0.01"], "too short"),
        (["verify", "a\x1b[2J folder"], "a�[2J folder"),
    ],
)
def test_what_cannot_be_done_is_one_message_and_status_2(
    words, said, capsys, tmp_path, monkeypatch, binaries
):
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    kept = ["--folder", str(tmp_path / "kept")] if words[0] == "why" else []
    assert main([*words[:1], *kept, *words[1:]]) == REFUSED
    told = capsys.readouterr()
    assert said in told.err and "Traceback" not in told.err and told.out == ""


def test_a_program_that_does_not_exist_or_fails_has_a_status_of_its_own(
    capsys, tmp_path, monkeypatch, binaries
):
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path))
    assert main(["run", "--", "no-such-program"]) == PROGRAM_FAILED
    assert main(["run", "--", "false"]) == PROGRAM_FAILED
    assert "exit 1" in capsys.readouterr().err


def test_a_run_is_told_in_words_and_as_json(capsys, tmp_path, monkeypatch, binaries):
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path))
    rate = ["--report", "rate=(?P<value>[0-9]+) per s:1/s:higher", "--outcome", "rate"]
    words = ["run", "--runs", "3", "--folder", str(tmp_path / "kept"), *rate]
    words += ["--shell", "echo 5 per s | cat"]
    assert main(words) == DONE
    assert "echo, rate (1/s): mean 5" in capsys.readouterr().out
    assert main([*words, "--json"]) == DONE
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == 3 and told["mean"] == 5 and told["folder"] == str(tmp_path / "kept")
    # the same command goes on, and nothing is missing
    assert len((tmp_path / "kept/runs.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("verb", ["run", "explain", *long("inject", "ab", "trace")])
def test_runs_that_failed_or_left_others_are_counted(verb, capsys, tmp_path, monkeypatch, binaries):
    if verb == "trace" and doctor().capabilities.tracer != "tracepoints":
        pytest.skip("needs a user who may record tracepoints")
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    config = Signature(100, 50).config(seconds=0.1, cpus=[0])
    config.write("config.json")
    every_third = "n=$(wc -c <ran); printf x >>ran; test $((n % 3)) != 1 || exit 3; sleep 100 &"
    Path("ran").touch()
    Path("fails.sh").write_text(f"cd {tmp_path}; {every_third} sleep 0.01")
    words = {"inject": ["config.json"], "ab": ["--new-env", "A=1", "--pairs", "8"]}.get(verb, [])
    words += [] if verb == "ab" else ["--runs", "12" if verb == "explain" else "3"]
    main([verb, *words, "--folder", "kept", "--json", "--", "sh", "fails.sh"])
    told = json.loads(capsys.readouterr().out)
    notes = " ".join(told["notes"])
    assert "runs failed (exit status 3)" in notes and "left processes running" in notes
    if verb == "inject":
        events = json.loads(Path(told["perfetto"]).read_text())["traceEvents"]
        planned = [1e3 * one["dur"] for one in events if one["ph"] == "X" and one["pid"] == 1]
        assert sum(planned) == pytest.approx(config.events()["duration_ns"].sum())


def test_ctrl_c_keeps_what_was_measured_and_says_how_to_go_on(tmp_path, binaries):
    folder = tmp_path / "kept"
    words = ["run", "--runs", "1000", "--folder", folder, "--", "sleep", "0.05"]
    here = {"PYTHONPATH": str(REPOSITORY), "NOISEBOOK_STATE": str(tmp_path / "state")}
    command = [sys.executable, "-m", "nbhelpers", *words]
    pipes = {"text": True, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, env=os.environ | here, **pipes)
    log, end = folder / "runs.jsonl", time.monotonic() + 60
    while not (log.exists() and log.read_text().count("\n") >= 2) and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == STOPPED and "Traceback" not in errors
    assert f"kept in {folder}; the same command goes on" in errors
    assert log.read_text().count("\n") >= 2


def test_the_plan_keeps_to_the_time_and_refuses_too_little():
    for run_s, seconds in ((0.02, 300), (1, 300), (3, 300), (10, 900)):
        plan = plan_study(run_s, seconds)
        measured_s = 2 * (plan.traced + plan.replayed) * run_s
        whole_s = measured_s + plan.treated_seconds + plan.proved_seconds
        assert whole_s <= 1.05 * plan.seconds == 1.05 * seconds
        assert plan.traced >= 4 and (plan.replayed >= 5 or plan.replayed == 0)
    assert plan_study(20).seconds == 180 and plan_study(20).traced == 4
    with pytest.raises(InputError, match="too short"):
        plan_study(100, 300)


SCIENCE = ("scipy", "sklearn", "statsmodels", "matplotlib", "seaborn", "jsonschema")
TABLES = ("pandas", "numpy", "pyarrow")


@pytest.mark.parametrize(
    "module, without",
    [
        ("nbhelpers", SCIENCE + TABLES),
        ("nbhelpers.cli", SCIENCE + TABLES),
        ("nbhelpers.places", SCIENCE + TABLES),
        ("nbhelpers.measurement", SCIENCE),
        ("nbhelpers.injection", SCIENCE),
        ("nbhelpers.cli; nbhelpers.cli.main(['why', '--', 'no-such-program'])", SCIENCE),
    ],
)
def test_what_an_import_does_not_load(module, without):
    code = f"import sys, {module}; print([name for name in {without!r} if name in sys.modules])"
    done = run_python(code)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
