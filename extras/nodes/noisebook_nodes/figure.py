"""The figure of a campaign over nodes: a row a node with every run, and its change against the
others.
"""

from typing import TYPE_CHECKING

import pandas as pd

from nbhelpers.measurement import finished
from nbhelpers.outcomes import outcome_of
from nbhelpers.palette import BLUE, GREY, ORANGE, PAGE_IN, SKY, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 16
VERDICTS = {
    "worse": (ORANGE, "^"),
    "cannot tell": (GREY, "D"),
    "no difference": (BLUE, "o"),
    "better": (SKY, "v"),
}


def figure_nodes(
    runs: pd.DataFrame, table: pd.DataFrame, outcome: str | None = None, most: int = MOST
) -> "Figure":
    """Which node is slow: a row a node, the worst on top, every run as a point.

    Parameters
    ----------
    runs
        Runs of `measure_on_nodes` or `recorded_on_nodes`; only rows of status "ok" are drawn.
    table
        Table that `compare_nodes` made of the same runs.
    outcome
        Column to draw; None: what the program is judged by.
    most
        Nodes that are drawn: the worst.

    Returns
    -------
    matplotlib Figure. At the left the median of a node's runs with its bootstrap interval; at the
    right its change against the others, worse to the right, with Student's interval by rounds and
    the margin as a band. Both are 95 % intervals of one node; the verdicts (colour and marker) are
    corrected for all nodes.
    """
    import matplotlib.pyplot as plt
    import seaborn as sns

    judged, shown = outcome_of(runs, outcome), table.head(most)
    of_nodes = finished(runs).merge(shown[["node", "verdict"]], on="node")
    colours = {verdict: colour for verdict, (colour, _) in VERDICTS.items()}
    with plt.style.context(STYLE):
        size = (PAGE_IN, 1.1 + 0.22 * len(shown))
        figure, (left, right) = plt.subplots(1, 2, figsize=size, sharey=True)
        drawn = {"x": judged.name, "y": "node", "order": list(shown["node"]), "hue": "verdict"}
        sns.stripplot(of_nodes, **drawn, palette=colours, size=2.5, legend=False, ax=left)
        ends = (shown["median"] - shown["low"], shown["high"] - shown["median"])
        left.errorbar(shown["median"], shown["node"], xerr=ends, fmt="k|", capsize=2, zorder=4)
        left.set(xlabel=judged.label, ylabel="")
        margin = 100 * table.attrs.get("margin", 0.0)
        right.axvspan(-margin, margin, color="#DDDDDD", zorder=0)
        right.axvline(0, color="black", linewidth=0.6)
        change = shown["change_percent"]
        ends = (change - shown["change_low_percent"], shown["change_high_percent"] - change)
        for verdict, (colour, marker) in VERDICTS.items():
            own = shown["verdict"] == verdict
            if own.any():
                right.errorbar(
                    change[own],
                    shown["node"][own],
                    xerr=[end[own] for end in ends],
                    fmt=marker,
                    color=colour,
                    capsize=2,
                    label=f"{verdict} ({own.sum()})",
                )
        right.set_xlabel("worse than the other nodes (%)")
        figure.legend(loc="outside upper right", ncols=4)
    return figure
