"""Figures of ratios and effects: a mark a case with its 95 % interval, next to a line of no
effect.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..statistics.claims import INCONCLUSIVE, NONE, NOT_MEASURABLE, REPRODUCED, REVERSED
from ._blank import need_columns, need_rows, or_blank
from .appearance import KINDS, PAGE_IN, ROLES, Role, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VERDICTS = {
    REPRODUCED: ("baseline", "o"),
    REVERSED: ("injected", "X"),
    NONE: ("traced", "D"),
    INCONCLUSIVE: ("fast", "s"),
    NOT_MEASURABLE: ("slow", "^"),
}
_CYCLE = [*ROLES.values(), *KINDS.values()]
_Reach = tuple[pd.Series, pd.Series]  # of an interval below and above its value


def _draw_effects(
    axes: Any, effects: pd.Series, reach: _Reach, role: str, marker: str, label: str
) -> None:
    """Each effect in the row of its index, with its interval."""
    axes.errorbar(
        effects,
        effects.index,
        xerr=reach,
        linestyle="none",
        marker=marker,
        markersize=5,
        color=ROLES[role].colour,
        capsize=2,
        linewidth=0.9,
        label=f"{label} ({len(effects)})",
    )


@or_blank
def figure_findings(table: pd.DataFrame, width_in: float = PAGE_IN) -> "Figure":
    """The papers' findings: each one's effect here with its 95 % interval; colour and marker say
    what became of it.

    Parameters
    ----------
    table
        The table of `nbhelpers.studies.findings.findings_table`: `finding`, `verdict`,
        `effect_percent`, `low_percent`, `high_percent`.
    width_in
        Width of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure; what could not be compared has no mark.
    """
    import matplotlib.pyplot as plt

    need_rows(table, "no findings to draw")
    need_rows(table.dropna(subset="effect_percent"), "what the findings compare was not measured")
    table = table.reset_index(drop=True)
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 0.9 + 0.26 * len(table)))
        axes.axvline(0, color="black", linewidth=0.6)
        for verdict, (role, marker) in _VERDICTS.items():
            rows = table[table["verdict"] == verdict]
            reach = _interval_reach(
                rows["effect_percent"], rows["low_percent"], rows["high_percent"]
            )
            _draw_effects(axes, rows["effect_percent"], reach, role, marker, verdict)
        axes.set_yticks(table.index, [_claim(text) for text in table["finding"]])
        axes.set_ylim(len(table) - 0.5, -0.5)
        axes.set_xlabel("effect (%)")
        figure.legend(loc="outside upper right", ncols=3)
    return figure


def _claim(text: str) -> str:
    return text.split(" (")[0]


@or_blank
def figure_dots(
    table: pd.DataFrame,
    rows: str | Sequence[str],
    by: str,
    y: str = "median",
    label: str = "slow-down",
    log: bool = True,
    mark: float | None = 1.0,
    width_in: float = PAGE_IN,
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
    width_in
        Width of the figure at print size, in inches.

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
            figsize=(width_in, 0.7 + (0.08 + 0.12 * len(groups)) * len(order))
        )
        for number, group in enumerate(groups):
            chosen, role = table[table[by] == group], _CYCLE[number % len(_CYCLE)]
            shift = 0.7 / len(groups) * (number - (len(groups) - 1) / 2)
            reach = _interval_reach(chosen[y], chosen[low], chosen[high])
            at = places[chosen.index] + shift
            _draw_dots(axes, chosen[y], at, reach, role, _value_text(group))
        axes.set_yticks(range(len(order)), order)
        axes.set_ylim(len(order) - 0.5, -0.5)
        axes.set_xlabel(label)
        if log:
            _log_axis(axes, "x")
        if mark is not None:
            axes.axvline(mark, color="black", linewidth=0.6)
        if len(groups) > 1:
            figure.legend(loc="outside upper right", ncols=min(4, len(groups)))
    return figure


def _draw_dots(
    axes: Any,
    values: pd.Series,
    at: pd.Series,
    reach: _Reach,
    role: Role,
    label: str,
) -> None:
    axes.errorbar(
        values,
        at,
        xerr=reach,
        fmt=role.marker,
        color=role.colour,
        capsize=2,
        linewidth=0.8,
        label=label,
    )


def _log_axis(axes: Any, which: str) -> None:
    """Logarithmic, unless what is drawn spans too little for it."""
    from matplotlib.ticker import FuncFormatter

    low, high = getattr(axes.dataLim, f"interval{which}")
    if low <= 0 or high / low < 5:
        return
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(
        FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    )


def _value_text(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "co-scheduled" if value else "independent"
    return f"{value:,}" if isinstance(value, (int, np.integer)) else str(value).replace("_", " ")


def _interval_reach(
    values: pd.Series, low: pd.Series, high: pd.Series
) -> tuple[pd.Series, pd.Series]:
    """How far an interval reaches below and above its value, as matplotlib's error bars want it."""
    below, above = (values - low).clip(lower=0), (high - values).clip(lower=0)
    return below.fillna(0), above.fillna(0)
