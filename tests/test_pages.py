"""Exported pages in a browser, without a network: nothing is cut, small, or leads nowhere."""

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest

from nbhelpers.answers import Answer
from nbhelpers.page import export_page, limits_html, top_html
from nbhelpers.palette import COLUMN_IN, PAGE_IN, STYLE
from nbhelpers.report import save_figure, save_table

from .pages import check, dead_links, look

ROWS, COLUMNS = 156, 25


def drawing(width_in):
    with plt.style.context(STYLE):
        figure, axes = plt.subplots(figsize=(width_in, 2))
        axes.plot([1, 2, 3])
        axes.set_ylabel("run time (s)")
    return figure


def numbers_table():
    numbers = np.random.default_rng(1).normal(100, 30, (ROWS, COLUMNS))
    table = pd.DataFrame(numbers, columns=[f"unexplained part {i}_ms" for i in range(COLUMNS)])
    table.insert(0, "operation", [f"operation of rank {i}" for i in range(ROWS)])
    return table.assign(why="a long reason, as a sentence of many words that has to be wrapped")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page of the real exporter: answer, limits, wide and long table, figures of both widths."""
    folder = tmp_path_factory.mktemp("größe pages")
    answer = Answer("no", "The replay takes half as long.", "ratio", 0.52, 0.5, 0.55, n=30)
    data = pd.DataFrame({"x": [1]})
    shown = [
        top_html(answer._repr_html_()),
        top_html(limits_html("this machine", ["a limit"] * 9)),
        save_table(numbers_table(), "wide", "", folder, source="simulated").to_html("All."),
        save_figure(drawing(PAGE_IN), "full", "", data, folder).to_html("Full."),
        save_figure(drawing(COLUMN_IN), "half", "", data, folder).to_html("H."),
    ]
    v4 = nbformat.v4
    title = "# Is it so?\n\n[5 a](x.ipynb) · [contents](90-paper.ipynb). In: nothing.\n\n"
    sections = "\n\n".join(f"## Part {number}\n\ntext" for number in range(4))
    cells = [v4.new_markdown_cell(title + sections, id="text")]
    for number, text in enumerate(shown):
        output = v4.new_output("display_data", {"text/html": text})
        cells.append(v4.new_code_cell(f"call_{number}('x')", outputs=[output], id=f"c{number}"))
    nbformat.write(v4.new_notebook(cells=cells), folder / "y.ipynb")
    (folder / "contents.html").write_text("<title>all</title>")
    (folder / "x.html").write_text("<title>x</title>")
    return export_page(folder / "y.ipynb", folder / "y.html", contents="contents.html")


@pytest.mark.long
def test_a_page_of_wide_tables_fits_every_window(opened, page):
    seen = look(opened, page)
    check(seen)
    assert seen.answer_ends is not None and seen.points[800] < 20
    assert dead_links(seen, {}) == []
    page.with_name("contents.html").unlink()
    assert dead_links(seen, {}) == ["contents.html"]


def test_the_first_column_stays_while_the_others_scroll(opened, page):
    tab = opened.new_page(viewport={"width": 800, "height": 900})
    tab.goto(page.as_uri())
    box, first = tab.locator("figure#wide .noisebook-wide"), tab.locator("figure#wide tbody td")
    before = first.first.bounding_box()["x"]
    box.evaluate("one => one.scrollLeft = 500")
    assert first.first.bounding_box()["x"] == before
    assert box.evaluate("one => one.scrollLeft") == 500
    tab.close()


def test_what_does_not_fit_is_seen(opened, tmp_path):
    """The check itself: a wide table, a scrolling box, small letters, a message."""
    path = tmp_path / "bad.html"
    path.write_text(
        "<title>bad</title><script>console.log('said')</script><p id=a><p id=a>"
        "<div style='width:300px;overflow-x:auto'>"
        "<table><td><div style='width:400px'>x</table></div>"
        "<figure id=small data-points=6 data-inches=7><img style='width:672px'></figure>"
        "<pre style='width:3000px'>x</pre><a href='#none'>x</a>"
    )
    seen = look(opened, path)
    for width in (800, 1280, 1920, "print"):
        assert {"table x", "pre x", "the page scrolls"} <= set(seen.too_wide[width])
    assert seen.points[1280] == pytest.approx(6)
    assert seen.messages == ["said"] and seen.repeated == ["a"]
    assert dead_links(seen, {}) == ["#none"]


@pytest.mark.long
def test_code_is_folded_long_tables_scroll_and_printed_rows_are_all_there(opened, page):
    tab = opened.new_page()
    tab.goto(page.as_uri())
    code, frame = tab.locator(".input").first, tab.locator("figure#wide .noisebook-wide")
    assert not code.is_visible() and frame.bounding_box()["height"] < 500
    tab.locator("#noisebook-code").check()
    assert code.is_visible()
    tab.locator("#noisebook-code").uncheck()
    tab.emulate_media(media="print")
    assert not code.is_visible() and frame.bounding_box()["height"] > 10 * ROWS
    limit = tab.locator("details.provenance li").first
    assert limit.bounding_box()["height"] > 0
    tab.close()
