"""Stages: parameters are checked, a failed notebook stays for reading, a stage re-runs when and
only when something changed.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def notebook(*sources: str) -> str:
    cells = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"c{number}",
            "outputs": [],
            "source": source,
            "metadata": {"tags": ["parameters"]} if number == 0 else {},
        }
        for number, source in enumerate(sources)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {
            "cells": cells,
            "metadata": {
                "kernelspec": kernel,
                "language_info": {"name": "python"},
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


PARAMETERS = 'profile: str = "quick"  # which\nruns: int = 3  # how many'
WRITE = (
    "from nbhelpers.study import Study\nstudy = Study({stage!r}, profile)\n_ = (study.results /"
    " 'out.txt').write_text(f'{{runs}}\\n')"
)


@pytest.fixture
def house(tmp_path):
    """A copy of the library and the Makefile with two small stages, beside nothing else."""
    shutil.copytree(
        REPOSITORY / "nbhelpers",
        tmp_path / "nbhelpers",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for name in ("Makefile", "requirements.lock", "pyproject.toml", "setup.py"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    shutil.copytree(REPOSITORY / "data/knowledge", tmp_path / "data/knowledge")
    (tmp_path / "notebooks" / "parameters").mkdir(parents=True)
    (tmp_path / "notebooks/parameters/quick.yml").write_text("00-machine: {runs: 4}\n")
    (tmp_path / "notebooks/00-machine.ipynb").write_text(
        notebook(PARAMETERS, WRITE.format(stage="00-machine"))
    )
    (tmp_path / "notebooks/10-trace-collection.ipynb").write_text(
        notebook(PARAMETERS, WRITE.format(stage="10-trace-collection"))
    )
    (tmp_path / "notebooks/stages.yml").write_text("00-machine:\n10-trace-collection:\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build/c-parts").touch()
    return tmp_path


def environment(house: Path) -> dict:
    outside = {
        name: value for name, value in os.environ.items() if not name.startswith("MAKE")
    }  # `make test` may be what runs us
    return {**outside, "PYTHONPATH": str(house), "NOISEBOOK_STATE": str(house / "state")}


def stages(house: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "nbhelpers.stages", *arguments],
        cwd=house,
        env=environment(house),
        capture_output=True,
        text=True,
    )


def make(house: Path, *targets: str) -> subprocess.CompletedProcess:
    command = [
        "make",
        "-j2",
        f"PY={sys.executable}",
        "STAGES=00-machine 10-trace-collection",
        *(targets or ["build/quick/stamps/10-trace-collection.done"]),
    ]
    return subprocess.run(
        command, cwd=house, env=environment(house), capture_output=True, text=True
    )


def ran(result: subprocess.CompletedProcess) -> list[str]:
    assert result.returncode == 0, result.stdout + result.stderr
    return [line.split()[0] for line in result.stdout.splitlines() if line.endswith(".html")]


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_stage_runs_again_when_and_only_when_something_it_rests_on_changed(house):
    assert ran(make(house)) == ["00-machine", "10-trace-collection"]
    assert (house / "build/quick/results/00-machine/out.txt").read_text() == "4\n"
    assert ran(make(house)) == []
    first = house / "notebooks/00-machine.ipynb"
    first.touch()
    (house / "notebooks/parameters/quick.yml").touch()
    assert ran(make(house)) == [], "touching is not changing"
    (house / "notebooks/parameters/quick.yml").write_text(
        "00-machine: {runs: 4}\n10-trace-collection: {runs: 5}\n"
    )
    assert ran(make(house)) == ["10-trace-collection"], (
        "only the stage whose own parameters changed"
    )
    first.write_text(notebook(PARAMETERS, WRITE.format(stage="00-machine") + "\n# a comment"))
    assert ran(make(house)) == ["00-machine"], "the same outcome makes nothing after it stale"
    (house / "notebooks/parameters/quick.yml").write_text(
        "00-machine: {runs: 6}\n10-trace-collection: {runs: 5}\n"
    )
    assert ran(make(house)) == ["00-machine", "10-trace-collection"], "another outcome does"
    with open(house / "nbhelpers/files.py", "a") as file:
        file.write("_CHANGED = 1\n")
    assert ran(make(house)) == ["00-machine", "10-trace-collection"], "what both import changed"
    assert ran(make(house)) == []


@pytest.mark.timeout(120)
def test_a_failed_stage_fails_again_and_leaves_its_notebook(house):
    (house / "notebooks/00-machine.ipynb").write_text(notebook(PARAMETERS, "1 / 0"))
    for _ in range(2):
        result = make(house)
        assert result.returncode != 0 and "ZeroDivisionError" in result.stderr
        assert "1 / 0" in (house / "build/quick/notebooks/00-machine.failed.ipynb").read_text()
        assert not (house / "build/quick/notebooks/00-machine.ipynb").exists()
        assert not (house / "build/quick/stamps/00-machine.done").exists()


@pytest.mark.parametrize(
    "profile, message",
    [
        ("00-machine: {run: 4}", "did you mean 'runs'"),
        ("00-machin: {runs: 4}", "did you mean '00-machine'"),
        ("00-machine: {runs: four}", "'runs' is 'four'; int is expected"),
        ("00-machine: [", "not YAML"),
        ("- 3", "mapping"),
    ],
)
def test_a_wrong_profile_is_refused_with_a_hint(house, profile, message):
    (house / "notebooks/parameters/quick.yml").write_text(profile)
    result = stages(house, "run", "00-machine", "--profile", "quick")
    assert result.returncode == 2 and message in result.stderr and "Traceback" not in result.stderr


def test_a_wrong_parameter_of_a_later_stage_is_refused_before_the_first_runs(house):
    (house / "notebooks/parameters/quick.yml").write_text("10-trace-collection: {rums: 4}\n")
    result = make(house)
    assert (
        result.returncode != 0
        and "did you mean 'runs'" in result.stderr
        and ".html" not in result.stdout
    )


def test_an_unknown_profile_or_notebook_is_refused_with_a_hint(house):
    for arguments in (
        ("run", "00-machine", "--profile", "quik"),
        ("run", "01-machine", "--profile", "quick"),
    ):
        result = stages(house, *arguments)
        assert result.returncode == 2 and "Traceback" not in result.stderr


@pytest.mark.timeout(120)
def test_sigterm_ends_a_stage_and_leaves_no_process(house):
    (house / "notebooks/00-machine.ipynb").write_text(
        notebook(
            PARAMETERS,
            "import os, time\nopen('../pid', 'w').write(str(os.getpid()))\ntime.sleep(600)",
        )
    )
    runner = subprocess.Popen(
        [sys.executable, "-m", "nbhelpers.stages", "run", "00-machine", "--profile", "quick"],
        cwd=house,
        env=environment(house),
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (house / "pid").exists() or not (house / "pid").read_text():
        assert runner.poll() is None, runner.stderr.read()
        time.sleep(0.1)
    runner.send_signal(signal.SIGTERM)
    assert "Stopped" in runner.communicate(timeout=60)[1]
    kernel = int((house / "pid").read_text())
    for _ in range(100):
        if not Path(f"/proc/{kernel}").exists():
            return
        time.sleep(0.1)
    pytest.fail("the kernel is still there")


def test_measuring_again_keeps_the_old_data(house):
    data = house / "build/quick/data/10-trace-collection"
    data.mkdir(parents=True)
    (data / "runs.jsonl").write_text('{"run": 0}\n')
    result = stages(house, "measure-again", "--profile", "quick")
    assert result.returncode == 0 and not data.exists()
    assert [path.read_text() for path in (house / "build/quick/kept").rglob("runs.jsonl")] == [
        '{"run": 0}\n'
    ]
    assert make(house, "clean").returncode == 0
    assert list((house / "build/quick/kept").rglob("runs.jsonl")), "clean removes no measured data"


STAMP = (
    "import time\nopen('../times', 'a').write(f'begin"
    " {time.monotonic()}\\n')\ntime.sleep(1.5)\nopen('../times', 'a').write(f'end"
    " {time.monotonic()}\\n')"
)


@pytest.mark.timeout(120)
def test_two_measuring_stages_never_run_at_once(house):
    both = "00-machine: {measures: true}\n10-trace-collection: {measures: true}\n"
    (house / "notebooks/stages.yml").write_text(both)
    for stage in ("00-machine", "10-trace-collection"):
        (house / f"notebooks/{stage}.ipynb").write_text(notebook(PARAMETERS, STAMP))
    runners = [
        subprocess.Popen(
            [sys.executable, "-m", "nbhelpers.stages", "run", stage, "--profile", "quick"],
            cwd=house,
            env=environment(house),
            stdout=subprocess.DEVNULL,
        )
        for stage in ("00-machine", "10-trace-collection")
    ]
    assert [runner.wait() for runner in runners] == [0, 0]
    told = sorted(
        (float(time_s), what)
        for what, time_s in (line.split() for line in (house / "times").read_text().splitlines())
    )
    assert [what for _, what in told] == ["begin", "end", "begin", "end"]


def test_a_stage_notices_what_came_to_the_machine_or_left_it_if_it_makes_use_of_it(house):
    (house / "notebooks/stages.yml").write_text("00-machine: {measures: true, parts: [cpus]}\n")
    stamps = [
        house / f"build/quick/stamps/{name}.wanted"
        for name in ("00-machine", "10-trace-collection")
    ]

    def wanted(cpus):
        command = [
            "taskset",
            "-c",
            cpus,
            sys.executable,
            "-m",
            "nbhelpers.stages",
            "wanted",
            "--profile",
            "quick",
            "00-machine",
            "10-trace-collection",
        ]
        subprocess.run(command, cwd=house, env=environment(house), check=True)
        return [path.read_text() for path in stamps]

    everything = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    before, again, fewer = wanted(everything), wanted(everything), wanted(everything.split(",")[0])
    assert (
        before == again and fewer[1] == before[1] and (fewer[0] != before[0]) == ("," in everything)
    )


def test_the_libraries_that_are_looked_for_are_those_of_the_mitigations():
    from nbhelpers.machine.parts import LIBRARIES
    from nbhelpers.mitigation import mitigations
    from nbhelpers.mitigation.program import Preload

    known = {
        action.library
        for item in mitigations().values()
        for action in item.actions
        if isinstance(action, Preload)
    }
    assert known <= set(LIBRARIES)
