"""Figures of a quantity over a parameter: threads, ranks, runs so far, quantiles, a factor."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..outcomes import outcome_of
from ..statistics import Comparison, quantile_effect
from ._axes import CYCLE, endless_roles, label_ends, log_axis, plain_numbers, value_text
from ._blank import NothingToDraw, finished_rows, need_columns, need_repetitions, or_blank
from .appearance import COLUMN_IN, PAGE_IN, ROLES, SMALL_POINTS, Role, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = {0.5: "-", 0.1: (0, (4, 1.5)), 0.9: (0, (4, 1.5)), 0.25: (0, (1, 1)), 0.75: (0, (1, 1))}


@or_blank
def figure_curves(
    table: pd.DataFrame,
    x: str,
    y: str = "median",
    by: str | Sequence[str] = "noise",
    *,
    panels: str | None = None,
    labels: tuple[str, str] | None = None,
    log: str = "xy",
    mark: float | None = 1.0,
    width_in: float = PAGE_IN,
) -> "Figure":
    """Lines over x, one for each value of `by`: slow-down over ranks, time over a parameter.

    Parameters
    ----------
    table
        `x`, `y`, `by`; with `low` and `high` (of `y`) an interval is drawn at each point, with
        `least` and `most` a faint band behind it.
    x, y
        Columns of the two axes.
    by
        Column, or columns, of which each value is a line.
    panels
        A column; a panel for each of its values.
    labels
        Of the two axes.
    log
        Which axes are logarithmic: "", "x", "y", "xy".
    mark
        A thin line at this height; 1 is "not slowed down".
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure: a panel for each value of `panels`, with a line for each value of `by`.

    Raises
    ------
    InputError
        A column that the table lacks.
    """
    import matplotlib.pyplot as plt

    keys = [by] if isinstance(by, str) else list(by)
    need_columns(table, [x, y, *keys, *([panels] if panels else [])])
    groups = list(table[keys].drop_duplicates().itertuples(index=False, name=None))
    names = table[panels].drop_duplicates().tolist() if panels else [None]
    x_label, y_label = labels or (x, y)
    with style():
        figure, (row,) = plt.subplots(
            1, len(names), figsize=(width_in, 2.5), sharex=True, sharey=True, squeeze=False
        )
        for axes, name in zip(row, names):
            shown = table if name is None else table[table[panels] == name]
            for key, curve in shown.groupby(keys, sort=False):
                role, label = _role(groups, key), " · ".join(value_text(part) for part in key)
                _curve(axes, curve.sort_values(x), x, y, role, label)
            axes.set_title("" if name is None else f"{panels}: {value_text(name)}", loc="left")
            _scales(axes, table[x], log, mark)
            axes.set_xlabel(x_label)
        row[0].set_ylabel(y_label)
        if len(groups) > 1:
            _legend_of_curves(figure, row)
    return figure


def _legend_of_curves(figure: Any, row: Sequence[Any]) -> None:
    """Each line once, whichever panels it is in."""
    handles = {
        label: handle for axes in row for handle, label in zip(*axes.get_legend_handles_labels())
    }
    place: dict[str, Any] = {"loc": "outside right upper"}
    if figure.get_figwidth() <= COLUMN_IN:
        place = {"loc": "outside upper left", "ncols": 3}
    figure.legend(handles.values(), handles.keys(), **place)


def _curve(axes: Any, points: pd.DataFrame, x: str, y: str, role: Role, label: str) -> None:
    if {"least", "most"} <= set(points) and y == "median":
        axes.fill_between(
            points[x], points["least"], points["most"], color=role.colour, alpha=0.12, linewidth=0
        )
    axes.plot(
        points[x],
        points[y],
        color=role.colour,
        marker=role.marker,
        linestyle=role.dash,
        label=label,
    )
    if {"low", "high"} <= set(points) and y == "median":
        axes.errorbar(
            points[x],
            points[y],
            [points[y] - points["low"], points["high"] - points[y]],
            fmt="none",
            ecolor=role.colour,
            capsize=2,
            linewidth=0.8,
        )


def _scales(axes: Any, values: pd.Series, log: str, mark: float | None) -> None:
    if "x" in log:
        axes.set_xscale("log", base=2 if _powers_of_two(values) else 10)
    if "y" in log:
        log_axis(axes, "y")
    if mark is not None:
        axes.axhline(mark, color="black", linewidth=0.6)


def _powers_of_two(values: pd.Series) -> bool:
    logs = np.log2(values[values > 0].astype(float))
    return bool(len(logs)) and bool(np.allclose(logs, np.rint(logs)))


def _role(groups: list, key: tuple) -> Role:
    return CYCLE[groups.index(key) % len(CYCLE)]


@or_blank
def figure_overheads(table: pd.DataFrame, width_in: float = PAGE_IN) -> "Figure":
    """Systems by what their noise takes from a CPU, and by what it does to a collective.

    Parameters
    ----------
    table
        Of `overhead_and_slowdown`: `noise`, `overhead_share`, `median`, `low`, `high`.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure.
    """
    import matplotlib.pyplot as plt

    need_columns(table, ["noise", "overhead_share", "median", "low", "high"])
    role = ROLES["baseline"]
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 2.6))
        axes.errorbar(
            table["overhead_share"] * 100,
            table["median"],
            [table["median"] - table["low"], table["high"] - table["median"]],
            fmt=role.marker,
            color=role.colour,
            capsize=2,
            linewidth=0.8,
        )
        for name, overhead, median in table[["noise", "overhead_share", "median"]].itertuples(
            index=False
        ):
            side = -1 if _crowded(table, overhead, median) else 1
            axes.annotate(
                name,
                (overhead * 100, median),
                xytext=(5 * side, 0),
                textcoords="offset points",
                fontsize=SMALL_POINTS,
                ha="left" if side > 0 else "right",
                va="center",
            )
        log_axis(axes, "x")
        _scales(axes, table["median"], "y", 1.0)
        axes.margins(x=0.12)
        axes.set_xlabel("CPU time that the noise takes (%)")
        axes.set_ylabel("slow-down")
    return figure


def _crowded(table: pd.DataFrame, overhead: float, median: float) -> bool:
    """Whether another system stands where a name to the right of this one would."""
    right = np.log(table["overhead_share"] / overhead)
    return bool(
        ((right > 0) & (right < 0.5) & (np.abs(np.log(table["median"] / median)) < 0.2)).any()
    )


@or_blank
def figure_scaling(
    statistics: pd.DataFrame, unit: str = "us", width_in: float = COLUMN_IN, height_in: float = 2.6
) -> "Figure":
    """Time of an operation over the number of threads, a line a benchmark, every run pale beneath
    (Cui et al. 2023, figures 1 and 2).

    Parameters
    ----------
    statistics
        `benchmark`, `threads`, `mean_us` (of a run), of one compiler and one configuration for each
        number of threads.
    unit
        Us or ms.
    width_in, height_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure; both axes are logarithmic.
    """
    import matplotlib.pyplot as plt

    need_repetitions(statistics)
    factor, label = {"us": (1.0, "µs"), "ms": (1e-3, "ms")}[unit]
    table = statistics.assign(value=statistics["mean_us"] * factor)
    with style():
        figure, axes = plt.subplots(figsize=(width_in, height_in))
        axes.set(
            xscale="log", yscale="log", xlabel="threads", ylabel=f"time ({label}), mean of the runs"
        )
        ends = [
            _draw_line(axes, points, role)
            for (_, points), role in zip(table.groupby("benchmark", sort=False), endless_roles())
        ]
        threads = sorted(table["threads"].unique())
        axes.set_xticks(threads, threads)
        axes.minorticks_off()
        axes.set_xlim(threads[0] / 1.12, threads[-1] * 1.12)
        plain_numbers(axes.yaxis)
        label_ends(figure, axes, list(table["benchmark"].unique()), ends)
    return figure


def _draw_line(axes: Any, points: pd.DataFrame, role: Role) -> tuple[float, str]:
    axes.scatter(
        points["threads"], points["value"], s=6, color=role.colour, alpha=0.25, linewidth=0
    )
    means = points.groupby("threads")["value"].mean()
    axes.plot(
        means.index,
        means,
        color=role.colour,
        marker=role.marker,
        linestyle=role.dash,
        markersize=3.5,
    )
    return float(means.iloc[-1]), role.colour


@or_blank
def figure_stopping(
    course: pd.DataFrame,
    stops: pd.DataFrame,
    label: str = "coefficient of variation",
    width_in: float = PAGE_IN,
) -> "Figure":
    """The interval narrowing above, the rules below, on one axis of runs.

    Parameters
    ----------
    course
        Of `statistics.running_statistic`: runs, value, low, high.
    stops
        Of `statistics.evaluate_rules`: rule, runs, stopped.
    label
        Of the statistic, with its unit.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure. A hollow marker: the record ended before the rule was content.
    """
    import matplotlib.pyplot as plt

    if course.empty or stops.empty:
        raise NothingToDraw(
            "there is nothing to draw",
            where="the course" if course.empty else "the stops",
            fix="replay at least one rule on two runs",
        )
    with style():
        figure, (upper, lower) = plt.subplots(
            2,
            1,
            figsize=(width_in, 2.2 + 0.17 * len(stops)),
            sharex=True,
            height_ratios=[1.8, 0.17 * len(stops)],
        )
        _draw_course(upper, course)
        upper.set_ylabel(label)
        _draw_stops(lower, stops)
        for runs in stops.loc[stops["stopped"], "runs"].unique():
            upper.axvline(runs, color="#999999", linewidth=0.5, linestyle=":")
        figure.legend(loc="outside upper left", ncols=3)
    return figure


def _draw_course(axes: Any, course: pd.DataFrame) -> None:
    role, whole = ROLES["baseline"], course.iloc[-1]
    axes.fill_between(
        course["runs"],
        course["low"],
        course["high"],
        color=role.colour,
        alpha=0.2,
        linewidth=0,
        label="95 % bootstrap interval",
    )
    axes.plot(course["runs"], course["value"], color=role.colour, label="runs so far")
    axes.axhline(
        whole["value"],
        color="black",
        linestyle=(0, (3, 2)),
        linewidth=0.8,
        label=f"all {int(whole['runs'])} runs",
    )


def _draw_stops(axes: Any, stops: pd.DataFrame) -> None:
    for stopped, face, label in (
        (True, ROLES["injected"].colour, "the rule stops"),
        (False, "white", "the record ended first"),
    ):
        rows = stops[stops["stopped"] == stopped]
        if len(rows):
            axes.plot(
                rows["runs"],
                rows.index,
                linestyle="none",
                marker=ROLES["injected"].marker,
                markerfacecolor=face,
                markeredgecolor=ROLES["injected"].colour,
                label=label,
            )
    for place, runs in stops["runs"].items():
        axes.plot([0, runs], [place, place], color="#999999", linewidth=0.5, zorder=0)
    axes.set_yticks(stops.index, stops["rule"])
    axes.set(xlabel="runs", ylim=(len(stops) - 0.5, -0.5), xlim=(0, None))
    axes.grid(axis="y", visible=False)


@or_blank
def figure_quantile_shift(
    comparison: Comparison | None,
    label: str = "run time",
    unit: str = "s",
    width_in: float = COLUMN_IN,
) -> "Figure":
    """How far each quantile of the outcome moved, with its 95 % interval: a gain in the tail alone,
    or of every run?

    Parameters
    ----------
    comparison
        Of `compare(before, after)`; None: nothing was compared, and the figure says so.
    label, unit
        Of the outcome.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure: both distributions above by their quantiles, the shift below.
    """
    import matplotlib.pyplot as plt

    if comparison is None:
        raise NothingToDraw("no mitigation was tried")
    shift = comparison.shift
    percent = 100 * shift.index.to_numpy(float)
    with style():
        figure, (upper, lower) = plt.subplots(2, 1, figsize=(width_in, 3.2), sharex=True)
        for name, role in (("before", ROLES["baseline"]), ("after", ROLES["injected"])):
            upper.plot(
                percent,
                shift[name],
                color=role.colour,
                marker=role.marker,
                linestyle=role.dash,
                markersize=3,
                label=name,
            )
        _draw_shift(lower, percent, shift)
        upper.set_ylabel(f"{label} ({unit})")
        lower.set_ylabel(f"shift ({unit})")
        figure.align_ylabels()
        figure.legend(loc="outside upper left", ncols=2)
    return figure


def _draw_shift(axes: Any, percent: np.ndarray, shift: pd.DataFrame) -> None:
    role = ROLES["injected"]
    axes.axhline(0, color="black", linewidth=0.6)
    axes.fill_between(
        percent,
        shift["low"],
        shift["high"],
        color=role.colour,
        alpha=0.2,
        linewidth=0,
        label="95 % interval",
    )
    axes.plot(
        percent,
        shift["shift"],
        color=role.colour,
        marker=role.marker,
        markersize=3,
        label="after − before",
    )
    axes.set(xlabel="quantile of the runs (%)", xticks=[1, 10, 25, 50, 75, 90, 99])


@or_blank
def figure_factor(
    runs: pd.DataFrame,
    factor: str,
    outcome: str | None = None,
    slow: pd.Series | None = None,
    unit: str = "",
    width_in: float = COLUMN_IN,
) -> "Figure":
    """Each run's outcome against a factor, with lines through its quantiles.

    Parameters
    ----------
    runs
        Runs table; only rows of status "ok" are drawn.
    factor, outcome
        Columns; no outcome: what the program is judged by.
    slow
        Which runs are slow (`Explanation.labels`), by the index of the finished runs; None: one
        colour.
    unit
        Of the factor.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure. Lines are of `quantile_effect`: where they fan out, the factor spreads the
    runs; where they are parallel, it delays them all.
    """
    import matplotlib.pyplot as plt

    judged = outcome_of(runs, outcome)
    finished = finished_rows(runs, (factor, judged.name))
    lines = quantile_effect(finished, factor, judged.name, (0.1, 0.5, 0.9))
    x, y = finished[factor].to_numpy(float), finished[judged.name].to_numpy(float)
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 2.6))
        if slow is None:
            _draw_points(axes, x, y, "baseline", "runs")
        else:
            for name, rows in (("fast", ~slow.to_numpy(bool)), ("slow", slow.to_numpy(bool))):
                _draw_points(axes, x[rows], y[rows], name, name)
        ends = np.array([np.nanmin(x), np.nanmax(x)])
        labels = {0.5: "median", 0.1: "10th and 90th percentile"}
        for quantile, line in lines.iterrows():
            axes.plot(
                ends,
                line["intercept"] + line["slope"] * ends,
                color="black",
                linestyle=_LINES[quantile],
                linewidth=0.9,
                label=labels.get(quantile),
            )
        axes.set(xlabel=f"{factor} ({unit})" if unit else factor, ylabel=judged.label)
        margin = 0.06 * np.ptp(y)
        axes.set_ylim(y.min() - margin, y.max() + margin)
        figure.legend(loc="outside upper left", ncols=2)
    return figure


def _draw_points(axes: Any, x: np.ndarray, y: np.ndarray, role: str, label: str) -> None:
    axes.scatter(
        x,
        y,
        s=9,
        marker=ROLES[role].marker,
        color=ROLES[role].colour,
        edgecolor="none",
        alpha=0.75,
        label=f"{label} (n = {len(x)})",
    )
