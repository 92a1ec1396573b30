"""Mistakes that tests once let pass: made in a copy of the repository, they are noticed there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..trees import copied_tree

# what was changed: (file, text, instead, tests)
NAMED = {
    "90 % for a 95 % interval of draws": (
        "statistics/intervals.py",
        "def percentile_interval(draws: object, level: float = 0.95)",
        "def percentile_interval(draws: object, level: float = 0.90)",
        ["tests/statistics/test_intervals.py", "tests/statistics/test_robust.py"],
    ),
    "90 % for a 95 % interval of a mean": (
        "statistics/intervals.py",
        "def mean_interval(values: object, level: float = 0.95)",
        "def mean_interval(values: object, level: float = 0.90)",
        ["tests/statistics/test_intervals.py"],
    ),
    "a run at the cutoff is slow": (
        "attribution/cutoff.py",
        "else numbers > self.value",
        "else numbers >= self.value",
        ["tests/attribution/test_cutoff.py"],
    ),
    "fsync removed": (
        "records.py",
        "        os.fsync(file.fileno())\n    except OSError:",
        "        pass\n    except OSError:",
        ["tests/test_records.py"],
    ),
    "sweep by mark removed": (
        "machine/leftovers.py",
        "names = run_marks.end_marked(",
        "names = (lambda *_: [])(",
        ["tests/measurement/test_processes.py"],
    ),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied_tree(tmp_path_factory.mktemp("named"))


@pytest.mark.long
@pytest.mark.timeout(280)
@pytest.mark.usefixtures("binaries")
@pytest.mark.parametrize("what", NAMED)
def test_it_is_noticed(copy: Path, what: str) -> None:
    name, text, instead, tests = NAMED[what]
    path = copy / "nbhelpers" / name
    before = path.read_text()
    assert before.count(text) == 1
    path.write_text(before.replace(text, instead))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
        )
    finally:
        path.write_text(before)
    assert done.returncode == 1 and " failed" in done.stdout, done.stdout[-2000:]
