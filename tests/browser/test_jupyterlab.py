"""The notebooks in a real JupyterLab in a real browser, on recorded data."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from ..pages import browser, chromium
from ..test_lab import STAGES, fresh_clone, has_the_shipped_answer

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
EXPLORED = {  # notebooks with an explorer, and how many sliders it has at least
    "50-attribution": 1,
    "10-trace-collection": 1,
    "15-account": 1,
    "20-delta-config": 1,
    "70-noise-signatures": 3,
}
_NOT_OURS = (  # what JupyterLab itself says without a network
    "ERR_INTERNET_DISCONNECTED",
    "ERR_NAME_NOT_RESOLVED",
    "/lab/api/",
    "/api/me",
)
_STATE = """() => {
  const panel = window.jupyterapp.shell.currentWidget;
  const cells = [...panel.content.model.cells].filter(one => one.type == 'code');
  const outputs = cells.flatMap(one => one.sharedModel.toJSON().outputs);
  return {
    cells: cells.length,
    run: cells.filter(one => one.executionCount).length,
    status: panel.sessionContext.session?.kernel?.status ?? 'none',
    errors: outputs.filter(one => one.output_type == 'error').map(one => one.ename + one.evalue),
  };
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """`make lab` on a copy of the tree in which nothing was run; its address and its folder."""
    folder, settings = fresh_clone(tmp_path_factory.mktemp("lab ü")), tmp_path_factory.mktemp("own")
    own = {f"JUPYTER_{name}_DIR": str(settings / name) for name in ("CONFIG", "DATA")}
    words = ["open", "--profile", "recorded", "--no-browser", "--ServerApp.port=0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "nbhelpers.lab", *words, "--LabApp.expose_app_in_browser=True"],
        cwd=folder,
        env={**os.environ, **own, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said = ""
        while not (found := re.search(r"(http://localhost:\d+)/\S*(token=\w+)", said)):
            line = process.stdout.readline()
            assert line, said
            said += line
        yield found[1], found[2], folder
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # the server ends its kernels
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def opened():
    if chromium() is None:
        pytest.skip("no chromium on this machine")
    pytest.importorskip("playwright", reason="playwright comes with the extra `test`")
    with browser() as one:
        yield one


class Notebook:
    """A notebook open in JupyterLab, and what the browser's console said."""

    def __init__(self, opened, server, stage: str):
        address, token, _ = server
        self.said: list[str] = []
        self.page = opened.new_page(viewport={"width": 1280, "height": 900})
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("console", self._note)
        self.page.goto(f"{address}/lab/tree/build/lab/{stage}.ipynb?reset&{token}")
        self.page.wait_for_selector(".jp-Notebook", timeout=60_000)
        self.page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel"
            "?.status == 'idle'",
            timeout=60_000,
        )

    def _note(self, message) -> None:
        text = f"{message.text} {message.location.get('url', '')}"
        if message.type == "error" and not any(known in text for known in _NOT_OURS):
            self.said.append(text)

    def run_all(self) -> dict:
        """Run > Run All Cells, and wait for the end."""
        began = time.monotonic()
        self.page.evaluate("() => window.jupyterapp.commands.execute('runmenu:run-all')")
        while time.monotonic() < began + 300:
            time.sleep(0.5)
            state = self.page.evaluate(_STATE)
            if state["errors"] or (state["run"] == state["cells"] and state["status"] == "idle"):
                break
        print(f"{time.monotonic() - began:.0f} s")
        return state

    def close(self) -> None:
        """Without saving; its kernel ends."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        self.page.close()


def settled(page, text) -> str:
    """What an explorer shows once it has followed: the same for a second."""
    before, since = text.inner_text(), time.monotonic()
    while time.monotonic() < since + 1:
        time.sleep(0.1)
        if (now := text.inner_text()) != before:
            before, since = now, time.monotonic()
    return before


@pytest.mark.parametrize("stage", [*STAGES, "contents"])
def test_a_notebook_runs_in_jupyterlab_and_its_explorer_follows_the_last_key(opened, server, stage):
    """Before any other stage: results of other notebooks are taken away."""
    shutil.rmtree(server[2] / "build/recorded", ignore_errors=True)
    notebook = Notebook(opened, server, stage)
    try:
        state = notebook.run_all()
        assert not state["errors"] and state["run"] == state["cells"]
        for number in range(EXPLORED.get(stage, 0)):
            follows_the_last_key(notebook.page, number)
        assert not notebook.said
        has_the_shipped_answer(server[2], stage)
    finally:
        notebook.close()


def follows_the_last_key(page, number: int) -> None:
    """Fifteen keys and Home, at once: what is shown is what Home alone shows."""
    explorer = page.locator(".widget-vbox:has(.widget-slider)").first
    explorer.scroll_into_view_if_needed(timeout=30_000)
    handle = explorer.locator(".noUi-handle").nth(number)
    text = explorer.locator(".widget-html").first
    handle.press("End")
    last = settled(page, text)
    handle.press("Home")
    first = settled(page, text)
    assert first != last
    for _ in range(15):
        handle.press("ArrowRight")
    began = time.monotonic()
    handle.press("Home")
    while text.inner_text() != first and time.monotonic() < began + 20:
        time.sleep(0.02)
    print(f"slider {number}: {time.monotonic() - began:.2f} s after the last of 16 keys")
    assert settled(page, text) == first


def test_the_contents_link_to_notebooks_that_open(opened, server):
    notebook = Notebook(opened, server, "contents")
    try:
        notebook.run_all()
        links = notebook.page.locator(".jp-OutputArea a[href*='.ipynb']")
        links.first.wait_for(timeout=30_000)
        found = [links.nth(i).get_attribute("href") for i in range(links.count())]
        assert set(STAGES) - {"90-paper"} <= {
            re.search(r"([\w-]+)\.ipynb", one)[1] for one in found
        }
        links.first.click()
        notebook.page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget.context.path"
            " == 'build/lab/00-machine.ipynb'",
            timeout=30_000,
        )
        assert not notebook.said
    finally:
        notebook.close()
