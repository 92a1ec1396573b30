"""The figure of detours: when a loop lost the CPU, and for how long (as in Hoefler et al. 2010)."""

import numpy as np
import pandas as pd

from ..errors import InputError
from .style import PAGE_IN, ROLES, style

SHOWN_CPUS = 4
MANY = 3000  # marks from which a drawing is stored as pixels


def figure_detours(detours: pd.DataFrame, width_in: float = PAGE_IN):
    """Each detour as a point: when it began, and how long it was.

    Parameters
    ----------
    detours : `cpu`, `start_ns`, `duration_ns`; of at most four CPUs, those that lost most, a panel each.

    Returns
    -------
    matplotlib Figure.

    Raises
    ------
    InputError : there is no detour to draw.
    """
    import matplotlib.pyplot as plt

    if detours.empty:
        raise InputError("no detour to draw", mend="record for longer: seconds=…")
    cpus = detours.groupby("cpu")["duration_ns"].sum().nlargest(SHOWN_CPUS).index.sort_values()
    with style():
        figure, panels = plt.subplots(1, len(cpus), figsize=(width_in, 2.2), sharex=True, sharey=True, squeeze=False)
        for axes, cpu in zip(panels[0], cpus):
            _draw(axes, detours[detours["cpu"] == cpu], cpu)
        panels[0][0].set_ylabel("length of the detour (µs)")
        figure.supxlabel("time since the loop began (s)", fontsize=8)
    return figure


def _draw(axes, own: pd.DataFrame, cpu: int) -> None:
    role = ROLES["baseline"]
    lengths_us = own["duration_ns"] / 1e3
    axes.scatter(own["start_ns"] / 1e9, lengths_us, s=4, marker=role.marker, color=role.colour, alpha=0.4, edgecolor="none", rasterized=len(own) > MANY)
    axes.set_yscale("log")
    axes.set_title(f"CPU {cpu}: {len(own)} detours, median {np.median(lengths_us):.1f} µs", loc="left")
