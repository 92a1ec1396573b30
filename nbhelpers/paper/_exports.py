"""What can be taken from the paper: every table and figure, and the numbers of the answers.

Owns `tables`, `figures`, `exports.html` and `numbers.json` in the paper's folder.
"""

import shutil
from collections.abc import Iterable
from html import escape
from pathlib import Path

import pandas as pd

from ..answers import Answered, plain
from ..files import write_json
from ..report import Figure, Table, save_table
from ..report.record import records
from ._numbered import links_html
from ._publications import Publication

_PLACES = {Table: "tables", Figure: "figures"}


def export_records(results: Path, folder: Path) -> list[Figure | Table]:
    """Copy every saved table and figure to `tables/STAGE` and `figures/STAGE`; earlier copies go.

    Returns
    -------
    The records of the copied files, in the order of the stages.
    """
    for name in _PLACES.values():
        shutil.rmtree(folder / name, ignore_errors=True)
    found = records(results) if results.is_dir() else []
    for record in found:
        target = folder / _PLACES[type(record)] / record.folder.relative_to(results)
        target.mkdir(parents=True, exist_ok=True)
        for path in record.folder.glob(f"{record.name}.*"):
            if path.suffix != ".json":  # the record itself
                shutil.copyfile(path, target / path.name)
    return found


def export_publications(papers: Iterable[Publication], folder: Path) -> None:
    """Save the publications' tables as CSV, LaTeX and HTML in `tables/PUBLICATION`."""
    for paper in papers:
        for table in paper.tables:
            target = folder / "tables" / paper.name
            save_table(table.frame, table.name, table.caption, target, why=" ".join(table.notes))
            (target / f"{table.name}.json").unlink()


def exports_page(folder: Path) -> str:
    """The body of a page that leads to every exported file."""
    rows = []
    for path in (path for name in _PLACES.values() for path in (folder / name).rglob("*.*")):
        link = f'<a href="{escape(str(path.relative_to(folder)))}">{path.suffix[1:]}</a>'
        rows.append((path.parent.parent.name, escape(path.parent.name), escape(path.stem), link))
    table = pd.DataFrame(sorted(rows), columns=["kind", "stage", "name", "files"])
    table = table.groupby(["kind", "stage", "name"], sort=False)["files"].agg(" ".join)
    return (
        '<p>The numbers of the answers, to quote: <a href="numbers.json">numbers.json</a>.</p>'
        f"{links_html(table.reset_index())}"
    )


def write_numbers(answers: Iterable[Answered], folder: Path) -> None:
    """Write the questions and the answers' numbers as JSON, to quote."""
    content = [
        {"stage": one.stage, "question": one.question} | plain(one.answer) for one in answers
    ]
    write_json(folder / "numbers.json", content)
