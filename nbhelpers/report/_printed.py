"""How a table is printed: its cells as text, an interval in the cell of its number, in HTML and
in LaTeX.

A wide or long table scrolls beneath its first column and its head: how is the style sheet's
(`page.css`).
"""

import html
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from ._units import heading, intervals_of, numbers

NO_ROWS = "No rows: "  # before the reason
WIDE = 8  # columns from which the letters are small
_LONG = 30  # letters of a cell from which a column of text is not squeezed
_SHORT = 18  # at most so many characters of a text: on one line
_TO = "\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}"  # an interval stands in one line
_NUMBERS = ("floating", "integer", "mixed-integer-float", "empty")  # of pandas' infer_dtype


def printed(frame: pd.DataFrame, formats: Mapping[str, str]) -> pd.DataFrame:
    """The cells as text beneath headings; the two ends of an interval stand in its number's cell.

    The attribute ``attrs["kinds"]`` says of each column whether it is "number" or "text".
    """
    intervals = _intervals(frame)
    ends = {end for pair in intervals.values() for end in pair}
    cells = {name: _cells(frame[name], formats.get(name)) for name in frame if name not in ends}
    for name, pair in intervals.items():
        cells[name] = _interval_cells(frame[[name, *pair]], formats.get(name))
    shown = pd.DataFrame(cells, dtype=object)
    numeric = (pd.api.types.is_numeric_dtype(frame[name]) for name in shown)
    shown.attrs["kinds"] = ["number" if number else "text" for number in numeric]
    return shown.rename(columns=lambda name: heading(str(name)))


def _intervals(frame: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """`intervals_of` the columns that hold numbers, or nothing."""
    kinds = {str(name): pd.api.types.infer_dtype(cells) for name, cells in frame.items()}
    found = intervals_of(frame.columns).items()
    return {
        name: ends for name, ends in found if all(kinds[each] in _NUMBERS for each in (name, *ends))
    }


def _interval_cells(frame: pd.DataFrame, text: str | None) -> list[str]:
    """The numbers of the first column, each with its ends, printed alike."""
    number = numbers(str(frame.columns[0]), frame.to_numpy(float, na_value=np.nan).ravel())
    cells = [[_cell(value, number, text) for value in row] for row in frame.itertuples(index=False)]
    return [
        value if bounds == ["–", "–"] else f"{value} ({_TO.join(bounds)})"
        for value, *bounds in cells
    ]


def _cells(values: pd.Series, text: str | None) -> list[str]:
    number = numbers(str(values.name), values)
    return [_cell(value, number, text) for value in values]


def _cell(value: object, number: Callable[[float], str], text: str | None) -> str:
    if not isinstance(value, tuple | list | dict) and pd.isna(value):
        return "–"
    if text:
        return text.format(value)
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return number(value) if isinstance(value, float) else str(value)


def fragment(shown: pd.DataFrame, why: str) -> str:
    """A printed table as HTML; where there are no rows, `why` stands in their place.

    Colours, and what stays while the rest scrolls, are those of `page.css`; what JupyterLab needs
    stands in the elements, since it has no style sheet of ours.
    """
    kinds = [_kind(kind, cells) for kind, (_, cells) in zip(shown.attrs["kinds"], shown.items())]
    head = _row("th", shown.columns, kinds)
    rows = [_row("td", row, kinds) for row in shown.itertuples(index=False, name=None)]
    if not rows:
        reason = html.escape(NO_ROWS + why)
        rows = [f'<tr><td colspan="{len(kinds)}" style="{_ALIGN["text"]}">{reason}</td></tr>']
    body = "\n".join(rows)
    kind = f"noisebook{' small' * (len(kinds) >= WIDE)}"
    return (
        f'<div class="noisebook-wide" tabindex="0" style="{_FRAME}; --columns: {len(kinds)}">'
        f'<table class="{kind}">\n<thead>{head}</thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>\n"
    )


_FRAME = "overflow: auto; max-height: 28em"
_ALIGN = {"number": "text-align: right", "text": "text-align: left"}


def _kind(kind: str, cells: pd.Series) -> str:
    longest = max(map(len, cells), default=0) if kind == "text" else _LONG
    return kind + " long" * (longest > _LONG) + " short" * (longest <= _SHORT)


def _row(tag: str, cells: Iterable[object], kinds: Sequence[str]) -> str:
    inner = "".join(
        f'<{tag} class="{kind}" style="{_ALIGN[kind.split()[0]]}">{html.escape(str(cell))}</{tag}>'
        for cell, kind in zip(cells, kinds)
    )
    return f"<tr>{inner}</tr>"


def latex(shown: pd.DataFrame, name: str, caption: str, why: str) -> str:
    """A printed table for LaTeX (booktabs, graphicx), no wider than a line of text; its label is
    ``tab:NAME``.
    """
    kinds = shown.attrs["kinds"]
    if not len(shown):
        shown, kinds = pd.DataFrame({shown.columns[0]: [NO_ROWS + why]}), ["text"]
    align = "".join("r" if kind == "number" else "l" for kind in kinds)
    escaped = shown.map(latex_text).set_axis([latex_text(one) for one in shown.columns], axis=1)
    text = escaped.to_latex(
        index=False,
        escape=False,
        caption=latex_text(caption),
        label=f"tab:{name}",
        column_format=align,
    )
    before, begin, tabular = text.partition(r"\begin{tabular}")
    inner, end, after = (begin + tabular).partition(r"\end{tabular}")
    return f"{before}{_FITTED}{{{inner}{end}}}{after}"


_FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}"
_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "\N{NO-BREAK SPACE}": "~",
    "^": r"\textasciicircum{}",
    "–": "--",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "µ": r"$\mu$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def latex_text(text: object) -> str:
    """Text with the signs escaped that LaTeX would read as its own."""
    return "".join(_TEX.get(sign, sign) for sign in str(text))
