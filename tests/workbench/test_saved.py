"""A saved session: an executed notebook that computes the same numbers for somebody else."""

import ast
import shutil
from dataclasses import replace

import nbformat
import pytest
from nbclient import NotebookClient

from nbhelpers.places import shipped
from nbhelpers.workbench import Session
from nbhelpers.workbench.saved import notebook_of, save_notebook
from nbhelpers.workbench.session import Limit


def results_of(notebook) -> list[str]:
    """The text of every result."""
    return [
        output.get("data", {}).get("text/plain", output.get("text", ""))
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]


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
        limits=(Limit("seconds", 0.0, 0.05),),
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
    ratio = session.trials()["mimalloc"].comparison.table.loc["mean", "ratio"]
    assert any(f"mean ratio {ratio:.4f}" in text for text in texts)
    [verdicts] = [ast.literal_eval(text) for text in texts if text.startswith("{'mimalloc'")][:1]
    assert verdicts["mimalloc"][1] == session.trials()["mimalloc"].sentence
    assert any("image/png" in str(cell.get("outputs")) for cell in saved.cells)
    assert str(tmp_path) not in path.read_text()

    moved = tmp_path / "elsewhere"
    shutil.copytree(session.place, moved)
    again = nbformat.read(moved / path.name, as_version=4)
    NotebookClient(again, timeout=300, resources={"metadata": {"path": str(moved)}}).execute()
    assert results_of(again) == texts


def test_recorded_runs_are_named_by_where_they_lie_in_the_checkout(tmp_path):
    notebook = notebook_of(replace(Session(), outcome="user_s"))
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert f"shipped() / {Session().folder!r}" in code and str(shipped()) not in code
    assert "'user_s'" in code
    for cell in notebook.cells:
        if cell.cell_type == "code":
            ast.parse(cell.source)
