"""Figures of training jobs: what each worker costs, and how step times are distributed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ._blank import need_rows, or_blank
from .appearance import PAGE_IN, ROLES, SMALL_POINTS, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW_CELLS = 20


@or_blank
def figure_workers(workers: pd.DataFrame, width_in: float = PAGE_IN) -> "Figure":
    """Slow-down by each worker alone, a panel a job: replicas across, stages up.

    Parameters
    ----------
    workers
        `job`, `replica`, `stage`, `only` (`WhatIf.by`).
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure; where a job has few workers the number stands in its cell.
    """
    import matplotlib.pyplot as plt

    need_rows(workers, "no worker to draw")
    jobs = list(dict.fromkeys(workers["job"]))
    grids = {
        job: workers[workers["job"] == job].pivot(index="stage", columns="replica", values="only")
        for job in jobs
    }
    widths = [max(3, grids[job].shape[1]) ** 0.5 for job in jobs]
    with style():
        figure, panels = plt.subplots(
            1,
            len(jobs),
            figsize=(width_in, 1.9),
            squeeze=False,
            layout="constrained",
            gridspec_kw={"width_ratios": widths},
        )
        most = max(1.01, float(workers["only"].max()))
        for axes, job in zip(panels[0], jobs):
            image = _draw_job(axes, grids[job], most)
            axes.set_title(job, loc="left")
            axes.set_xlabel("replica")
        panels[0][0].set_ylabel("stage")
        figure.colorbar(image, ax=panels[0].tolist(), label="slow-down")
    return figure


def _draw_job(axes: Any, grid: pd.DataFrame, most: float) -> Any:
    image = axes.imshow(grid, vmin=1, vmax=most, cmap="cividis", aspect="auto", origin="lower")
    axes.grid(False)
    axes.set_yticks(range(len(grid)))
    axes.set_xticks(range(0, grid.shape[1], max(1, grid.shape[1] // 4)))
    if grid.size <= FEW_CELLS:
        for (row, column), value in np.ndenumerate(grid.to_numpy()):
            colour = "white" if value < 1 + 0.6 * (most - 1) else "black"
            axes.text(
                column,
                row,
                f"{value:.2f}",
                ha="center",
                va="center",
                color=colour,
                fontsize=SMALL_POINTS,
            )
    return image


@or_blank
def figure_step_times(times: Mapping[str, pd.DataFrame], width_in: float = PAGE_IN) -> "Figure":
    """Cumulative distributions of step times, measured beside predicted, a panel a case.

    Parameters
    ----------
    times
        By name of the case: `side` ("measured", "predicted"), `step_ms`.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure; the longest 0.2 % of the steps are not shown.
    """
    import matplotlib.pyplot as plt

    for table in times.values():
        need_rows(table, "no step was measured")
    with style():
        figure, panels = plt.subplots(
            1,
            max(1, len(times)),
            figsize=(width_in, 2.2),
            squeeze=False,
            sharey=True,
            layout="constrained",
        )
        for axes, (name, table) in zip(panels[0], times.items()):
            for side, role, dash in (("measured", "baseline", "-"), ("predicted", "slow", "--")):
                values = np.sort(table.loc[table["side"] == side, "step_ms"])
                share = np.arange(1, len(values) + 1) / max(1, len(values))
                axes.step(values, share, dash, color=ROLES[role].colour, label=side, where="post")
            axes.set_xlim(*table["step_ms"].quantile([0, 0.998]) * [0.97, 1.1])
            axes.set_title(name, loc="left")
            axes.set_xlabel("step time (ms)")
        panels[0][0].set_ylabel("share of steps")
        panels[0][0].legend()
    return figure
