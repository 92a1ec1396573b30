"""Figures of ratios and effects: a mark a case with its 95 % interval, next to a line of no
effect.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..palette import BLUE, GREEN, MARKED, ORANGE, SKY, VERMILION
from ..statistics.claims import INCONCLUSIVE, NONE, NOT_MEASURABLE, REPRODUCED, REVERSED
from ._blank import need_columns, need_rows, or_blank
from .appearance import PAGE_IN, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VERDICTS = {
    REPRODUCED: (BLUE, "o"),
    REVERSED: (VERMILION, "X"),
    NONE: (GREEN, "D"),
    INCONCLUSIVE: (SKY, "s"),
    NOT_MEASURABLE: (ORANGE, "^"),
}


@or_blank
def figure_findings(table: pd.DataFrame) -> "Figure":
    """The papers' findings: each one's effect here with its 95 % interval; colour and marker say
    what became of it.

    Parameters
    ----------
    table
        The table of `nbhelpers.studies.findings.findings_table`: `finding`, `verdict`,
        `effect_percent`, `low_percent`, `high_percent`.

    Returns
    -------
    matplotlib Figure; what could not be compared has no mark.
    """
    import matplotlib.pyplot as plt

    need_rows(table, "no findings to draw")
    need_rows(table.dropna(subset="effect_percent"), "what the findings compare was not measured")
    table = table.reset_index(drop=True)
    with style():
        figure, axes = plt.subplots(figsize=(PAGE_IN, 0.9 + 0.26 * len(table)))
        axes.axvline(0, color="black", linewidth=0.6)
        for verdict, look in _VERDICTS.items():
            rows = table[table["verdict"] == verdict]
            ends = rows[[f"{name}_percent" for name in ("effect", "low", "high")]]
            _draw_dots(axes, ends, rows.index, look, f"{verdict} ({len(rows)})")
        axes.set_yticks(table.index, [text.split(" (")[0] for text in table["finding"]])
        axes.set_ylim(len(table) - 0.5, -0.5)
        axes.set_xlabel("effect (%)")
        figure.legend(loc="outside upper right", ncols=3)
    return figure


@or_blank
def figure_dots(
    table: pd.DataFrame,
    rows: str | Sequence[str],
    by: str,
    y: str = "median",
    label: str = "slow-down",
    log: bool = True,
    mark: float | None = 1.0,
) -> "Figure":
    """A line of dots a case, with 95 % intervals: applications under several noises, ours next to
    what was published.

    Parameters
    ----------
    table
        The columns `rows` (names at the left), `by` (colour and marker), `y`, `low` and `high` (or
        `y` with _low and _high), each of which may be missing in a row.
    rows, by, y
        Names of these columns.
    label
        Label of the axis.
    log
        Whether the axis is logarithmic, where the values span enough.
    mark
        A thin line at this value; 1 is "not slowed down".

    Returns
    -------
    matplotlib Figure: a row for each value of `rows`, with a dot for each value of `by`.

    Raises
    ------
    InputError
        A column that the table lacks.
    """
    import matplotlib.pyplot as plt

    keys = [rows] if isinstance(rows, str) else list(rows)
    low, high = ("low", "high") if y == "median" else (f"{y}_low", f"{y}_high")
    need_columns(table, [*keys, by, y, low, high])
    names = table[keys].astype(str).agg(" · ".join, axis=1)
    order, groups = names.drop_duplicates().tolist(), table[by].drop_duplicates().tolist()
    places = names.map(order.index)
    with style():
        figure, axes = plt.subplots(
            figsize=(PAGE_IN, 0.7 + (0.08 + 0.12 * len(groups)) * len(order))
        )
        for number, group in enumerate(groups):
            chosen, look = table[table[by] == group], MARKED[number % len(MARKED)]
            shift = 0.7 / len(groups) * (number - (len(groups) - 1) / 2)
            ends, at = chosen[[y, low, high]], places[chosen.index] + shift
            _draw_dots(axes, ends, at, look, _value_text(group))
        axes.set_yticks(range(len(order)), order)
        axes.set_ylim(len(order) - 0.5, -0.5)
        axes.set_xlabel(label)
        if log:
            _log_axis(axes)
        if mark is not None:
            axes.axvline(mark, color="black", linewidth=0.6)
        if len(groups) > 1:
            figure.legend(loc="outside upper right", ncols=min(4, len(groups)))
    return figure


def _draw_dots(
    axes: Any,
    ends: pd.DataFrame,
    at: pd.Series | pd.Index,
    look: tuple[str, str],
    label: str,
) -> None:
    """Values with their intervals, of which an end may be missing; the look: colour and marker."""
    values, low, high = (ends[name] for name in ends)
    reach = [end.clip(lower=0).fillna(0) for end in (values - low, high - values)]
    colour, marker = look
    kind = {"fmt": marker, "color": colour, "capsize": 2, "linewidth": 0.8, "label": label}
    axes.errorbar(values, at, xerr=reach, **kind)


def _log_axis(axes: Any) -> None:
    """Logarithmic, unless what is drawn spans too little for it."""
    from matplotlib.ticker import FuncFormatter

    low, high = axes.dataLim.intervalx
    if low <= 0 or high / low < 5:
        return
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(
        FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    )


def _value_text(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "co-scheduled" if value else "independent"
    return f"{value:,}" if isinstance(value, (int, np.integer)) else str(value).replace("_", " ")
