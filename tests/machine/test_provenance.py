"""Provenance: against git, sha256sum and the files themselves."""

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from nbhelpers.machine import describe, provenance
from nbhelpers.machine._provenance import commit_of

from .conftest import REPOSITORY


@pytest.fixture
def repository(tmp_path):
    """A checkout with one commit, a lock file and an input."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "requirements.lock").write_text("numpy==2\n")
    (folder / "data.csv").write_text("1,2\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first")
    return folder


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", folder, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_the_commit_and_the_state_of_the_tree(repository):
    found = commit_of(repository)
    assert (found["commit"], found["dirty"]) == (git(repository, "rev-parse", "HEAD"), False)
    (repository / "new.py").write_text("")
    assert commit_of(repository)["dirty"] is True
    (repository / ".gitignore").write_text("*.py\n.gitignore\n")
    assert commit_of(repository)["dirty"] is False


def test_no_repository_no_commit_and_no_git_are_none(repository, tmp_path, monkeypatch):
    inside = repository / "sub"
    inside.mkdir()
    for folder in (tmp_path, inside):
        found = commit_of(folder)
        assert (found["commit"], found["dirty"]) == (None, None)
    monkeypatch.setenv("PATH", "/nowhere")
    assert commit_of(repository)["commit"] is None


def test_a_git_folder_of_the_environment_does_not_lead_astray(repository, tmp_path, monkeypatch):
    """A git hook sets GIT_DIR, which would make every commit that of the outer repository."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert len(commit_of(repository)["commit"]) == 40


def test_the_record_is_json_and_names_no_place():
    found = provenance({"runs": 30, "list": [1, 2.5, None]})
    text = json.dumps(found)
    assert json.loads(text) == found
    assert found["parameters"] == {"runs": 30, "list": [1, 2.5, None]}
    assert found["machine"] == describe().to_dict() | {"digest": describe().digest}
    assert str(REPOSITORY) not in text and os.path.expanduser("~") not in text
    assert f'"{socket.gethostname()}"' not in text
