"""Provenance: against git, sha256sum and the files themselves."""

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nbhelpers
from nbhelpers.errors import InputError
from nbhelpers.machine import describe, provenance

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


def sha256(path: Path) -> str:
    return subprocess.run(["sha256sum", path], check=True, capture_output=True, text=True).stdout[
        :16
    ]


def test_the_commit_and_the_state_of_the_tree(repository):
    found = provenance(repository=repository)
    assert (found["commit"], found["dirty"]) == (git(repository, "rev-parse", "HEAD"), False)
    (repository / "new.py").write_text("")
    assert provenance(repository=repository)["dirty"] is True
    (repository / ".gitignore").write_text("*.py\n.gitignore\n")
    assert provenance(repository=repository)["dirty"] is False


def test_no_repository_no_commit_and_no_git_are_none(repository, tmp_path, monkeypatch):
    inside = repository / "sub"
    inside.mkdir()
    for folder in (tmp_path, inside):
        found = provenance(repository=folder)
        assert (found["commit"], found["dirty"], found["environment"]) == (None, None, None)
    monkeypatch.setenv("PATH", "/nowhere")
    assert provenance(repository=repository)["commit"] is None


def test_a_git_folder_of_the_environment_does_not_lead_astray(repository, tmp_path, monkeypatch):
    """A git hook sets GIT_DIR, which would make every commit that of the outer repository."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert len(provenance(repository=repository)["commit"]) == 40


def test_inputs_are_named_by_place_and_content(repository, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text(name)
    found = provenance(
        inputs=[tmp_path / "b/x.txt", repository / "data.csv", str(tmp_path / "a/x.txt")],
        repository=repository,
    )["inputs"]
    assert found == {
        "a/x.txt": sha256(tmp_path / "a/x.txt"),
        "b/x.txt": sha256(tmp_path / "b/x.txt"),
        "data.csv": sha256(repository / "data.csv"),
    }


def test_the_environment_is_the_content_of_the_lock_file(repository):
    found = provenance(repository=repository)
    assert found["environment"] == sha256(repository / "requirements.lock")
    assert (
        found["packages"]["numpy"] == np.__version__
        and found["packages"]["pandas"] == pd.__version__
    )
    assert found["noisebook"] == nbhelpers.__version__


def test_the_record_is_json_and_the_same_each_time(repository):
    arguments = dict(
        parameters={"runs": np.int64(30), "path": Path("build"), "list": (1, 2.5, None)},
        repository=repository,
        time=None,
    )
    found = provenance(**arguments)
    assert json.loads(json.dumps(found)) == found == provenance(**arguments)
    assert found["parameters"] == {"runs": 30, "path": "build", "list": [1, 2.5, None]}
    assert found["machine"] == describe().to_dict() | {"digest": describe().digest}


def test_the_time_is_now_given_or_left_out(repository):
    assert "time" not in provenance(repository=repository, time=None)
    assert provenance(repository=repository, time="2026-01-01")["time"] == "2026-01-01"
    assert pd.Timestamp(provenance(repository=repository)["time"]).tz is not None


def test_the_record_names_no_place(repository, tmp_path):
    (tmp_path / "x").write_text("")
    text = json.dumps(provenance({"a": 1}, [tmp_path / "x", repository / "data.csv"], repository))
    assert (
        str(tmp_path) not in text
        and str(REPOSITORY) not in text
        and f'"{socket.gethostname()}"' not in text
    )
    assert os.path.expanduser("~") not in text


@pytest.mark.parametrize("parameters", [{"f": lambda: 0}, {"x": float("nan")}, {"s": {1, 2}}])
def test_a_parameter_that_cannot_be_recorded_is_refused(repository, parameters):
    with pytest.raises(InputError, match="cannot be recorded"):
        provenance(parameters, repository=repository)


def test_a_missing_input_is_named(repository):
    with pytest.raises(InputError, match="No such file") as error:
        provenance(inputs=[repository / "absent"], repository=repository)
    assert error.value.where == repository / "absent"
