"""The one drawing of marks with intervals, a line of them a case: published numbers hollow."""

import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..palette import BLACK, MARKED
from ._blank import blank_figure
from .appearance import PAGE_IN, POINTS, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ACROSS = 3  # axes
_LETTERS = 48  # of a line that names a case
_CASE_IN, _MARK_IN, _LINE_IN = 0.08, 0.1, 0.14
_LOOK: dict[str, Any] = {  # the first of three values; from the least to the greatest
    "estimator": lambda values: values.iloc[0],
    "errorbar": lambda values: (values.min(), values.max()),
    "err_kws": {"linewidth": 0.8, "zorder": 1},
    "markersize": 4,
    "markeredgewidth": 0.8,
    "linestyle": "none",
    "legend": False,
}


def figure_marks(
    marks: pd.DataFrame,
    label: str,
    log: bool = True,
    looks: Mapping[str, tuple[str, str]] | None = None,
) -> "Figure":
    """Draw marks with their intervals; those that are "published" are hollow.

    Parameters
    ----------
    marks
        A row a mark: `panel` (axes), `case` (line), `whose` (colour and marker), `value`, `low`
        and `high` (missing: no interval).
    label
        Label of the axis.
    log
        Whether one axes alone are logarithmic, where the values span enough.
    looks
        Colours and markers of `whose`; others are the palette's, in its order.

    Returns
    -------
    matplotlib Figure.
    """
    import seaborn

    if marks["value"].isna().all():
        return blank_figure(marks)
    marks = marks.assign(case=[textwrap.fill(case, _LETTERS) for case in marks["case"]])
    cases, names = marks["case"].unique().tolist(), marks["whose"].unique().tolist()
    known, free = {"published": (BLACK, "D")} | dict(looks or {}), iter(MARKED)
    colours, markers = zip(*(known.get(name) or next(free) for name in names))
    in_a_line = int(marks.groupby(["panel", "case"]).size().max())
    dodge = min(0.6, 0.18 * in_a_line) if in_a_line > 1 else False
    lines = 1 + max(case.count("\n") for case in cases)
    high = len(cases) * max(_CASE_IN + _MARK_IN * in_a_line, _LINE_IN * lines)
    order = {"order": cases, "hue_order": names, "palette": list(colours), "markers": list(markers)}
    ends = marks.melt(["panel", "case", "whose"], ["value", "low", "high"], value_name=label)
    panels = list(ends.dropna().groupby("panel", sort=False))
    with style():
        figure, grid = _grid(len(panels), high)
        for axes, (panel, part) in zip(grid, panels):
            what = {"x": label, "y": "case", "hue": "whose", "dodge": dodge}
            seaborn.pointplot(part, ax=axes, **what, **order, **_LOOK)
            axes.set(title=panel, xlabel="" if len(panels) > 1 else label, ylabel="")
            _hollow(axes.lines, names)
        if len(panels) > 1:
            figure.supxlabel(label, fontsize=POINTS)
        elif log:
            _log_axis(grid[0])
        _add_legend(figure, names, colours, markers)
    return figure


def _grid(count: int, high: float) -> tuple["Figure", list[Any]]:
    """A figure of so many axes, each of a height in inches."""
    import matplotlib.pyplot as plt

    across = min(count, _ACROSS)
    down = -(-count // across)
    size = (PAGE_IN, 0.7 + down * (0.3 + high))
    options: dict[str, Any] = {"sharex": True, "sharey": True, "squeeze": False, "figsize": size}
    figure, grid = plt.subplots(down, across, **options)
    for axes in grid.flat[count:]:
        axes.set_visible(False)
    return figure, list(grid.flat[:count])


def _add_legend(
    figure: "Figure", names: Sequence[str], colours: Sequence[str], markers: Sequence[str]
) -> None:
    """The names above the axes, where there are several."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=name)
        for name, colour, marker in zip(names, colours, markers)
    ]
    _hollow(handles, names)
    if len(names) > 1:
        figure.legend(handles=handles, loc="outside upper right", ncols=4)


def _hollow(lines: Iterable[Any], names: Collection[str]) -> None:
    """White faces of the published marks, which are black."""
    for line in lines:
        if "published" in names and line.get_color() == BLACK:
            line.set_markerfacecolor("white")


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
