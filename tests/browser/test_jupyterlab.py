"""The notebooks in a real JupyterLab in a real browser, on recorded data."""

import shutil

import pytest

from nbhelpers.study import NOTEBOOKS

from ..test_lab import STAGES, has_the_shipped_answer
from .explored import EXPLORED, LINKED, OnPage, choose_a_run, operate, table
from .lab import Notebook

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.mark.parametrize("stage", [*STAGES, "contents"])
def test_a_notebook_runs_in_jupyterlab_and_its_explorer_follows(opened, server, stage):
    """Before any other stage: results of other notebooks are taken away."""
    shutil.rmtree(server[2] / "build/recorded", ignore_errors=True)
    notebook = Notebook(opened, server, stage)
    try:
        state = notebook.run_all()
        assert not state["errors"] and state["run"] == state["cells"]
        if stage in EXPLORED:
            explores(notebook, stage)
        if stage in LINKED:
            choose_a_run(notebook.page)
        assert not notebook.said
        has_the_shipped_answer(server[2], stage)
    finally:
        notebook.close()


def explores(notebook, stage: str) -> None:
    """Every control is operated; what is shown belongs to its last value, and nobody complains."""
    notebook.listen()
    explorer = OnPage(notebook.page, stage)
    try:
        operate(explorer)
    finally:
        print(table(stage, explorer.followed), *notebook.heard(), sep="\n")
    assert not notebook.heard() and not notebook.state()["errors"]


def test_every_notebook_with_an_explorer_is_operated():
    has_one = {
        path.stem for path in NOTEBOOKS.glob("*.ipynb") if "import explore_" in path.read_text()
    }
    assert has_one == set(EXPLORED) | LINKED
