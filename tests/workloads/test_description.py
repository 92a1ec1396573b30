"""Other people's programs: what their descriptions find in outputs of their formats, driven by real
processes that print them.

The files in `originals` are what the programs themselves printed (descriptions that say `seen:
run`; recorded on a machine that did other things too: their numbers are no measurement). The
outputs in this file were written after descriptions or sources (`seen: described`, other versions).
"""

import re
import shutil
import stat
from pathlib import Path

import pytest

from nbhelpers.attribution import explain
from nbhelpers.errors import InputError, RunError
from nbhelpers.injection import inject
from nbhelpers.measurement import measure, run_once
from nbhelpers.noise import Signature
from nbhelpers.outcomes import outcome_of
from nbhelpers.workloads import Report, Workload, descriptions, program

RECORDED = Path(__file__).parent / "originals"


@pytest.fixture
def prints(tmp_path):
    """Makes an executable that prints an output, may write a file in its current folder, and
    complain.
    """

    def make(
        output: str, file: str = "", errors: str = "", code: int = 0, name: str = "run.$$.yaml"
    ) -> str:
        (tmp_path / "output").write_text(output)
        (tmp_path / "errors").write_text(errors)
        (tmp_path / "file").write_text(file)
        original = tmp_path / "original"
        writes = f'cp {tmp_path}/file "$(pwd)/{name}"; ls | wc -l' if file else ":"
        original.write_text(
            f"#!/bin/sh\ncat {tmp_path}/output; cat {tmp_path}/errors >&2; {writes}; echo"
            f' arguments: "$@"; exit {code}\n'
        )
        original.chmod(original.stat().st_mode | stat.S_IXUSR)
        return str(original)

    return make


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def ran(name, path, **options):
    row = run_once(program(path, description=name, **options))
    assert row["status"] == "ok", row["message"]
    return row


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in RECORDED.glob("*.txt") if path.stem in descriptions())
)
def test_every_report_is_found_in_what_the_program_itself_wrote(name, prints):
    known, text, written = descriptions()[name], recorded(name), RECORDED / f"{name}.yaml"
    if name == "hpcc-hpl":
        path = prints(text, file=text, name="hpccoutf.txt")
    else:
        path = prints(text, file=written.read_text() if written.exists() else "")
    judged = {"reader": known.reader, "outcome": known.outcome}
    row = run_once(Workload(name, "external", (path,), start="exec", **judged))
    assert row["status"] == "ok", row["message"]
    if written.exists():
        text += written.read_text()
    numbers = {float(word) for word in re.findall(r"\d*\.?\d+(?:[eE][-+]?\d+)?", text)}
    for report in known.reader.reports:
        number = row[report.name] / report.factor
        assert min(abs(one - number) for one in numbers) <= 1e-12 * number, report.name
    assert known.outcome in row and row[known.outcome] > 0


@pytest.mark.parametrize(
    "errors, code",
    [
        ("FAILED validation of c[0]: 0 != 0, relative error=-nan > 2.22045e-11\n", 1),
        ("Validation failed on a[]. Average error 0.1\n", 0),
    ],
)
def test_babelstream_that_fails_its_validation_is_unverified(prints, errors, code):
    path = prints(recorded("babelstream"), errors=errors, code=code)
    failed = run_once(program(path, description="babelstream"))
    assert failed["status"] == "unverified" and errors.split()[0] in failed["message"]


def test_a_fresh_folder_is_empty_and_deleted(tmp_path):
    path = tmp_path / "where"
    path.write_text("#!/bin/sh\nls -A | wc -l; pwd; echo t=1 > seen; cat seen\n")
    path.chmod(0o755)
    reports = (
        Report("seconds", r"^t=(?P<seconds>\d+)"),
        Report("files", r"^(?P<value>\d+)$"),
        Report("place", r"^(?P<value>/.*)$"),
    )
    workload = program(str(path), reports=reports, fresh_folder=True)
    rows = [run_once(workload) for _ in range(2)]
    assert [row["files"] for row in rows] == [0, 0] and rows[0]["place"] != rows[1]["place"]
    assert not any(Path(row["place"]).exists() for row in rows)


def test_arguments_come_from_the_options_or_from_the_command_line(prints):
    path, known = prints(recorded("epcc-syncbench")), {"description": "epcc-syncbench"}
    words = "--measureonly BARRIER --outer-repetitions 3 --delay-length 128"
    assert program(path, construct="BARRIER", outer=3, **known).command[1:] == (*words.split(),)
    assert program(f"{path} --outer 5", **known).command[1:] == ("--outer", "5")
    assert dict(program(path, threads=2, **known).env)["OMP_NUM_THREADS"] == "2"
    with pytest.raises(InputError, match="no option"):
        program(path, outerreps=3, **known)
    with pytest.raises(InputError, match="exclude each other"):
        program(f"{path} 1", outer=3, **known)
    with pytest.raises(InputError, match="did you mean 'babelstream'"):
        program(path, description="babelstrem")
    with pytest.raises(RunError, match="no such program"):
        program("/nonexistent/omp-stream", description="babelstream")
    with pytest.raises(RunError, match="a folder is no program"):
        program("/usr", description="babelstream")


# by apt; as this system has them
INSTALLED = {
    "sysbench": ("sysbench", {"events": 300}),
    "stress-ng": ("stress-ng", {"ops": 100}),
    "openssl-speed": ("openssl", {}),
    "fio": ("fio", {"size": "4m"}),
}


@pytest.mark.long
@pytest.mark.parametrize("name", INSTALLED)
def test_programs_of_the_distribution_through_measure_inject_and_explain(name, tmp_path):
    needed, options = INSTALLED[name]
    if shutil.which(needed) is None:
        pytest.skip(f"apt-get install {needed}")
    workload = program(description=name, **options)
    runs = measure(workload, runs=3)
    assert (runs["status"] == "ok").all()
    assert outcome_of(runs) == workload.judged
    assert (runs[workload.outcome] > 0).all()
    assert (runs["region_seconds"] <= runs["wall_seconds"]).all()
    if name == "sysbench":  # it tells its time, to 0.1 ms
        assert (runs["region_seconds"] - runs["seconds"]).abs().max() < 1e-3
    config = Signature(100, 200, phase="aligned").config(0.05, [0], kind="thread")
    noisy = inject(config, workload, runs=2).runs
    assert (noisy["status"] == "ok").all()
    assert outcome_of(noisy) == outcome_of(runs)
    assert noisy["injected_events"].gt(0).all()
    assert explain(runs).outcome == workload.outcome
