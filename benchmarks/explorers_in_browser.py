"""How long after a control's last change its view is painted, in JupyterLab in Chromium: ms.

python benchmarks/explorers_in_browser.py [operations a control]

Each control of each explorer of the notebooks is operated on the recorded campaign: sliders are
dragged by the mouse, 25 moves at 100 a second; lists are opened by a click and left by Enter. The
time begins with the last event that changed the control's value. It ends when the page has painted
the view that belongs to it. Each drag ends somewhere in the slider's other half, drawn at random:
most views are drawn anew.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser.explored import EXPLORED, OnPage, table
from tests.browser.lab import Notebook, lab_of
from tests.pages import browser, chromium

PAUSE_S = 0.01  # between two moves of the mouse


def measure(opened, server, stage: str, count: int) -> str:
    """A line a control."""
    notebook = Notebook(opened, server, stage)
    try:
        notebook.run_all()
        explorer, random = OnPage(notebook.page, stage), np.random.default_rng(0)
        for number, (label, kind) in enumerate(explorer.kinds.items()):
            for time in range(count):
                _operate(explorer, number, kind, random, time)
                explorer.follow(label, "list" if kind == "list" else "mouse", lasting_s=0.05)
        return table(stage, explorer.followed)
    finally:
        notebook.close()


def _operate(explorer: OnPage, number: int, kind: str, random, time: int) -> None:
    if kind == "list":
        explorer.choose(number, "ArrowUp" if time % 4 > 1 else "ArrowDown")
        return
    handle = time % 2 if kind == "span" else 0
    low, length = (handle / 2, 0.5) if kind == "span" else (0.0, 1.0)
    beyond = explorer.place(number, handle) > low + length / 2
    to = random.uniform(0.02, 0.35) if beyond else random.uniform(0.65, 0.98)
    explorer.drag(number, handle, low + to * length, PAUSE_S)


def main() -> None:
    if chromium() is None:
        print("no chromium on this machine: nothing is measured")
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as settings,
        lab_of(Path(folder), Path(settings)) as server,
        browser() as opened,
    ):
        for stage in EXPLORED:
            print(measure(opened, server, stage, count), flush=True)


if __name__ == "__main__":
    main()
