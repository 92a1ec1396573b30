"""The paper as a PDF: typst text made from the same answers, tables and figures, and compiled.

Owns `paper.typ` and `paper.pdf`; fonts are typst's own, so the bytes are the same everywhere.
"""

from collections.abc import Iterable
from pathlib import Path

from ..answers import Answered
from ..files import write_atomically
from ..report import Figure
from ..report._printed import printed
from ._front import TITLE, Front
from ._joined import JoinedTable
from ._publications import Publication

_SETTINGS = """#set document(title: {title}, date: none)
#set page(paper: "a4", margin: (x: 18mm, y: 20mm), numbering: "1")
#set text(font: ("Libertinus Serif", "DejaVu Sans"), size: 9.5pt, lang: "en")
#set table(stroke: none, inset: (x: 3pt, y: 2.2pt))
#set heading(numbering: none)
#show figure: set block(breakable: true)
#show figure.where(kind: table): set figure.caption(position: top)
#show table: set text(size: 7.2pt)
"""


def typeset(
    front: Front, papers: Iterable[Publication], figures: Iterable[Figure], folder: Path
) -> Path:
    """Write `paper.typ` and compile it to `paper.pdf`.

    Parameters
    ----------
    front
        Questions and answers.
    papers
        Publications with their tables.
    figures
        Saved figures; their PNG files lie under `figures` of the folder.
    folder
        The paper's.

    Returns
    -------
    The PDF; the same inputs give the same bytes.
    """
    import matplotlib
    import typst

    parts = [
        _SETTINGS.format(title=_string(TITLE)),
        f"= {_text(TITLE)}\n\n{_text(front.whose)}\n",
        *(_answer(one) for one in front.answers),
        *(_publication(paper) for paper in papers),
        "#pagebreak(weak: true)\n= Figures\n",
        *(_figure(one, front.build / "results") for one in figures),
    ]
    source = folder / "paper.typ"
    write_atomically(source, "\n".join(parts))
    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    pdf = typst.compile(
        str(source),
        root=str(folder),
        font_paths=[str(fonts)],
        ignore_system_fonts=True,
        timestamp=0,
        format="pdf",
    )
    return write_atomically(folder / "paper.pdf", pdf)


def _answer(one: Answered) -> str:
    answer = one.answer
    lines = [f"*{_text(answer.word)}.* {_text(answer.sentence)}"]
    if answer.number:
        lines.append(f"{_text(answer.quantity)}: {_text(answer.number)}.")
    if answer.published:
        lines.append(f"Published: {_text(answer.published)}.")
    return f"=== {_text(one.question)}\n\n" + " ".join(lines) + "\n"


def _publication(paper: Publication) -> str:
    tables = "\n".join(map(_table, paper.tables))
    head = f"#pagebreak(weak: true)\n= {_text(paper.short)}\n\n{_text(paper.citation)}.\n"
    return f"{head}\n{tables}"


def _table(table: JoinedTable) -> str:
    shown = printed(table.frame, {})
    head = ", ".join(f"[*{_text(name)}*]" for name in shown)
    rows = "\n".join(
        ", ".join(f"[{_text(str(cell))}]" for cell in row) + ","
        for row in shown.itertuples(index=False)
    )
    notes = "\n\n".join(f"#text(size: 8pt)[{_text(note)}]" for note in table.notes)
    return (
        f"#figure(caption: [{_text(table.caption)}], kind: table, supplement: none,"
        f" numbering: none, align(left, table(columns: {len(shown.columns)},\n"
        f"table.hline(), table.header({head}), table.hline(stroke: .5pt),\n"
        f"{rows}\ntable.hline())))\n\n{notes}\n"
    )


def _figure(figure: Figure, results: Path) -> str:
    stage = figure.folder.relative_to(results).as_posix()
    picture = _string(f"figures/{stage}/{figure.name}.png")
    return (
        f"#figure(caption: [{_text(stage)}: {_text(figure.caption)}],"
        f" image({picture}, width: {min(figure.width_in, 6.7):g}in))\n"
    )


def _string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text(text: str) -> str:
    """Text as typst's markup has it: no sign of it means anything; lines stay lines."""
    return " #linebreak() ".join(f"#{_string(line)}" for line in text.split("\n")) if text else ""
