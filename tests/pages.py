"""Looks at exported pages in a browser: what does not fit, which text is too small, which links
lead nowhere.

`.venv/bin/python -m tests.pages FOLDER` prints a row a page.
"""

import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlparse

WIDTHS = (390, 800, 1280, 1920)
PRINTED = 718  # pixels: A4 less two margins of 10 mm
LEAST_POINTS = 9
FOLD = 900
_PX_AN_INCH = 96
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
# Elements that reach beyond the window or need more room than they have; a table in a box that
# scrolls may.
_TOO_WIDE = """() => {
  const room = document.documentElement.clientWidth;
  const shown = [...document.querySelectorAll('table, figure, pre, img, svg')]
    .filter(one => one.getClientRects().length);
  const scrolls = one => one.closest('.noisebook-wide')
    && getComputedStyle(one.closest('.noisebook-wide')).overflowX == 'auto';
  const fixed = shown.filter(one => !scrolls(one));
  const wide = fixed.filter(one => one.getBoundingClientRect().right > room + 1
    || (one.tagName != 'svg' && one.scrollWidth > one.clientWidth + 2));
  const clipped = fixed.filter(one => {
    for (let box = one.parentElement; box; box = box.parentElement)
      if (getComputedStyle(box).overflowX != 'visible' && box.scrollWidth > box.clientWidth + 2)
        return true;
    return false;
  });
  const named = [...new Set([...wide, ...clipped])];
  const names = named.map(one => one.tagName.toLowerCase() + ' '
    + (one.id || one.closest('figure')?.id || one.textContent.trim().slice(0, 30)));
  return {names: names, scrolls: document.documentElement.scrollWidth > room + 1};
}"""
_FIGURES = """() => [...document.querySelectorAll('figure[data-points] img')].map(one => [
  one.closest('figure').id, Number(one.closest('figure').dataset.points),
  Number(one.closest('figure').dataset.inches), one.getBoundingClientRect().width])"""
_LINKS = "() => [...document.querySelectorAll('a[href]')].map(one => one.getAttribute('href'))"
_IDS = "() => [...document.querySelectorAll('[id]')].map(one => one.id)"
_ANSWER = """() => { const one = document.querySelector('.noisebook-answer');
  return one ? one.getBoundingClientRect().bottom : null; }"""
_UNFOLD = "() => document.querySelectorAll('details').forEach(one => one.open = true)"
_WORDS = """() => { const words = one => one.innerText.split(/\\s+/).filter(Boolean).length;
  const left = [...document.querySelectorAll('table, select')].filter(one => one.checkVisibility());
  const drawn = [...document.querySelectorAll('svg')];  // labels of axes, as in a picture
  drawn.forEach(one => { one.style.visibility = 'hidden'; });
  const count = words(document.body) - left.map(words).reduce((a, b) => a + b, 0);
  drawn.forEach(one => { one.style.visibility = ''; });
  return count; }"""
_HEIGHT = "() => document.documentElement.scrollHeight"


@dataclass
class Seen:
    """What was seen of a page.

    Attributes
    ----------
    heights
        By width of the window, in pixels.
    too_wide
        By width, what does not fit; the printed page has the width "print".
    points
        By width, the smallest text of a figure in points; infinite without figures.
    words
        Number of words that are shown at first, but for those in tables and drawings.
    answer_ends
        Lower edge of the answer at 1280 pixels; None without an answer.
    links, ids, messages, requests
        Links, names of elements, console messages, addresses asked for elsewhere.
    """

    path: Path
    heights: dict = field(default_factory=dict)
    too_wide: dict = field(default_factory=dict)
    points: dict = field(default_factory=dict)
    words: int = 0
    answer_ends: float | None = None
    links: list = field(default_factory=list)
    ids: list = field(default_factory=list)
    messages: list = field(default_factory=list)
    requests: list = field(default_factory=list)

    @property
    def repeated(self) -> list[str]:
        """Names that more than one element has."""
        return sorted({name for name in self.ids if self.ids.count(name) > 1})


def chromium() -> str | None:
    """The system's browser, None if there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


@contextmanager
def browser():
    """A browser without a network, through Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=_FLAGS)
        try:
            yield opened
        finally:
            opened.close()


def look(opened, path: Path) -> Seen:
    """Open a page at each width and as it is printed."""
    seen = Seen(path)
    context = opened.new_context(offline=True)
    page = context.new_page()
    page.on("console", lambda message: seen.messages.append(message.text))
    page.on("pageerror", lambda error: seen.messages.append(str(error)))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.goto(path.as_uri())
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": FOLD})
        seen.heights[width] = page.evaluate(_HEIGHT)
        if width == 1280:
            seen.answer_ends, seen.words = page.evaluate(_ANSWER), page.evaluate(_WORDS)
    page.evaluate(_UNFOLD)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": FOLD})
        _note(seen, page, width)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": PRINTED, "height": FOLD})
    _note(seen, page, "print")
    seen.links, seen.ids = page.evaluate(_LINKS), page.evaluate(_IDS)
    seen.requests = [url for url in seen.requests if not url.startswith(("file:", "data:"))]
    context.close()
    return seen


def _note(seen: Seen, page, width: object) -> None:
    found = page.evaluate(_TOO_WIDE)
    seen.too_wide[width] = found["names"] + (["the page scrolls"] if found["scrolls"] else [])
    sizes = [
        points * shown / (inches * _PX_AN_INCH)
        for _, points, inches, shown in page.evaluate(_FIGURES)
    ]
    seen.points[width] = min(sizes, default=float("inf"))


def check(seen: Seen) -> None:
    """What holds for every page."""
    assert not any(seen.too_wide.values()), seen.too_wide
    assert min(seen.points[width] for width in (800, 1280, 1920)) >= LEAST_POINTS, seen.points
    assert not seen.messages and not seen.requests and not seen.repeated
    assert seen.answer_ends is None or seen.answer_ends <= FOLD


def dead_links(seen: Seen, others: dict[Path, list[str]]) -> list[str]:
    """Links of a page that lead to no file or no element; `others`: the ids of the pages seen."""
    return [link for link in dict.fromkeys(seen.links) if not _leads(seen, link, others)]


def _leads(seen: Seen, link: str, others: dict[Path, list[str]]) -> bool:
    address = urlparse(link)
    if address.scheme:
        return True
    target = (seen.path.parent / unquote(address.path)).resolve() if address.path else seen.path
    ids = seen.ids if target == seen.path else others.get(target)
    if not target.exists():
        return False
    names = {address.fragment, unquote(address.fragment)}  # a browser tries both
    return names == {""} or ids is None or bool(names & set(ids))


def main(folder: str) -> None:
    """Print a row a page."""
    print(
        f"{'page':26} height390 height1280 words too wide 390 800 1280 1920 print points1280 links"
    )
    with browser() as opened:
        pages = [look(opened, path.resolve()) for path in sorted(Path(folder).glob("*.html"))]
    ids = {seen.path: seen.ids for seen in pages}
    for seen in pages:
        clipped = [len(seen.too_wide[width]) for width in (*WIDTHS, "print")]
        print(
            f"{seen.path.stem:26} {seen.heights[390]:9} {seen.heights[1280]:10} {seen.words:5}"
            f" {'':8} {clipped} {seen.points[1280]:9.1f} {dead_links(seen, ids)}"
        )


if __name__ == "__main__":
    main(sys.argv[1])
