"""`program`: one description for anybody's program, driven by real processes that print, write
files and fail.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from nbhelpers.attribution import explain
from nbhelpers.errors import InputError, RunError
from nbhelpers.measurement import Campaign, Cell, measure, run_once
from nbhelpers.outcomes import Outcome, outcome_of, reported, with_cost, worst_first
from nbhelpers.statistics import compare, compare_costs
from nbhelpers.workloads import Report, as_workload, program

RATE = Report("rate", r"^rate (?P<value>\S+)$", "MB/s", "higher")


def script(code: str, **described):
    return program([sys.executable, "-S", "-c", code], **described)


# ---- the command ----


@pytest.mark.parametrize("line", ["./a | tail", "a > out", "a; b", 'echo "$HOME"', "a\nb"])
def test_what_only_a_shell_does_is_refused_and_says_what_to_write(line):
    with pytest.raises(InputError, match="only a shell(.|\n)*shell=True"):
        measure(line)


@pytest.mark.parametrize(("line", "word"), [("echo 'a | b'", "a | b"), (r"echo a\|b", "a|b")])
def test_quoted_it_is_an_argument(line, word):
    assert program(line).command[1:] == (word,)


def test_a_shell_line_is_one():
    line = "printf 'x\\nrate 7\\n' | tail -1; exit 0"
    row = run_once(program(line, shell=True, reports=[RATE], outcome="rate"))
    assert (row["status"], row["rate"], row["workload"]) == ("ok", 7, "printf")
    assert run_once(program("echo oh >&2 && exit 3", shell=True))["status"] == "exit 3"
    with pytest.raises(InputError, match="one string"):
        program(["a", "|", "b"], shell=True)
    missing = run_once(program("no-such-command-anywhere", shell=True))
    assert missing["status"] == "exit 127" and "cannot find" in missing["message"]


def test_a_workload_has_its_own_keywords():
    workload = program("true")
    assert as_workload(workload) is workload
    with pytest.raises(InputError, match="seconds: not possible with a workload"):
        measure(workload, seconds="(?P<seconds>1)")
    with pytest.raises(InputError, match="'outcom'"):
        measure("true", outcom="rate")


# ---- errors that help ----


def test_errors_say_what_is_wrong_and_what_mends_it(tmp_path):
    foreign = bytearray(Path(sys.executable).resolve().read_bytes()[:4096])
    # RISC-V, or x86-64
    foreign[18:20] = b"\xf3\x00" if foreign[18:20] != b"\xf3\x00" else b"\x3e\x00"
    plain = tmp_path / "plain"
    for content, mode, message in (
        (b"#!/bin/sh\n", 0o644, r"chmod \+x"),
        (b"#!/no/such/interpreter -x\n", 0o755, "not here: /no/such/interpreter"),
        (foreign, 0o755, "another kind of machine"),
    ):
        plain.write_bytes(content)
        plain.chmod(mode)
        with pytest.raises(RunError, match=message):
            measure(str(plain))


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("printf 'one\\ntwo\\nthree\\n'", "unreadable output", ("took (?P<seconds>", "three")),
        ("true", "unreadable output", ("it printed nothing",)),
        ("sh -c 'echo dying >&2; exit 4'", "exit 4", ("dying",)),
    ],
)
def test_an_output_without_a_match_shows_its_last_lines_and_what_was_sought(command, status, words):
    row = run_once(program(command, seconds=r"took (?P<seconds>\d+)"))
    assert row["status"] == status and row["seconds"] is None
    assert all(word in row["message"] for word in words)


# ---- reports ----


def test_several_reports_of_output_and_errors_and_the_last_match_counts():
    line = "printf 'rate 3\\nrate 4\\nsteps 12\\n'; echo latency 2e-3 ms >&2"
    reports = (
        RATE,
        Report("latency", r"latency (?P<latency>\S+) ms", "ms"),
        Report("steps", r"steps (?P<value>\d+)", direction="neither"),
    )
    runs = measure(program(line, shell=True, reports=reports, outcome="rate"), runs=2)
    assert (runs[["rate", "latency", "steps"]] == [4, 0.002, 12]).all(axis=None)
    rate, latency = Outcome("rate", "MB/s", "higher"), Outcome("latency", "ms", "lower")
    assert outcome_of(runs) == rate and reported(runs) == {"rate": rate, "latency": latency}
    assert runs["seconds"].tolist() == pytest.approx(runs["wall_seconds"].tolist(), abs=1e-6)


@pytest.mark.parametrize(
    "unit, factor", [("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("min", 60)]
)
def test_a_reported_time_has_a_unit(unit, factor):
    row = run_once(program("echo took 30", seconds=Report("seconds", r"took (?P<value>\d+)", unit)))
    assert row["seconds"] == pytest.approx(30 * factor)


def test_a_report_that_is_the_outcome_must_be_there_and_others_need_not():
    assert run_once(program("echo nothing", reports=[RATE]))["status"] == "ok"
    for said, message in (("nothing", "'rate' was not found"), ("rate -1", "no positive number")):
        row = run_once(program(["echo", said], reports=[RATE], outcome="rate"))
        assert row["status"] == "unreadable output" and message in row["message"]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"pattern": "a", "path": "b"},
        {"pattern": "a"},
        {"pattern": "("},
        {"path": "a", "direction": "up"},
        {"path": "a", "form": "xml"},
    ],
)
def test_a_report_that_cannot_be_read_is_refused(wrong):
    with pytest.raises(InputError):
        Report("rate", **wrong)


def test_reports_of_one_name_and_outcomes_that_nobody_reports_are_refused():
    with pytest.raises(InputError):
        program("true", reports=[RATE, RATE])
    with pytest.raises(InputError, match="no report"):
        program("true", outcome="rate")


# ---- files ----


def writes(path, text):
    return f"open({str(path)!r}, 'w').write({text!r})"


def test_json_yaml_and_csv_files(tmp_path):
    results = {"results": {"runs": [{"total": {"seconds": 1.5}}], "ok": True}, "dots": {"a.b": 3}}
    code = "; ".join(
        [
            writes(tmp_path / "r.json", json.dumps(results)),
            writes(tmp_path / "r.yaml", "CG solve:\n  Total CG Time: 2.5\n"),
            writes(tmp_path / "r.csv", "kernel, rate\nCopy, 10\nTriad, 20.5\nDot, 30\n"),
        ]
    )
    reports = [
        Report("a", path="results.runs.0.total.seconds"),
        Report("b", path=("dots", "a.b")),
        Report("c", path="CG solve.Total CG Time", file=str(tmp_path / "r.yaml")),
        Report("d", column="rate", where={"kernel": "Triad"}, file=str(tmp_path / "*.csv")),
        Report("e", column="rate", row=0, file=str(tmp_path / "r.csv")),
    ]
    row = run_once(script(code, reports=reports, files=str(tmp_path / "r.json")))
    assert row["status"] == "ok" and [row[name] for name in "abcde"] == [1.5, 3, 2.5, 20.5, 10]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"path": "results.total"}, "no 'total' at results of r.json, which has: seconds"),
        ({"path": "results"}, "not a number"),
        ({"column": "rate"}, "no column 'rate'"),
        ({"path": "a", "file": "other.json"}, "no file other.json"),
    ],
)
def test_a_number_that_is_not_in_its_file_is_an_error_with_what_is_there(place, message):
    code = writes("r.json", '{"results": {"seconds": 1}}')
    report = Report("x", **{"file": "r.json", **place})
    row = run_once(script(code, reports=[report], outcome="x", fresh_folder=True))
    assert row["status"] == "unreadable output" and message in row["message"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('note: warming up\n{"jobs": [{"bw": 20}]}', {"path": "jobs.0.bw"}),
        ("kernel,rate\nCopy,10\nTriad,20", {"column": "rate", "where": {"kernel": "Triad"}}),
    ],
)
def test_json_and_csv_of_the_standard_output(text, place):
    assert run_once(program(["echo", text], reports=[Report("x", **place)]))["x"] == 20


def test_a_file_of_an_earlier_run_is_not_this_runs(tmp_path):
    stale = tmp_path / "r.json"
    stale.write_text('{"a": 1}')
    described = {"reports": [Report("a", path="a", file=str(stale))], "outcome": "a"}
    row = run_once(program("true", **described))
    assert row["status"] == "unreadable output" and "not written by this run" in row["message"]
    by_pattern = program("true", seconds=r"(?P<seconds>\d)", files=str(stale))
    assert "not written by this run" in run_once(by_pattern)["message"]
    code = f"""
import os
s = os.stat({str(stale)!r})
{writes(stale, '{"a": 2}')}
os.utime({str(stale)!r}, ns=(s.st_atime_ns, s.st_mtime_ns))
"""
    assert run_once(script(code, **described))["a"] == 2, "of the old time and size, and yet new"


# ---- one description for every stage ----


def two_rates(folder):
    """Its rate is 50 in a quarter of the runs, at random places, and 100 else, the lower the more
    faults; its time tells nothing.
    """
    code = f"""
import os, random
n = len(os.listdir({str(folder)!r})); open({str(folder)!r} + '/' + str(n), 'w')
slow = random.Random(n).random() < 0.25
print('rate', 50 + n / 100 if slow else 100 + n / 100)
print('faults', 900 - n if slow else 100 - n)
"""
    faults = Report("faults", r"faults (?P<value>\d+)", direction="neither")
    return script(code, reports=[RATE, faults], outcome="rate")


def test_a_throughput_is_the_outcome_of_every_judgement(tmp_path):
    runs = measure(two_rates(tmp_path), runs=48)
    slow = runs["rate"] < 75
    found = explain(runs, seed=1)
    assert (found.labels.to_numpy() == slow.to_numpy()).all()
    assert found.found and found.factors["factor"].iloc[0] == "faults"
    assert worst_first(runs)["rate"].iloc[0] == runs["rate"].min()
    faster, slower = runs[~slow], runs[slow]
    assert compare(slower, faster).better == "better" and compare(faster, slower).better == "worse"
    costs = compare_costs(slower, faster)
    assert costs.better == "better"
    assert costs.table.loc["mean", "ratio"] == pytest.approx(0.5, rel=0.05)


def test_tables_of_different_outcomes_are_not_judged_by_one():
    speed = Report("speed", r"speed (?P<value>\d)")
    workloads = (
        program(["echo", f"{report.name} 1"], reports=[report], outcome=report.name)
        for report in (RATE, speed)
    )
    runs = Campaign(None, [Cell(name, one) for name, one in zip("ab", workloads)], 2).run()
    with pytest.raises(InputError, match="different outcomes: rate, speed"):
        outcome_of(runs)
    assert outcome_of(runs, "speed").direction == "lower"
    with pytest.raises(InputError, match="no column"):
        with_cost(runs, "pace")


DESCRIPTION = """
shell: "printf 'size {size}\\nrate 8\\n' | cat"
options: {size: 3}
outcome: rate
reports:
  - {name: rate, pattern: 'rate (?P<value>\\S+)', unit: MB/s, direction: higher}
  - {name: size, pattern: 'size (?P<value>\\d+)', direction: neither}
"""


def test_a_description_of_a_user_is_a_file(tmp_path):
    description, echo = tmp_path / "solver.yml", tmp_path / "echo.yml"
    description.write_text(DESCRIPTION)
    runs = measure(description=str(description), size=5, runs=1)
    assert runs["size"].tolist() == [5] and runs["workload"].tolist() == ["solver"]
    assert outcome_of(runs).unit == "MB/s"
    with pytest.raises(InputError, match="did you mean 'size'"):
        program(description=description, siz=1)
    echo.write_text("command: [echo, '{size}']\noptions: {size: 1}\n")
    with pytest.raises(InputError, match="exclude each other"):
        program(["echo", "1"], description=os.fspath(echo), size=1)


WRAPPED = """
import os
print("nice", os.nice(0), "cpus", *os.sched_getaffinity(0), "env", os.environ.get("N"))
"""


@pytest.mark.parametrize(
    ("wrapper", "printed"),
    [
        ("nice -n 1", f"^nice {os.nice(0) + 1} "),
        ("env N=5", "env 5$"),
        pytest.param(
            "taskset -c CPU",
            "cpus CPU env",
            marks=pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU"),
        ),
    ],
)
def test_a_wrapper_of_a_description_starts_the_program(wrapper, printed, tmp_path):
    cpu = str(max(os.sched_getaffinity(0)))
    content = {"command": ["python3", "-S", "-c", WRAPPED]}
    content["verification"] = {"passed": printed.replace("CPU", cpu)}
    for name, run in {"plain": {}, "wrapped": {"run": f"{wrapper} {{command}}"}}.items():
        path = tmp_path / f"{name}.yml"
        path.write_text(json.dumps(content | run).replace("CPU", cpu))
        row = run_once(program(description=path))
        assert row["status"] == {"plain": "unverified", "wrapped": "ok"}[name], row["message"]


def test_a_wrapper_says_where_the_command_stands_and_ssh_gets_quoted_words(tmp_path):
    ssh = tmp_path / "ssh"  # as ssh does: its words after the host are a line of the host's shell
    ssh.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    ssh.chmod(0o755)
    words = ["printf", r"%s %s\n", "rate", "7"]
    row = run_once(program(words, run=f"{ssh} node {{command}}", reports=[RATE]))
    assert (row["status"], row["rate"]) == ("ok", 7)
    with pytest.raises(InputError, match="a word of its own"):
        program("true", run="nice -n 5 x{command}")


EPCC = """#!/bin/sh
for word in "$@"; do case $word in
    {refused}) echo "Invalid parameters: $word"; echo "Usage: --delay-length"; exit 1;;
    -h) echo usage; exit 0;;
esac; done
"""


@pytest.mark.parametrize(
    "refused, expected",
    [
        ("--delay-lengths", "--delay-length"),
        ("--delay-length", "--delay-time"),
        ("--delay-length|--measureonly", None),
    ],
)
def test_a_probe_shows_which_options_a_program_takes(tmp_path, refused, expected):
    """EPCC 4.0 lists --delay-length among its options and refuses it; 3.1 does not know
    --measureonly either.
    """
    path = tmp_path / "syncbench"
    path.write_text(EPCC.format(refused=refused))
    path.chmod(0o755)
    command = program(str(path), description="epcc-syncbench").command
    assert ("--measureonly" in command) == (expected is not None)
    assert (expected or "--delay-time") in command
    assert run_once(program(list(command)))["status"] == "ok"
