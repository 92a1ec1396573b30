"""What figures share: scales, roles, intervals, strips of points, labels and legends.

Owns how a thing that several figures show is drawn, so that it looks the same in all of them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from .appearance import KINDS, ROLES, SMALL_POINTS, Role

OTHER = Role("#CCCCCC", "|", "-", "")
MOST_POINTS = 2000  # runs from which a drawing is stored as pixels
MANY = 3000  # marks from which a drawing is stored as pixels
CYCLE = [*ROLES.values(), *KINDS.values()]
_LINES = tuple(ROLES.values())
_SPREAD = 20.0  # a panel whose values span more is logarithmic
_LABEL_POINTS = 8.5  # least distance of two labels at the end of lines


def kind_role(name: object) -> Role:
    return KINDS.get(str(name), OTHER)


def legend_of_kinds(figure: Any, kinds: pd.Series, bars: bool) -> None:
    from matplotlib.patches import Patch

    present = [kind for kind in KINDS if kind in set(map(str, kinds))]
    handles = [
        Patch(
            facecolor=KINDS[kind].colour,
            hatch=KINDS[kind].hatch if bars else None,
            edgecolor="white",
            label=kind,
        )
        for kind in present
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=5)


def log_axis(axes: Any, which: str) -> None:
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


def value_text(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "co-scheduled" if value else "independent"
    return f"{value:,}" if isinstance(value, (int, np.integer)) else str(value).replace("_", " ")


def endless_roles() -> Iterator[Role]:
    """Roles without end: six colours, after them the same with other markers."""
    yield from _LINES
    for marker in "PX*dh<>":
        yield from (Role(role.colour, marker, role.dash, role.hatch) for role in _LINES)


def label_ends(figure: Any, axes: Any, names: list[str], ends: list[tuple[float, str]]) -> None:
    """Names next to the ends of their lines, moved apart so that all can be read, each joined to
    its end.
    """
    figure.draw_without_rendering()
    box = axes.get_window_extent()
    height, last = box.height * 72 / figure.dpi, max(line.get_xdata()[-1] for line in axes.lines)
    places = np.array(
        [
            (axes.transData.transform((last, value))[1] - box.y0) * 72 / figure.dpi
            for value, _ in ends
        ]
    )
    for number, place in apart(places, _LABEL_POINTS, height).items():
        value, colour = ends[number]
        axes.annotate(
            names[number],
            (last, value),
            xytext=(1.05, place / height),
            textcoords="axes fraction",
            color=colour,
            va="center",
            fontsize=SMALL_POINTS,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.4,
                "shrinkA": 0,
                "shrinkB": 3,
                "relpos": (0, 0.5),
            },
        )


def apart(places: np.ndarray, distance: float, height: float) -> dict[int, float]:
    """Places at least so far from each other, in the old order, _cluster_places the height if they
    fit.
    """
    _place_order = np.argsort(places, kind="stable")
    steps = distance * np.arange(len(_place_order))
    risen = np.maximum.accumulate(places[_place_order] - steps) + steps
    moved = np.minimum(risen, max(height, steps[-1]) - (steps[-1] - steps))
    return dict(zip(_place_order.tolist(), moved.tolist()))


def plain_numbers(axis: Any) -> None:
    """Numbers as one writes them, also on a logarithmic axis; with few decades the steps between
    are labelled too.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if high < 200 * max(low, 1e-12) else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def log_if_spread(axes: Any, values: np.ndarray) -> None:
    """Logarithmic where the values span so much that the small ones could not be read."""
    values = values[np.isfinite(values) & (values > 0)]
    if values.size and values.max() > _SPREAD * values.min():
        axes.set_yscale("log")
        plain_numbers(axes.yaxis)
        axes.minorticks_off()


def draw_box(axes: Any, row: float, values: np.ndarray) -> None:
    box = axes.boxplot(
        values,
        positions=[row],
        widths=0.2,
        orientation="horizontal",
        whis=(5, 95),
        showfliers=False,
        manage_ticks=False,
        medianprops={"color": "black", "linewidth": 1.2},
    )
    for part in (*box["boxes"], *box["whiskers"], *box["caps"]):
        part.set(color="#555555", linewidth=0.7)


def jitter(count: int, reach: float) -> np.ndarray:
    """Offsets that spread points evenly and are the same every time (golden-ratio sequence)."""
    return (2 * ((np.arange(count) * 0.6180339887498949) % 1) - 1) * reach


def point_size(count: int) -> float:
    return float(np.clip(1500 / count, 3, 12))


def interval_reach(
    values: pd.Series, low: pd.Series, high: pd.Series
) -> tuple[pd.Series, pd.Series]:
    """How far an interval reaches below and above its value, as matplotlib's error bars want it."""
    below, above = (values - low).clip(lower=0), (high - values).clip(lower=0)
    return below.fillna(0), above.fillna(0)


def legend_above(figure: Any, handles: list, columns: int) -> None:
    """A legend above the drawing, with fewer columns where it would be wider than the figure."""
    for number in range(columns, 0, -1):
        legend = figure.legend(handles=handles, loc="outside upper left", ncols=number)
        figure.draw_without_rendering()
        if number == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()
