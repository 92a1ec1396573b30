"""The figure of a campaign over nodes: a row a node with every run, and its change against the
others.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..outcomes import outcome_of
from ._axes import MANY, interval_reach, jitter, legend_above, log_axis
from ._blank import finished_rows, need_columns, or_blank
from .appearance import PAGE_IN, ROLES, Role, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NAMED = 16
VERDICTS = {
    "worse": ROLES["slow"],
    "cannot tell": Role("#777777", "D", "-", ""),
    "no difference": ROLES["baseline"],
    "better": Role(ROLES["fast"].colour, "v", "-", ""),
}
_COLUMNS = (
    *("node", "median", "low", "high", "verdict"),
    *("change_percent", "change_low_percent", "change_high_percent"),
)
_ROW_IN = 0.22
_OTHERS_IN = 1.6  # the height of all rows without a name
_THIN = 4  # points: smaller marks are of rows without a name
_MOST_LETTERS = 28  # of a node's name


@or_blank
def figure_nodes(
    runs: pd.DataFrame,
    table: pd.DataFrame,
    outcome: str | None = None,
    named: int = MOST_NAMED,
    width_in: float = PAGE_IN,
) -> "Figure":
    """Which node is slow: a row a node, the worst on top, every run as a point.

    Parameters
    ----------
    runs
        Of `measure_on_nodes` or `recorded_on_nodes`; only rows of status "ok" are drawn.
    table
        Of `compare_nodes`, made of the same runs. Its `attrs["margin"]` is drawn as a band.
    outcome
        Column to draw; None: what the program is judged by.
    named
        Where there are more nodes, so many of the worst have a name. All others have thin rows
        below, in the same order.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure. At the left the median of a node's runs with its bootstrap interval; at the
    right its change against the others, worse to the right, with Student's interval by rounds (of
    fewer than six there is none). Both are 95 % intervals of one node; the verdicts (colour and
    marker) are corrected for all nodes.

    Raises
    ------
    InputError
        A column is missing.
    """
    import matplotlib.pyplot as plt

    judged = outcome_of(runs, outcome)
    need_columns(table, _COLUMNS)
    done = finished_rows(runs, (judged.name, "node"))
    rows = _Rows.of(len(table), named)
    with style():
        figure, (left, right) = plt.subplots(
            1,
            2,
            figsize=(width_in, 1.1 + _ROW_IN * rows.reach),
            sharey=True,
            width_ratios=[1.4, 1],
        )
        _draw_runs(left, rows, done, table, judged.name)
        _draw_medians(left, rows, table)
        log_axis(left, "x")
        left.set_xlabel(judged.label)
        margin = _draw_margin(right, table)
        _draw_changes(right, rows, table)
        right.set_xlabel("worse than the other nodes (%)")
        rows.label(left, table["node"])
        right.tick_params(axis="y", length=0)
        for axes in (left, right):
            axes.grid(axis="y", visible=False)
        legend_above(figure, _handles(table, margin), columns=4)
    return figure


@dataclass(frozen=True)
class _Rows:
    """Where the rows lie, from the top: named ones a unit apart, the others closer."""

    at: np.ndarray
    named: int
    step: float  # between two rows without a name

    @classmethod
    def of(cls, nodes: int, named: int) -> "_Rows":
        named = min(named, nodes)
        others = nodes - named
        step = min(1.0, _OTHERS_IN / _ROW_IN / max(1, others))
        return cls(np.r_[np.arange(named), named + step * np.arange(others)], named, step)

    @property
    def reach(self) -> float:
        """The height of all rows, in named rows."""
        return float(self.at[-1]) + 1

    @property
    def parts(self) -> list[tuple[slice, float]]:
        """The named rows and the others, each with the height of a row."""
        return [(slice(0, self.named), 1.0), (slice(self.named, None), self.step)]

    def label(self, axes: Any, names: pd.Series) -> None:
        """Names at the left; of rows that are too thin for one, how many there are."""
        places, labels = list(self.at[: self.named]), [_short(name) for name in names[: self.named]]
        others = len(self.at) - self.named
        if others:
            places.append(float(self.at[self.named :].mean()))
            labels.append(f"{others} more node{'s' * (others > 1)},\nworst first")
        axes.set_yticks(places, labels)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(self.reach - 0.4, -0.6)


def _short(name: object) -> str:
    """Nodes differ at the end of their names."""
    text = str(name)
    return text if len(text) <= _MOST_LETTERS else "…" + text[1 - _MOST_LETTERS :]


def _draw_runs(
    axes: Any, rows: _Rows, done: pd.DataFrame, table: pd.DataFrame, outcome: str
) -> None:
    """Every run, in the colour of its node's verdict."""
    values = {str(node): group for node, group in done.groupby("node")[outcome]}
    for part, height in rows.parts:
        for node, verdict, at in zip(
            table["node"][part], table["verdict"][part], rows.at[part], strict=True
        ):
            own = values[str(node)].to_numpy(float)
            axes.scatter(
                own,
                at + jitter(own.size, 0.28 * height),
                s=7 if height == 1 else 2,
                color=VERDICTS[verdict].colour,
                alpha=0.55,
                linewidth=0,
                rasterized=len(done) > MANY,
            )


def _draw_medians(axes: Any, rows: _Rows, table: pd.DataFrame) -> None:
    """A bar across the row with the interval along it; in thin rows the bars make a line."""
    for part, height in rows.parts:
        own = table[part]
        reach = _reach(own["median"], own["low"], own["high"])
        size = 8 if height == 1 else 2
        _draw_intervals(axes, own["median"], rows.at[part], reach, Role("black", "|", "", ""), size)


def _draw_margin(axes: Any, table: pd.DataFrame) -> float | None:
    """The band of changes that are too small to matter, where the table says it."""
    axes.axvline(0, color="black", linewidth=0.6)
    margin = table.attrs.get("margin")
    if margin is not None:
        axes.axvspan(-100 * margin, 100 * margin, color="#DDDDDD", linewidth=0, zorder=0)
    return margin


def _draw_changes(axes: Any, rows: _Rows, table: pd.DataFrame) -> None:
    for part, height in rows.parts:
        own, places = table[part], rows.at[part]
        for verdict, role in VERDICTS.items():
            here = (own["verdict"] == verdict).to_numpy()
            change, low, high = (
                own.loc[here, f"change{end}_percent"] for end in ("", "_low", "_high")
            )
            size = 4.5 if height == 1 else 1.5
            _draw_intervals(axes, change, places[here], _reach(change, low, high), role, size)


def _reach(values: pd.Series, low: pd.Series, high: pd.Series) -> list[pd.Series]:
    """As of `interval_reach`, but where there is no interval none is drawn."""
    return [side.where(low.notna()) for side in interval_reach(values, low, high)]


def _draw_intervals(
    axes: Any,
    values: pd.Series,
    places: np.ndarray,
    reach: list[pd.Series],
    role: Role,
    size: float,
) -> None:
    """Marks with their intervals; those of thin rows are pale and have no caps."""
    thin = size < _THIN
    _, caps, lines = axes.errorbar(
        values,
        places,
        xerr=reach,
        fmt=role.marker,
        color=role.colour,
        markersize=size,
        capsize=0 if thin else 2,
        elinewidth=0.35 if thin else 0.9,
    )
    for line in (*caps, *lines):
        line.set_alpha(0.5 if thin else 1)


def _handles(table: pd.DataFrame, margin: float | None) -> list:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    counts = table["verdict"].value_counts()
    handles: list = [
        Line2D(
            [],
            [],
            linestyle="",
            marker=role.marker,
            color=role.colour,
            label=f"{verdict} ({counts[verdict]} node{'s' * int(counts[verdict] > 1)})",
        )
        for verdict, role in VERDICTS.items()
        if verdict in counts
    ]
    handles.append(Line2D([], [], color="black", marker="|", label="median, 95 % interval"))
    if margin is not None:
        handles.append(Patch(color="#DDDDDD", label=f"margin, ±{100 * margin:g} %"))
    return handles
