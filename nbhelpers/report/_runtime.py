"""Figures of the OpenMP runtime's variability, laid out as in Cui et al. 2023 (figures 1 to 7) and
Persson et al. 2025 (figures 1 and 2).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ._blank import NothingToDraw, or_blank
from ._repetitions import (
    KERNELS,
    SCHEDULES,
    draw_cv,
    draw_extremes,
    draw_repetitions,
    draw_strips,
    label_ends,
    plain,
    roles,
    say,
    side,
    suite_of,
    title,
)
from .appearance import COLUMN_IN, PAGE_IN, ROLES, Role, style


@or_blank
def figure_scaling(
    statistics: pd.DataFrame, unit: str = "us", width_in: float = COLUMN_IN, height_in: float = 2.6
):
    """Time of an operation over the number of threads, a line a benchmark, every run pale beneath
    (Cui et al. 2023, figures 1 and 2).

    Parameters
    ----------
    statistics
        `benchmark`, `threads`, `mean_us` (of a run), of one compiler and one configuration for each
        number of threads.
    unit
        Us or ms.

    Returns
    -------
    matplotlib Figure; both axes are logarithmic.
    """
    import matplotlib.pyplot as plt

    _require(statistics)
    factor, label = {"us": (1.0, "µs"), "ms": (1e-3, "ms")}[unit]
    table = statistics.assign(value=statistics["mean_us"] * factor)
    with style():
        figure, axes = plt.subplots(figsize=(width_in, height_in))
        axes.set(
            xscale="log", yscale="log", xlabel="threads", ylabel=f"time ({label}), mean of the runs"
        )
        ends = [
            _draw_line(axes, own, role)
            for (_, own), role in zip(table.groupby("benchmark", sort=False), roles())
        ]
        threads = sorted(table["threads"].unique())
        axes.set_xticks(threads, threads)
        axes.minorticks_off()
        axes.set_xlim(threads[0] / 1.12, threads[-1] * 1.12)
        plain(axes.yaxis)
        label_ends(figure, axes, list(table["benchmark"].unique()), ends)
    return figure


def _require(table: pd.DataFrame) -> None:
    if table.empty:
        raise NothingToDraw("no repetitions to draw", fix="measure at least one run: make paper")


def _draw_line(axes, own: pd.DataFrame, role: Role) -> tuple[float, str]:
    axes.scatter(own["threads"], own["value"], s=6, color=role.colour, alpha=0.25, linewidth=0)
    means = own.groupby("threads")["value"].mean()
    axes.plot(
        means.index,
        means,
        color=role.colour,
        marker=role.marker,
        linestyle=role.dash,
        markersize=3.5,
    )
    return float(means.iloc[-1]), role.colour


@or_blank
def figure_extremes(statistics: pd.DataFrame, by: str = "threads", width_in: float = PAGE_IN):
    """Least and greatest repetition of each run over its mean: a panel a suite, a cluster a number
    of threads (Cui et al. 2023, figure 3).

    Parameters
    ----------
    statistics
        `benchmark`, `round`, `min_normalised`, `max_normalised` and the column `by`; of one
        compiler.

    Returns
    -------
    matplotlib Figure: a line a run from its least to its greatest; the five kernels of BabelStream
    side by side.
    """
    import matplotlib.pyplot as plt

    _require(statistics)
    suites = {
        name: own
        for name, own in statistics.groupby(statistics["benchmark"].map(suite_of), sort=False)
    }
    names = [name for name in ("schedbench", "syncbench", "BabelStream") if name in suites]
    with style():
        figure, panels = plt.subplots(
            1,
            len(names),
            figsize=(width_in, 2.3),
            squeeze=False,
            width_ratios=[1.5 if name == "BabelStream" else 1 for name in names],
        )
        for axes, name in zip(panels[0], names):
            draw_extremes(axes, suites[name], by)
            axes.set_title(title(suites[name], name))
            axes.set_xlabel(by)
        panels[0][0].set_ylabel("time over the run's mean")
    return figure


@or_blank
def figure_sides(
    repeated: pd.DataFrame,
    statistics: pd.DataFrame,
    sides: Mapping[str, str],
    middle: str = "repetitions",
    width_in: float = PAGE_IN,
):
    """Two configurations one below the other: schedbench, syncbench and BabelStream (Cui et al.
    2023, figures 4 and 5).

    Parameters
    ----------
    repeated
        `benchmark`, `config`, `run`, `value_us`.
    statistics
        The runs of it, `cv`, `min_normalised`, …; of one compiler.
    sides
        Configuration -> why it is not there; "" where it is.
    middle
        What is shown of syncbench: "repetitions" of the reduction (figure 4), or the "cv" of each
        construct's runs (figure 5).

    Returns
    -------
    matplotlib Figure: columns share their scale, so that the rows can be compared.
    """
    import matplotlib.pyplot as plt

    _require(repeated)
    with style():
        figure, panels = plt.subplots(
            len(sides), 3, figsize=(width_in, 0.4 + 1.75 * len(sides)), sharey="col", squeeze=False
        )
        for row, (config, missing) in zip(panels, sides.items()):
            if missing:
                say(row, config, missing)
                continue
            own = repeated[repeated["config"] == config]
            runs = statistics[statistics["config"] == config]
            draw_repetitions(
                row[0], own[own["benchmark"] == "dynamic_1"], f"{config}: schedbench (dynamic_1)"
            )
            if middle == "cv":
                draw_cv(
                    row[1],
                    runs[runs["benchmark"].map(suite_of) == "syncbench"],
                    f"{config}: syncbench",
                )
            else:
                draw_repetitions(
                    row[1], own[own["benchmark"] == "reduction"], f"{config}: syncbench (reduction)"
                )
            draw_extremes(row[2], runs[runs["benchmark"].isin(KERNELS)], "benchmark")
            row[2].set_title(f"{config}: BabelStream")
            row[2].set_ylabel("time over mean")
    return figure


@or_blank
def figure_clock(
    repeated: pd.DataFrame, runs: pd.DataFrame, sides: Mapping[str, str], width_in: float = PAGE_IN
):
    """Repetitions beside the clock of the same runs, a row a placement (Cui et al. 2023, figures 6
    and 7).

    Parameters
    ----------
    repeated
        Of one benchmark and compiler.
    runs
        Of the campaign, with `frequency_mhz`, `frequency_min_mhz`, `frequency_max_mhz` (or
        `busy_…`), and `steal_s`.
    sides
        As in `figure_sides`.

    Returns
    -------
    matplotlib Figure. Where no frequency can be read, what the hypervisor took of each run stands
    in its place.
    """
    import matplotlib.pyplot as plt

    _require(repeated)
    known = next(
        (
            name
            for name in ("frequency", "busy")
            if f"{name}_mhz" in runs and runs[f"{name}_mhz"].notna().any()
        ),
        "",
    )
    with style():
        figure, panels = plt.subplots(
            len(sides), 2, figsize=(width_in, 0.4 + 1.7 * len(sides)), sharey="col", squeeze=False
        )
        for row, (config, missing) in zip(panels, sides.items()):
            own = repeated[repeated["config"] == config]
            if missing or own.empty:
                say(row, config, missing or "not measured")
                continue
            draw_repetitions(row[0], own, f"{config}: {own['benchmark'].iloc[0]}")
            told = runs[runs["run"].isin(own["run"])].sort_values("run").reset_index(drop=True)
            (
                _draw_frequency(row[1], told, config, known)
                if known
                else _draw_stolen(row[1], told, config)
            )
    return figure


def _draw_frequency(axes, runs: pd.DataFrame, config: str, known: str) -> None:
    role, at = ROLES["traced"], np.arange(1, len(runs) + 1)
    axes.vlines(
        at,
        runs[f"{known}_min_mhz"] / 1e3,
        runs[f"{known}_max_mhz"] / 1e3,
        color=role.colour,
        linewidth=4,
        alpha=0.4,
    )
    axes.plot(
        at, runs[f"{known}_mhz"] / 1e3, linestyle="none", marker=role.marker, color=role.colour
    )
    axes.set(title=f"{config}: clock, mean and range", ylabel="frequency (GHz)", xlabel="run")
    axes.set_xticks(at)


def _draw_stolen(axes, runs: pd.DataFrame, config: str) -> None:
    role, at = ROLES["slow"], np.arange(1, len(runs) + 1)
    share = 100 * runs["steal_s"] / runs["wall_seconds"]
    axes.vlines(at, 0, share, color=role.colour)
    axes.plot(at, share, linestyle="none", marker=role.marker, color=role.colour)
    axes.set(
        title=f"{config}: no frequency here; stolen by the hypervisor",
        ylabel="stolen (% of the run)",
        xlabel="run",
    )
    axes.set_xticks(at)
    axes.set_ylim(bottom=0)


@or_blank
def figure_reserved(repeated: pd.DataFrame, width_in: float = PAGE_IN):
    """Schedules and chunks, and the dot product over the number of threads, with and without cores
    left to the system (Persson et al. 2025, figures 1 and 2).

    Parameters
    ----------
    repeated
        `benchmark`, `config`, `threads`, `value_us`, `reserved`
        (`nbhelpers.studies.reserved_sides`); of one compiler.

    Returns
    -------
    matplotlib Figure: left, of the roaming configurations, st:1 is the static schedule with chunks
    of 1, and so on; right, of pinned ones, dot by threads. Points: repetitions over the median of
    their strip; figures above them: the coefficient of variation in per cent.
    """
    import matplotlib.pyplot as plt

    _require(repeated)
    loops = repeated[
        (repeated["benchmark"].map(suite_of) == "schedbench")
        & repeated["config"].str.startswith("Rm")
    ]
    dots = repeated[(repeated["benchmark"] == "dot") & repeated["config"].str.startswith("TP")]
    with style():
        figure, panels = plt.subplots(1, 2, figsize=(width_in, 2.6), width_ratios=[2.2, 1])
        draw_strips(
            panels[0],
            loops.assign(place=loops["benchmark"].map(_short)),
            "schedule and chunk",
            "time over median",
        )
        draw_strips(panels[1], dots.assign(place=dots["threads"]), "threads (BabelStream, dot)", "")
        handles = [
            panels[0].scatter(
                [], [], s=14, marker=side(reserved).marker, color=side(reserved).colour, label=label
            )
            for reserved, label in ((False, "all cores work"), (True, "cores left to the system"))
        ]
        figure.legend(handles=handles, loc="outside upper left", ncols=2)
    return figure


def _short(benchmark: str) -> str:
    schedule, chunk = benchmark.split("_")
    return f"{SCHEDULES[schedule]}:{chunk}"
