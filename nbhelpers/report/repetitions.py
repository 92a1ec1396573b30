"""Figures of runs with many repetitions: strips, extremes, coefficients of variation, the clock
next to them.

Laid out as in Cui et al. 2023 (figures 3 to 7) and Persson et al. 2025 (figures 1 and 2).
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..workloads.openmp import CONSTRUCTS
from ._axes import MANY, endless_roles, log_if_spread
from ._blank import empty_row, need_repetitions, or_blank
from .appearance import PAGE_IN, ROLES, SMALL_POINTS, Role, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KERNELS = ("copy", "mul", "add", "triad", "dot")
SCHEDULES = {"static": "st", "dynamic": "dy", "guided": "gd"}


def suite_of(benchmark: str) -> str:
    """The program that a benchmark is part of."""
    if benchmark in KERNELS:
        return "BabelStream"
    return "schedbench" if benchmark.split("_")[0] in SCHEDULES else "syncbench"


def _in_order(benchmarks: pd.Series) -> list[str]:
    """Those that are there: kernels and constructs in the order of their suites, others as they
    come.
    """
    present = dict.fromkeys(benchmarks)
    known = [name for name in (*KERNELS, *CONSTRUCTS) if name in present]
    return known + [name for name in present if name not in known]


def suite_title(part: pd.DataFrame, suite: str) -> str:
    names = part["benchmark"].unique()
    return f"{suite} ({names[0]})" if len(names) == 1 else suite


@or_blank
def figure_extremes(
    statistics: pd.DataFrame, by: str = "threads", width_in: float = PAGE_IN
) -> "Figure":
    """Least and greatest repetition of each run over its mean: a panel a suite, a cluster a number
    of threads (Cui et al. 2023, figure 3).

    Parameters
    ----------
    statistics
        `benchmark`, `round`, `min_normalised`, `max_normalised` and the column `by`; of one
        compiler.
    by
        Column whose values are the clusters.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure: a line a run from its least to its greatest; the five kernels of BabelStream
    reserved_role by reserved_role.
    """
    import matplotlib.pyplot as plt

    need_repetitions(statistics)
    suites = dict(iter(statistics.groupby(statistics["benchmark"].map(suite_of), sort=False)))
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
            _draw_extremes(axes, suites[name], by)
            axes.set_title(suite_title(suites[name], name))
            axes.set_xlabel(by)
        panels[0][0].set_ylabel("time over the run's mean")
    return figure


def _draw_extremes(axes: Any, statistics: pd.DataFrame, by: str) -> None:
    """Clusters of `by`; in each the benchmarks, and in these the runs."""
    benchmarks = _in_order(statistics["benchmark"])
    alone = by == "benchmark"  # then a cluster has one benchmark
    groups = benchmarks if alone else list(dict.fromkeys(statistics[by]))
    parts = 1 if alone else len(benchmarks)
    for number, (benchmark, role) in enumerate(zip(benchmarks, endless_roles())):
        for place, group in enumerate(groups):
            chosen = (statistics["benchmark"] == benchmark) & (statistics[by] == group)
            rows = statistics[chosen].sort_values("round")
            at = _cluster_places(place, number % parts, parts, len(rows))
            named = place == 0 and not alone and len(benchmarks) > 1
            _draw_runs_extremes(axes, at, rows, role, benchmark if named else None)
    axes.axhline(1, color="black", linewidth=0.6)
    axes.set_xticks(range(len(groups)), groups, rotation=45 if len(groups) > 7 else 0)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.grid(axis="x", visible=False)
    log_if_spread(axes, statistics[["min_normalised", "max_normalised"]].to_numpy())
    if axes.get_legend_handles_labels()[1]:
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.24),
            ncols=5,
            handletextpad=0.1,
            columnspacing=0.8,
        )


def _draw_runs_extremes(
    axes: Any, at: np.ndarray, rows: pd.DataFrame, role: Role, label: str | None
) -> None:
    """A line a run from its least to its greatest repetition, with a mark at either end."""
    low, high = rows["min_normalised"], rows["max_normalised"]
    axes.vlines(at, low, high, color=role.colour, linewidth=0.8)
    for values, name in ((low, label), (high, None)):
        axes.plot(
            at,
            values,
            linestyle="none",
            marker=role.marker,
            markersize=2.4,
            markeredgewidth=0,
            color=role.colour,
            label=name,
        )


def _cluster_places(place: int, part: int, parts: int, count: int) -> np.ndarray:
    """x of the runs of a part of a cluster, of which all together fill 0.8."""
    width = 0.8 / parts
    inner = (np.arange(count) - (count - 1) / 2) * 0.8 * width / max(count, 1)
    return place + (part - (parts - 1) / 2) * width + inner


@or_blank
def figure_sides(
    repeated: pd.DataFrame,
    statistics: pd.DataFrame,
    sides: Mapping[str, str],
    middle: str = "repetitions",
    width_in: float = PAGE_IN,
) -> "Figure":
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
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure: columns share their scale, so that the rows can be compared.
    """
    import matplotlib.pyplot as plt

    need_repetitions(repeated)
    with style():
        figure, panels = plt.subplots(
            len(sides), 3, figsize=(width_in, 0.4 + 1.75 * len(sides)), sharey="col", squeeze=False
        )
        for row, (config, missing) in zip(panels, sides.items()):
            if missing:
                empty_row(row, config, missing)
                continue
            part = repeated[repeated["config"] == config]
            runs = statistics[statistics["config"] == config]
            _draw_repetitions(
                row[0], part[part["benchmark"] == "dynamic_1"], f"{config}: schedbench (dynamic_1)"
            )
            if middle == "cv":
                _draw_cv(
                    row[1],
                    runs[runs["benchmark"].map(suite_of) == "syncbench"],
                    f"{config}: syncbench",
                )
            else:
                _draw_repetitions(
                    row[1],
                    part[part["benchmark"] == "reduction"],
                    f"{config}: syncbench (reduction)",
                )
            _draw_extremes(row[2], runs[runs["benchmark"].isin(KERNELS)], "benchmark")
            row[2].set_title(f"{config}: BabelStream")
            row[2].set_ylabel("time over mean")
    return figure


def _draw_repetitions(axes: Any, part: pd.DataFrame, title: str, seed: int = 0) -> None:
    """A strip a run, the run's mean as a dash."""
    role, number = ROLES["baseline"], part["run"].rank(method="dense")
    jitter = np.random.default_rng(seed).uniform(-0.28, 0.28, len(part))
    axes.scatter(
        number + jitter,
        part["value_us"],
        s=2.5,
        alpha=0.45,
        color=role.colour,
        linewidth=0,
        rasterized=len(part) > MANY,
    )
    means = part["value_us"].groupby(number).mean()
    _draw_dashes(axes, means.index, means, 8)
    axes.set(title=title, ylabel="time (µs)", xlabel="run")
    axes.set_xticks(means.index, [f"{index:.0f}" for index in means.index])
    axes.grid(axis="x", visible=False)
    log_if_spread(axes, part["value_us"].to_numpy())


def _draw_dashes(axes: Any, places: Iterable[int], values: pd.Series, points: float) -> None:
    """Means or medians, each a black dash of this width."""
    axes.plot(
        places,
        values,
        linestyle="none",
        marker="_",
        markersize=points,
        color="black",
        markeredgewidth=1.3,
    )


def _draw_cv(axes: Any, runs: pd.DataFrame, title: str) -> None:
    """A point a run above each construct, the median as a dash."""
    names = _in_order(runs["benchmark"])
    at, role = runs["benchmark"].map(names.index).to_numpy(float), ROLES["baseline"]
    jitter = np.random.default_rng(0).uniform(-0.2, 0.2, len(runs))
    axes.scatter(at + jitter, 100 * runs["cv"], s=7, alpha=0.6, color=role.colour, linewidth=0)
    middle = runs.groupby("benchmark")["cv"].median().reindex(names)
    _draw_dashes(axes, range(len(names)), 100 * middle, 9)
    axes.set(title=title, ylabel="CV of a run (%)")
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor")
    axes.grid(axis="x", visible=False)
    log_if_spread(axes, 100 * runs["cv"].to_numpy())


@or_blank
def figure_clock(
    repeated: pd.DataFrame, runs: pd.DataFrame, sides: Mapping[str, str], width_in: float = PAGE_IN
) -> "Figure":
    """Repetitions and the clock of the same runs, a row a placement (Cui et al. 2023, figures 6
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
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure. Where no frequency can be read, what the hypervisor took of each run stands
    in its place.
    """
    import matplotlib.pyplot as plt

    need_repetitions(repeated)
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
            part = repeated[repeated["config"] == config]
            if missing or part.empty:
                empty_row(row, config, missing or "not measured")
                continue
            _draw_repetitions(row[0], part, f"{config}: {part['benchmark'].iloc[0]}")
            chosen = runs[runs["run"].isin(part["run"])].sort_values("run")
            if known:
                _draw_frequency(row[1], chosen, config, known)
            else:
                _draw_stolen(row[1], chosen, config)
    return figure


def _draw_frequency(axes: Any, runs: pd.DataFrame, config: str, known: str) -> None:
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


def _draw_stolen(axes: Any, runs: pd.DataFrame, config: str) -> None:
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
def figure_reserved(repeated: pd.DataFrame, width_in: float = PAGE_IN) -> "Figure":
    """Schedules and chunks, and the dot product over the number of threads: with and without cores
    left to the system (Persson et al. 2025, figures 1 and 2).

    Parameters
    ----------
    repeated
        `benchmark`, `config`, `threads`, `value_us`, `reserved`
        (`nbhelpers.studies.cui.reserved_sides`); of one compiler.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure: left, of the roaming configurations, st:1 is the static schedule with chunks
    of 1, and so on; right, of pinned ones, dot by threads. Points: repetitions over the median of
    their strip; figures above them: the coefficient of variation in per cent.
    """
    import matplotlib.pyplot as plt

    need_repetitions(repeated)
    loops = repeated[
        (repeated["benchmark"].map(suite_of) == "schedbench")
        & repeated["config"].str.startswith("Rm")
    ]
    dots = repeated[(repeated["benchmark"] == "dot") & repeated["config"].str.startswith("TP")]
    with style():
        figure, panels = plt.subplots(1, 2, figsize=(width_in, 2.6), width_ratios=[2.2, 1])
        _draw_reserved(
            panels[0],
            loops.assign(place=loops["benchmark"].map(_schedule_label)),
            "schedule and chunk",
            "time over median",
        )
        _draw_reserved(
            panels[1], dots.assign(place=dots["threads"]), "threads (BabelStream, dot)", ""
        )
        handles = [
            panels[0].scatter(
                [],
                [],
                s=14,
                marker=reserved_role(reserved).marker,
                color=reserved_role(reserved).colour,
                label=label,
            )
            for reserved, label in ((False, "all cores work"), (True, "cores left to the system"))
        ]
        figure.legend(handles=handles, loc="outside upper left", ncols=2)
    return figure


def _schedule_label(benchmark: str) -> str:
    schedule, chunk = benchmark.split("_")
    return f"{SCHEDULES[schedule]}:{chunk}"


def reserved_role(reserved: bool) -> Role:
    return ROLES["baseline" if reserved else "injected"]


def _draw_reserved(axes: Any, part: pd.DataFrame, label: str, ylabel: str) -> None:
    places = sorted(part["place"].unique(), key=_place_order)
    middle = part.groupby(["place", "config"])["value_us"].transform("median")
    part = part.assign(value=part["value_us"] / middle)
    top = part["value"].max()
    for (place, reserved), rows in part.groupby(["place", "reserved"]):
        role, at = reserved_role(reserved), places.index(place) + (0.2 if reserved else -0.2)
        jitter = np.random.default_rng(0).uniform(-0.15, 0.15, len(rows))
        axes.scatter(
            at + jitter,
            rows["value"],
            s=3,
            marker=role.marker,
            color=role.colour,
            alpha=0.4,
            linewidth=0,
            rasterized=len(rows) > MANY,
        )
        axes.text(
            at,
            1.0,
            f"{100 * rows['value'].std() / rows['value'].mean():.0f}",
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=SMALL_POINTS,
            color=role.colour,
        )
    axes.axhline(1, color="black", linewidth=0.6)
    axes.set_xticks(range(len(places)), places)
    axes.set(xlabel=label, ylabel=ylabel, xlim=(-0.6, len(places) - 0.4))
    axes.grid(axis="x", visible=False)
    if np.isfinite(top):
        log_if_spread(axes, part["value"].to_numpy())


def _place_order(place: object) -> tuple:
    schedule, _, chunk = str(place).partition(":")
    return (list(SCHEDULES.values()).index(schedule), int(chunk)) if chunk else (0, int(schedule))
