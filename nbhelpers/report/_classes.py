"""Figures of variability: performance classes, how far each quantile moved, and the outcome against
a factor.

Owns these three; every run is drawn, in the colour of its class.
"""

import numpy as np
import pandas as pd

from ..attribution import Classes
from ..errors import InputError
from ..outcomes import outcome_of
from ..statistics import Comparison, quantile_effect
from ._blank import NothingToDraw, or_blank
from ._distribution import finished_rows
from .appearance import COLUMN_IN, ROLES, Role, style

# from best to worst; a class in the middle is neither fast nor slow
_MIDDLE = (
    Role("#999999", "s", "-", ""),
    Role("#CC79A7", "D", "-", ""),
    Role("#009E73", "v", "-", ""),
)
_LINES = {0.5: "-", 0.1: (0, (4, 1.5)), 0.9: (0, (4, 1.5)), 0.25: (0, (1, 1)), 0.75: (0, (1, 1))}


def draw_marked(
    axes, values: np.ndarray, classes: dict[str, np.ndarray], roles: dict[str, Role] | None = None
) -> None:
    """A box of the quartiles (whiskers from the 5th to the 95th percentile) and each run below it,
    in the colour and with the marker of its class.
    """
    box = axes.boxplot(
        values,
        positions=[-0.24],
        widths=0.2,
        orientation="horizontal",
        whis=(5, 95),
        showfliers=False,
        manage_ticks=False,
        medianprops={"color": "black", "linewidth": 1.2},
    )
    for part in (*box["boxes"], *box["whiskers"], *box["caps"]):
        part.set(color="#555555", linewidth=0.7)
    height = 0.16 + 0.17 * (
        2 * ((np.arange(values.size) * 0.6180339887498949) % 1) - 1
    )  # golden-ratio sequence: even, and always the same
    for name, chosen in classes.items():
        role = (roles or ROLES)[name]
        axes.scatter(
            values[chosen],
            height[chosen],
            s=float(np.clip(1500 / values.size, 3, 12)),
            marker=role.marker,
            facecolor=role.colour,
            edgecolor="none",
            alpha=0.75,
            rasterized=values.size > 2000,
            label=f"{name} (n = {int(chosen.sum())})",
        )
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
):
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
        figure, (upper, middle, lower) = plt.subplots(
            3, 1, figsize=(width_in, 3.4), sharex=True, height_ratios=[1.1, 0.8, 1.5]
        )
        _draw_histogram(upper, numbers, chosen, roles)
        draw_marked(middle, numbers, chosen, roles)
        for name, rows in chosen.items():
            lower.scatter(
                numbers[rows],
                np.flatnonzero(rows) + 1,
                s=4,
                marker=roles[name].marker,
                color=roles[name].colour,
                edgecolor="none",
            )
        for axes in (upper, middle, lower):
            for bound in classes.bounds:
                axes.axvline(bound, color="black", linestyle=(0, (3, 2)), linewidth=0.8)
        lower.set(xlabel=label, ylabel="run, in order")
        lower.invert_yaxis()
        bounds = (
            [
                plt.Line2D(
                    [],
                    [],
                    color="black",
                    linestyle=(0, (3, 2)),
                    linewidth=0.8,
                    label=f"bound{'s' * (len(classes.bounds) > 1)} "
                    + ", ".join(f"{bound:.4g}" for bound in classes.bounds[:3]),
                )
            ]
            if classes.bounds
            else []
        )
        handles = [
            plt.Line2D(
                [],
                [],
                linestyle="",
                marker=roles[name].marker,
                color=roles[name].colour,
                markersize=4,
                label=f"{name} (n = {int(rows.sum())})",
            )
            for name, rows in chosen.items()
        ]
        figure.legend(handles=handles + bounds, loc="outside upper left", ncols=2)
    return figure


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


@or_blank
def figure_quantile_shift(
    comparison: Comparison | None,
    label: str = "run time",
    unit: str = "s",
    width_in: float = COLUMN_IN,
):
    """How far each quantile of the outcome moved, with its 95 % interval: a gain in the tail alone,
    or of every run?

    Parameters
    ----------
    comparison
        Of `compare(before, after)`; None: nothing was compared, and the figure says so.
    label, unit
        Of the outcome.

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
        lower.axhline(0, color="black", linewidth=0.6)
        lower.fill_between(
            percent,
            shift["low"],
            shift["high"],
            color=ROLES["injected"].colour,
            alpha=0.2,
            linewidth=0,
            label="95 % interval",
        )
        lower.plot(
            percent,
            shift["shift"],
            color=ROLES["injected"].colour,
            marker=ROLES["injected"].marker,
            markersize=3,
            label="after − before",
        )
        upper.set_ylabel(f"{label} ({unit})")
        lower.set(
            xlabel="quantile of the runs (%)",
            ylabel=f"shift ({unit})",
            xticks=[1, 10, 25, 50, 75, 90, 99],
        )
        figure.align_ylabels()
        figure.legend(loc="outside upper left", ncols=2)
    return figure


@or_blank
def figure_factor(
    runs: pd.DataFrame,
    factor: str,
    outcome: str | None = None,
    slow: pd.Series | None = None,
    unit: str = "",
    width_in: float = COLUMN_IN,
):
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

    Returns
    -------
    matplotlib Figure. Lines are of `quantile_effect`: where they fan out, the factor spreads the
    runs; where they are parallel, it delays them all.
    """
    import matplotlib.pyplot as plt

    judged = outcome_of(runs, outcome)
    outcome = judged.name
    finished = finished_rows(runs, (factor, outcome))
    lines = quantile_effect(finished, factor, outcome, (0.1, 0.5, 0.9))
    x, y = finished[factor].to_numpy(float), finished[outcome].to_numpy(float)
    marked = np.zeros(x.size, bool) if slow is None else slow.to_numpy(bool)
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 2.6))
        for name, rows in (
            (("fast", ~marked), ("slow", marked)) if slow is not None else (("baseline", ~marked),)
        ):
            label = f"{name} (n = {rows.sum()})" if slow is not None else f"runs (n = {rows.sum()})"
            axes.scatter(
                x[rows],
                y[rows],
                s=9,
                marker=ROLES[name].marker,
                color=ROLES[name].colour,
                edgecolor="none",
                alpha=0.75,
                label=label,
            )
        ends = np.array([np.nanmin(x), np.nanmax(x)])
        for quantile, line in lines.iterrows():
            label = {0.5: "median", 0.1: "10th and 90th percentile"}.get(quantile)
            axes.plot(
                ends,
                line["intercept"] + line["slope"] * ends,
                color="black",
                linestyle=_LINES[quantile],
                linewidth=0.9,
                label=label,
            )
        axes.set(xlabel=f"{factor} ({unit})" if unit else factor, ylabel=judged.label)
        margin = 0.06 * np.ptp(y)
        axes.set_ylim(y.min() - margin, y.max() + margin)
        figure.legend(loc="outside upper left", ncols=2)
    return figure
