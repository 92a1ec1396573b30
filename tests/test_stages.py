"""Stages: parameters are checked, a failed notebook stays for reading, a stage re-runs when and
only when something changed.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from nbhelpers.files import write_atomically
from nbhelpers.machine import measuring
from nbhelpers.stages import _made, whole_digests
from nbhelpers.study import Study

from .processes import run_python

REPOSITORY = Path(__file__).resolve().parent.parent
STAGES = ("00-machine", "10-trace-collection")
RUN = [sys.executable, "-m", "nbhelpers", "stage"]
PARAMETERS = 'profile: str = "quick"  # which\nruns: int = 3  # how many'
WRITE = """from nbhelpers.study import Study
study = Study({stage!r}, profile)
_ = (study.results / 'out.txt').write_text(f'{{runs}}\\n')"""
FACTS = "\nfrom nbhelpers.simulation import known_network\n_ = known_network('odin')"


def notebook(house: Path, stage: str, source: str) -> None:
    cells = [nbformat.v4.new_code_cell(text, id=f"c{len(text)}") for text in (PARAMETERS, source)]
    cells[0].metadata["tags"] = ["parameters"]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(made, house / f"notebooks/{stage}.ipynb")


@pytest.fixture
def house(tmp_path):
    """A copy of the library and the Makefile with two small stages, beside nothing else."""
    without = shutil.ignore_patterns("*.pyc.*")  # what somebody is writing now
    shutil.copytree(REPOSITORY / "nbhelpers", tmp_path / "nbhelpers", ignore=without)
    for name in ("Makefile", "requirements.lock", "pyproject.toml", "setup.py"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    shutil.copytree(REPOSITORY / "data/knowledge", tmp_path / "data/knowledge")
    (tmp_path / "notebooks" / "parameters").mkdir(parents=True)
    profile(tmp_path, "00-machine: {runs: 4}\n")
    for stage in STAGES:
        notebook(tmp_path, stage, WRITE.format(stage=stage))
    (tmp_path / "notebooks/stages.yml").write_text("00-machine:\n10-trace-collection:\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build/c-parts").touch()
    return tmp_path


def profile(house: Path, text: str) -> None:
    (house / "notebooks/parameters/quick.yml").write_text(text)


def place(house: Path) -> dict:
    """Where a process runs, and with which environment; `make test` may be what runs us."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    ours = {"PYTHONPATH": str(house), "NOISEBOOK_STATE": str(house / "state")}
    return {"cwd": house, "env": {**outside, **ours}, "text": True}


def stages(house: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [*RUN[:-1], *arguments, "--profile", "quick"]
    return subprocess.run(command, **place(house), capture_output=True)


def make(house: Path, *targets: str) -> subprocess.CompletedProcess:
    targets = targets or (f"build/quick/stamps/{STAGES[1]}.done",)
    command = ["make", "-j2", f"PY={sys.executable}", f"STAGES={' '.join(STAGES)}", *targets]
    return subprocess.run(command, **place(house), capture_output=True)


def ran(house: Path) -> list[str]:
    result = make(house)
    assert result.returncode == 0, result.stdout + result.stderr
    return [line.split()[0] for line in result.stdout.splitlines() if line.endswith(".html")]


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_stage_runs_again_when_and_only_when_something_it_rests_on_changed(house):
    first, second = STAGES
    assert ran(house) == [first, second]
    assert (house / "build/quick/results/00-machine/out.txt").read_text() == "4\n"
    assert ran(house) == []
    (house / f"notebooks/{first}.ipynb").touch()
    (house / "notebooks/parameters/quick.yml").touch()
    assert ran(house) == [], "touching is not changing"
    profile(house, "00-machine: {runs: 4}\n10-trace-collection: {runs: 5}\n")
    assert ran(house) == [second], "only the stage whose own parameters changed"
    notebook(house, first, WRITE.format(stage=first) + FACTS)
    assert ran(house) == [first], "the same outcome makes nothing after it stale"
    with open(house / "data/knowledge/networks.yml", "a") as file:
        file.write("# changed\n")
    assert ran(house) == [first], "only it has read the networks"
    profile(house, "00-machine: {runs: 6}\n10-trace-collection: {runs: 5}\n")
    assert ran(house) == [first, second], "another outcome does"
    picture = "(study.results / 'a.svg').write_text('higher')"
    notebook(house, first, WRITE.format(stage=first) + FACTS + f"\n_ = {picture}")
    assert ran(house) == [first], "a picture is handed on to the paper alone"
    with open(house / "nbhelpers/files.py", "a") as file:
        file.write("_CHANGED = 1\n")
    assert ran(house) == [first, second], "what both import changed"
    assert ran(house) == []


def test_later_stages_rest_on_data_and_results_without_caches_and_what_is_for_the_paper(tmp_path):
    stage, *names = STAGES[0], "results/{}/a.csv", "data/{}/runs/runs.jsonl"
    others = "results/{0}/a.json results/{0}/a.png results/{0}/found.json data/{0}/.calls/calls.0"
    for name in (*names, *others.split(), "notebooks/{}.ipynb", "stamps/{}.made"):
        write_atomically(tmp_path / name.format(stage), "some text")
    made = _made(Study(stage, "smoke", tmp_path))
    assert set(made) == {name.format(stage) for name in names}
    assert made.items() <= whole_digests(tmp_path, stage).items()


@pytest.mark.timeout(120)
def test_a_failed_stage_fails_again_and_leaves_its_notebook(house):
    notebook(house, "00-machine", "1 / 0")
    for _ in range(2):
        result = make(house)
        assert result.returncode != 0 and "ZeroDivisionError" in result.stderr
        assert "1 / 0" in (house / "build/quick/notebooks/00-machine.failed.ipynb").read_text()
        assert not (house / "build/quick/notebooks/00-machine.ipynb").exists()
        assert not (house / "build/quick/stamps/00-machine.done").exists()


def test_a_wrong_parameter_of_a_later_stage_is_refused_before_the_first_runs(house):
    profile(house, "10-trace-collection: {rums: 4}\n")
    for result in (make(house), stages(house, "stage", "00-machine")):
        assert result.returncode == 2 and "did you mean 'runs'" in result.stderr
        assert ".html" not in result.stdout and "Traceback" not in result.stderr


def test_an_unknown_notebook_is_refused_with_a_hint(house):
    result = stages(house, "stage", "01-machine")
    assert result.returncode == 2 and "Traceback" not in result.stderr


@pytest.mark.timeout(120)
def test_sigterm_ends_a_stage_and_leaves_no_process(house):
    text = "import os, time\nopen('../pid', 'w').write(str(os.getpid()))\ntime.sleep(600)"
    notebook(house, "00-machine", text)
    command = [*RUN, "00-machine", "--profile", "quick"]
    runner = subprocess.Popen(command, **place(house), stderr=subprocess.PIPE)
    while not (house / "pid").exists() or not (house / "pid").read_text():
        assert runner.poll() is None, runner.stderr.read()
        time.sleep(0.1)
    runner.send_signal(signal.SIGTERM)
    assert "Stopped" in runner.communicate(timeout=60)[1]
    kernel = Path("/proc") / (house / "pid").read_text()
    for _ in range(100):
        if not kernel.exists():
            return
        time.sleep(0.1)
    pytest.fail("the kernel is still there")


def test_measuring_again_keeps_the_old_data(house):
    data = house / "build/quick/data/10-trace-collection"
    data.mkdir(parents=True)
    (data / "runs.jsonl").write_text('{"run": 0}\n')
    assert make(house, "measure-again").returncode == 0 and not data.exists()
    [kept] = (house / "build/kept/quick").rglob("runs.jsonl")
    assert kept.read_text() == '{"run": 0}\n'
    assert make(house, "clean").returncode == 0
    assert kept.exists(), "clean removes no measured data"


STAMP = """
import time
open('../times', 'a').write(f'{time.monotonic()} begin\\n')
time.sleep(1.5)
open('../times', 'a').write(f'{time.monotonic()} end\\n')"""


@pytest.mark.long
@pytest.mark.timeout(120)
def test_two_measuring_stages_never_run_at_once(house):
    records = "".join(f"{stage}: {{measures: true}}\n" for stage in STAGES)
    (house / "notebooks/stages.yml").write_text(records)
    runners = []
    for stage in STAGES:
        notebook(house, stage, STAMP)
        command = [*RUN, stage, "--profile", "quick"]
        runners.append(subprocess.Popen(command, **place(house), stdout=subprocess.DEVNULL))
    assert [runner.wait() for runner in runners] == [0, 0]
    told = [line.split() for line in (house / "times").read_text().splitlines()]
    what = [word for _, word in sorted(told, key=lambda line: float(line[0]))]
    assert what == ["begin", "end", "begin", "end"]


def test_the_paper_waits_for_no_measurement(tmp_path, monkeypatch):
    monkeypatch.setenv("NOISEBOOK_STATE", str(tmp_path))
    code = (
        "from nbhelpers.stages import _stage_lock\nfrom nbhelpers.study import Study\n"
        "with _stage_lock(Study('90-paper', 'quick')): print('made')"
    )
    env = dict(os.environ)
    with measuring():
        assert run_python(code, env=env, timeout=60).stdout == "made\n"


def test_a_measuring_stage_notices_another_program_and_what_came_to_the_machine_or_left(house):
    (house / "notebooks/stages.yml").write_text(
        "00-machine: {measures: true, parts: [cpus]}\n10-trace-collection: {measures: true}\n"
    )
    (house / "build/bin").mkdir()

    def wanted(cpus: str, program: str) -> list[str]:
        (house / "build/bin/nbody").write_text(program)
        command = ["taskset", "-c", cpus, *RUN[:-1], "wanted", "--profile", "quick", *STAGES]
        subprocess.run(command, **place(house), check=True)
        return [(house / f"build/quick/stamps/{name}.wanted").read_text() for name in STAGES]

    everything = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    before, again = wanted(everything, "1"), wanted(everything, "1")
    fewer, other = wanted(everything.split(",")[0], "1"), wanted(everything, "2")
    assert before == again and fewer[1] == before[1]
    assert (fewer[0] != before[0]) == ("," in everything)
    assert other[0] != before[0] and other[1] != before[1]
