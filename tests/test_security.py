"""bandit finds nothing that is not explained beside it, and each explanation is a sentence; what is
locked can be held against advisories.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from .advisories import affected, hits, locked
from .processes import run

REPOSITORY = Path(__file__).resolve().parents[1]
CHECKS = REPOSITORY / "build/checks"


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


@pytest.mark.parametrize(
    "version, named",
    [("1.0", False), ("1.2", True), ("1.9.9", True), ("2.0", False), ("3.1", True), ("4.0", False)],
)
def test_an_advisory_names_versions_by_ranges_and_by_list(version: str, named: bool) -> None:
    events = [{"introduced": "1.1"}, {"fixed": "2.0"}, {"introduced": "3.0"}, {"fixed": "4.0"}]
    about = {"ranges": [{"type": "ECOSYSTEM", "events": events}], "versions": ["1.2"]}
    assert affected(version, about) is named


def test_the_locked_packages_are_all_found(tmp_path: Path) -> None:
    versions = locked()
    assert len(versions) > 150 and {"numpy", "jupyterlab", "bandit"} <= versions.keys()
    (tmp_path / "vulns/numpy").mkdir(parents=True)
    about = {"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}]}
    content = {"affected": [{"package": {"name": "NumPy"}, **about}]}
    (tmp_path / "vulns/numpy/PYSEC-1.yaml").write_text(json.dumps(content))
    assert {hit.package for hit in hits(tmp_path, versions)} == {"numpy"}
