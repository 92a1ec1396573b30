"""bandit finds nothing that is not explained beside it, and each explanation is a sentence."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
CHECKS = REPOSITORY / "build/checks"

pytestmark = pytest.mark.long


@pytest.mark.skipif(not (CHECKS / "bandit").is_dir(), reason="bandit is not here: make test-all")
def test_bandit_finds_nothing() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "bandit",
            "-q",
            "-c",
            "pyproject.toml",
            "-f",
            "json",
            "-r",
            "nbhelpers",
        ],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(CHECKS)},
        capture_output=True,
        text=True,
    )
    report = json.loads(done.stdout)
    assert not report["errors"]
    found = [
        f"{one['filename']}:{one['line_number']}: {one['test_id']} {one['issue_text']}"
        for one in report["results"]
    ]
    assert not found, "\n".join(found)
    assert report["metrics"]["_totals"]["loc"] > 30_000


def test_what_is_left_out_is_explained() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text().partition("[tool.bandit]")[2]
    skips = re.findall(r'"(B\d+)",(.*)', text)
    assert len(skips) == 6 and all(" # " in why for _, why in skips)
    for path in (REPOSITORY / "nbhelpers").rglob("*.py"):
        for line in path.read_text().splitlines():
            if "# nosec" in line:
                assert re.search(r"# nosec B\d+", line), f"{path}: {line}"
