"""Tables in the form in which a paper printed them, with our numbers in rows of their own beneath.

Owns the form: labelled rows of cells as text, as HTML and as a table to be saved.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

MISSING = "–"
PUBLISHED, OURS, VERDICT, HEADING = "published", "this study", "verdict", "heading"
BOTH = "all"  # columns of theirs and of ours
_CLASSES = {
    PUBLISHED: "published",
    BOTH: "published",
    OURS: "ours",
    VERDICT: "verdict",
    HEADING: "heading",
}


@dataclass(frozen=True)
class Row:
    """A row: what it is of, which kind of number it has, its cells (of one or two lines)."""

    label: str
    which: str
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grid:
    """A table in a paper's form.

    Attributes
    ----------
    name
        As a file name.
    caption
        With the number that the paper gives the table.
    columns
        Names of the columns of numbers.
    rows
        In the paper's order, ours after each of theirs.
    notes
        What no cell says: why cells are empty, what may be compared.
    """

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """The cells as text, one row a row."""
        heading, rows = "", []
        for row in self.rows:
            if row.which == HEADING:
                heading = f"{row.label}, "
                continue
            cells = (cell.replace("\n", "; ") for cell in row.cells)
            label = heading + row.label
            rows.append([label, row.which, *cells])
        return pd.DataFrame(rows, columns=["row", "which", *self.columns])

    @property
    def count(self) -> int:
        """How many cells of published numbers it has."""
        return sum(
            cell != MISSING
            for row in self.rows
            if row.which in (PUBLISHED, BOTH)
            for cell in row.cells
        )

    @property
    def label_percent(self) -> int:
        """Width of the labels' column: that of sentences is wider."""
        return 28 if max((len(row.label) for row in self.rows), default=0) > 40 else 15

    def to_html(self) -> str:
        """The table with its caption above and its notes beneath."""
        rest = (90 - self.label_percent) / len(self.columns)
        columns = f'<col style="width:{self.label_percent}%"><col style="width:10%">' + (
            f'<col style="width:{rest:.2f}%">' * len(self.columns)
        )
        head = "".join(f"<th>{escape(name)}</th>" for name in ("", "", *self.columns))
        before = ["", *(row.label for row in self.rows)]
        body = "\n".join(
            _html_row(row, len(self.columns), row.label != last)
            for row, last in zip(self.rows, before, strict=False)
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return (
            f'<figure class="publication" id="{self.name}"><figcaption>{escape(self.caption)}'
            f"</figcaption><table><colgroup>{columns}</colgroup><thead><tr>{head}</tr></thead>"
            f'<tbody>\n{body}\n</tbody></table><div class="notes">{notes}</div></figure>\n'
        )


def _html_row(row: Row, width: int, labelled: bool) -> str:
    kind = _CLASSES[row.which]
    if row.which == HEADING:
        return f'<tr class="{kind}"><th colspan="{width + 2}">{escape(row.label)}</th></tr>'
    label = row.label if labelled else ""
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in row.cells)
    return f'<tr class="{kind}"><th>{escape(label)}</th><td>{row.which}</td>{cells}</tr>'


def number(value: Any, digits: str = ".3g", unit: str = "") -> str:
    """A number with a true minus and its unit; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:{digits}}".replace("-", "−") + unit


def with_interval(
    found: Mapping[str, Any] | None, names: Iterable[str], digits: str = ".3g", unit: str = ""
) -> str:
    """A value with its interval in brackets, by the names of its three columns."""
    if found is None:
        return MISSING
    value, low, high = (found.get(name, math.nan) for name in names)
    if not math.isfinite(value):
        return MISSING
    ends = f"\n({number(low, digits)} to {number(high, digits)})"
    return number(value, digits, unit) + (
        ends if math.isfinite(low) and math.isfinite(high) else ""
    )
