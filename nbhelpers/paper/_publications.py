"""The five publications: their titles, and the page of each with all its tables.

Owns the page of a publication; `_joined` owns what stands in the tables, `_numbered` the index.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import pandas as pd

from ..report import published_table
from ..report.images import embedded
from ..report.marks import figure_marks
from ..report.record import table_html
from ._joined import JoinedTable, joined_tables, publication_records
from ._numbered import index_html, numbered_rows


@dataclass(frozen=True)
class Publication:
    """A publication beside this study.

    Attributes
    ----------
    name
        Name as a file name, such as ``"persson2025"``.
    short
        How the front page names it.
    citation, doi
        The paper's citation and its DOI.
    tables
        Its tables.
    index
        All its tables, figures and claims by number (`numbered_rows`).
    """

    name: str
    short: str
    citation: str
    doi: str
    tables: tuple[JoinedTable, ...] = field(repr=False)
    index: pd.DataFrame = field(repr=False, compare=False)

    @property
    def cells(self) -> int:
        """How many published cells its tables have."""
        return sum(table.cells for table in self.tables)

    def to_html(self) -> str:
        """The body of its page."""
        links = " · ".join(
            f'<a href="#{table.name}">{escape(re.split("[:.,] ", table.caption)[0])}</a>'
            for table in self.tables
        )
        notes = Counter(note for table in self.tables for note in set(table.notes))
        shared = [note for note, count in notes.items() if count > 1]
        tables = "".join(_table_html(table, shared) for table in self.tables)
        return (
            f'<p>{escape(self.citation)}. <a href="https://doi.org/{self.doi}">{self.doi}</a></p>'
            "<p>All tables, figures and claims, by the number that the paper gives them.</p>"
            f"{index_html(self.index)}"
            "<h2>Each published table, this study's numbers beside it</h2>"
            f"<p>{_DRAWN}</p>"
            f'{_notes_html(shared)}<p class="contents">{links}</p>{tables}'
        )


_DRAWN = (
    "Figures: hollow marks are published numbers, full ones are ours with the 95 % interval. Of"
    " several runs stand median and range; of a published range its middle and its ends."
)


def _notes_html(notes: Iterable[str]) -> str:
    return f'<div class="notes">{"".join(f"<p>{escape(note)}</p>" for note in notes)}</div>'


def _table_html(table: JoinedTable, shared: Collection[str]) -> str:
    """A table, its drawings, and its notes but those that several tables share."""
    figures = "".join(
        embedded(figure_marks(marks, label), f"{label}: published, and ours")
        for label, marks in table.drawings
    )
    notes = _notes_html(note for note in table.notes if note not in shared)
    frame = table.frame.rename(columns={"published (published)": "published"})
    body = table_html(frame, why=" ".join(table.notes))
    return (
        f'<figure class="noisebook publication" id="{table.name}">'
        f"<figcaption>{escape(table.caption)}</figcaption>{figures}{body}"
        f"{notes}</figure>\n"
    )


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
    results, papers = Path(results), []
    for name, record in publication_records().items():
        attrs = published_table(record["cited"]).attrs
        tables = tuple(joined_tables(record, results))
        about = name, record["short"], attrs["paper"], attrs["doi"]
        papers.append(Publication(*about, tables, numbered_rows(name, tables, results)))
    return papers


def verdicts_table(papers: Iterable[Publication]) -> pd.DataFrame:
    """What each publication prints, numbers or claims, and how often each verdict stands in its
    tables.

    Returns
    -------
    `publication`, `published_cells`, `numbered`, `with_a_place_here`, and a column a verdict.
    """
    counts = {}
    for paper in papers:
        verdicts = [one.frame["verdict"] for one in paper.tables if "verdict" in one.frame]
        found = pd.concat(verdicts or [pd.Series(dtype=str)]).replace("", None).value_counts()
        known = {"published_cells": paper.cells, "numbered": len(paper.index)}
        known |= {"with_a_place_here": (paper.index["ours"] != "").sum()}
        counts[paper.short.partition(":")[0]] = known | found.sort_index().to_dict()
    return pd.DataFrame(counts).T.rename_axis("publication").fillna(0).astype(int).reset_index()
