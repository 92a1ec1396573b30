"""A saved session: an executed notebook that computes the same numbers for somebody else."""

import shutil
from dataclasses import replace

import nbformat
import pytest
from nbclient import NotebookClient

from nbhelpers.places import shipped
from nbhelpers.reading import read_json
from nbhelpers.workbench import Session
from nbhelpers.workbench.saved import save_notebook

pytestmark = pytest.mark.long


def results_of(notebook) -> list[str]:
    """The text of every result; the first is the workbench's own, with widgets or without."""
    return [
        output.get("data", {}).get("text/plain", output.get("text", ""))
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]


def run_elsewhere(folder, moved):
    """Copy a saved session, run it there, and compare what both show."""
    shutil.copytree(folder, moved)
    [path] = moved.glob("*.ipynb")
    saved = nbformat.read(path, as_version=4)
    again = nbformat.read(path, as_version=4)
    NotebookClient(again, timeout=300, resources={"metadata": {"path": str(moved)}}).execute()
    assert results_of(again)[1:] == results_of(saved)[1:]
    return path.read_text()


@pytest.fixture
def session(tmp_path):
    """Recorded runs in a folder of somebody's own, with choices of every kind."""
    recorded = shipped() / Session().folder
    for step in ("first", "trial-mimalloc", "confirm-mimalloc"):
        shutil.copytree(recorded / step, tmp_path / "a b" / step)
    return Session(
        str(tmp_path / "a b"),
        "program that is not here",
        cutoff=0.0225,
        excluded=("minor_faults_per_s",),
        limits={"seconds": [0.0, 0.05]},
        mitigation="mimalloc",
    )


def test_the_saved_notebook_has_the_sessions_numbers_and_runs_again_elsewhere(session, tmp_path):
    path = save_notebook(session)
    assert path.parent == session.place
    saved = nbformat.read(path, as_version=4)
    nbformat.validate(saved)
    found = session.explanation()
    texts = results_of(saved)
    assert repr(found) in texts
    ratio = session.tried().loc["mimalloc", "mean_ratio"]
    assert any(f"{ratio:.6f}" in text for text in texts)
    shown = "".join(str(cell.get("outputs")) for cell in saved.cells)
    assert session.trials()["mimalloc"].sentence[1:] in shown and "image/png" in shown
    assert str(tmp_path) not in run_elsewhere(path.parent, tmp_path / "elsewhere")


def test_recorded_runs_are_named_by_where_they_lie_in_the_checkout(tmp_path, monkeypatch):
    monkeypatch.setattr("nbhelpers.workbench.session.results", lambda: tmp_path)
    path = save_notebook(replace(Session(), outcome="user_s"))
    choices = read_json(path.with_name("session.json"))
    assert choices["folder"] == Session().folder and choices["outcome"] == "user_s"
    assert {one.name for one in path.parent.iterdir()} == {"session.ipynb", "session.json"}
