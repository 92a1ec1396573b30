"""The one drawing of marks with intervals, a line of them a case: published numbers hollow."""

import textwrap
from collections.abc import Collection, Iterable, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..palette import BLACK, MARKED, PAGE_IN, STYLE
from ._blank import blank_figure

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
}


def figure_marks(
    marks: pd.DataFrame,
    label: str,
    log: bool = True,
    looks: Mapping[str, tuple[str, str]] | None = None,
    mark: float | None = None,
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
    mark
        A thin line at this value.

    Returns
    -------
    matplotlib Figure.
    """
    import matplotlib.pyplot as plt
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
    high = 0.7 + len(cases) * max(_CASE_IN + _MARK_IN * in_a_line, _LINE_IN * lines)
    ends = marks.melt(["panel", "case", "whose"], ["value", "low", "high"], value_name=label)
    panels = marks["panel"].unique()
    across = min(len(panels), _ACROSS)
    down = -(-len(panels) // across)
    order = {"order": cases, "hue_order": names, "palette": list(colours), "markers": list(markers)}
    with plt.style.context(STYLE):
        figure, grid = plt.subplots(
            down, across, figsize=(PAGE_IN, down * high), sharex=True, sharey=True, squeeze=False
        )
        for place, (axes, panel) in enumerate(zip_longest(grid.flat, panels)):
            if panel is None:
                axes.remove()
                continue
            part = ends[ends["panel"] == panel].dropna()
            what = {"x": label, "y": "case", "hue": "whose", "ax": axes}
            seaborn.pointplot(
                part, **what, **order, **_LOOK, dodge=dodge, legend=axes is grid[0, 0]
            )
            is_lowest = place + across >= len(panels)
            axes.set(title=panel, ylabel="", xlabel=label if is_lowest else "")
            axes.tick_params(labelbottom=is_lowest)
            _hollow(axes.lines, names)
        if across == 1 and log:
            _log_axis(grid[0, 0])
        if mark is not None:
            grid[0, 0].axvline(mark, color="black", linewidth=0.6)
        if legend := grid[0, 0].get_legend():
            handles = legend.legend_handles
            _hollow(handles, names)
            legend.remove()
            figure.legend(handles=handles, loc="outside upper right", ncols=4)
    return figure


def _hollow(lines: Iterable[Any], names: Collection[str]) -> None:
    """White faces of the published marks, which are black."""
    for line in lines:
        if "published" in names and line.get_color() == BLACK:
            line.set_markerfacecolor("white")


def _log_axis(axes: Any) -> None:
    """Logarithmic, unless what is drawn spans too little for it."""
    low, high = axes.dataLim.intervalx
    if low <= 0 or high / low < 5:
        return
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in "25" else "")
