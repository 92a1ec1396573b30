"""The figure of slow runs taken apart: what kernel events, the hypervisor, and neither of them
explain of each one's excess.
"""

import numpy as np
import pandas as pd

from ._blank import NothingToDraw, or_blank
from .appearance import KINDS, PAGE_IN, ROLES, style

PARTS = {
    "kernel_ms": ("kernel events, replayed", KINDS["thread"]),
    "hypervisor_ms": ("hypervisor gaps, replayed", KINDS["irq"]),
    "unexplained_ms": ("not explained", ROLES["slow"]),
}


@or_blank
def figure_excess(table: pd.DataFrame, width_in: float = PAGE_IN):
    """How much longer than the undisturbed mean each slow run took, and what its replays bring back
    of that.

    Parameters
    ----------
    table
        Of `nbhelpers.injection.worst_table`: `case`, `excess_ms`, and `kernel_ms`, `hypervisor_ms`,
        `unexplained_ms` with `…_low` and `…_high`.

    Returns
    -------
    matplotlib Figure: for each case the excess as a grey bar, and before it a bar a part with its
    95 % interval. A part below zero is chance, or a replay that costs more than what it replays.
    """
    import matplotlib.pyplot as plt

    if table.empty:
        raise NothingToDraw("no slow run to draw", fix="replay at least one: cases=1")
    places = np.arange(len(table))
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 2.4))
        axes.bar(
            places,
            table["excess_ms"],
            width=0.84,
            color="#DDDDDD",
            label="beyond the undisturbed mean",
        )
        for number, (name, (label, role)) in enumerate(PARTS.items()):
            at = places + 0.26 * (number - 1)
            reach = [table[name] - table[f"{name}_low"], table[f"{name}_high"] - table[name]]
            axes.bar(
                at,
                table[name],
                width=0.22,
                color=role.colour,
                hatch=role.hatch,
                edgecolor="white",
                linewidth=0,
                label=label,
            )
            axes.errorbar(
                at,
                table[name],
                np.maximum(reach, 0),
                fmt="none",
                ecolor="black",
                capsize=2,
                linewidth=0.8,
            )
        axes.axhline(0, color="black", linewidth=0.6)
        axes.set_xticks(
            places,
            [
                f"case {case}\n{seconds:.3f} s"
                for case, seconds in zip(table["case"], table["anomaly_seconds"])
            ],
        )
        axes.set_ylabel("time (ms)")
        axes.grid(axis="x", visible=False)
        figure.legend(loc="outside upper left", ncols=4)
    return figure
