"""How a table is printed: its columns in bands that fit the width of a page, in HTML and LaTeX.

Owns the estimate of a column's width. It is made from characters, so that the same table gives the
same bytes everywhere.
"""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

NO_ROWS = "No rows: "  # before the reason
TEXT_PX = 690  # what a window of 800 pixels, or a printed page of A4, has for a table
NORMAL_PX, SMALL_PX = 13.44, 12  # 12 pixels are 9 points
SHOWN_BANDS = 2  # the bands beyond are folded
# rows of the shown bands together: of a table with more than the latter only the former are shown
FIRST_LINES, MOST_LINES = 12, 16
_PADDING_EM = 1.2
_COMFORT_EM = 14  # a column of text is not squeezed to less
_WORD_EM = 18  # longer words are broken
_KEYS_SHARE = 0.4  # of the width, that repeated columns may take
_NARROW, _WIDE = set("iljtfrI.,:;|!'()[]-· "), set("mwMWµ%@—")


@dataclass(frozen=True)
class Layout:
    """Which columns stand side by side.

    Attributes
    ----------
    bands
        Places of columns, a tuple a band; the first columns stand in each.
    small
        Whether the small letters are needed.
    """

    bands: tuple[tuple[int, ...], ...]
    small: bool


def layout(shown: pd.DataFrame, kinds: Sequence[str]) -> Layout:
    """Fit the columns of a table of text into the width of a page.

    Parameters
    ----------
    shown
        The cells as text.
    kinds
        ``"number"`` or ``"text"`` for each column.
    """
    widths = [
        _width_em(str(name), kind, cells) for kind, (name, cells) in zip(kinds, shown.items())
    ]
    everything = (tuple(range(len(widths))),)
    if sum(widths) * NORMAL_PX <= TEXT_PX:
        return Layout(everything, False)
    room = TEXT_PX / SMALL_PX
    if sum(widths) <= room:
        return Layout(everything, True)
    keys = _keys(widths, kinds, room)
    return Layout(_even(widths, keys, room), True)


def _width_em(name: str, kind: str, cells: pd.Series) -> float:
    """What a column needs: numbers in one line, text at a comfortable width, headers in words."""
    texts = [str(cell) for cell in cells]
    words = [_em(word) for text in texts for word in text.split(" ")]
    whole = max(map(_em, texts), default=0)
    header = max((1.13 * _em(word) for word in name.split(" ")), default=0)
    least = min(max([header, *words]), _WORD_EM)
    return max(least, min(whole, _COMFORT_EM)) + _PADDING_EM


def _em(text: str) -> float:
    return sum(0.38 if sign in _NARROW else 0.98 if sign in _WIDE else 0.65 for sign in text)


def _keys(widths: list[float], kinds: Sequence[str], room: float) -> int:
    """How many of the first columns say what a row is: those of text, at least one."""
    count = 1
    while (
        count < len(widths) - 1
        and kinds[count] == "text"
        and sum(widths[: count + 1]) <= _KEYS_SHARE * room
    ):
        count += 1
    return count


def _even(widths: list[float], keys: int, room: float) -> tuple[tuple[int, ...], ...]:
    """As few bands as there can be, and all about as wide."""
    best = _bands(widths, keys, room)
    while room > 10:
        room *= 0.95
        tighter = _bands(widths, keys, room)
        if len(tighter) > len(best):
            break
        best = tighter
    return best


def _bands(widths: list[float], keys: int, room: float) -> tuple[tuple[int, ...], ...]:
    first = tuple(range(keys))
    bands, used = [first], sum(widths[:keys])
    for place in range(keys, len(widths)):
        if used + widths[place] > room and len(bands[-1]) > keys:
            bands.append(first)
            used = sum(widths[:keys])
        bands[-1] += (place,)
        used += widths[place]
    return tuple(bands)


def kinds_of(frame: pd.DataFrame) -> list[str]:
    """``"number"`` or ``"text"`` for each column."""
    numeric = pd.api.types.is_numeric_dtype
    return ["number" if numeric(frame[column]) else "text" for column in frame.columns]


def fragment(shown: pd.DataFrame, kinds: Sequence[str], why: str) -> str:
    """The table as HTML: a table for each band; on a screen, what is beyond the first rows and
    bands is folded.

    Parameters
    ----------
    shown, kinds
        As for `layout`.
    why
        Stands in the place of rows, if there are none.
    """
    plan = layout(shown, kinds)
    size = f' style="font-size: {SMALL_PX}px"' if plan.small else ""
    kind = "noisebook small" if plan.small else "noisebook"
    columns = {place for band in plan.bands[:SHOWN_BANDS] for place in band}
    rows = _first_rows(len(shown), len(plan.bands))
    tables = "".join(
        f'<table class="{kind}{" further" * (number >= SHOWN_BANDS)}"{size}>\n'
        f"<thead><tr>{_head(shown, kinds, band)}</tr></thead>\n"
        f"<tbody>\n{_body(shown, kinds, band, why, rows)}\n</tbody></table>\n"
        for number, band in enumerate(plan.bands)
    )
    return _switch(len(shown) - rows, len(kinds) - len(columns)) + tables


def _first_rows(rows: int, bands: int) -> int:
    """How many rows of a table are never folded."""
    stacked = min(bands, SHOWN_BANDS)
    return rows if rows * stacked <= MOST_LINES else FIRST_LINES // stacked


def _switch(rows: int, columns: int) -> str:
    """Shows the rows and columns that are folded; hidden where there is no style sheet of ours,
    which shows them anyway.
    """
    counts = [(rows, "row"), (columns, "column")]
    folded = [f"{count} more {name}{'s' * (count > 1)}" for count, name in counts if count]
    if not folded:
        return ""
    return (
        '<label class="noisebook-rows" style="display: none"><input type="checkbox">'
        f" show {' and '.join(folded)}</label>\n"
    )


def _head(shown: pd.DataFrame, kinds: Sequence[str], band: Iterable[int]) -> str:
    return "".join(
        f'<th class="{kinds[place]}" style="{_align(kinds[place])}">'
        f"{html.escape(str(shown.columns[place]))}</th>"
        for place in band
    )


def _body(
    shown: pd.DataFrame, kinds: Sequence[str], band: Sequence[int], why: str, first: int
) -> str:
    if not len(shown):
        return (
            f'<tr><td colspan="{len(band)}" style="{_align("text")}">'
            f"{html.escape(NO_ROWS + why)}</td></tr>"
        )
    return "\n".join(
        ("<tr>" if number < first else '<tr class="further">')
        + "".join(_cell(str(row[place]), kinds[place]) for place in band)
        + "</tr>"
        for number, row in enumerate(shown.itertuples(index=False, name=None))
    )


def _cell(text: str, kind: str) -> str:
    long = any(_em(word) > _WORD_EM for word in text.split(" "))
    style = _align(kind) + ("; overflow-wrap: anywhere" if long else "")
    return f'<td class="{kind}" style="{style}">{html.escape(text)}</td>'


def _align(kind: str) -> str:
    """Inline: JupyterLab has no style sheet of ours."""
    return "text-align: right" if kind == "number" else "text-align: left"


def latex(shown: pd.DataFrame, kinds: Sequence[str], name: str, caption: str, why: str) -> str:
    """The table for LaTeX, with booktabs: a `tabular` for each band.

    Parameters
    ----------
    shown, kinds, why
        As for `fragment`.
    name
        Of the label ``tab:NAME``.
    caption
        Stands above.
    """
    plan = layout(shown, kinds)
    tabulars = [_tabular(shown, kinds, band, why) for band in plan.bands]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(caption)}}}",
        rf"\label{{tab:{name}}}",
        *([r"\footnotesize"] if plan.small else []),
        "\n\\par\\medskip\n".join(tabulars),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _tabular(shown: pd.DataFrame, kinds: Sequence[str], band: Sequence[int], why: str) -> str:
    align = "".join("r" if kinds[place] == "number" else "l" for place in band)
    reason = (
        rf"\multicolumn{{{len(align)}}}{{p{{0.9\linewidth}}}}{{{latex_text(NO_ROWS + why)}}} \\"
    )
    rows = [
        _tex_row(row[place] for place in band) for row in shown.itertuples(index=False, name=None)
    ]
    lines = [
        rf"\begin{{tabular}}{{{align}}}",
        r"\toprule",
        _tex_row(str(shown.columns[place]) for place in band),
        r"\midrule",
        *(rows or [reason]),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines)


def _tex_row(cells: Iterable[object]) -> str:
    return " & ".join(latex_text(cell) for cell in cells) + r" \\"


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
