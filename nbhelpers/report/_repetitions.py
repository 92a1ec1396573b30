"""How runs with many repetitions are drawn: strips, extremes, coefficients of variation, and panels
that say why they are empty.

Owns nothing that is saved; the figures are in `_runtime.py`.
"""

import textwrap

import numpy as np
import pandas as pd

from ..workloads import CONSTRUCTS
from .appearance import ROLES, Role

KERNELS = ("copy", "mul", "add", "triad", "dot")
SCHEDULES = {"static": "st", "dynamic": "dy", "guided": "gd"}
_LINES = tuple(ROLES.values())
_WIDE = 20.0  # a panel whose values span more is logarithmic
_LABEL_POINTS = 8.5  # least distance of two labels at the end of lines
_MANY = 3000  # points from which a drawing is stored as pixels


def roles():
    """Roles without end: six colours, after them the same with other markers."""
    yield from _LINES
    for marker in "PX*dh<>":
        yield from (Role(role.colour, marker, role.dash, role.hatch) for role in _LINES)


def label_ends(figure, axes, names: list[str], ends: list[tuple[float, str]]) -> None:
    """Names beside the ends of their lines, moved apart so that all can be read, each joined to its
    end.
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
            fontsize="small",
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
    """Places at least so far from each other, in the old order, within the height if they fit."""
    order = np.argsort(places, kind="stable")
    steps = distance * np.arange(len(order))
    risen = np.maximum.accumulate(places[order] - steps) + steps
    moved = np.minimum(risen, max(height, steps[-1]) - (steps[-1] - steps))
    return dict(zip(order.tolist(), moved.tolist()))


def plain(axis) -> None:
    """Numbers as one writes them, also on a logarithmic axis; with few decades the steps between
    are labelled too.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if high < 200 * max(low, 1e-12) else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def suite_of(benchmark: str) -> str:
    """The program that a benchmark is part of."""
    if benchmark in KERNELS:
        return "BabelStream"
    return "schedbench" if benchmark.split("_")[0] in SCHEDULES else "syncbench"


def in_order(benchmarks: pd.Series) -> list[str]:
    """Those that are there: kernels and constructs in the order of their suites, others as they
    come.
    """
    present = dict.fromkeys(benchmarks)
    known = [name for name in (*KERNELS, *CONSTRUCTS) if name in present]
    return known + [name for name in present if name not in known]


def title(own: pd.DataFrame, suite: str) -> str:
    names = own["benchmark"].unique()
    return f"{suite} ({names[0]})" if len(names) == 1 else suite


def draw_extremes(axes, own: pd.DataFrame, by: str) -> None:
    """Clusters of `by`; within each the benchmarks, within these the runs."""
    benchmarks = in_order(own["benchmark"])
    groups, parts = (
        (benchmarks, 1) if by == "benchmark" else (list(dict.fromkeys(own[by])), len(benchmarks))
    )
    for (benchmark, role), part in zip(zip(benchmarks, roles()), range(len(benchmarks))):
        for place, group in enumerate(groups):
            rows = own[(own["benchmark"] == benchmark) & (own[by] == group)].sort_values("round")
            at = within(place, part % parts, parts, len(rows))
            axes.vlines(
                at, rows["min_normalised"], rows["max_normalised"], color=role.colour, linewidth=0.8
            )
            for end in ("min_normalised", "max_normalised"):
                axes.plot(
                    at,
                    rows[end],
                    linestyle="none",
                    marker=role.marker,
                    markersize=2.4,
                    markeredgewidth=0,
                    color=role.colour,
                    label=(
                        benchmark
                        if place == 0
                        and end == "min_normalised"
                        and by != "benchmark"
                        and len(benchmarks) > 1
                        else None
                    ),
                )
    axes.axhline(1, color="black", linewidth=0.6)
    axes.set_xticks(range(len(groups)), groups, rotation=45 if len(groups) > 7 else 0)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.grid(axis="x", visible=False)
    wide(axes, own[["min_normalised", "max_normalised"]].to_numpy())
    if axes.get_legend_handles_labels()[1]:
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.24),
            ncols=5,
            handletextpad=0.1,
            columnspacing=0.8,
        )


def within(place: int, part: int, parts: int, count: int) -> np.ndarray:
    """x of the runs of a part of a cluster, of which all together fill 0.8."""
    width = 0.8 / parts
    inner = (np.arange(count) - (count - 1) / 2) * 0.8 * width / max(count, 1)
    return place + (part - (parts - 1) / 2) * width + inner


def wide(axes, values: np.ndarray) -> None:
    """Logarithmic where the values span so much that the small ones could not be read."""
    values = values[np.isfinite(values) & (values > 0)]
    if values.size and values.max() > _WIDE * values.min():
        axes.set_yscale("log")
        plain(axes.yaxis)
        axes.minorticks_off()


def draw_repetitions(axes, own: pd.DataFrame, title: str, seed: int = 0) -> None:
    """A strip a run, the run's mean as a dash."""
    role, number = ROLES["baseline"], own["run"].rank(method="dense")
    jitter = np.random.default_rng(seed).uniform(-0.28, 0.28, len(own))
    axes.scatter(
        number + jitter,
        own["value_us"],
        s=2.5,
        alpha=0.45,
        color=role.colour,
        linewidth=0,
        rasterized=len(own) > _MANY,
    )
    means = own["value_us"].groupby(number).mean()
    axes.plot(
        means.index,
        means,
        linestyle="none",
        marker="_",
        markersize=8,
        color="black",
        markeredgewidth=1.3,
    )
    axes.set(title=title, ylabel="time (µs)", xlabel="run")
    axes.set_xticks(means.index, [f"{index:.0f}" for index in means.index])
    axes.grid(axis="x", visible=False)
    wide(axes, own["value_us"].to_numpy())


def draw_cv(axes, runs: pd.DataFrame, title: str) -> None:
    """A point a run above each construct, the median as a dash."""
    names = in_order(runs["benchmark"])
    at, role = runs["benchmark"].map(names.index).to_numpy(float), ROLES["baseline"]
    jitter = np.random.default_rng(0).uniform(-0.2, 0.2, len(runs))
    axes.scatter(at + jitter, 100 * runs["cv"], s=7, alpha=0.6, color=role.colour, linewidth=0)
    middle = runs.groupby("benchmark")["cv"].median().reindex(names)
    axes.plot(
        range(len(names)),
        100 * middle,
        linestyle="none",
        marker="_",
        markersize=9,
        color="black",
        markeredgewidth=1.3,
    )
    axes.set(title=title, ylabel="CV of a run (%)")
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor")
    axes.grid(axis="x", visible=False)
    wide(axes, 100 * runs["cv"].to_numpy())


def say(row, config: str, missing: str) -> None:
    """Panels that the machine can't fill say why."""
    for number, axes in enumerate(row):
        axes.set_title(config)
        axes.text(
            0.5,
            0.5,
            textwrap.fill(missing, 26) if number == 1 or len(row) < 3 else "",
            transform=axes.transAxes,
            ha="center",
            va="center",
            color="#555555",
        )
        axes.tick_params(which="both", left=False, bottom=False, labelleft=False, labelbottom=False)
        axes.set_facecolor("#F5F5F5")
        axes.grid(visible=False)


def side(reserved: bool) -> Role:
    return ROLES["baseline" if reserved else "injected"]


def draw_strips(axes, own: pd.DataFrame, label: str, ylabel: str) -> None:
    places = sorted(own["place"].unique(), key=order)
    middle = own.groupby(["place", "config"])["value_us"].transform("median")
    own = own.assign(value=own["value_us"] / middle)
    top = own["value"].max()
    for (place, reserved), rows in own.groupby(["place", "reserved"]):
        role, at = side(reserved), places.index(place) + (0.2 if reserved else -0.2)
        jitter = np.random.default_rng(0).uniform(-0.15, 0.15, len(rows))
        axes.scatter(
            at + jitter,
            rows["value"],
            s=3,
            marker=role.marker,
            color=role.colour,
            alpha=0.4,
            linewidth=0,
            rasterized=len(rows) > _MANY,
        )
        axes.text(
            at,
            1.0,
            f"{100 * rows['value'].std() / rows['value'].mean():.0f}",
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize="x-small",
            color=role.colour,
        )
    axes.axhline(1, color="black", linewidth=0.6)
    axes.set_xticks(range(len(places)), places)
    axes.set(xlabel=label, ylabel=ylabel, xlim=(-0.6, len(places) - 0.4))
    axes.grid(axis="x", visible=False)
    if np.isfinite(top):
        wide(axes, own["value"].to_numpy())


def order(place: object) -> tuple:
    schedule, _, chunk = str(place).partition(":")
    return (list(SCHEDULES.values()).index(schedule), int(chunk)) if chunk else (0, int(schedule))
