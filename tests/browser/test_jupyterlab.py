"""The notebooks in a real JupyterLab in a real browser, on recorded data."""

import shutil
import time

import pytest

from nbhelpers.study import NOTEBOOKS

from .lab import Notebook, has_the_shipped_answer

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
LINKED = {"01-your-program", "15-account"}  # with a linked view of runs; 01 is for a program
# and what the main way is, and what begins with what another page handed on; `make paper` runs all
RUN = [
    *("10-trace-collection", "15-account", "20-delta-config", "30-injection", "37-worst-runs"),
    *("42-fairness", "50-attribution", "80-noise-at-scale", "contents"),
]


@pytest.mark.parametrize("stage", RUN)
def test_a_notebook_runs_in_jupyterlab_and_its_view_follows(opened, server, stage):
    """Before any other stage: results of other notebooks are taken away."""
    shutil.rmtree(server[2] / "build/recorded", ignore_errors=True)
    notebook = Notebook(opened, server, stage)
    try:
        state = notebook.run_all()
        assert not state["errors"] and state["run"] == state["cells"]
        if stage in LINKED:
            choose_a_run(notebook.page)
        assert not notebook.said
        has_the_shipped_answer(server[2], stage)
    finally:
        notebook.close()


def choose_a_run(page) -> None:
    """The third of the list, in a linked view: its dot becomes the large one, within 0.3 s."""
    view = page.locator(".linked-view")
    view.scroll_into_view_if_needed()
    choice, large = view.locator("select"), view.locator("g.mark-symbol path[stroke='black']")
    before = large.get_attribute("aria-label")
    began = time.monotonic()
    choice.select_option(index=2)
    page.wait_for_function(
        "([box, old]) => box.querySelector(\"g.mark-symbol path[stroke='black']\")"
        ".getAttribute('aria-label') != old",
        arg=[view.element_handle(), before],
    )
    print(f"linked view: {time.monotonic() - began:.2f} s")
    assert f"run: {choice.input_value()};" in large.get_attribute("aria-label")


def test_every_notebook_with_a_linked_view_is_operated():
    has_one = {
        path.stem for path in NOTEBOOKS.glob("*.ipynb") if "import explore_" in path.read_text()
    }
    assert has_one == LINKED
