"""How long each click takes: to who took a slow run's time, and to a mitigation tried and undone.

A real browser, by mouse and keys. First the front page of a study: a click on the slowest run, when
another one is shown, until its account stands there. Then notebook 02 in JupyterLab: seven clicks
from a command to a mitigation that was tried. Each round measures another command: nothing was
computed before. Wall time from the click until what it asks for is seen; a look takes 0.02 s.

    python benchmarks/clicks.py [ROUNDS [FRONT_PAGE]]
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.clicks import Page
from tests.browser.lab import lab_of
from tests.browser.test_workbench import COMMAND, STAGE, from_a_command_to_a_mitigation
from tests.pages import browser

FRONT = ROOT / "build/recorded/paper/index.html"
STEPS = (
    "tab 1",
    "measure 30 runs: begins",
    "tab 2: runs, tree",
    "choose a metric: plot, R²",
    "tab 3: mitigations",
    "choose a mitigation",
    "try it: 40 runs begin",
)
_BARS = """() => [...document.querySelectorAll(".linked-view path[aria-label*='owner']")]
  .map(one => one.getAttribute('aria-label')).join()"""


def main(rounds: int = 5, front: Path = FRONT) -> None:
    with browser() as opened:
        if front.exists():
            took = on_the_front_page(opened, rounds, front)
            print(f"click the slowest run: its account, time line, counters  {said(took)}")
        else:
            print(f"no {front}: make paper PROFILE=recorded")
        rows = in_the_workbench(opened, rounds)
    for step, took in zip(STEPS, zip(*rows)):
        print(f"{step:30} {said(took)}")
    every = [seconds for row in rows for seconds in row]
    print(f"{len(STEPS)} clicks, all rounds {said(every)}")


def said(took) -> str:
    return f"median {median(took):.3f} s, largest {max(took):.3f} s, n = {len(took)}"


def seconds_of(dot) -> float:
    return float(dot.get_attribute("aria-label").split("seconds: ")[1].split(";")[0])


def on_the_front_page(opened, rounds: int, front: Path) -> list[float]:
    tab = opened.new_page(viewport={"width": 1280, "height": 800})
    tab.goto(front.resolve().as_uri())
    tab.locator("g.mark-symbol.role-mark path").first.wait_for()
    dots = sorted(tab.locator("g.mark-symbol.role-mark path").all(), key=seconds_of)
    took = []
    for _ in range(rounds):
        for dot in (dots[0], dots[-1]):
            before, began = tab.evaluate(_BARS), time.monotonic()
            dot.click(force=True)
            tab.wait_for_function(f"before => ({_BARS})() != before", arg=before, timeout=9000)
        took.append(time.monotonic() - began)
    tab.close()
    return took


def in_the_workbench(opened, rounds: int) -> list[list[float]]:
    with tempfile.TemporaryDirectory() as name:
        os.environ["NOISEBOOK_STATE"] = str(Path(name, "state"))
        Path(name, "state").mkdir()
        with lab_of(Path(name, "lab"), Path(name, "own")) as server:
            page = Page(opened, server, STAGE)
            page.run_all()
            commands = (COMMAND.replace("10**6", f"10**6 + {each}") for each in range(rounds))
            rows = [from_a_command_to_a_mitigation(page, command) for command in commands]
            print(f"{page.clicks} clicks from a command to a mitigation tried and undone")
            page.close()
    return rows


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *map(Path, sys.argv[2:3]))
