"""How a trace becomes a replay, drawn of real traces and configs (Persson et al. 2025, figures 3, 5
and 6): a sample of the trace, the file, and what the injector makes of it.
"""

import json
from numbers import Integral
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..empty import because, why_empty
from ..noise import NoiseConfig
from ._axes import legend_of_kinds
from ._blank import need_rows, or_blank
from .appearance import PAGE_IN, ROLES, SMALL_POINTS, style
from .timelines import draw_lane

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CPUS = 8  # drawn one by one
_LINE_IN = 0.145  # height of a line of the file
Lane = tuple[str, pd.DataFrame]  # label, events
_BOX = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": "black", "linewidth": 0.6}
_ARROW = {"arrowstyle": "->", "linewidth": 0.6, "color": "#555555"}
_ACTIONS = {"SCHED_FIFO": "real-time", "SCHED_RR": "real-time"}


def trace_sample(events: pd.DataFrame, rows: int = 7) -> pd.DataFrame:
    """Some events of a trace as the paper's figure 3 prints them: one of each kind and source, the
    first ones, in the order of time.

    Parameters
    ----------
    events
        Of one run: `cpu`, `kind`, `source`, `start_ns`, `duration_ns`.
    rows
        How many at most.

    Returns
    -------
    `cpu`, `event_type`, `source`, `start_seconds` (since the start of the timed region),
    `duration_ns`.
    """
    first = (
        events.sort_values(["start_ns", "cpu"], kind="stable")
        .drop_duplicates(["kind", "source"])
        .head(rows)
    )
    table = pd.DataFrame(
        {
            "cpu": first["cpu"],
            "event_type": first["kind"].astype(str) + "_noise",
            "source": first["source"].astype(str),
            "start_seconds": first["start_ns"] / 1e9,
            "duration_ns": first["duration_ns"],
        }
    ).reset_index(drop=True)
    return because(table, why_empty(events) or "the trace has no event")


@or_blank
def figure_config(config: NoiseConfig, events: int = 3, width_in: float = PAGE_IN) -> "Figure":
    """The structure of a config file, with its first events (Persson et al. 2025, figure 5).

    Parameters
    ----------
    config
        NoiseConfig.
    events
        Of each CPU that are shown.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure: the file as text, each line with what it is.
    """
    import matplotlib.pyplot as plt

    lines = _excerpt(config, events)
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 0.2 + _LINE_IN * len(lines)))
        axes.set(xlim=(0, 1), ylim=(len(lines) - 0.4, -0.8))
        axes.axis("off")
        for row, (text, note) in enumerate(lines):
            axes.text(0.0, row, text, family="DejaVu Sans Mono", fontsize=SMALL_POINTS, va="center")
            if note:
                axes.annotate(
                    note,
                    (0.665, row),
                    (0.70, row),
                    va="center",
                    fontsize=SMALL_POINTS,
                    color=ROLES["baseline"].colour,
                    arrowprops={
                        "arrowstyle": "-",
                        "color": ROLES["baseline"].colour,
                        "linewidth": 0.6,
                    },
                )
    return figure


def _excerpt(config: NoiseConfig, events: int) -> list[tuple[str, str]]:
    """Lines of the file, each with what it is; what is left out stands as …"""
    table = config.events()
    columns = ["start_ns", "duration_ns", "policy", "priority", "kind", "source"]
    lines = [
        ('{"format": "noisebook noise config 1",', "which format"),
        (' "provenance": {…},', "run, traces and method it is made of"),
        (f' "window_ns": {config.window_ns},', "length of the recorded run"),
        (f' "columns": {json.dumps(columns)},', "what the numbers are"),
        (' "cpus": {', ""),
    ]
    cpus = sorted(table["cpu"].unique())
    for cpu in cpus[:2]:
        on_cpu = table[table["cpu"] == cpu]
        rows = [
            json.dumps([int(value) if isinstance(value, Integral) else str(value) for value in row])
            for row in on_cpu[columns].head(events).itertuples(index=False, name=None)
        ]
        starts = [f'  "{cpu}": [', *["   " + " " * len(str(cpu)) + "    "] * (len(rows) - 1)]
        notes = [
            "a list a CPU, in the order of time",
            *["start, length, how it is scheduled, what it was"] * (len(rows) > 1),
            *[""] * max(len(rows) - 2, 0),
        ]
        ends = [","] * (len(rows) - 1) + [", …]," if len(on_cpu) > events else "],"]
        lines += [
            (start + row + end, note if cpu == cpus[0] or number == 0 and note else "")
            for number, (start, row, end, note) in enumerate(zip(starts, rows, ends, notes))
        ]
        if cpu == cpus[0] and len(on_cpu) > events:
            lines[-1] = (lines[-1][0], f"… {len(on_cpu)} events in all")
    return lines + [("  … }}" if len(cpus) > 2 else " }}", f"{len(cpus)} CPUs")]


@or_blank
def figure_replay(config: NoiseConfig, width_in: float = PAGE_IN) -> "Figure":
    """How the injector works a config off: a process a CPU and urgency, one start for all, each
    event at its time (Persson et al. 2025, figure 6).

    Parameters
    ----------
    config
        NoiseConfig with at least one event.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure: the events are the config's own; at most eight CPUs are drawn.
    """
    import matplotlib.pyplot as plt

    table = config.events()
    need_rows(table, "no event to be injected", where="noise config")
    urgency = table["policy"].astype(str).map(_ACTIONS).fillna("ordinary")
    shown = sorted(table["cpu"].unique())[:MOST_CPUS]
    lanes = [
        (f"CPU {cpu}, {what}", on_cpu)
        for (cpu, what), on_cpu in table.groupby([table["cpu"], urgency])
        if cpu in shown
    ]
    with style():
        figure, (left, right) = plt.subplots(
            1,
            2,
            figsize=(width_in, 0.8 + 0.3 * (len(lanes) + 1)),
            width_ratios=[1, 1.35],
            sharey=True,
        )
        _draw_processes(left, config, lanes, len(table["cpu"].unique()) - len(shown))
        _draw_schedule(right, config, lanes)
        legend_of_kinds(figure, table["kind"], bars=False)
    return figure


def _draw_processes(axes: Any, config: NoiseConfig, lanes: list[Lane], hidden: int) -> None:
    """The file, and an arrow to each process with what it has to do."""
    middle = len(lanes) / 2
    axes.text(
        0.0,
        middle,
        f"noise config\n{len(config.events())} events\n{config.window_ns / 1e6:.0f} ms",
        ha="left",
        va="center",
        bbox=_BOX,
    )
    words = {"va": "center", "fontsize": SMALL_POINTS}
    for row, (name, events) in enumerate(lanes, start=1):
        axes.annotate("", (0.42, row), (0.30, middle), arrowprops=_ARROW)
        total_ms = events["duration_ns"].sum() / 1e6
        axes.text(0.44, row, f"{name}: {len(events)} events, {total_ms:.2f} ms", **words)
    axes.text(0.44, 0, "the program, at its barrier", **words)
    if hidden:
        axes.text(0.44, len(lanes) + 0.7, f"and {hidden} more CPUs", color="#555555", **words)
    axes.set(xlim=(0, 1.15), ylim=(len(lanes) + 0.9, -0.7))
    axes.axis("off")


def _draw_schedule(axes: Any, config: NoiseConfig, lanes: list[Lane]) -> None:
    end_ms = config.window_ns / 1e6
    axes.barh(0, end_ms, height=0.5, color="#DDDDDD")
    axes.text(end_ms / 2, 0, "the program runs", ha="center", va="center", fontsize=SMALL_POINTS)
    for row, (_, on_cpu) in enumerate(lanes, start=1):
        axes.axhline(row, color="#DDDDDD", linewidth=0.4)
        draw_lane(axes, on_cpu, row - 0.35, 0.7)
    axes.axvline(0, color=ROLES["injected"].colour, linestyle="--")
    axes.set_title(
        "one start for all, then each sleeps until its next event",
        loc="left",
        fontsize=SMALL_POINTS,
    )
    axes.set(xlabel="time since the start (ms)", xlim=(-0.02 * end_ms, end_ms))
    axes.grid(visible=False)
    axes.tick_params(axis="y", left=False, labelleft=False)
    axes.spines["left"].set_visible(False)
