"""bandit finds nothing that is not explained beside it."""

import json
import os
import sys

import pytest

from .processes import run
from .trees import CHECKS, REPOSITORY


@pytest.mark.long
@pytest.mark.skipif(
    not (CHECKS / "bandit").is_dir(), reason="bandit is not here: sh tests/optional.sh"
)
def test_bandit_finds_nothing() -> None:
    words = ["-m", "bandit", "-q", "-c", "pyproject.toml", "-f", "json", "-r", "nbhelpers"]
    environment = os.environ | {"PYTHONPATH": str(CHECKS)}
    done = run(sys.executable, *words, cwd=REPOSITORY, env=environment)
    report = json.loads(done.stdout)
    assert not report["errors"]
    found = [
        f"{one['filename']}:{one['line_number']}: {one['test_id']} {one['issue_text']}"
        for one in report["results"]
    ]
    assert not found, "\n".join(found)
    assert report["metrics"]["_totals"]["loc"] > 30_000
