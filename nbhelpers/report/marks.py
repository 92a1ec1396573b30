"""Published numbers and ours in one figure: theirs hollow, ours full, each with its interval."""

import textwrap
from typing import TYPE_CHECKING

import pandas as pd

from ..palette import BLACK, MARKED
from .appearance import PAGE_IN, POINTS, style
from .ratios import _log_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ACROSS = 3  # axes
_LETTERS = 48  # of a line that names a case
_CASE_IN, _MARK_IN, _LINE_IN = 0.08, 0.1, 0.14


def figure_marks(marks: pd.DataFrame, label: str) -> "Figure":
    """Draw published numbers as hollow marks and ours as full ones, with their intervals.

    Parameters
    ----------
    marks
        A row a mark: `panel` (axes), `case` (line), `whose` (that of the first row is hollow),
        `value`, `low` and `high` (missing: no interval).
    label
        Label of the axis.

    Returns
    -------
    matplotlib Figure; one axes alone are logarithmic where the values span enough.
    """
    import matplotlib.pyplot as plt
    import seaborn
    from matplotlib.lines import Line2D

    marks = marks.assign(case=[textwrap.fill(case, _LETTERS) for case in marks["case"]])
    cases, names = marks["case"].unique().tolist(), marks["whose"].unique().tolist()
    looks = [(BLACK, "D"), *MARKED][: len(names)]
    # seaborn draws the first of three values, and an interval from the least to the greatest
    ends = marks.melt(["panel", "case", "whose"], ["value", "low", "high"], value_name=label)
    panels = list(ends.dropna().groupby("panel", sort=False))
    across = min(len(panels), _ACROSS)
    down = -(-len(panels) // across)
    in_a_line = int(marks.groupby(["panel", "case"]).size().max())
    lines = 1 + max(case.count("\n") for case in cases)
    case_in = max(_CASE_IN + _MARK_IN * in_a_line, _LINE_IN * lines)
    drawn = {
        "order": cases,
        "hue_order": names,
        "palette": [colour for colour, _ in looks],
        "markers": [marker for _, marker in looks],
        "dodge": 0.5 if in_a_line > 1 else False,
        "estimator": lambda values: values.iloc[0],
        "errorbar": lambda values: (values.min(), values.max()),
        "err_kws": {"linewidth": 0.8, "zorder": 1},
        "markersize": 4,
        "markeredgewidth": 0.8,
        "linestyle": "none",
        "legend": False,
    }
    with style():
        figure, grid = plt.subplots(
            down,
            across,
            sharex=True,
            sharey=True,
            squeeze=False,
            figsize=(PAGE_IN, 0.7 + down * (0.3 + case_in * len(cases))),
        )
        for axes, (panel, part) in zip(grid.flat, panels):
            seaborn.pointplot(part, x=label, y="case", hue="whose", ax=axes, **drawn)
            axes.set(title=panel, xlabel="", ylabel="")
            for line in axes.lines:
                if line.get_color() == BLACK:
                    line.set_markerfacecolor("white")
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        if len(panels) > 1:
            figure.supxlabel(label, fontsize=POINTS)
        else:
            grid[0, 0].set_xlabel(label)
            _log_axis(grid[0, 0])
        handles = [
            Line2D([], [], color=colour, marker=marker, linestyle="none", label=name)
            for name, (colour, marker) in zip(names, looks)
        ]
        handles[0].set_markerfacecolor("white")
        figure.legend(handles=handles, loc="outside upper right", ncols=4)
    return figure
