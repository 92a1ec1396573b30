"""Figures of distributions: each run as a point beneath whatever summarises it.

Owns the figures of run times, of cells side by side and of performance classes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..attribution import Classes, Cutoff
from ..errors import InputError
from ..outcomes import outcome_of
from ..statistics import bootstrap_interval
from ._axes import MOST_POINTS, draw_box, jitter, legend_above, point_size
from ._blank import finished_rows, or_blank
from .appearance import COLUMN_IN, PAGE_IN, ROLES, Role, roles_of, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BOUND: dict[str, Any] = {"color": "black", "linestyle": (0, (3, 2)), "linewidth": 0.8}
# from best to worst; a class in the middle is neither fast nor slow
_MIDDLE = (
    Role("#999999", "s", "-", ""),
    Role("#CC79A7", "D", "-", ""),
    Role("#009E73", "v", "-", ""),
)


@or_blank
def figure_distribution(
    runs: pd.DataFrame,
    cutoff: Cutoff | float | None = None,
    by: str | None = None,
    outcome: str | None = None,
    width_in: float | None = None,
) -> "Figure":
    """Every run beneath the empirical distribution, with the cutoff.

    Parameters
    ----------
    runs
        Runs table; only rows of status "ok" are drawn.
    cutoff
        A Cutoff or a value; runs above it are drawn as slow if `by` is None.
    by
        Column that names the groups; None = all runs together.
    outcome
        Column to draw; None: what the program is judged by.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure, a column wide (a page wide for more than four groups).
    """
    import matplotlib.pyplot as plt

    judged = outcome_of(runs, outcome)
    outcome = judged.name
    runs, value = finished_rows(runs, (outcome, by)), _cutoff_value(cutoff)
    groups = _groups(runs, by, outcome)
    width_in = width_in or (COLUMN_IN if len(groups) <= 4 else PAGE_IN)
    height_in = 1.7 + 0.32 * len(groups)
    with style():
        figure, (upper, lower) = plt.subplots(
            2,
            1,
            figsize=(width_in, height_in + 0.5),
            sharex=True,
            height_ratios=[1.4, 0.3 + 0.32 * len(groups)],
        )
        _draw_ecdf(upper, groups, value)
        _draw_strips(lower, groups, value, coloured_by_cutoff=by is None)
        for axes in (upper, lower):
            _draw_cutoff(axes, value)
        upper.tick_params(labelbottom=False)
        lower.set_xlabel(judged.label)
        _cutoff_legend(upper, value, groups, by)
    return figure


def _cutoff_value(cutoff: Cutoff | float | None) -> float | None:
    return cutoff.value if isinstance(cutoff, Cutoff) else cutoff


def _groups(runs: pd.DataFrame, by: str | None, outcome: str) -> dict[str, np.ndarray]:
    if by is None:
        return {"": runs[outcome].to_numpy(float)}
    return {
        str(name): group[outcome].to_numpy(float)
        for name, group in runs.groupby(by, sort=False, observed=True)
    }


def _draw_ecdf(axes: Any, groups: dict[str, np.ndarray], cutoff: float | None) -> None:
    import seaborn

    roles = roles_of(groups) if len(groups) > 1 else dict.fromkeys(groups, ROLES["baseline"])
    for name, values in groups.items():
        label = f"{name} (n = {values.size})" if name else f"n = {values.size}"
        seaborn.ecdfplot(
            x=values, ax=axes, color=roles[name].colour, linestyle=roles[name].dash, label=label
        )
    axes.set_ylabel("share of runs\nthat took at most")
    axes.set_ylim(0, 1.03)


def _draw_strips(
    axes, groups: dict[str, np.ndarray], cutoff: float | None, coloured_by_cutoff: bool
) -> None:
    """A row a group: box of the quartiles, whiskers from the 5th to the 95th percentile, each run
    as a point below.
    """
    roles = roles_of(groups) if len(groups) > 1 else dict.fromkeys(groups, ROLES["baseline"])
    for row, (name, values) in enumerate(groups.items()):
        draw_box(axes, row - 0.24, values)
        heights = row + 0.16 + jitter(values.size, 0.17)
        for role, chosen in _coloured(roles[name], values, cutoff if coloured_by_cutoff else None):
            _draw_runs(axes, values[chosen], heights[chosen], role, values.size)
    axes.set_yticks(range(len(groups)), list(groups))
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)


def _draw_runs(
    axes: Any,
    x: np.ndarray,
    y: np.ndarray,
    role: Role,
    count: int,
    alpha: float = 0.75,
    **options: Any,
) -> None:
    """A point a run; the more runs there are in all (`count`), the smaller."""
    axes.scatter(
        x,
        y,
        s=point_size(count),
        marker=role.marker,
        facecolor=role.colour,
        edgecolor="none",
        alpha=alpha,
        rasterized=count > MOST_POINTS,
        **options,
    )


def _coloured(
    role: Role, values: np.ndarray, cutoff: float | None
) -> list[tuple[Role, np.ndarray]]:
    if cutoff is None:
        return [(role, np.ones(values.size, bool))]
    return [(ROLES["fast"], values <= cutoff), (ROLES["slow"], values > cutoff)]


def _draw_cutoff(axes: Any, cutoff: float | None) -> None:
    if cutoff is not None:
        axes.axvline(cutoff, color="black", linestyle=(0, (3, 2)), linewidth=0.9)


def _cutoff_legend(
    axes, cutoff: float | None, groups: dict[str, np.ndarray], by: str | None
) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if cutoff is not None and by is None:
        values = np.concatenate(list(groups.values()))
        for name, count in (
            ("fast", int((values <= cutoff).sum())),
            ("slow", int((values > cutoff).sum())),
        ):
            handles.append(
                axes.scatter([], [], marker=ROLES[name].marker, color=ROLES[name].colour, s=12)
            )
            labels.append(f"{name} (n = {count})")
    if cutoff is not None:
        handles.append(axes.plot([], [], color="black", linestyle=(0, (3, 2)), linewidth=0.9)[0])
        labels.append(f"cutoff {cutoff:.4g}")
    axes.figure.legend(
        handles, labels, loc="outside upper left", ncols=2 if axes.figure.get_figwidth() < 5 else 4
    )


@or_blank
def figure_compare(
    runs: pd.DataFrame,
    by: str = "cell",
    outcome: str | None = None,
    anomaly_seconds: float | None = None,
    width_in: float | None = None,
) -> "Figure":
    """Run times of several cells: each run as a point, the mean with its 95 % interval, the
    anomaly as a line.

    Parameters
    ----------
    runs
        Runs table; only rows of status "ok" are drawn.
    by
        Column that names the cells (baseline, traced, injected, …).
    outcome
        Column to draw; None: what the program is judged by.
    anomaly_seconds
        Run time of the worst run that is replayed.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure. Intervals are percentile bootstraps of the mean.
    """
    import matplotlib.pyplot as plt

    judged = outcome_of(runs, outcome)
    groups = _groups(finished_rows(runs, (judged.name, by)), by, judged.name)
    width_in = width_in or (COLUMN_IN if len(groups) <= 4 else PAGE_IN)
    roles = roles_of(groups)
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 2.5))
        for place, (name, values) in enumerate(groups.items()):
            _draw_cell(axes, place, values, roles[name])
        if anomaly_seconds is not None:
            axes.axhline(
                anomaly_seconds,
                color="black",
                linestyle=(0, (3, 2)),
                linewidth=0.9,
                label=f"anomaly {anomaly_seconds:.4g} s",
            )
        axes.plot([], [], color="black", marker="_", label="mean, 95 % interval")
        axes.set_xticks(
            range(len(groups)), [f"{name}\nn = {values.size}" for name, values in groups.items()]
        )
        axes.set_xlim(-0.5, len(groups) - 0.4)
        axes.set_ylabel(judged.label)
        axes.grid(axis="x", visible=False)
        figure.legend(loc="outside upper left", ncols=2)
    return figure


def _draw_cell(axes: Any, place: int, values: np.ndarray, role: Role) -> None:
    _draw_runs(axes, place - 0.08 + jitter(values.size, 0.2), values, role, values.size, alpha=0.6)
    mean = values.mean()
    low, high = bootstrap_interval(values, "mean") if values.size > 1 else (mean, mean)
    axes.errorbar(
        place + 0.26,
        mean,
        [[max(mean - low, 0)], [max(high - mean, 0)]],
        color="black",
        marker="_",
        markersize=7,
        capsize=2.5,
        linewidth=1,
    )


def draw_marked(
    axes: Any,
    values: np.ndarray,
    classes: dict[str, np.ndarray],
    roles: dict[str, Role] | None = None,
) -> None:
    """A box of the quartiles with whiskers from the 5th to the 95th percentile, and each run
    below it: in the colour and with the marker of its class.
    """
    draw_box(axes, -0.24, values)
    height = 0.16 + jitter(values.size, 0.17)
    for name, chosen in classes.items():
        role, label = (roles or ROLES)[name], f"{name} (n = {int(chosen.sum())})"
        _draw_runs(axes, values[chosen], height[chosen], role, values.size, label=label)
    axes.set_yticks([])
    axes.set_ylim(0.5, -0.5)


def roles_of_classes(classes: Classes) -> dict[str, Role]:
    """The first class as fast, the marked one as slow (of three or more: the last), the others
    between.
    """
    names = list(classes.labels.cat.categories)
    marked = set(classes.labels[classes.marked])
    slow = next((name for name in reversed(names) if name in marked), None)
    rest = [name for name in names if name != slow]
    roles = dict(zip(rest, (ROLES["fast"], *_MIDDLE, *_MIDDLE)))
    return roles | ({slow: ROLES["slow"]} if slow else {})


@or_blank
def figure_classes(
    values: pd.Series, classes: Classes, label: str = "run time (s)", width_in: float = COLUMN_IN
) -> "Figure":
    """The distribution of the runs, coloured by performance class, with the bounds between classes;
    below it the runs in time order.

    Parameters
    ----------
    values
        Outcome of the runs that were classified, in the order in which they were measured.
    classes
        Of `classify(values, …)`.
    label
        Of the outcome, with its unit.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure.

    Raises
    ------
    InputError
        Another number of values than of labels.
    """
    import matplotlib.pyplot as plt

    numbers = np.asarray(values, dtype=float)
    if numbers.size != len(classes.labels):
        raise InputError(
            f"{numbers.size} values, but {len(classes.labels)} labels",
            fix="draw the values that were classified",
        )
    chosen = {name: (classes.labels == name).to_numpy() for name in classes.labels.cat.categories}
    roles = roles_of_classes(classes)
    with style():
        figure, panels = plt.subplots(
            3, 1, figsize=(width_in, 3.4), sharex=True, height_ratios=[1.1, 0.8, 1.5]
        )
        upper, middle, lower = panels
        _draw_histogram(upper, numbers, chosen, roles)
        draw_marked(middle, numbers, chosen, roles)
        _draw_in_order(lower, numbers, chosen, roles)
        for axes in panels:
            for bound in classes.bounds:
                axes.axvline(bound, **_BOUND)
        lower.set(xlabel=label, ylabel="run, in order")
        lower.invert_yaxis()
        handles = [_class_handle(name, rows, roles[name]) for name, rows in chosen.items()]
        if classes.bounds:
            handles.append(_bound_handle(classes.bounds))
        legend_above(figure, handles, columns=2)
    return figure


def _draw_in_order(
    axes: Any, values: np.ndarray, chosen: dict[str, np.ndarray], roles: dict[str, Role]
) -> None:
    for name, rows in chosen.items():
        axes.scatter(
            values[rows],
            np.flatnonzero(rows) + 1,
            s=4,
            marker=roles[name].marker,
            color=roles[name].colour,
            edgecolor="none",
        )


def _class_handle(name: str, rows: np.ndarray, role: Role) -> Any:
    from matplotlib.lines import Line2D

    label = f"{name} (n = {int(rows.sum())})"
    return Line2D(
        [], [], linestyle="", marker=role.marker, color=role.colour, markersize=4, label=label
    )


def _bound_handle(bounds: Sequence[float]) -> Any:
    from matplotlib.lines import Line2D

    numbers = ", ".join(f"{bound:.4g}" for bound in bounds[:3])
    return Line2D([], [], label=f"bound{'s' * (len(bounds) > 1)} {numbers}", **_BOUND)


def _draw_histogram(
    axes, values: np.ndarray, chosen: dict[str, np.ndarray], roles: dict[str, Role]
) -> None:
    edges = np.histogram_bin_edges(values, bins=int(np.clip(2 * np.sqrt(values.size), 10, 60)))
    axes.hist(
        [values[rows] for rows in chosen.values()],
        bins=edges,
        stacked=True,
        color=[roles[name].colour for name in chosen],
        edgecolor="white",
        linewidth=0.3,
    )
    axes.set_ylabel("runs")
    axes.tick_params(labelbottom=False)
