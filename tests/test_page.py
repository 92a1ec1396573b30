"""The offline page: nothing is loaded from elsewhere, and a browser shows it."""

import base64

import nbformat
import pytest

from nbhelpers.answers import Answer
from nbhelpers.errors import InputError
from nbhelpers.page import POLICY, export_page, top_html

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
    "RU5ErkJggg=="
)
TABLE = {"text/html": "<table><tr><td>42</td></tr></table>", "text/plain": "42"}


@pytest.fixture
def notebook(tmp_path):
    """An executed notebook as papermill leaves it: text, a picture, a table, code."""
    v4 = nbformat.v4
    outputs = [
        v4.new_output("display_data", {"image/png": PIXEL, "text/plain": "<Figure>"}),
        v4.new_output("execute_result", TABLE, execution_count=1),
        v4.new_output("stream", name="stdout", text="said\n"),
    ]
    cells = [
        v4.new_markdown_cell(
            "# Why do *runs* differ?\n\n[next](20-delta.ipynb#top),"
            " [paper](https://example.org/x.ipynb), $t_0 < 1$, ![local](pixel.png)",
            id="a",
        ),
        v4.new_code_cell("secret_call()", outputs=outputs, execution_count=1, id="b"),
    ]
    (tmp_path / "pixel.png").write_bytes(base64.b64decode(PIXEL))
    path = tmp_path / "10-tiny.ipynb"
    language = {"language_info": {"name": "python"}}
    nbformat.write(v4.new_notebook(cells=cells, metadata=language), path)
    return path


def test_nothing_is_loaded_from_elsewhere(notebook):
    page = export_page(notebook, notebook.with_suffix(".html")).read_text()
    assert "<script" not in page and f'content="{POLICY}"' in page.partition("<body>")[0]
    assert page.count("data:image/png;base64,") == 2


def test_code_can_be_hidden(notebook):
    page = export_page(notebook, notebook.with_suffix(".html"), hide_code=True).read_text()
    assert "secret_call" not in page and "<td>42</td>" in page


def test_same_notebook_same_bytes(notebook):
    one = export_page(notebook, notebook.with_name("one.html")).read_bytes()
    assert export_page(notebook, notebook.with_name("two.html")).read_bytes() == one
    assert len(one) < 100_000


def test_the_answer_stands_beneath_the_title_and_links_lead_to_pages(notebook):
    document = nbformat.read(notebook, 4)
    v4 = nbformat.v4
    document.cells[0].source = (
        "# Why?\n\nText.\n\n[9 before](09-before.ipynb) · [contents](90-paper.ipynb) · next:"
        " [20 delta](20-delta.ipynb). In: nothing."
    )
    top = v4.new_output("display_data", {"text/html": top_html("<b>No.</b><p>So.</p>")})
    said = v4.new_output("display_data", {"text/html": "<p>So.</p>"})
    sections = "\n\n".join(f"## {name}\n\ntext" for name in ("One", "Two", "One"))
    document.cells += [
        v4.new_code_cell("found", outputs=[top, said], id="c"),
        v4.new_markdown_cell(sections, id="d"),
    ]
    nbformat.write(document, notebook)
    alone = export_page(notebook, notebook.with_name("alone.html")).read_text()
    assert "09-before" not in alone and "9 before" in alone
    page = export_page(notebook, notebook.with_name("x.html"), contents="../p.html").read_text()
    body = page.partition("<body>")[2]
    places = [body.index(part) for part in ("</h1>", "<b>No.</b>", "<p>Text.", 'id="One-2"')]
    assert places == sorted(places) and body.count("<b>No.</b>") == 1 == body.count("<p>So.")
    assert body.count('<a href="../p.html">contents</a>') == 2
    assert body.count('<a href="09-before.html">') == 2 and "next: " in body
    assert body.count('id="One"') == 1 and body.count('id="One-2"') == 1


def test_open_are_the_key_table_the_figure_of_the_answer_and_the_end(notebook, opened):
    """All else is folded behind its heading; a folded table has its caption in that line."""
    document, v4 = nbformat.read(notebook, 4), nbformat.v4
    answer = top_html(Answer("no", "Said.", figure="drawn")._repr_html_())
    shown = {
        "Key": '<figure class="noisebook key" id="key">1</figure>',
        "Drawn": '<figure class="noisebook" id="drawn">2</figure>',
        "Other": '<figure class="noisebook" id="other">3</figure>',
        "End": "",
    }
    folded = "<details><summary>Table <code>t</code> (1 row)</summary>inner</details>"
    for name, text in {"": answer, **shown}.items():
        data = {"text/html": text + folded if name == "Drawn" else text}
        captions = "**Table `t`.** Of *all*." if name == "Drawn" else "words"
        document.cells += [
            v4.new_markdown_cell(f"read\n\n## {name}\n\n{captions}" if name else "x"),
            v4.new_code_cell("", outputs=[v4.new_output("display_data", data)]),
        ]
    nbformat.write(document, notebook)
    tab = opened.new_page()
    tab.goto(export_page(notebook, notebook.with_suffix(".html")).as_uri())
    visible = {
        name: tab.locator(f"figure#{name}").is_visible() for name in ("key", "drawn", "other")
    }
    assert visible == {"key": True, "drawn": True, "other": False}
    headings = [h for h in tab.locator("h2").all() if h.is_visible()]
    assert len(headings) == len(shown) and tab.locator("details:not([open])").count() == 2
    line = tab.locator("summary", has_text="Of all.")
    assert line.inner_text() == "Table t. Of all. (1 row)" and "Of all" not in "".join(
        tab.locator("p").all_inner_texts()
    )
    tab.goto(f"{tab.url}#other")  # a link to what is folded unfolds it
    assert tab.locator("figure#other").is_visible()
    words, figure = (
        tab.locator(f".columns:has(#key) .{name} .cell") for name in ("words", "shown")
    )
    tops = lambda: [one.bounding_box()["y"] for one in (*words.all(), figure)]  # noqa: E731
    assert tops()[0] == pytest.approx(tops()[2], abs=20) and tops()[2] < tops()[1], (
        "two columns, each flows by itself"
    )
    tab.set_viewport_size({"width": 800, "height": 800})
    assert tops()[0] < tops()[2] < tops()[1], "one column, in the notebook's order"
    tab.close()


LOADING = """
<img src="https://e.org/a.png">
<img srcset='a.png, //e.org/b.png 2x'>
<script src="http://e.org/x.js"></script>
<link rel="stylesheet" href="//e.org/x.css">
<style>@import 'https://e.org/x.css';</style>
<style>a { background: url(https://e.org/x.png) }</style>
<p style="background:url(//e.org/x)">
<iframe src="https://e.org"></iframe>
<script>require(['https://e.org/m.js'])</script>
<script type='module'>import x from 'https://e.org/m'</script>
"""


def test_a_browser_loads_nothing_whatever_a_cell_wrote(opened, notebook):
    document = nbformat.read(notebook, 4)
    document.cells[1].outputs[1]["data"]["text/html"] = LOADING
    nbformat.write(document, notebook)
    page = export_page(notebook, notebook.with_suffix(".html"))
    tab = opened.new_page()
    asked = []
    tab.on("requestfailed", lambda request: asked.append(request.failure))
    tab.on("requestfinished", lambda request: asked.append(request.url))
    tab.goto(page.as_uri(), wait_until="networkidle")
    tab.close()
    assert set(asked) <= {page.as_uri(), "csp"}, asked


def test_an_unreadable_notebook_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        export_page(tmp_path / "none.ipynb", tmp_path / "x.html")
    (tmp_path / "bad.ipynb").write_text("not json")
    with pytest.raises(InputError, match="not a notebook"):
        export_page(tmp_path / "bad.ipynb", tmp_path / "x.html")
