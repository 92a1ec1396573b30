"""The folder of the paper: which files it has and what stands in each.

Owns `build/PROFILE/paper`; the same results give the same bytes in any folder.
"""

from html import escape
from pathlib import Path

from ..page import write_page
from ._exports import export_publications, export_records, exports_page, write_numbers
from ._front import CSS, TITLE, Front
from ._numbered import index_html
from ._publications import Publication, publications
from ._typeset import typeset


def write_paper(build: str | Path) -> Path:
    """Make the paper of a profile from what its stages saved.

    Parameters
    ----------
    build
        Folder of the profile, with `results` and `provenance`.

    Returns
    -------
    The front page, `paper/index.html` in that folder.

    Raises
    ------
    InputError
        A stage's answer is of an older version.
    """
    build = Path(build)
    folder = build / "paper"
    folder.mkdir(parents=True, exist_ok=True)
    papers = publications(build / "results")
    for paper in papers:
        _linked_page(folder / f"{paper.name}.html", paper.short, paper.to_html())
    front, found = Front(build), export_records(build / "results", folder)
    export_publications(papers, folder)
    numbered = "All that the publications number or claim"
    _linked_page(folder / "numbered.html", numbered, _numbered_page(papers))
    _linked_page(folder / "exports.html", "Tables and figures as files", exports_page(folder))
    write_numbers(front.answers, folder)
    typeset(front, papers, found, folder)
    return _page(folder / "index.html", TITLE, _front_page(front, papers))


def _page(path: Path, title: str, body: str) -> Path:
    return write_page(path, title, body, css=CSS.read_text(encoding="utf-8"))


def _linked_page(path: Path, title: str, body: str) -> Path:
    """A page that leads back to the front page."""
    home = '<p><a href="index.html">Questions and answers</a></p>'
    return _page(path, title, f"{home}<h1>{escape(title)}</h1>{body}")


def _numbered_page(papers: list[Publication]) -> str:
    return "".join(
        f'<h2><a href="{paper.name}.html">{escape(paper.short)}</a></h2>{index_html(paper.index)}'
        for paper in papers
    )


def _front_page(front: Front, papers: list[Publication]) -> str:
    links = "".join(
        f'<li><a href="{paper.name}.html">{escape(paper.short.replace(" et al.", ""))}</a></li>'
        for paper in papers
    )
    files = (
        '<a href="paper.pdf">paper.pdf</a> · <a href="exports.html">tables and figures</a> · '
        '<a href="numbered.html">all that the publications number or claim</a>'
    )
    return (
        f'<div class="front"><h1>{escape(TITLE)}</h1>'
        f'<p class="whose">{escape(front.whose)}</p>{front.summary}{front.view}{front.cards()}'
        f'<h2>Publications</h2><ul class="publications">{links}</ul>'
        f"<p>{files}</p></div>"
    )
