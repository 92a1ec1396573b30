"""Figures and tables on disk: the same data give the same bytes, and each shows itself in a
notebook.

Owns the files NAME.pdf, .svg, .png, .csv, .tex, .html and the record NAME.json that the paper is
collected from.
"""

import base64
import html
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from ..empty import UNKNOWN, because, why_empty
from ..errors import InputError, check_choice
from ..files import write_atomically, write_json
from ..palette import PAGE_IN, POINTS, STYLE, names_as_they_are, second_channel
from ..reading import read_csv, read_json
from ._blank import blank_figure
from ._printed import NO_ROWS, fragment, latex, printed
from ._units import intervals_of

EXACT = "%.10g"
MOST_ROWS = 12  # of a key table, at first
_NO_DATES = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


@dataclass(frozen=True)
class Saved:
    """A saved figure or table.

    Attributes
    ----------
    name, caption, folder
        Name, caption and folder as saved.
    order
        Place among the figures and tables of its folder.
    source
        Whose data it shows, such as ``"this machine"``; "" if that is not known.
    """

    name: str
    caption: str
    folder: Path
    order: int
    source: str = ""


@dataclass(frozen=True)
class Figure(Saved):
    """A saved figure.

    Attributes
    ----------
    width_in
        Width in inches at print size.
    points
        Size of its smallest text at print size.
    """

    width_in: float = PAGE_IN
    points: float = POINTS

    def to_html(self, caption: str) -> str:
        """The picture, embedded, with a caption beneath, or none ("")."""
        data = base64.b64encode((self.folder / f"{self.name}.png").read_bytes()).decode()
        return (
            f'<figure class="noisebook" id="{self.name}" data-inches="{self.width_in}"'
            f' data-points="{self.points}"><div class="noisebook-wide" tabindex="0"'
            f' style="overflow-x: auto">'
            f'<img alt="{html.escape(self.caption)}" style="--inches: {self.width_in};'
            f' width: {min(100 * self.width_in / PAGE_IN, 100):.4g}%"'
            f' src="data:image/png;base64,{data}"></div>'
            f"{_figcaption(caption, self.source)}</figure>"
        )


@dataclass(frozen=True)
class Table(Saved):
    """A saved table."""

    @property
    def frame(self) -> pd.DataFrame:
        """The numbers, in full precision; of a table without rows none."""
        return read_table(self.folder / f"{self.name}.csv")

    def to_html(self, caption: str, first: str = "") -> str:
        """The table with a caption, or none (""), and its CSV above. Behind its `first` rows and
        columns, where there are such, it is folded.
        """
        body = (self.folder / f"{self.name}.html").read_text(encoding="utf-8")
        if first:
            rows, columns = self.frame.shape
            whole = f"the whole table: {rows} rows, {columns} columns"
            body = f"{first}<details><summary>{whole}</summary>{body}</details>"
        text = (self.folder / f"{self.name}.csv").read_bytes()
        link = f"data:text/csv;base64,{base64.b64encode(text).decode()}"
        file = f' <a download="{self.name}.csv" href="{link}">CSV</a>'
        return (
            f'<figure class="noisebook" id="{self.name}">'
            f"{_figcaption(caption, self.source, file)}{body}</figure>"
        )


def read_table(path: Path) -> pd.DataFrame:
    """A saved table from its CSV; without rows, but with the reason (`nbhelpers.empty`), where the
    file has that in their place.
    """
    table = read_csv(path)
    said = str(table.iloc[0, 0]) if len(table) == 1 else ""
    why = said.removeprefix(NO_ROWS)
    return table if why == said else because(table.iloc[:0], why)


FORMATS = {"noisebook figure 1": Figure, "noisebook table 1": Table}


def _figcaption(caption: str, source: str, file: str = "") -> str:
    data = f"Data: {html.escape(source)}." if source else ""
    small = f'<small class="source">{data}{file}</small>' if data or file else ""
    parts = " ".join(filter(None, [html.escape(caption), small]))
    return f"<figcaption>{parts}</figcaption>" if parts else ""


@dataclass(frozen=True)
class Shown:
    """A saved table or figure on the page of its notebook, where the caption stands in the text.

    A table is folded behind its name, but for the `key` one of its page, of which the `first` rows
    and columns are shown (`first_html`).
    """

    record: Figure | Table
    note: str = ""
    key: bool = False
    first: str = ""

    def __repr__(self) -> str:
        return f"{type(self.record).__name__}({self.record.name}: {self.record.folder})"

    def _repr_html_(self) -> str:
        if isinstance(self.record, Figure):
            return self.record.to_html(self.note)
        shown = self.record.to_html(self.note, self.first)
        if self.key:
            return shown.replace("noisebook", "noisebook key", 1)
        count = len(self.record.frame)
        rows = f"{count} row{'s' * (count != 1)}"
        name = f"Table <code>{self.record.name}</code>"
        return f"<details><summary>{name} ({rows})</summary>{shown}</details>"


def save_figure(
    figure: Any,
    name: str,
    caption: str,
    data: pd.DataFrame,
    folder: str | Path,
    source: str = "",
) -> Figure:
    """Save a matplotlib figure as PDF, SVG and PNG (200 dpi), its data as CSV, and its caption as
    JSON.

    Parameters
    ----------
    figure
        Matplotlib Figure at its print size, at most a page wide (seaborn widens a figure for its
        legend: it is narrowed again); closed afterwards, so that a notebook shows it once.
    name
        File name without ending: letters, digits, ``-``, ``_``.
    caption
        One or more sentences; never drawn into the figure.
    data
        What is drawn, one row a mark; without rows the CSV has the reason (`nbhelpers.empty`) in
        their place, and so has the figure.
    folder
        Made if missing.
    source
        Whose data they are, such as ``"this machine"`` or ``"simulated"``; shown after the caption.

    Returns
    -------
    Figure: the record.

    Raises
    ------
    InputError
        The name is not a file name, or that of a table in the folder.
    """
    import matplotlib.pyplot as plt

    folder = _checked(name, folder, Figure)
    if why := why_empty(data):
        plt.close(figure)
        figure = blank_figure(data)
    _fit_page(figure)
    second_channel(figure)
    with plt.style.context(STYLE):
        names_as_they_are()
        for kind, metadata in _NO_DATES.items():
            drawn = io.BytesIO()
            figure.savefig(drawn, format=kind, metadata=metadata)
            write_atomically(folder / f"{name}.{kind}", drawn.getvalue())
    plt.close(figure)
    write_atomically(folder / f"{name}.csv", _csv(data, why or UNKNOWN))
    size = round(float(figure.get_figwidth()), 3), _smallest_points(figure)
    return _recorded(Figure(name, caption, folder, _order(folder, name), source, *size))


def _fit_page(figure: Any) -> None:
    """Narrow a figure that is wider than a page; a legend beside its axes keeps its room."""
    beside = (1 - figure.subplotpars.right) * figure.get_figwidth()
    if figure.get_figwidth() > PAGE_IN:
        figure.set(figwidth=PAGE_IN, layout_engine="none")
        figure.subplots_adjust(right=1 - beside / PAGE_IN)


def _smallest_points(figure: Any) -> float:
    """Size of the smallest text that was drawn; exponents of mathematics are not looked into."""
    from matplotlib.text import Text

    drawn = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    return round(min((float(text.get_fontsize()) for text in drawn), default=POINTS), 2)


def save_table(
    frame: pd.DataFrame,
    name: str,
    caption: str,
    folder: str | Path,
    published: pd.DataFrame | None = None,
    formats: Mapping[str, str] | None = None,
    why: str = "",
    source: str = "",
) -> Table:
    """Save a table as CSV (10 significant digits), LaTeX (booktabs) and HTML, ours next to the
    published value.

    In LaTeX and HTML an interval stands in the cell of its number, where the two columns after a
    number are its ends (`median_ms`: `median_low_ms` and `median_high_ms`, or `low_ms` and
    `high_ms`).

    Parameters
    ----------
    frame
        The table; a named index becomes columns. Where it has no rows, all three files say why:
        `why`, or the reason that the table carries (`nbhelpers.empty.because`).
    name, caption, folder
        The arguments of `save_figure`.
    published
        Table of `published_table(...)`: rows are matched by the text columns that both have, and
        next to each number column that both have comes one named ``COLUMN (published)``. The
        caption then names the paper and its table.
    formats
        For a column, how it is printed in LaTeX and HTML, such as ``{"seconds": "{:.3f}",
        "increase": "{:+.1%}"}``; other numbers are printed by the unit in the column's name, or
        with four significant digits of the column's smallest.
    why
        The reason why there may be no rows: what is missing, and the command that gets it.
    source
        The arguments of `save_figure`.

    Returns
    -------
    Table: the record.

    Raises
    ------
    InputError
        The name is not a file name or that of a figure in the folder, a format is for no column, or
        nothing matches the published table.
    """
    folder, formats = _checked(name, folder, Table), dict(formats or {})
    why = why or why_empty(frame) or UNKNOWN
    frame = frame.reset_index() if any(frame.index.names) else frame.reset_index(drop=True)
    frame = frame if len(frame.columns) else pd.DataFrame(columns=["result"])
    for column in formats:
        check_choice("column to be formatted", column, frame)
    if published is not None:
        frame = _with_published(frame, published)
        caption = _citing(caption, published)
        formats |= {f"{column} (published)": text for column, text in formats.items()}
    shown = printed(frame, formats)
    write_atomically(folder / f"{name}.csv", _csv(frame, why))
    write_atomically(folder / f"{name}.tex", latex(shown, name, caption, why))
    write_atomically(folder / f"{name}.html", fragment(shown, why))
    return _recorded(Table(name, caption, folder, _order(folder, name), source))


def table_html(frame: pd.DataFrame, why: str = UNKNOWN) -> str:
    """A table as HTML without being saved; `why` stands in the place of rows where it has none."""
    return fragment(printed(frame, {}), why)


def first_html(
    frame: pd.DataFrame, columns: Sequence[str] = (), formats: Mapping[str, str] | None = None
) -> str:
    """The first MOST_ROWS rows of some columns (none named: of all), with their intervals and the
    published values beside; "" where that is the whole table.
    """
    intervals = intervals_of(frame.columns)
    ends = [end for name in columns for end in intervals.get(name, ())]
    wanted = {*columns, *ends, *(f"{name} (published)" for name in columns)}
    part = frame[[name for name in frame if name in wanted or not columns]][:MOST_ROWS]
    own = {name: text for name, text in (formats or {}).items() if name in part}
    return "" if part.shape == frame.shape else fragment(printed(part, own), "")


def _csv(frame: pd.DataFrame, why: str) -> str:
    """Without rows the reason stands in the first column: whoever reads the file alone sees it
    too.
    """
    if not len(frame):
        columns = frame.columns if len(frame.columns) else ["result"]
        frame = pd.DataFrame([[NO_ROWS + why] + [None] * (len(columns) - 1)], columns=columns)
    return frame.to_csv(index=False, float_format=EXACT)


def records(folder: str | Path) -> list[Figure | Table]:
    """The figures and tables saved under a folder, by subfolder and then in the order they were
    first saved in.
    """
    paths = (path for path in Path(folder).rglob("*.json") if path.with_suffix(".csv").exists())
    found = [record for path in paths if (record := _load(path))]
    return sorted(found, key=lambda record: (record.folder.parts, record.order, record.name))


def _recorded(record: Any) -> Any:
    kind = next(name for name, kind in FORMATS.items() if isinstance(record, kind))
    content = {"format": kind} | asdict(record)
    del content["folder"]
    write_json(record.folder / f"{record.name}.json", content)
    return record


def _load(path: Path) -> Figure | Table | None:
    content = read_json(path)
    kind = FORMATS.get(content.get("format", "")) if isinstance(content, dict) else None
    if kind is None:
        return None
    names = {field.name for field in fields(kind)} & set(content)
    return kind(folder=path.parent, **{name: content[name] for name in names})


def _checked(name: str, folder: str | Path, kind: type) -> Path:
    """The folder, made if missing; a table and a figure of one name would overwrite each other's
    data.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise InputError(f"{name!r} is not a name for files", fix="use letters, digits, - and _")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    saved = _load(path) if path.exists() else None
    if saved is not None and not isinstance(saved, kind):
        raise InputError(
            f"a {type(saved).__name__.lower()} is saved under the name {name!r} already",
            where=path,
            fix="choose another name",
        )
    return folder


def _order(folder: Path, name: str) -> int:
    """A record keeps its place when it is saved again; a new one comes last."""
    others = {record.name: record.order for record in records(folder) if record.folder == folder}
    return others.get(name, 1 + max(others.values(), default=0))


def _with_published(frame: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    shared = [column for column in frame.columns if column in published.columns]
    numbers = [column for column in shared if _is_number(frame[column], published[column])]
    keys = [column for column in shared if column not in numbers]
    if not len(frame):
        return frame
    if not keys or not numbers:
        raise InputError(
            "nothing to match with the published table",
            where=f"shared columns: {shared}",
            fix=(
                "name a text column (benchmark, config, …) and a number column as in the"
                " published table"
            ),
        )
    beside = {column: f"{column} (published)" for column in numbers}
    theirs = published[keys + numbers].rename(columns=beside)
    if theirs.duplicated(keys).any():
        raise InputError(
            f"the published table has several rows for the same {', '.join(keys)}",
            fix="select rows of it first",
        )
    merged = frame.merge(theirs, on=keys, how="left", validate="many_to_one")
    pairs = ([column, beside[column]] if column in beside else [column] for column in frame.columns)
    return merged[[name for pair in pairs for name in pair]]


def _is_number(ours: pd.Series, theirs: pd.Series) -> bool:
    """A column in which nothing was measured has no type of its own: then the published one
    decides.
    """
    numeric = pd.api.types.is_numeric_dtype
    return numeric(ours) or (ours.isna().all() and numeric(theirs))


def _citing(caption: str, published: pd.DataFrame) -> str:
    paper = published.attrs.get("paper")
    place = published.attrs.get("place") or f"table {published.attrs.get('table')}"
    return f"{caption} Published values: {paper.partition(':')[0]}, {place}." if paper else caption
