"""An explorer in a notebook that is open in a browser: its controls are operated by mouse and keys.

What is shown in the end must belong to what the controls have in the end.
"""

import time
from collections.abc import Callable
from functools import partial

import pandas as pd

# Controls by their labels, in order, in each notebook that has an explorer.
EXPLORED = {
    "20-delta-config": {
        "longest events taken": "choice",
        "length of each event ×": "choice",
        "shortest event": "choice",
    },
    "50-attribution": {"cutoff": "choice"},
    "70-noise-signatures": {"frequency": "choice", "duration": "choice", "ranks": "choice"},
}
LINKED = {"01-your-program", "15-account"}  # with a linked view of runs; 01 is for a program
PLACES = ((0.1, 0.4), (0.9, 0.6))  # along a slider, where drags of each handle end
RIGHT_LEFT = ("ArrowRight", "ArrowLeft")
MOVES = 25  # of the mouse in a drag
MOST_WAIT_S = 30
LASTING_S = 0.3  # after which nothing more is expected
_BOX = ".widget-vbox:has(.explorer)"
# What is asked of the page; `box` is the explorer with its controls.
_WATCH = """box => {
  const watch = window.watch = {changed: 0, shown: 0, views: 0};
  const changed = () => { watch.changed = performance.now(); watch.views = 0; };
  for (const one of box.querySelectorAll('.noUi-target')) {
    let before = String(one.noUiSlider.get(true));
    one.noUiSlider.on('slide.watch', () => {
      const now = String(one.noUiSlider.get(true));
      if (now != before) changed();
      before = now;
    });
  }
  for (const one of box.querySelectorAll('select')) one.addEventListener('change', changed, true);
  const painted = () => requestAnimationFrame(() => setTimeout(() => {
    watch.shown = performance.now();
    watch.views += 1;
  }));
  new MutationObserver(painted).observe(
    box.querySelector('.widget-html-content'), {childList: true, subtree: true});
}"""
_CONTROLS = """box => [...box.querySelectorAll('.noUi-target, select, input, button, textarea')]
  .map(one => {
    const frame = one.closest('.widget-inline-hbox');
    const label = frame?.querySelector('.widget-label');
    const word = one.selectedOptions?.[0] ?? frame?.querySelector('.widget-readout');
    return {
      tag: one.tagName.toLowerCase(),
      label: label?.innerText ?? '',
      tooltip: label?.title ?? '',
      cut: label ? label.scrollWidth > label.clientWidth : false,
      visible: one.getClientRects().length > 0,
      handles: one.querySelectorAll('.noUi-handle').length,
      words: word?.textContent ?? '',
    };
  })"""
_SHOWN = """box => {
  const one = box.querySelector('.explorer');
  return {
    words: [...one.querySelector('p').querySelectorAll('strong')].map(word => word.innerText),
    html: one.innerHTML,
  };
}"""
_TOO_WIDE = """box => [...box.querySelectorAll('.explorer, .explorer *')]
  .filter(one => one.getBoundingClientRect().right > box.getBoundingClientRect().right + 1)
  .map(one => one.tagName + ' ' + one.textContent.trim().slice(0, 30))"""


class OnPage:
    """The explorer of an open notebook.

    Attributes
    ----------
    kinds
        Kind of each control by its label, as the notebook should have them.
    followed
        What was operated so far: control, way, and how long after the control's last change the
        page had its view, ms.
    """

    def __init__(self, page, stage: str):
        self.page, self.kinds = page, EXPLORED[stage]
        self._changed = 0.0
        self.followed: list[tuple[str, str, float]] = []
        self.box = page.locator(_BOX).first
        self.box.wait_for(timeout=30_000)
        self.box.evaluate("box => box.scrollIntoView()")
        self.box.evaluate(_WATCH)

    def controls(self) -> list[dict]:
        """What the page has: tag, label, tooltip, handles, numbers and words of each control."""
        return self.box.evaluate(_CONTROLS)

    def shown(self) -> dict:
        """Words and HTML of the view."""
        return self.box.evaluate(_SHOWN)

    def check_controls(self) -> None:
        """The page has the controls that it should have, each to be seen and read as a whole."""
        assert self.page.locator(_BOX).count() == 1
        found = self.controls()
        assert [one["label"] for one in found] == list(self.kinds)
        for one in found:
            assert one["tag"] != "select" and one["handles"] == 1, one
            assert one["visible"] and not one["cut"] and one["tooltip"] in ("", one["label"]), one
        assert self.box.evaluate(_TOO_WIDE) == []

    def differing(self) -> list[str]:
        """Controls whose last value is not the one that the view shows, in words."""
        words, found = self.shown()["words"], self.controls()
        assert len(found) == len(words)
        return [
            f"{one['label']}: {one['words']}, shown {shown}"
            for one, shown in zip(found, words)
            if one["words"] != shown
        ]

    def follow(self, label: str, way: str, lasting_s: float = LASTING_S) -> str:
        """Wait until the view shows what the controls have, and see that it stays; its HTML."""
        until = time.monotonic() + MOST_WAIT_S
        while (differing := self._waited_for()) and time.monotonic() < until:
            time.sleep(0.02)
        assert not differing, (label, way, differing)
        changed, shown = self.page.evaluate("() => [watch.changed, watch.shown]")
        assert changed > self._changed, (label, way, "the control did not move")
        self._changed = changed
        self.followed.append((label, way, shown - changed))
        before = self.shown()["html"]
        time.sleep(lasting_s)
        assert self.shown()["html"] == before, (label, way, "changed again")
        return before

    def _waited_for(self) -> list[str]:
        painted = self.page.evaluate("() => watch.shown >= watch.changed")
        return self.differing() if painted else ["nothing was painted since the last change"]

    def drag(self, number: int, handle: int, place: float, pause_s: float = 0.0) -> None:
        """A handle by the mouse to a place along its slider, 0 to 1, in many moves."""
        frame = self._frame(number)
        dragged = frame.locator(".noUi-handle").nth(handle)
        dragged.scroll_into_view_if_needed(timeout=30_000)
        knob, slider = dragged.bounding_box(), frame.locator(".noUi-target").bounding_box()
        x, y = knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2
        to = slider["x"] + place * slider["width"]
        mouse = self.page.mouse
        mouse.move(x, y)
        mouse.down()
        for move in range(1, MOVES + 1):
            mouse.move(x + (to - x) * move / MOVES, y)
            time.sleep(pause_s)
        mouse.up()

    def place(self, number: int, handle: int) -> float:
        """Where a handle stands along its slider, 0 to 1."""
        frame = self._frame(number)
        knob = frame.locator(".noUi-handle").nth(handle).bounding_box()
        slider = frame.locator(".noUi-target").bounding_box()
        return (knob["x"] + knob["width"] / 2 - slider["x"]) / slider["width"]

    def press(self, number: int, *keys: str) -> None:
        """Keys on a slider's first handle, one at once after the other."""
        self._frame(number).locator(".noUi-handle").first.focus()
        self._type(*keys)

    def _type(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def _frame(self, number: int):
        return self.box.locator(".widget-inline-hbox").nth(number)


def operate(explorer: OnPage) -> None:
    """Every control by mouse and keys, each in turn, then all at once."""
    explorer.check_controls()
    for number in range(len(explorer.kinds)):
        _operate_slider(explorer, number)
    _operate_all(explorer)
    assert explorer.box.evaluate(_TOO_WIDE) == []


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


def _operate_slider(explorer: OnPage, number: int) -> None:
    label = list(explorer.kinds)[number]
    for handle in range(explorer.controls()[number]["handles"]):
        for place in PLACES[handle]:
            explorer.drag(number, handle, place)
            explorer.follow(label, "mouse")
    explorer.press(number, "End", *["ArrowLeft"] * 15, "Home")
    fast = explorer.follow(label, "keys")
    _arrives_slowly_at(explorer, label, fast, partial(explorer.press, number), RIGHT_LEFT)


def _arrives_slowly_at(
    explorer: OnPage, label: str, fast: str, move: Callable, keys: tuple[str, str]
) -> None:
    """The same view by a step away and back, each waited for: the value alone decides."""
    move(keys[0])
    assert explorer.follow(label, "step") != fast
    move(keys[1])
    assert explorer.follow(label, "step") == fast


def _operate_all(explorer: OnPage) -> None:
    for number in range(len(explorer.kinds)):
        explorer.drag(number, 0, 0.3)
    explorer.follow("all", "mouse")


def table(stage: str, followed: list[tuple[str, str, float]]) -> str:
    """A line a control: number, median and maximum of ms from its last change to its view."""
    ms = pd.DataFrame(followed, columns=["control", "by", "ms"]).groupby(["control", "by"])["ms"]
    return f"{stage}\n{ms.agg(['size', 'median', 'max']).round().to_string()}"
