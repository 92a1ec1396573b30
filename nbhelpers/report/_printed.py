"""How a table is printed: its cells as text, an interval in the cell of its number, in HTML and
in LaTeX; in HTML the interval also as a small plot, on one scale for its column.

A wide or long table scrolls beneath its first column and its head: how is the style sheet's
(`page.css`).
"""

import html
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from ..palette import BLUE, GREY
from ._units import heading, intervals_of, numbers, within

NO_ROWS = "No rows: "  # before the reason
WIDE = 8  # columns from which the letters are small
_LONG = 30  # letters of a cell from which a column of text is not squeezed
_SHORT = 18  # at most so many characters of a text: on one line
_TO = "\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}"  # an interval stands in one line
_PLOT_WIDTH, _MIDDLE, _DOT = 72, 6, 3  # of an interval's plot, in pixels
_NUMBERS = ("floating", "integer", "mixed-integer-float", "empty")  # of pandas' infer_dtype


def printed(frame: pd.DataFrame, formats: Mapping[str, str]) -> pd.DataFrame:
    """The cells as text beneath headings; the two ends of an interval stand in its number's cell.

    The attribute ``attrs["kinds"]`` says of each column whether it is "number" or "text",
    ``attrs["plots"]`` has the plots of each column's intervals.
    """
    intervals = _intervals(frame)
    ends = {end for pair in intervals.values() for end in pair}
    cells = {name: _cells(frame[name], formats.get(name)) for name in frame if name not in ends}
    for name, pair in intervals.items():
        cells[name] = _interval_cells(frame[[name, *pair]], formats.get(name))
    shown = pd.DataFrame(cells, dtype=object)
    numeric = (pd.api.types.is_numeric_dtype(frame[name]) for name in shown)
    shown.attrs["kinds"] = ["number" if number else "text" for number in numeric]
    plotted = intervals if len(shown.columns) < WIDE else {}
    shown.attrs["plots"] = [
        _plots(frame[[name, *plotted[name]]], formats.get(str(name)))
        if name in plotted
        else [""] * len(shown)
        for name in shown
    ]
    return shown.rename(columns=lambda name: heading(str(name)))


def _intervals(frame: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """`intervals_of` the columns that hold numbers, or nothing."""
    kinds = {str(name): pd.api.types.infer_dtype(cells) for name, cells in frame.items()}
    found = intervals_of(frame.columns).items()
    return {
        name: ends for name, ends in found if all(kinds[each] in _NUMBERS for each in (name, *ends))
    }


def _interval_cells(frame: pd.DataFrame, text: str | None) -> list[str]:
    """The numbers of the first column, each with its ends, printed alike: unless a format is given,
    with the decimals that give two digits of half its interval.
    """
    name, values = str(frame.columns[0]), frame.to_numpy(float, na_value=np.nan)
    number = numbers(name, values.ravel())
    cells = []
    for row, of_row in zip(frame.itertuples(index=False), values):
        own = within(name, of_row) or number
        value, *bounds = (_cell(one, own, text) for one in row)
        cells.append(value if bounds == ["–", "–"] else f"{value} ({_TO.join(bounds)})")
    return cells


def _plots(frame: pd.DataFrame, text: str | None) -> list[str]:
    """A number and its interval in each row as a dot on a line, in SVG; and the line of no
    difference, where the scale holds it.
    """
    name, values = str(frame.columns[0]), frame.to_numpy(float, na_value=np.nan)
    finite = values[np.isfinite(values)]
    if len(frame) < 2 or not finite.size or finite.min() == finite.max():
        return [""] * len(frame)
    least, most = finite.min(), finite.max()
    number = numbers(name, values.ravel())
    scale = _TO.join(_cell(end, number, text) for end in (least, most))
    none = 1.0 if "ratio" in name else 0.0
    at = _DOT + (np.column_stack([values, np.full(len(values), none)]) - least) / (most - least) * (
        _PLOT_WIDTH - 2 * _DOT
    )
    return [_plot(row, scale) if np.isfinite(row).all() else "" for row in at]


def _plot(row: Sequence[float], scale: str) -> str:
    dot, low, high, none = row
    is_inside = 0 < none < _PLOT_WIDTH
    line = f'<path d="M{none:.1f} 0V{2 * _MIDDLE}" stroke="{GREY}"/>' if is_inside else ""
    return (
        f'<svg class="interval" role="img" aria-label="on a scale from {scale}" color="{BLUE}"'
        f' width="{_PLOT_WIDTH}" height="{2 * _MIDDLE}" style="margin-left: .5em">{line}'
        f'<path d="M{low:.1f} {_MIDDLE}H{high:.1f}" stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{dot:.1f}" cy="{_MIDDLE}" r="{_DOT}" fill="currentColor"/></svg>'
    )


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
    head = _row("th", shown.columns, kinds, [""] * len(kinds))
    cells = shown.itertuples(index=False, name=None)
    rows = [_row("td", row, kinds, own) for row, own in zip(cells, zip(*shown.attrs["plots"]))]
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


def _row(tag: str, cells: Iterable[object], kinds: Sequence[str], plots: Sequence[str]) -> str:
    inner = "".join(
        f'<{tag} class="{kind}" style="{_ALIGN[kind.split()[0]]}">{html.escape(str(cell))}{plot}'
        f"</{tag}>"
        for cell, kind, plot in zip(cells, kinds, plots)
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
