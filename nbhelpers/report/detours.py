"""Figures of what a loop saw: when it lost the CPU and for how long (as in Hoefler et al. 2010),
and how much work was left.
"""

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ._axes import MANY
from ._blank import NothingToDraw, need_rows, or_blank
from .appearance import PAGE_IN, POINTS, ROLES, Role, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN_CPUS = 4


@or_blank
def figure_detours(detours: pd.DataFrame, width_in: float = PAGE_IN) -> "Figure":
    """Each detour as a point: when it began, and how long it was.

    Parameters
    ----------
    detours
        `cpu`, `start_ns`, `duration_ns`; of at most four CPUs, those that lost most, a panel each.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure; above each panel the number of detours and their median length.
    """
    import matplotlib.pyplot as plt

    need_rows(detours, "no detour to draw", fix="record for longer: seconds=…")
    cpus = detours.groupby("cpu")["duration_ns"].sum().nlargest(SHOWN_CPUS).index.sort_values()
    with style():
        figure, panels = plt.subplots(
            1, len(cpus), figsize=(width_in, 2.2), sharex=True, sharey=True, squeeze=False
        )
        for axes, cpu in zip(panels[0], cpus):
            _draw_cpu(axes, detours[detours["cpu"] == cpu], cpu)
        panels[0][0].set_ylabel("length of the detour (µs)")
        figure.supxlabel("time since the loop began (s)", fontsize=POINTS)
    return figure


def _draw_cpu(axes: Any, shown: pd.DataFrame, cpu: int) -> None:
    lengths_us = shown["duration_ns"] / 1e3
    _draw_over_time(axes, shown["start_ns"], lengths_us, ROLES["baseline"])
    axes.set_yscale("log")
    axes.set_title(
        f"CPU {cpu}: {len(shown)} detours, median {np.median(lengths_us):.1f} µs", loc="left"
    )


def _draw_over_time(axes: Any, start_ns: pd.Series, values: pd.Series, role: Role) -> None:
    """A small mark at the time of each value."""
    axes.scatter(
        start_ns / 1e9,
        values,
        s=4,
        marker=role.marker,
        color=role.colour,
        alpha=0.4,
        edgecolor="none",
        rasterized=len(values) > MANY,
    )


@or_blank
def figure_systems(recordings: Mapping[str, pd.DataFrame], width_in: float = PAGE_IN) -> "Figure":
    """Detours of several systems, or of one in several states, side by side on the same axes: quiet
    and loaded (as in Hoefler et al. 2010).

    Parameters
    ----------
    recordings
        By name, detours with attrs `seconds` and perhaps `resolution_ns` (`record_detours`,
        `read_netgauge`); of each the CPU that lost most.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure; above each panel the resolution and the share of the time that was lost.
    """
    import matplotlib.pyplot as plt

    if not recordings or any(detours.empty for detours in recordings.values()):
        raise NothingToDraw(
            "no detour to draw",
            where=next((name for name, each in recordings.items() if each.empty), None),
            fix="record for longer",
        )
    with style():
        figure, panels = plt.subplots(
            1,
            len(recordings),
            figsize=(width_in, 2.2),
            sharey=True,
            squeeze=False,
            layout="constrained",
        )
        for axes, (name, detours), role in zip(
            panels[0], recordings.items(), itertools.cycle(("fast", "slow", "baseline"))
        ):
            _draw_system(axes, name, detours, ROLES[role])
        panels[0][0].set_ylabel("length of the detour (µs)")
        figure.supxlabel("time since the loop began (s)", fontsize=POINTS)
    return figure


def _draw_system(axes: Any, name: str, detours: pd.DataFrame, role: Role) -> None:
    seconds = detours.attrs.get("seconds", float(detours["end_ns"].max()) / 1e9)
    cpu = detours.groupby("cpu")["duration_ns"].sum().idxmax()
    shown = detours[detours["cpu"] == cpu]
    _draw_over_time(axes, shown["start_ns"], shown["duration_ns"] / 1e3, role)
    axes.set_yscale("log")
    resolution = (
        f"resolution {detours.attrs['resolution_ns']:.3g} ns, "
        if "resolution_ns" in detours.attrs
        else ""
    )
    axes.set_title(
        f"{name}\n{resolution}overhead {shown['duration_ns'].sum() / seconds / 1e9:.2%}", loc="left"
    )


@or_blank
def figure_quanta(samples: pd.DataFrame, width_in: float = PAGE_IN) -> "Figure":
    """FTQ or FWQ: each sample over time, and how they are distributed, the CPUs together.

    Parameters
    ----------
    samples
        Of `record_ftq` (`count`) or `record_fwq` (`duration_ns`).
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure. FTQ is drawn as the share of the best tenth's work, so that CPUs of different
    speed can be compared.
    """
    import matplotlib.pyplot as plt

    need_rows(samples, "no sample to draw", fix="record for longer: seconds=…")
    values, label = _quanta(samples)
    role = ROLES["baseline"]
    with style():
        figure, (course, distribution) = plt.subplots(
            1, 2, figsize=(width_in, 2.2), sharey=True, width_ratios=[3, 1], layout="constrained"
        )
        _draw_over_time(course, samples["start_ns"], values, role)
        course.set(xlabel="time since the loop began (s)", ylabel=label)
        distribution.hist(values, bins=60, orientation="horizontal", color=role.colour)
        distribution.set(xscale="log", xlabel="samples")
    return figure


def _quanta(samples: pd.DataFrame) -> tuple[pd.Series, str]:
    if "duration_ns" in samples:
        return samples["duration_ns"] / 1e3, "time of a portion of work (µs)"
    best = samples.groupby("cpu")["count"].transform(
        lambda counts: max(np.quantile(counts, 0.9), 1)
    )
    return samples["count"] / best, "work done (1 = undisturbed)"


@or_blank
def figure_return_levels(
    curve: pd.DataFrame, points: pd.DataFrame, width_in: float = PAGE_IN
) -> "Figure":
    """The longest detour against how long is recorded: foretold, with its interval, and recorded
    (a return level plot: Coles 2001, section 4.3.4).

    Parameters
    ----------
    curve
        `recording`, `cpu_seconds`, `median_ms`, `low_ms`, `high_ms`; a panel a recording.
    points
        `recording`, `cpu_seconds`, `longest_ms`.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure; a dashed line stands where the recording ends.
    """
    import matplotlib.pyplot as plt

    need_rows(curve, "no tail to draw", fix="record for longer")
    names = curve["recording"].drop_duplicates().tolist()
    with style():
        figure, panels = plt.subplots(
            1, len(names), figsize=(width_in, 2.6), sharey=True, squeeze=False
        )
        for axes, name in zip(panels[0], names):
            ours = points[points["recording"] == name]
            _draw_levels(axes, curve[curve["recording"] == name], ours)
            axes.set_title(name, loc="left")
        panels[0][0].set_ylabel("longest detour (ms)")
        panels[0][0].legend(loc="upper left")
        figure.supxlabel("time of a CPU (s)", fontsize=POINTS)
    return figure


def _draw_levels(axes: Any, curve: pd.DataFrame, points: pd.DataFrame) -> None:
    role, seen = ROLES["baseline"], ROLES["slow"]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.fill_between(
        curve["cpu_seconds"],
        curve["low_ms"],
        curve["high_ms"],
        color=role.colour,
        alpha=0.2,
        linewidth=0,
    )
    axes.plot(curve["cpu_seconds"], curve["median_ms"], color=role.colour, label="foretold")
    axes.scatter(
        points["cpu_seconds"],
        points["longest_ms"],
        s=9,
        color=seen.colour,
        marker=seen.marker,
        label="recorded",
    )
    axes.axvline(points["cpu_seconds"].max(), color="black", linewidth=0.6, linestyle="--")
