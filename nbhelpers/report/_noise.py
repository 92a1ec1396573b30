"""Figures of noise: how much each source costs, and where each event lies on the time line.

Owns the colours of noise kinds on CPUs and the reading of configs, events and logs for drawing.
"""

import numpy as np
import pandas as pd

from ..errors import InputError
from .style import KINDS, PAGE_IN, Role, style

SOURCES = 12           # shown one by one; the rest as one line
ROW_LABEL = 22         # letters of a source name
OTHER = Role("#CCCCCC", "|", "-", "")
LANE_SHARE = {"softirq": 0.75, "thread": 0.5}  # of the lane's height; all other kinds fill it
MANY = 3000            # marks from which a drawing is stored as pixels


def _check(events: pd.DataFrame, columns: tuple[str, ...]) -> None:
    for column in columns:
        if column not in events.columns:
            raise InputError(f"no column {column!r} in the events", mend=f"the table has: {', '.join(map(str, events.columns))}")
    if events.empty:
        raise InputError("no noise event to draw", mend="look at the trace: it has no event within the timed region")


def figure_noise(noise: pd.DataFrame, title: str | None = None, width_in: float = PAGE_IN):
    """Share of CPU time of each source of noise, and beside it the median and the longest event.

    Parameters
    ----------
    noise : of `nbhelpers.trace.summary`: kind, source, events, cpu_share, p50_us, max_us; the most expensive first.
    title : a short heading, e.g. to tell two such figures apart.

    Returns
    -------
    matplotlib Figure: the twelve most expensive sources one by one, all others together.
    """
    import matplotlib.pyplot as plt

    noise = noise.reset_index() if "kind" in noise.index.names else noise
    _check(noise, ("kind", "source", "events", "cpu_share", "p50_us", "max_us"))
    table = _with_rest(noise[["kind", "source", "events", "cpu_share", "p50_us", "max_us"]].astype({"kind": str, "source": str}))
    rows = np.arange(len(table))
    with style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(width_in, 1.0 + 0.19 * len(table)), sharey=True)
        for row, entry in zip(rows, table.itertuples()):
            role = _kind(entry.kind)
            left.barh(row, 100 * entry.cpu_share, height=0.7, color=role.colour, hatch=role.hatch, edgecolor="white", linewidth=0)
            right.plot([entry.p50_us, entry.max_us], [row, row], color=role.colour, linewidth=0.9)
            right.plot(entry.max_us, row, color=role.colour, marker=role.marker, linestyle="none")
            right.plot(entry.p50_us, row, color=role.colour, marker="|", markersize=7, linestyle="none")
        left.set_yticks(rows, [_short(entry.source) for entry in table.itertuples()])
        left.set_ylim(len(table) - 0.5, -0.5)
        left.set_xlabel("share of CPU time (%)")
        right.set_xscale("log")
        right.set_xlabel("median | to longest event (µs)")
        for axes in (left, right):
            axes.grid(axis="y", visible=False)
        _kind_legend(figure, table["kind"], bars=True)
        if title:
            left.set_title(title, loc="left")
    return figure


def _with_rest(table: pd.DataFrame) -> pd.DataFrame:
    if len(table) <= SOURCES + 1:
        return table
    rest = table.iloc[SOURCES:]
    total = {"kind": "", "source": f"{len(rest)} other sources", "events": rest["events"].sum(), "cpu_share": rest["cpu_share"].sum(),
             "p50_us": np.average(rest["p50_us"], weights=rest["events"]), "max_us": rest["max_us"].max()}
    return pd.concat([table.head(SOURCES), pd.DataFrame([total])], ignore_index=True)


def _kind(name: object) -> Role:
    return KINDS.get(str(name), OTHER)


def _short(source: object) -> str:
    text = str(source)
    return text if len(text) <= ROW_LABEL else text[: ROW_LABEL - 1] + "…"


def _kind_legend(figure, kinds: pd.Series, bars: bool) -> None:
    from matplotlib.patches import Patch

    present = [kind for kind in KINDS if kind in set(map(str, kinds))]
    handles = [Patch(facecolor=KINDS[kind].colour, hatch=KINDS[kind].hatch if bars else None, edgecolor="white", label=kind) for kind in present]
    figure.legend(handles=handles, loc="outside upper right", ncols=5)


def figure_timeline(source: object, log: pd.DataFrame | None = None, width_in: float = PAGE_IN):
    """Noise on a time line, a lane a CPU; with a log, what was achieved beneath what was planned.

    Parameters
    ----------
    source : a NoiseConfig (anything with a method `events()`) or an events table of one run.
    log : injection log of its replay.

    Returns
    -------
    matplotlib Figure. Events are drawn no thinner than a hair line, so short ones look longer than they are. Softirqs fill three
    quarters of a lane's height, threads half, all others the whole.
    """
    import matplotlib.pyplot as plt

    planned = source if isinstance(source, pd.DataFrame) else source.events()
    _check(planned, ("cpu", "start_ns", "duration_ns"))
    cpus = sorted(planned["cpu"].unique())
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 0.75 + (0.34 if log is None else 0.5) * len(cpus)))
        for lane, cpu in enumerate(cpus):
            own = planned[planned["cpu"] == cpu]
            _draw_lane(axes, own, lane - 0.4, 0.8 if log is None else 0.36)
            if log is not None:
                _draw_lane(axes, _achieved(log[log["cpu"] == cpu]), lane + 0.04, 0.36)
        axes.set_ylim(len(cpus) - 0.45, -0.55)
        axes.set_xlim(0, _end_ms(source, planned))
        axes.set_xlabel("time since the start of the timed region (ms)")
        _label_lanes(axes, cpus, log is not None)
        axes.grid(axis="y", visible=False)
        _kind_legend(figure, planned["kind"] if "kind" in planned else pd.Series(dtype=str), bars=False)
    return figure


def _end_ms(source: object, planned: pd.DataFrame) -> float:
    last_ns = float((planned["start_ns"] + planned["duration_ns"]).max())
    return max(float(getattr(source, "window_ns", 0) or 0), last_ns) / 1e6


def _label_lanes(axes, cpus: list, is_pair: bool) -> None:
    if is_pair:
        places = [place for lane in range(len(cpus)) for place in (lane - 0.22, lane + 0.22)]
        labels = [text for cpu in cpus for text in (f"CPU {cpu} planned", "achieved")]
    else:
        places, labels = range(len(cpus)), [f"CPU {cpu}" for cpu in cpus]
    axes.set_yticks(places, labels)
    axes.tick_params(axis="y", length=0)


def _achieved(log: pd.DataFrame) -> pd.DataFrame:
    """Events as they were injected; those not reached are left out. The kind is the log's if it has one."""
    reached = log[log["outcome"].isin(["injected", "late", "cut"])]
    return reached.assign(duration_ns=reached["end_ns"] - reached["start_ns"])


def _draw_lane(axes, events: pd.DataFrame, bottom: float, height: float) -> None:
    kinds = events["kind"].astype(str) if "kind" in events else pd.Series("hardware", index=events.index)
    for kind, own in events.groupby(kinds):
        ends = own["end_ns"] if "end_ns" in own else own["start_ns"] + own["duration_ns"]
        tall = height * LANE_SHARE.get(kind, 1)
        starts = own["start_ns"].to_numpy(float) / 1e6
        widths = ends.to_numpy(float) / 1e6 - starts
        axes.broken_barh(list(zip(starts, widths)), (bottom + height - tall, tall), facecolor=_kind(kind).colour, edgecolor=_kind(kind).colour,
                         linewidth=0.25, rasterized=len(own) > MANY)
