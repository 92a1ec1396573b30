"""The tests of the modules that decide notice small mistakes: a fixed sample of mutants."""

import os
import re
import subprocess
import sys

import pytest

from ..ci import not_in_ci
from .making import CHECKS, REPOSITORY
from .runner import Score

SIZE = os.environ.get("NOISEBOOK_MUTANTS", "3")  # a group


@not_in_ci("seven minutes of both CPUs for a share that is known to within 20 points")
@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.skipif(
    not (CHECKS / "cosmic_ray").is_dir(), reason="cosmic-ray is not here: sh tests/optional.sh"
)
def test_the_score() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants", SIZE, "--seed", "2"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    print(done.stdout)
    found = re.search(r"all +(\d+) of (\d+) killed", done.stdout)
    assert found, done.stdout + done.stderr
    killed, count = map(int, found.groups())
    assert "unclear" not in done.stdout and count >= 6 * int(SIZE) - 5, done.stdout
    # of so few the share is known to within 20 points: `python -m tests.mutants 30` says more
    assert killed / count >= 0.65, done.stdout


def test_the_interval_is_wilsons() -> None:
    """From the table of Wilson's interval for 8 of 10."""
    share, low, high = Score(killed=8, survived=[None, None]).interval()  # type: ignore[list-item]
    assert share == 0.8
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)
