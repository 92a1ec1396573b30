"""One page of HTML a notebook, that opens without a network.

Owns the frame around the cells, and the policy by which a browser loads nothing from elsewhere.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from .files import write_atomically
from .reading import read_bytes, refusing

CSS = Path(__file__).with_name("page.css")
POLICY = (  # what is in the page itself, and nothing else
    "default-src 'none'; img-src data:; font-src data:; media-src data:;"
    " style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'"
)
_NOTEBOOK_LINK = re.compile(
    r'<a\b[^>]*\bhref="(?![a-z][a-z0-9+.-]*:)([^"#]+)\.ipynb(#[^"]*)?"[^>]*>(.*?)</a>',
    re.IGNORECASE | re.DOTALL,
)
CONTENTS = ("90-paper", "contents")  # notebooks in whose place a page links to the paper
_TOP = '<div class="noisebook-top">'
_NAVIGATION = re.compile(r"^(.*\[contents\]\([^)\n]*\).*?)\. In: .*$", re.I | re.M)
_SECTION = re.compile(r'(?=<div class="cell [^>]*>\s*<div class="inner_cell">\s*<div[^>]*>\s*<h2 )')
_HEADING = re.compile(r"<h2 .*?</h2>", re.DOTALL)
_ANSWERED = re.compile(r'<div class="noisebook-answer" data-figure="([^"]+)"')
# what keeps a section open, beside the figure of the answer
_OPEN = ('class="noisebook key"', 'class="linked-view')
_CELL = '<div class="cell '
# a cell of code that shows more than words: what a text folds stays a part of it
_SHOWN = re.compile(
    r'[^>]* code_cell .*(?:<(?:figure|table|img|svg|details)\b|class="linked-view)', re.DOTALL
)
_FOLDED = re.compile(r"<details><summary>Table <code>([^<]*)</code>")
_CAPTION = re.compile(r"<p>(<strong>Table <code>([^<]*)</code>.*?)</p>\n?", re.DOTALL)
_SAID = re.compile(r"<(p|li)>(.*?)</\1>\n?", re.DOTALL)
_EMPTY = re.compile(
    r"<details><summary>[^<]*</summary><ul class='found'></ul></details>|<ul class='found'></ul>"
)
_NAMED = re.compile(r'(<(?:h[1-6]|figure)\b[^>]*\bid=")([^"]+)"')
_SWITCH = (
    '<input type="checkbox" id="noisebook-code"><label for="noisebook-code">show the code</label>'
)


def top_html(shown: str) -> str:
    """What an exported page shows right beneath its title, wherever the notebook has it."""
    return f"{_TOP}{shown}</div>"


def limits_html(provenance: str, limits: Iterable[str]) -> str:
    """One small line on where a page's numbers are from; its limits are folded behind it."""
    items = [f"<li>{html.escape(note)}</li>" for note in limits]
    line = f"<small>{html.escape(provenance)}</small>"
    if not items:
        return f'<p class="provenance">{line}</p>'
    count = f"{len(items)}&nbsp;limit{'s' if len(items) > 1 else ''}"
    return (
        f'<details class="provenance"><summary>{line}<small> · <u>{count}</u></small></summary>'
        f"<ul>{''.join(items)}</ul></details>"
    )


def export_page(
    notebook_path: str | Path,
    html_path: str | Path,
    hide_code: bool = False,
    contents: str | None = None,
) -> Path:
    """Turn an executed notebook into one HTML file that needs nothing else.

    Parameters
    ----------
    notebook_path
        Executed notebook; images in its folder that its text shows are embedded.
    hide_code
        Leave the code out; otherwise it is folded, and a switch shows it.
    contents
        Page that lists all pages, as a link from this one; None = this page stands alone, and links
        to other notebooks become text.

    Raises
    ------
    InputError
        The notebook can't be read.

    Notes
    -----
    A browser loads nothing from elsewhere to show it, whatever a cell wrote (`POLICY`). Links
    between notebooks become links between pages. There is no MathJax: formulas stay as they were
    typed. Beneath the title stands what `top_html` marked. Open are the sections with the key
    table, the figure of the answer or something to choose, and the last one; the others are folded
    behind their headings. The same notebook gives the same bytes.
    """
    notebook = _read(Path(notebook_path))
    title = _first_heading(notebook) or Path(notebook_path).stem
    navigation, top = _take_navigation(notebook), _take_top(notebook)
    notebook.cells = [part for cell in notebook.cells for part in _parts(cell)]
    body = _unique(_body(notebook, Path(notebook_path).parent, hide_code))
    nav = '<nav class="noisebook-pages" aria-label="{}">{}</nav>'.format
    above, below = (
        nav(name, navigation) if navigation else "" for name in ("pages", "pages, again")
    )
    switch = "" if hide_code else _SWITCH
    body = _beneath_title(_captioned(_without_repeats(body, top)), top)
    body = switch + above + _sections(body) + below
    body = _NOTEBOOK_LINK.sub(lambda link: _page_link(link, contents), body)
    return write_page(html_path, title, body)


def _take_navigation(notebook) -> str:
    """The line of links before, to the contents, and after, taken out of the first text; what goes
    in and out is for those who run it.
    """
    from nbconvert.filters import markdown2html

    match = _NAVIGATION.search(notebook.cells[0].source) if notebook.cells else None
    if match is None:
        return ""
    notebook.cells[0].source = notebook.cells[0].source.replace(match.group(0), "", 1)
    return markdown2html(match.group(1)).strip()


def _take_top(notebook) -> str:
    """What belongs beneath the title, taken out of the cells' outputs."""
    taken: list[str] = []
    for cell in notebook.cells:
        ours = [one for one in cell.get("outputs", []) if _output_html(one).startswith(_TOP)]
        taken += map(_output_html, ours)
        if ours:
            cell.outputs = [one for one in cell.outputs if one not in ours]
    return "".join(taken)


def _output_html(output) -> str:
    return str(output.get("data", {}).get("text/html", ""))


def _beneath_title(body: str, top: str) -> str:
    before, end, after = body.partition("</h1>")
    return before + end + top + after if end else top + body


def _without_repeats(body: str, top: str) -> str:
    """The body without the sentences that the top has, too."""
    above = {text for _, text in _SAID.findall(top)}
    body = _SAID.sub(lambda found: "" if found[2] in above else found[0], body)
    return _EMPTY.sub("", body)


def _parts(cell) -> list:
    """A text in pieces, of which each begins with its heading."""
    if cell.cell_type != "markdown":
        return [cell]
    texts = re.split(r"\n(?=## )", cell.source)
    names = [f"{cell.get('id', 'text')}{f'-{n}' if n else ''}" for n in range(len(texts))]
    return [type(cell)(cell, source=text, id=name) for text, name in zip(texts, names)]


def _captioned(body: str) -> str:
    """The caption of a folded table stands in the line that unfolds it, not above."""
    folded = set(_FOLDED.findall(body))
    texts = {name: text for text, name in _CAPTION.findall(body) if name in folded}
    body = _CAPTION.sub(lambda found: "" if found[2] in folded else found[0], body)
    named = "<details><summary>{}".format
    return _FOLDED.sub(
        lambda found: named(texts[found[1]]) if found[1] in texts else found[0], body
    )


def _sections(body: str) -> str:
    """The page in its sections; what the answer does not rest on is folded."""
    first, *others = _SECTION.split(body)
    answered = _ANSWERED.search(first)
    marks = [*_OPEN, *([f'id="{answered[1]}"'] if answered else [])]
    is_open = [any(mark in section for mark in marks) for section in others]
    is_open = [*is_open[:-1], True] if any(is_open) else [True] * len(others)
    others = [_columns(one) if shown else _folded(one) for one, shown in zip(others, is_open)]
    return f"<section>{first}</section>" + "".join(map("<section>{}</section>".format, others))


def _folded(section: str) -> str:
    heading = _HEADING.findall(section)[0]
    inner = section.replace(heading, "", 1).replace("<details><summary>", "<details open><summary>")
    return f"<details><summary>{heading}</summary>{_columns(inner)}</details>"


def _columns(section: str) -> str:
    """Its words, and what it shows, in two columns (`page.css`); words alone stay as they are."""
    before, *cells = section.split(_CELL)
    words: list[str] = []
    shown: list[str] = []
    for place, cell in enumerate(cells):
        column = shown if _SHOWN.match(cell) else words
        column.append(f'<div style="order: {place}" class="cell {cell}')
    if not shown:
        return section
    columns = (("words", words), ("shown", shown))
    inner = "".join(f'<div class="{name}">{"".join(column)}</div>' for name, column in columns)
    return f'{before}<div class="columns">{inner}</div>'


def _unique(body: str) -> str:
    """A heading or figure whose name was there before gets a number."""
    seen = Counter[str]()

    def numbered(match: re.Match) -> str:
        seen[match[2]] += 1
        number = seen[match[2]]
        return f'{match[1]}{match[2]}-{number}"' if number > 1 else match[0]

    return _NAMED.sub(numbered, body)


def _page_link(link: re.Match, contents: str | None) -> str:
    name, anchor, text = link.groups()
    if contents is None:
        return text
    target = contents if name in CONTENTS else f"{name}.html{anchor or ''}"
    return f'<a href="{target}">{text}</a>'


def write_page(html_path: str | Path, title: str, body: str, css: str = "") -> Path:
    """Write a page with this body, framed like every other.

    Parameters
    ----------
    html_path
        The page.
    title, body
        Its title as text, its body as HTML.
    css
        Styles of this page alone, after those of every page.
    """
    from pygments.formatters import HtmlFormatter

    formatter = HtmlFormatter(style="friendly_grayscale", nobackground=True)
    colours = formatter.get_style_defs(".highlight")
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{html.escape(title)}</title>\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon"'
        ' href="data:,">\n'
        f"<style>\n{colours}\n{CSS.read_text(encoding='utf-8')}{css}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
    return write_atomically(html_path, page)


def _read(path: Path):
    import nbformat

    with refusing("not a notebook", path):
        return nbformat.reads(read_bytes(path, "notebook").decode(), as_version=4)


def _body(notebook, folder: Path, hide_code: bool) -> str:
    """The cells by nbconvert's basic template, which has no scripts and no head."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(
        template_name="basic",
        embed_images=True,
        exclude_input=hide_code,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        sanitize_html=False,
    )
    body, _ = exporter.from_notebook_node(notebook, resources={"metadata": {"path": str(folder)}})
    return body


def _first_heading(notebook) -> str:
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    heading = re.search(r"^#\s+(.+)$", "\n".join(texts), re.MULTILINE)
    return re.sub(r"[*`_]", "", heading[1]).strip() if heading else ""
