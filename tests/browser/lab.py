"""`make lab` on a fresh clone, and a notebook that is open in it in a browser."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from nbhelpers import lab

from ..trees import copied_tree

WINDOW = {"width": 1280, "height": 900}
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


def fresh_clone(folder: Path) -> Path:
    """What git tracks, and the built parts, as a git checkout in which nothing was run."""
    copied_tree(folder)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all")
    return folder


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def has_the_shipped_answer(clone: Path, stage: str) -> None:
    """What a notebook answered is what README says; nothing changed in git."""
    assert git(clone, "status", "--porcelain") == ""
    answer = clone / "build/recorded/results" / stage / "found.json"
    shipped = lab.shipped_answers()
    if stage in shipped and answer.exists():
        made, known = lab.read_answer(answer).answer, shipped[stage].answer
        assert (made.answer, made.sentence) == (known.answer, known.sentence)


@contextmanager
def lab_of(folder: Path, settings: Path):
    """JupyterLab on a copy of the tree in which nothing was run: address, token and the copy."""
    fresh_clone(folder)
    own = {f"JUPYTER_{name}_DIR": str(settings / name) for name in ("CONFIG", "DATA")}
    words = ["lab", "--profile", "recorded", "--", "--no-browser", "--ServerApp.port=0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "nbhelpers", *words, "--LabApp.expose_app_in_browser=True"],
        cwd=folder,
        env={**os.environ, **own, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield *_address(process), folder
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # the server ends its kernels
        process.communicate(timeout=60)


def _address(process: subprocess.Popen) -> tuple[str, str]:
    """Where the server listens, and its token, out of what it prints; a minute at most."""
    printed, latest = "", time.monotonic() + 60
    while not (found := re.search(r"(http://[\w.]+:\d+)/\S*(token=\w+)", printed)):
        ready, _, _ = select.select([process.stdout], [], [], max(0, latest - time.monotonic()))
        more = os.read(process.stdout.fileno(), 4096).decode() if ready else ""
        assert more, f"JupyterLab names no address: {printed}"
        printed += more
    return found[1], found[2]


class Notebook:
    """A notebook open in JupyterLab, and what the browser's console said."""

    def __init__(self, opened, server, stage: str):
        address, token, _ = server
        self.said: list[str] = []
        self.page = opened.new_page(viewport=WINDOW)
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

    def state(self) -> dict:
        """Code cells, those that were run, the kernel's status, and errors among the outputs."""
        return self.page.evaluate(_STATE)

    def run_all(self) -> dict:
        """Run > Run All Cells, and wait for the end."""
        began = time.monotonic()
        self.page.evaluate("() => window.jupyterapp.commands.execute('runmenu:run-all')")
        while time.monotonic() < began + 300:
            time.sleep(0.5)
            state = self.state()
            if state["errors"] or (state["run"] == state["cells"] and state["status"] == "idle"):
                break
        print(f"{time.monotonic() - began:.0f} s")
        return state

    def close(self) -> None:
        """Without saving; its kernel ends."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        self.page.close()
