"""What can be taken from the paper: every table and figure, and the numbers of the answers.

Owns `tables`, `figures`, `exports.html`, `numbers.json` and `numbers.tex` in the paper's folder.
"""

import math
import re
import shutil
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from ..answers import Answered, plain, short_number
from ..files import write_atomically, write_json
from ..report import Figure, Table, latex_text, save_table
from ..report.record import records
from ._numbered import links_html
from ._publications import Publication

_ENDINGS = {Table: ("csv", "tex", "html"), Figure: ("pdf", "svg", "png", "csv")}
_PLACES = {Table: "tables", Figure: "figures"}
_PREFIX = "nb"  # of the macros


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
        for ending in _ENDINGS[type(record)]:
            name = f"{record.name}.{ending}"
            if (record.folder / name).is_file():
                shutil.copyfile(record.folder / name, target / name)
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
        '<p><a href="index.html">Questions and answers</a></p><h1>Tables and figures as files</h1>'
        '<p>The numbers of the answers, to quote: <a href="numbers.json">numbers.json</a>, '
        f'<a href="numbers.tex">numbers.tex</a>.</p>{links_html(table.reset_index())}'
    )


def write_numbers(answers: Iterable[Answered], folder: Path) -> None:
    """Write the answers' numbers as JSON and as LaTeX macros.

    A macro's name is ``nb``, the stage's name in letters, and what it has, such as
    ``\\nbInjectionLow``: Answer, Sentence, Value, Low, High, Unit, N.
    """
    answers = list(answers)
    write_json(folder / "numbers.json", [_numbers(one) for one in answers])
    lines = [r"% \input{numbers}: values as in numbers.json, three significant digits"]
    for one in answers:
        stem = _PREFIX + macro_stem(one.stage)
        lines += [rf"\newcommand{{\{stem}{name}}}{{{text}}}" for name, text in _macros(one)]
    write_atomically(folder / "numbers.tex", "\n".join(lines) + "\n")


def macro_stem(stage: str) -> str:
    """The name of a stage in letters only.

    Examples
    --------
    >>> macro_stem("80-noise-at-scale")
    'NoiseAtScale'
    """
    return "".join(word.capitalize() for word in re.findall("[a-z]+", stage))


def _numbers(one: Answered) -> dict[str, Any]:
    known = plain(one.answer)
    del known["figure"]
    return {"stage": one.stage, "question": one.question} | known


def _macros(one: Answered) -> list[tuple[str, str]]:
    answer = one.answer
    ends = (("Value", answer.value), ("Low", answer.low), ("High", answer.high))
    return [
        ("Answer", latex_text(answer.answer)),
        ("Sentence", latex_text(answer.sentence)),
        *((name, latex_text(short_number(end))) for name, end in ends if math.isfinite(end)),
        ("Unit", latex_text(answer.unit)),
        ("N", str(answer.n)),
    ]
