"""The figure of stopping rules replayed: a statistic with its interval as the runs came in, and
where each rule would have stopped.
"""

import pandas as pd

from ._blank import NothingToDraw, or_blank
from .appearance import PAGE_IN, ROLES, style


@or_blank
def figure_stopping(
    course: pd.DataFrame,
    stops: pd.DataFrame,
    label: str = "coefficient of variation",
    width_in: float = PAGE_IN,
):
    """The interval narrowing above, the rules below, on one axis of runs.

    Parameters
    ----------
    course
        Of `statistics.running_statistic`: runs, value, low, high.
    stops
        Of `statistics.evaluate_rules`: rule, runs, stopped.
    label
        Of the statistic, with its unit.

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


def _draw_course(axes, course: pd.DataFrame) -> None:
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


def _draw_stops(axes, stops: pd.DataFrame) -> None:
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
