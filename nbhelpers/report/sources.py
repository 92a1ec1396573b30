"""The figure of noise by source: what each source costs, and how long its events are."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ._axes import kind_role, legend_of_kinds
from ._blank import need_events, or_blank
from .appearance import PAGE_IN, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("kind", "source", "events", "cpu_share", "p50_us", "max_us")
SOURCES = 12  # shown one by one; the rest as one line
ROW_LABEL = 22  # letters of a source name


@or_blank
def figure_noise(
    noise: pd.DataFrame, title: str | None = None, width_in: float = PAGE_IN
) -> "Figure":
    """Share of CPU time of each source of noise, and on the right the median and the longest event.

    Parameters
    ----------
    noise
        Of `nbhelpers.tracing.noise_summary`: kind, source, events, cpu_share, p50_us, max_us; the
        most expensive first.
    title
        A short heading, such as one that distinguishes two such figures.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure: the twelve most expensive sources one by one, all others together.
    """
    import matplotlib.pyplot as plt

    noise = noise.reset_index() if "kind" in noise.index.names else noise
    need_events(noise, COLUMNS)
    table = _with_rest(noise[list(COLUMNS)].astype({"kind": str, "source": str}))
    with style():
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(width_in, 1.0 + 0.19 * len(table)), sharey=True
        )
        for row, entry in enumerate(table.to_dict("records")):
            _draw_source(left, right, row, entry)
        left.set_yticks(np.arange(len(table)), table["source"].map(_shortened))
        left.set_ylim(len(table) - 0.5, -0.5)
        left.set_xlabel("share of CPU time (%)")
        right.set_xscale("log")
        right.set_xlabel("median | to longest event (µs)")
        for axes in (left, right):
            axes.grid(axis="y", visible=False)
        legend_of_kinds(figure, table["kind"], bars=True)
        if title:
            left.set_title(title, loc="left")
    return figure


def _draw_source(left: Any, right: Any, row: int, entry: dict[str, Any]) -> None:
    """A bar of the CPU time on the left; on the right a line from the median to the longest."""
    role = kind_role(entry["kind"])
    median_us, longest_us = entry["p50_us"], entry["max_us"]
    left.barh(
        row,
        100 * entry["cpu_share"],
        height=0.7,
        color=role.colour,
        hatch=role.hatch,
        edgecolor="white",
        linewidth=0,
    )
    right.plot([median_us, longest_us], [row, row], color=role.colour, linewidth=0.9)
    right.plot(longest_us, row, color=role.colour, marker=role.marker, linestyle="none")
    right.plot(median_us, row, color=role.colour, marker="|", markersize=7, linestyle="none")


def _with_rest(table: pd.DataFrame) -> pd.DataFrame:
    if len(table) <= SOURCES + 1:
        return table
    rest = table.iloc[SOURCES:]
    total = {
        "kind": "",
        "source": f"{len(rest)} other sources",
        "events": rest["events"].sum(),
        "cpu_share": rest["cpu_share"].sum(),
        "p50_us": np.average(rest["p50_us"], weights=rest["events"]),
        "max_us": rest["max_us"].max(),
    }
    return pd.concat([table.head(SOURCES), pd.DataFrame([total])], ignore_index=True)


def _shortened(source: object) -> str:
    text = str(source)
    return text if len(text) <= ROW_LABEL else text[: ROW_LABEL - 1] + "…"
