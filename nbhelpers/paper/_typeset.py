"""The paper as a PDF of a few pages: a template of typst, and one JSON file with all that it shows.

Owns `paper.json`, `paper.typ`, `references.bib` and `paper.pdf`. What the paper says is in the
template; fonts are typst's own, so the bytes are the same everywhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..answers import Answered, plain
from ..files import write_atomically, write_json
from ..report import Figure, Table
from ..report._printed import printed
from ._front import FIRST, TITLE, Front, kind_of
from ._joined import JoinedTable, saved_table
from ._publications import Publication, verdicts_table

_FILES = [Path(__file__).with_name(name) for name in ("paper.typ", "references.bib")]
_RESULTS = (*FIRST, "40-mitigations", "42-fairness", "80-noise-at-scale")  # with their figure
_LONG = 24  # characters from which a text may be broken
_SPANS = 4  # columns from which a table takes the width of the page
_COLUMN_IN = 3.4  # wider figures take the width of the page


def typeset(
    front: Front, papers: Sequence[Publication], saved: Iterable[Figure | Table], folder: Path
) -> Path:
    """Write the template and what it shows, and compile it to `paper.pdf`.

    Parameters
    ----------
    front
        Questions and answers.
    papers
        Publications with their tables.
    saved
        Tables, and figures, whose SVG files lie under `figures` of the folder.
    folder
        The paper's.

    Returns
    -------
    The PDF; the same inputs give the same bytes.
    """
    import matplotlib
    import typst

    for file in _FILES:
        write_atomically(folder / file.name, file.read_text(encoding="utf-8"))
    write_json(folder / "paper.json", _content(front, papers, saved))
    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    pdf = typst.compile(
        str(folder / "paper.typ"),
        root=str(folder),
        font_paths=[str(fonts)],
        ignore_system_fonts=True,
        timestamp=0,
        format="pdf",
    )
    return write_atomically(folder / "paper.pdf", pdf)


def _content(
    front: Front, papers: Sequence[Publication], saved: Iterable[Figure | Table]
) -> dict[str, Any]:
    records = {(one.folder.name, one.name): one for one in saved}
    facts = saved_table(front.build / "results", "00-machine/machine")
    shown = {table.name: _judged(table, paper) for paper in papers for table in paper.tables}
    return {
        "title": TITLE,
        "machine": front.whose,
        "summary": front.summary_text,
        "answers": [_answer(one, records) for one in front.answers],
        "questions": _cells(_questions(front.answers), "All questions and their answers."),
        "verdicts": _cells(verdicts_table(papers), "The five publications in this study."),
        "tables": {name: part for name, part in shown.items() if part},
        "facts": _cells(facts, "The machine as stage 00 found it."),
    }


def _answer(one: Answered, records: Mapping[tuple[str, str], Figure | Table]) -> dict[str, Any]:
    answer, is_first = one.answer, one.stage in _RESULTS
    record = records.get((one.stage, answer.figure)) if is_first else None
    return plain(answer) | {
        "first": is_first,
        "question": one.question,
        "kind": kind_of(answer),
        "word": answer.word,
        "number": answer.number,
        "figure": _figure(one.stage, record) if isinstance(record, Figure) else None,
        "table": _cells(record.frame, record.caption) if isinstance(record, Table) else None,
    }


def _figure(stage: str, figure: Figure) -> dict[str, Any]:
    known = {"caption": figure.caption, "inches": figure.width_in}
    known |= {"spans": figure.width_in > _COLUMN_IN}
    return known | {"file": f"figures/{stage}/{figure.name}.svg"}


def _questions(answers: Iterable[Answered]) -> pd.DataFrame:
    rows = [
        (one.stage.split("-")[0], one.question, one.answer.word, one.answer.number or "–")
        for one in answers
    ]
    return pd.DataFrame(rows, columns=["page", "question", "answer", "number, 95 % interval and n"])


def _judged(table: JoinedTable, paper: Publication) -> dict[str, Any]:
    """Its columns for the PDF, of rows with a verdict; nothing, where there are none."""
    frame = table.frame.reindex(columns=[*table.printed])
    if "verdict" in frame:
        frame = frame[frame["verdict"].astype(object).fillna("") != ""]
    frame = frame.rename(columns={"published (published)": "published"})
    caption = f"{paper.short.partition(':')[0]}. {table.caption}"
    return _cells(frame, caption) if frame.size else {}


def _cells(frame: pd.DataFrame, caption: str) -> dict[str, Any]:
    """A table as its printed cells; a column of texts that are long is a "long" one."""
    shown = printed(frame, {})
    longest = [max(map(len, shown[name]), default=0) for name in shown]
    kinds = ["long" if size > _LONG else kind for kind, size in zip(shown.attrs["kinds"], longest)]
    return {
        "caption": caption,
        "head": list(shown),
        "kinds": kinds,
        "rows": shown.astype(str).to_numpy().tolist(),
        "spans": len(shown.columns) >= _SPANS,
    }
