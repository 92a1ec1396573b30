"""The five publications: their titles, and the page of each with all its tables.

Owns the list of publications; `_persson` and `_others` own what stands in the tables.
"""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ..report import published_table
from . import _others, _persson
from ._grids import MISSING, VERDICT, Grid


@dataclass(frozen=True)
class Publication:
    """A publication beside this study.

    Attributes
    ----------
    name
        As a file name, such as ``"persson2025"``.
    short
        How the front page names it.
    citation, doi
        Of the paper.
    grids
        Its tables.
    """

    name: str
    short: str
    citation: str
    doi: str
    grids: tuple[Grid, ...]

    def __repr__(self) -> str:
        return f"{self.short}: {len(self.grids)} tables, {self.cells} published cells"

    @property
    def cells(self) -> int:
        """How many published cells its tables have."""
        return sum(grid.count for grid in self.grids)

    def to_html(self) -> str:
        """The body of its page."""
        links = " · ".join(
            f'<a href="#{grid.name}">{escape(grid.caption.split(":")[0].split(".")[0])}</a>'
            for grid in self.grids
        )
        tables = "".join(grid.to_html() for grid in self.grids)
        return (
            f'<p><a href="index.html">Questions and answers</a></p><h1>{escape(self.short)}</h1>'
            f'<p>{escape(self.citation)}. <a href="https://doi.org/{self.doi}">{self.doi}</a></p>'
            "<p>Each table in the paper's own form, this study's numbers beneath the published"
            f' ones.</p><p class="contents">{links}</p>{tables}'
        )


_KNOWN: tuple[tuple[str, str, str, Callable[[Path], list[Grid]]], ...] = (
    ("persson2025", "Persson et al. 2025: noise injection", "persson2025-table1", _persson.grids),
    ("cui2023", "Cui et al. 2023: OpenMP variability", "cui2023-table2", _others.cui),
    ("ferreira2008", "Ferreira et al. 2008: kernel noise", "ferreira2008-text1", _others.ferreira),
    (
        "frachtenberg2026",
        "Frachtenberg et al. 2026: variability and mitigation",
        "frachtenberg2026-table3",
        _others.frachtenberg,
    ),
    ("hoefler2010", "Hoefler et al. 2010: noise at scale", "hoefler2010-slides1", _others.hoefler),
)


class Publications:
    """The publications beside this study; shows itself in a notebook as a table of verdicts.

    Parameters
    ----------
    build
        Folder of a profile.
    """

    def __init__(self, build: str | Path):
        self.papers = publications(Path(build) / "results")

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.papers))

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(paper.short)}</td><td>{paper.cells}</td>"
            f"<td>{escape(_counted(paper))}</td></tr>"
            for paper in self.papers
        )
        head = "<th>publication</th><th>published cells</th><th>verdicts</th>"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _counted(paper: Publication) -> str:
    counts = sorted(verdict_counts(paper).items())
    return ", ".join(f"{word}: {count}" for word, count in counts if word != MISSING)


def publications(results: str | Path) -> list[Publication]:
    """The publications with this study's numbers.

    Parameters
    ----------
    results
        Folder with the results of all stages; what no stage has made is empty, with the reason.

    Returns
    -------
    Five publications, by first author.
    """
    return [
        _publication(name, short, published_table(table).attrs, grids(Path(results)))
        for name, short, table, grids in _KNOWN
    ]


def _publication(name: str, short: str, attrs: dict, grids: list[Grid]) -> Publication:
    return Publication(name, short, attrs["paper"], attrs["doi"], tuple(grids))


def verdict_counts(publication: Publication) -> dict[str, int]:
    """How often each verdict stands in its tables."""
    found: dict[str, int] = {}
    for grid in publication.grids:
        for row in grid.rows:
            at = [grid.columns.index("verdict")] if "verdict" in grid.columns else []
            cells = row.cells if row.which == VERDICT else [row.cells[i] for i in at if row.cells]
            for cell in cells:
                found[cell] = found.get(cell, 0) + 1
    return found
