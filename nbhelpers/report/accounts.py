"""Figures of the account: where the time of runs went, and when a slow run lost its time."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ._blank import need_columns, or_blank
from .appearance import PAGE_IN, Role, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = {
    "useful": Role("#DDDDDD", "o", "-", ""),
    "kernel": Role("#D55E00", "s", "-", "////"),
    "edges": Role("#F0A070", "s", "-", ""),
    "hypervisor": Role("#999999", "X", "-", "xxxx"),
    "slow_core": Role("#0072B2", "D", "-", "\\\\\\\\"),
    "slow_memory": Role("#009E73", "v", "-", "...."),
    "waiting": Role("#F0E442", "^", "-", ""),
    "unexplained": Role("#000000", "P", "-", ""),
}
LABELS = {
    "useful": "useful work at full speed",
    "kernel": "kernel events",
    "edges": "ways in and out",
    "hypervisor": "hypervisor",
    "slow_core": "slower core",
    "slow_memory": "slower memory",
    "waiting": "waiting for others",
    "unexplained": "unexplained",
}


@or_blank
def figure_account(bars: pd.DataFrame, width_in: float = PAGE_IN) -> "Figure":
    """Where the time of runs went: a bar a run.

    Parameters
    ----------
    bars
        A row a bar: `label`, `seconds`, and a column in ms for each part of the account
        (`Account.bars`). A negative part stands to the left of 0.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure, the first row on top.
    """
    import matplotlib.pyplot as plt

    need_columns(bars, ("label", *PARTS))
    places = np.arange(len(bars))
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 1.1 + 0.27 * len(bars)))
        right, left = np.zeros(len(bars)), np.zeros(len(bars))
        for name, role in PARTS.items():
            ms = bars[name].to_numpy(float)
            begin = np.where(ms >= 0, right, left)
            _bar(axes, places, ms, begin, role, LABELS[name])
            right, left = right + np.maximum(ms, 0), left + np.minimum(ms, 0)
        axes.set_yticks(places, bars["label"])
        axes.set_ylim(len(bars) - 0.4, -0.6)
        axes.axvline(0, color="black", linewidth=0.6)
        axes.set_xlabel("time of a thread, mean of the run's threads (ms)")
        axes.grid(axis="y", visible=False)
        figure.legend(loc="outside upper center", ncols=4)
    return figure


def _bar(axes: Any, places: np.ndarray, ms: np.ndarray, begin: np.ndarray, role: Role, label: str):
    axes.barh(
        places,
        ms,
        left=begin,
        height=0.7,
        color=role.colour,
        hatch=role.hatch,
        edgecolor="white",
        linewidth=0.3,
        label=label,
    )


@or_blank
def figure_losses(losses: pd.DataFrame, width_in: float = PAGE_IN) -> "Figure":
    """When a run lost its time: a lane a CPU, as high as the share that was lost.

    Parameters
    ----------
    losses
        Of one run (`Account.losses`): `cpu`, `start_ns`, `end_ns`, `lost_ns`, `cause`.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure. Intervals without the CPU fill the lane; they are drawn no thinner than a
    hair line.
    """
    import matplotlib.pyplot as plt

    need_columns(losses, ("cpu", "start_ns", "end_ns", "lost_ns", "cause"))
    cpus = sorted(losses["cpu"].unique())
    with style():
        figure, lanes = plt.subplots(
            len(cpus),
            figsize=(width_in, 0.9 + 0.55 * len(cpus)),
            sharex=True,
            squeeze=False,
        )
        for axes, cpu in zip(lanes[:, 0], cpus):
            _lane(axes, losses[losses["cpu"] == cpu])
            axes.set_ylim(0, 1)
            axes.set_yticks([0, 0.5, 1], ["0", "", "1"])
            axes.set_ylabel(f"CPU {cpu}\nlost share")
        lanes[-1, 0].set_xlabel("time since the start of the timed region (ms)")
        lanes[-1, 0].set_xlim(0, losses["end_ns"].max() / 1e6)
        figure.legend(*_legend(lanes[:, 0]), loc="outside upper center", ncols=4)
    return figure


def _lane(axes: Any, losses: pd.DataFrame) -> None:
    """Slow phases stand on each other; what took the CPU covers them."""
    bottom = pd.Series(0.0, index=losses.index)
    lengths = (losses["end_ns"] - losses["start_ns"]).clip(lower=1)
    share = losses["lost_ns"] / lengths
    core = losses["cause"] == "slow_core"
    memory = losses["cause"] == "slow_memory"
    if core.sum() == memory.sum():
        bottom[memory] = share[core].to_numpy()
    for cause in ("slow_core", "slow_memory", "edges", "kernel", "hypervisor"):
        own = losses["cause"] == cause
        if own.any():
            role = PARTS[cause]
            axes.bar(
                losses.loc[own, "start_ns"] / 1e6,
                share[own],
                width=lengths[own] / 1e6,
                bottom=bottom[own],
                align="edge",
                color=role.colour,
                edgecolor=role.colour,
                linewidth=0.3,
                label=LABELS[cause],
            )


def _legend(lanes: Any) -> tuple[list, list]:
    found: dict[str, Any] = {}
    for axes in lanes:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            found.setdefault(label, handle)
    return list(found.values()), list(found)
