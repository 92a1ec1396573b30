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
from nbhelpers.noise import delta_noise
from nbhelpers.outcomes import Outcome, outcome_of, reported, with_cost, worst_first
from nbhelpers.statistics import compare, compare_costs
from nbhelpers.workloads import Report, as_workload, program

RATE = Report("rate", r"^rate (?P<value>\S+)$", "MB/s", "higher")


def script(code: str, **described):
    return program([sys.executable, "-S", "-c", code], **described)


# ---- the command ----


@pytest.mark.parametrize(
    "line, operator",
    [
        ("./a | tail", "|"),
        ("a > out", ">"),
        ("a; b", ";"),
        ('echo "$HOME"', "$"),
        ("a\nb", "\n"),
    ],
)
def test_what_only_a_shell_does_is_refused_and_says_what_to_write(line, operator):
    with pytest.raises(InputError) as caught:
        measure(line)
    message = str(caught.value)
    assert (
        f"'{operator}'" in message
        and "shell=True" in message
        and "noisebook run --shell" in message
    )


@pytest.mark.parametrize(
    "line, words",
    [
        ("echo 'a | b'", ("a | b",)),
        (r"echo a\|b", ("a|b",)),
    ],
)
def test_quoted_it_is_an_argument(line, words):
    assert program(line).command[1:] == words


def test_a_shell_line_is_one():
    row = run_once(
        program(
            "printf 'x\\nrate 7\\n' | tail -1; exit 0", shell=True, reports=[RATE], outcome="rate"
        )
    )
    assert row["status"] == "ok" and row["rate"] == 7 and row["workload"] == "printf"
    assert run_once(program("echo oh >&2 && exit 3", shell=True))["status"] == "exit 3"
    with pytest.raises(InputError, match="one string"):
        program(["a", "|", "b"], shell=True)
    missing = run_once(
        program("no-such-command-anywhere | cat; no-such-command-anywhere", shell=True)
    )
    assert missing["status"] == "exit 127" and "cannot find" in missing["message"]


def test_a_workload_has_its_own_keywords():
    workload = program("true")
    assert as_workload(workload) is workload
    with pytest.raises(InputError, match="seconds: not possible with a workload"):
        measure(workload, seconds="(?P<seconds>1)")
    with pytest.raises(InputError, match="seconds=r"):
        measure("true", pattern="(?P<seconds>1)")
    with pytest.raises(InputError, match="'outcom'"):
        measure("true", outcom="rate")


# ---- errors that help ----


def test_errors_say_what_is_wrong_and_what_mends_it(tmp_path):
    with pytest.raises(RunError, match="no program 'no-such-program-anywhere'"):
        measure("no-such-program-anywhere")
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    with pytest.raises(RunError, match=r"chmod \+x"):
        measure(str(plain))
    plain.write_text("#!/no/such/interpreter -x\n")
    plain.chmod(0o755)
    with pytest.raises(
        RunError, match="interpreter of the script is not here: /no/such/interpreter"
    ):
        measure(str(plain))
    foreign = bytearray(Path(sys.executable).resolve().read_bytes()[:4096])
    foreign[18:20] = (
        b"\xf3\x00" if foreign[18:20] != b"\xf3\x00" else b"\x3e\x00"
    )  # RISC-V, or x86-64
    plain.write_bytes(foreign)
    with pytest.raises(RunError, match="another kind of machine"):
        measure(str(plain))


def test_an_output_without_a_match_shows_its_last_lines_and_what_was_sought():
    row = run_once(program(["printf", "one\\ntwo\\nthree\\n"], seconds=r"took (?P<seconds>\d+)"))
    assert row["status"] == "unreadable output" and row["seconds"] is None
    assert (
        "took (?P<seconds>" in row["message"]
        and "three" in row["message"]
        and "one" in row["message"]
    )
    silent = run_once(program("true", seconds=r"took (?P<seconds>\d+)"))
    assert "it printed nothing" in silent["message"]
    failed = run_once(
        program(["sh", "-c", "echo dying >&2; exit 4"], seconds=r"took (?P<seconds>\d+)")
    )
    assert failed["status"] == "exit 4" and "dying" in failed["message"]
    assert "longer than 0.2 s" in run_once(program("sleep 5", timeout_s=0.2))["message"]


# ---- reports ----


def test_several_reports_of_output_and_errors_and_the_last_match_counts():
    code = (
        "import sys; print('rate 3\\nrate 4'); print('latency 2e-3 ms', file=sys.stderr);"
        " print('steps 12')"
    )
    reports = (
        RATE,
        Report("latency", r"latency (?P<latency>\S+) ms", "ms"),
        Report("steps", r"steps (?P<value>\d+)", direction="neither"),
    )
    runs = measure(script(code, reports=reports, outcome="rate"), runs=2)
    assert (
        runs["rate"].tolist() == [4, 4]
        and runs["latency"].tolist() == [0.002] * 2
        and runs["steps"].tolist() == [12, 12]
    )
    assert outcome_of(runs) == Outcome("rate", "MB/s", "higher")
    assert reported(runs) == {
        "rate": Outcome("rate", "MB/s", "higher"),
        "latency": Outcome("latency", "ms", "lower"),
    }
    assert runs["seconds"].tolist() == pytest.approx(runs["wall_seconds"].tolist(), abs=1e-6)


@pytest.mark.parametrize(
    "unit, factor", [("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("min", 60)]
)
def test_a_reported_time_has_a_unit(unit, factor):
    row = run_once(program("echo took 30", seconds=Report("seconds", r"took (?P<value>\d+)", unit)))
    assert row["seconds"] == pytest.approx(30 * factor)


def test_a_report_that_is_the_outcome_must_be_there_and_others_need_not():
    assert run_once(program("echo nothing", reports=[RATE]))["status"] == "ok"
    row = run_once(program("echo nothing", reports=[RATE], outcome="rate"))
    assert row["status"] == "unreadable output" and "'rate' was not found" in row["message"]
    assert (
        "no positive number"
        in run_once(program(["echo", "rate -1"], reports=[RATE], outcome="rate"))["message"]
    )


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
    "report, expected",
    [
        (
            Report("x", path="results.total", file="r.json"),
            "no 'total' at results of r.json, which has: seconds",
        ),
        (Report("x", path="results", file="r.json"), "not a number"),
        (Report("x", column="rate", file="r.json"), "no column 'rate'"),
        (Report("x", path="a", file="other.json"), "no file other.json"),
    ],
)
def test_a_number_that_is_not_in_its_file_is_an_error_with_what_is_there(report, expected):
    workload = script(
        writes("r.json", '{"results": {"seconds": 1}}'),
        reports=[report],
        outcome="x",
        fresh_folder=True,
    )
    row = run_once(workload)
    assert row["status"] == "unreadable output" and expected in row["message"]


def test_json_and_csv_of_the_standard_output():
    row = run_once(
        script(
            "print('note: warming up'); print('{\"jobs\": [{\"bw\": 12}]}')",
            reports=[Report("bw", path="jobs.0.bw")],
        )
    )
    assert row["bw"] == 12
    row = run_once(
        script(
            "print('kernel,rate\\nCopy,10\\nTriad,20')",
            reports=[Report("triad", column="rate", where={"kernel": "Triad"})],
        )
    )
    assert row["triad"] == 20


def test_a_file_of_an_earlier_run_is_not_this_runs(tmp_path):
    stale = tmp_path / "r.json"
    stale.write_text('{"a": 1}')
    report = Report("a", path="a", file=str(stale))
    row = run_once(program("true", reports=[report], outcome="a"))
    assert row["status"] == "unreadable output" and "not written by this run" in row["message"]
    code = (
        f"import os; s = os.stat({str(stale)!r});"
        f" {writes(stale, chr(123) + chr(34) + 'a' + chr(34) + ': 2}')}; os.utime({str(stale)!r},"
        " ns=(s.st_atime_ns, s.st_mtime_ns))"
    )
    assert (
        run_once(script(code, reports=[report], outcome="a"))["a"] == 2
    )  # written with the old time and size: it is still this run's
    by_pattern = program("true", seconds=r"(?P<seconds>\d)", files=str(stale))
    assert "not written by this run" in run_once(by_pattern)["message"]


# ---- one description for every stage ----


def two_rates(folder):
    """Its rate is 50 in a quarter of the runs, at random places, and 100 else; its time tells
    nothing.
    """
    code = f"""
import os, random
n = len(os.listdir({str(folder)!r})); open({str(folder)!r} + '/' + str(n), 'w')
slow = random.Random(n).random() < 0.25
print('rate', 50 + n / 100 if slow else 100 + n / 100)
print('faults', 900 + n if slow else 100 + n)
"""
    return script(
        code,
        reports=[
            RATE,
            Report("faults", r"faults (?P<value>\d+)", direction="neither"),
            Report("latency", r"rate (?P<value>\S+)", "ms"),
        ],
        outcome="rate",
    )


def test_a_throughput_is_the_outcome_of_every_judgement(tmp_path):
    runs = measure(two_rates(tmp_path), runs=48)
    slow = runs["rate"] < 75
    found = explain(runs, seed=1)
    assert (
        (found.labels.to_numpy() == slow.to_numpy()).all()
        and found.higher_is_better
        and found.outcome == "rate"
    )
    assert (
        found.found
        and found.factors["factor"].iloc[0] == "faults"
        and "MB/s of rate" in found.summary
    )
    assert "another outcome" in found.excluded["latency"]
    assert worst_first(runs)["rate"].iloc[0] == runs["rate"].min()
    events = runs[["run"]].assign(
        cpu=0, kind="irq", source="local_timer", start_ns=0, duration_ns=1000
    )
    average = events.head(1)[["kind", "source"]].assign(frequency_hz=0.0, duration_ns=0.0)
    assert delta_noise(events, average, runs).attrs["run"] == runs.loc[runs["rate"].idxmin(), "run"]
    faster, slower = runs[~slow], runs[slow]
    assert compare(slower, faster).better == "better" and compare(faster, slower).better == "worse"
    costs = compare_costs(slower, faster)
    assert (
        costs.better == "better"
        and costs.table.loc["mean", "ratio"] == pytest.approx(0.5, rel=0.05)
        and "1/rate" in costs.verdict
    )


def test_tables_of_different_outcomes_are_not_judged_by_one(tmp_path):
    cells = [
        Cell("a", program("echo rate 1", reports=[RATE], outcome="rate")),
        Cell(
            "b",
            program(
                "echo speed 1", reports=[Report("speed", r"speed (?P<value>\d)")], outcome="speed"
            ),
        ),
    ]
    runs = Campaign(None, cells, 2).run()
    with pytest.raises(InputError, match="different outcomes: rate, speed"):
        outcome_of(runs)
    assert outcome_of(runs, "speed").direction == "lower"
    with pytest.raises(InputError, match="no column"):
        with_cost(runs, "pace")


def test_a_description_of_a_user_is_a_file(tmp_path):
    description = tmp_path / "solver.yml"
    description.write_text(
        "shell: \"printf 'size {size}\\nrate 8\\n' | cat\"\noptions: {size: 3}\noutcome:"
        " rate\nreports:\n  - {name: rate, pattern: 'rate (?P<value>\\S+)', unit: MB/s, direction:"
        " higher}\n  - {name: size, pattern: 'size (?P<value>\\d+)', direction: neither}\n"
    )
    runs = measure(description=str(description), size=5, runs=1)
    assert (
        runs["size"].tolist() == [5]
        and outcome_of(runs).unit == "MB/s"
        and runs["workload"].tolist() == ["solver"]
    )
    with pytest.raises(InputError, match="did you mean 'size'"):
        program(description=description, siz=1)
    with pytest.raises(InputError, match="exclude each other"):
        program(["echo", "1"], description=_described(tmp_path), size=1)


def _described(folder):
    path = folder / "echo.yml"
    path.write_text("command: [echo, '{size}']\noptions: {size: 1}\n")
    return os.fspath(path)


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
    assert command[0] == str(path) and ("--measureonly" in command) == (expected is not None)
    assert (expected or "--delay-time") in command and run_once(program(list(command)))[
        "status"
    ] == "ok"
