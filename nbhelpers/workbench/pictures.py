"""Figures of the workbench as HTML, and the two that only it needs: a scatter plot with its line,
and a distribution before and after.
"""

import base64
import html
import io
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from ..outcomes import Outcome
from ..report.appearance import COLUMN_IN, ROLES, Role, style
from ..statistics.intervals import shortest_interval
from .association import Relation

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# pyplot has one state for all threads
DRAWING = threading.RLock()
_DPI = 160


def picture(figure: "Figure", alternative: str) -> str:
    """A figure as an image in HTML, closed afterwards.

    Parameters
    ----------
    figure
        Of matplotlib.
    alternative
        What it shows, for those who cannot see it.
    """
    import matplotlib.pyplot as plt

    content = io.BytesIO()
    width_in = 1.35 * float(figure.get_size_inches()[0])
    with DRAWING:
        figure.savefig(content, format="png", dpi=_DPI, metadata={"Software": None})
        plt.close(figure)
    data = base64.b64encode(content.getvalue()).decode()
    return (
        f'<img alt="{html.escape(alternative)}" style="width:{width_in:.2f}in;max-width:100%"'
        f' src="data:image/png;base64,{data}">'
    )


def figure_relation(
    runs: "pd.DataFrame", found: Relation, slow: "pd.Series", unit: str = ""
) -> "Figure":
    """Every run: a metric against the outcome, with the line of least squares.

    Parameters
    ----------
    runs
        Runs table.
    found
        Of `relation(runs, …)`.
    slow
        Which runs are slow, with the index of the runs.
    unit
        Of the outcome.
    """
    import matplotlib.pyplot as plt

    slow = slow.reindex(runs.index).to_numpy(bool)
    with DRAWING, style():
        figure, axes = plt.subplots(figsize=(COLUMN_IN, 2.4))
        for name, chosen in (("fast", ~slow), ("slow", slow)):
            _points(axes, runs[chosen], found, name)
        if np.isfinite(found.r2):
            ends = np.array([runs[found.metric].min(), runs[found.metric].max()], float)
            line = found.intercept + found.slope * ends
            axes.plot(ends, line, color="black", linewidth=0.9, label=f"R² {found.r2:.2f}")
        axes.set(xlabel=found.metric, ylabel=Outcome(found.outcome, unit).label)
        figure.legend(loc="outside upper left", ncols=2)
    return figure


def _points(axes: Any, runs: "pd.DataFrame", found: Relation, name: str) -> None:
    role = ROLES[name]
    axes.plot(
        runs[found.metric],
        runs[found.outcome],
        linestyle="",
        marker=role.marker,
        markersize=3.5,
        color=role.colour,
        alpha=0.75,
        label=f"{name} (n = {len(runs)})",
    )


def figure_densities(values: dict[str, np.ndarray], label: str) -> "Figure":
    """Distributions over each other: density, each run, box from quartile to quartile, and the
    shortest interval that holds 95 % of the runs.

    Parameters
    ----------
    values
        Outcomes by name, such as baseline and treated.
    label
        Of the outcome, with its unit.
    """
    import matplotlib.pyplot as plt

    roles = [ROLES["baseline"], ROLES["injected"]]
    with DRAWING, style():
        figure, (upper, lower) = plt.subplots(
            2, 1, figsize=(1.4 * COLUMN_IN, 2.8), sharex=True, height_ratios=[1.4, 1]
        )
        for place, (name, numbers) in enumerate(values.items()):
            _density(upper, numbers, roles[place % 2], f"{name} (n = {numbers.size})")
            _strip(lower, place, numbers, roles[place % 2])
        upper.set_ylabel("density")
        upper.set_yticks([])
        lower.set(xlabel=label, yticks=range(len(values)), ylim=(len(values) - 0.5, -0.5))
        lower.set_yticklabels(values)
        lower.plot([], [], color="black", linewidth=2.5, label="95 % of the runs")
        figure.legend(loc="outside upper left", ncols=3)
    return figure


def _density(axes: Any, values: np.ndarray, role: Role, label: str) -> None:
    from scipy.stats import gaussian_kde

    if values.size < 2 or np.ptp(values) == 0:
        return
    reach = 0.1 * np.ptp(values)
    at = np.linspace(values.min() - reach, values.max() + reach, 256)
    heights = gaussian_kde(values)(at)
    axes.plot(at, heights, color=role.colour, linestyle=role.dash, label=label)
    axes.fill_between(at, heights, color=role.colour, alpha=0.18, linewidth=0)


def _strip(axes: Any, place: int, values: np.ndarray, role: Role) -> None:
    from ..report._axes import jitter

    height = place + jitter(values.size, 0.22)
    axes.plot(values, height, linestyle="", marker=role.marker, markersize=2.5, color=role.colour)
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    box = {"color": "black", "linewidth": 0.9}
    axes.vlines([low, middle, high], place - 0.3, place + 0.3, **box)
    axes.hlines([place - 0.3, place + 0.3], low, high, **box)
    axes.hlines(place + 0.42, *shortest_interval(values), color="black", linewidth=2.5)
