"""Figures of ratios and effects: a mark a case with its 95 % interval, next to a line of no
effect.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from ..palette import BLUE, GREEN, ORANGE, SKY, VERMILION
from ..statistics.claims import INCONCLUSIVE, NONE, NOT_MEASURABLE, REPRODUCED, REVERSED
from ._blank import blank_figure
from .marks import figure_marks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VERDICTS = {
    REPRODUCED: (BLUE, "o"),
    REVERSED: (VERMILION, "X"),
    NONE: (GREEN, "D"),
    INCONCLUSIVE: (SKY, "s"),
    NOT_MEASURABLE: (ORANGE, "^"),
}


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
    if table["effect_percent"].isna().all():
        return blank_figure(table, "what the findings compare was not measured")
    counts = table["verdict"].value_counts()
    marks = table[[f"{name}_percent" for name in ("effect", "low", "high")]]
    marks = marks.set_axis(["value", "low", "high"], axis=1).assign(panel="")
    marks["case"] = [text.split(" (")[0] for text in table["finding"]]
    marks["whose"] = [f"{verdict} ({counts[verdict]})" for verdict in table["verdict"]]
    looks = {f"{verdict} ({n})": _VERDICTS[verdict] for verdict, n in counts.items()}
    return figure_marks(marks, "effect (%)", log=False, looks=looks, mark=0)


def figure_dots(
    table: pd.DataFrame,
    rows: str | Sequence[str],
    by: str,
    y: str = "median",
    label: str = "slow-down",
    log: bool = True,
    mark: float = 1.0,
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
    """
    keys = [rows] if isinstance(rows, str) else list(rows)
    low, high = ("low", "high") if y == "median" else (f"{y}_low", f"{y}_high")
    if table[y].isna().all():
        return blank_figure(table)
    marks = table[[y, low, high]].set_axis(["value", "low", "high"], axis=1).assign(panel="")
    marks["case"] = table[keys].astype(str).agg(" · ".join, axis=1)
    marks["whose"] = table[by].astype(str).str.replace("_", " ")
    return figure_marks(marks, label, log, mark=mark)
