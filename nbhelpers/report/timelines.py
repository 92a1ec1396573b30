"""Figures of noise on a time line: a lane a CPU, a bar an event.

Owns the reading of configs, events and injection logs for drawing.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..noise import NoiseConfig
from ._axes import MANY, kind_role, legend_of_kinds
from ._blank import need_events, need_rows, or_blank
from .appearance import PAGE_IN, ROLES, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LANE_SHARE = {"softirq": 0.75, "thread": 0.5}  # of the lane's height; all other kinds fill it
_PART_MS = 60.0  # of a run, around what is left of its worst event
REACHED = ("injected", "late", "truncated", "cut")  # outcomes of events that took a CPU
SPAN = ("start_ns", "end_ns", "duration_ns")
LOG_COLUMNS = (
    "ran_on",
    "policy",
    "replay_start_ns",
    "replayed_ns",
    "taken_ns",
    "end_ns",
    "took_ns",
    "outcome",
)
# row of the figure: role of its colour, label, dash
LOSS_ROWS = {
    "planned": ("baseline", "planned", "-"),
    "injected": ("injected", "injected\n(its own log)", (0, (4, 2))),
    "observed": ("disturbed", "observed by\na program", (0, (1, 1))),
}


@or_blank
def figure_timeline(
    source: NoiseConfig | pd.DataFrame, log: pd.DataFrame | None = None, width_in: float = PAGE_IN
) -> "Figure":
    """Noise on a time line, a lane a CPU; with a log, what was achieved beneath what was planned.

    Parameters
    ----------
    source
        A noise config, or an events table of one run.
    log
        Injection log of its replay.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure. Events are drawn no thinner than a hair line, so short ones look longer than
    they are. Softirqs fill three quarters of a lane's height, threads half, all others the whole.
    """
    import matplotlib.pyplot as plt

    planned = source if isinstance(source, pd.DataFrame) else source.events()
    need_events(planned, ("cpu", "start_ns", "duration_ns"))
    cpus = sorted(planned["cpu"].unique())
    with style():
        figure, axes = plt.subplots(
            figsize=(width_in, 0.75 + (0.34 if log is None else 0.5) * len(cpus))
        )
        for lane, cpu in enumerate(cpus):
            on_cpu = planned[planned["cpu"] == cpu]
            draw_lane(axes, on_cpu, lane - 0.4, 0.8 if log is None else 0.36)
            if log is not None:
                draw_lane(axes, _achieved(log[log["cpu"] == cpu]), lane + 0.04, 0.36)
        axes.set_ylim(len(cpus) - 0.45, -0.55)
        axes.set_xlim(0, _end_ms(source, planned))
        axes.set_xlabel("time since the start of the timed region (ms)")
        _label_lanes(axes, cpus, log is not None)
        axes.grid(axis="y", visible=False)
        legend_of_kinds(
            figure, planned["kind"] if "kind" in planned else pd.Series(dtype=str), bars=False
        )
    return figure


def _end_ms(source: NoiseConfig | pd.DataFrame, planned: pd.DataFrame) -> float:
    last_ns = float((planned["start_ns"] + planned["duration_ns"]).max())
    return max(float(getattr(source, "window_ns", 0) or 0), last_ns) / 1e6


def _label_lanes(axes: Any, cpus: list, is_pair: bool) -> None:
    if is_pair:
        places = [place for lane in range(len(cpus)) for place in (lane - 0.22, lane + 0.22)]
        labels = [text for cpu in cpus for text in (f"CPU {cpu} planned", "achieved")]
    else:
        places = [float(lane) for lane in range(len(cpus))]
        labels = [f"CPU {cpu}" for cpu in cpus]
    axes.set_yticks(places, labels)
    axes.tick_params(axis="y", length=0)


def _achieved(log: pd.DataFrame) -> pd.DataFrame:
    """Events as they were injected; those not reached are left out. The kind is the log's if it has
    one.
    """
    reached = log[log["outcome"].isin(REACHED)]
    return reached.assign(duration_ns=reached["end_ns"] - reached["start_ns"])


def draw_lane(axes: Any, events: pd.DataFrame, bottom: float, height: float) -> None:
    kinds = (
        events["kind"].astype(str)
        if "kind" in events
        else pd.Series("hardware", index=events.index)
    )
    for kind, on_cpu in events.groupby(kinds):
        ends = (
            on_cpu["end_ns"] if "end_ns" in on_cpu else on_cpu["start_ns"] + on_cpu["duration_ns"]
        )
        tall = height * LANE_SHARE.get(kind, 1)
        starts = on_cpu["start_ns"].to_numpy(float) / 1e6
        widths = ends.to_numpy(float) / 1e6 - starts
        axes.broken_barh(
            list(zip(starts, widths)),
            (bottom + height - tall, tall),
            facecolor=kind_role(kind).colour,
            edgecolor=kind_role(kind).colour,
            linewidth=0.25,
            rasterized=len(on_cpu) > MANY,
        )


@or_blank
def figure_subtraction(
    lanes: pd.DataFrame, cpu: int | None = None, width_in: float = PAGE_IN
) -> "Figure":
    """The worst trace, what of it is average noise, what is left to be injected; and an ordinary
    run with it (Persson et al. 2025, figure 4).

    Parameters
    ----------
    lanes
        Of `nbhelpers.studies.persson.trace_lanes`: `lane` (its label, in order), `cpu`, `kind`,
        `start_ns`, `duration_ns`, `left` (bool: the lane of what is left).
    cpu
        Which; None: the one with the longest event that is left.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure: the whole run above, the part around the longest event that is left below.
    """
    import matplotlib.pyplot as plt

    left = lanes[lanes["left"]]
    need_rows(
        left,
        "nothing is left of the trace",
        why="all of its noise is average noise",
        fix="take another run",
    )
    longest = (
        left.loc[left["duration_ns"].idxmax()]
        if cpu is None
        else left[left["cpu"] == cpu].nlargest(1, "duration_ns").iloc[0]
    )
    on_cpu = lanes[lanes["cpu"] == longest["cpu"]]
    names = list(dict.fromkeys(lanes["lane"]))
    end_ms = float((on_cpu["start_ns"] + on_cpu["duration_ns"]).max()) / 1e6
    middle = (longest["start_ns"] + longest["duration_ns"] / 2) / 1e6
    half = max(_PART_MS, 3 * longest["duration_ns"] / 1e6) / 2
    part = (max(0.0, middle - half), min(end_ms, middle + half))
    with style():
        figure, panels = plt.subplots(2, 1, figsize=(width_in, 0.9 + 0.5 * len(names)))
        for axes, limits in zip(panels, ((0.0, end_ms), part)):
            for row, name in enumerate(names):
                draw_lane(axes, on_cpu[on_cpu["lane"] == name], row - 0.4, 0.8)
            axes.set_yticks(range(len(names)), names)
            axes.set(ylim=(len(names) - 0.5, -0.5), xlim=limits)
            axes.tick_params(axis="y", length=0)
            axes.grid(axis="y", visible=False)
        panels[0].axvspan(*part, color="#DDDDDD", linewidth=0, zorder=0)
        panels[0].set_title(
            f"CPU {longest['cpu']}: the whole run; below, the grey part", loc="left"
        )
        panels[1].set_xlabel("time since the start of the timed region (ms)")
        legend_of_kinds(figure, on_cpu["kind"], bars=False)
    return figure


@or_blank
def figure_observed_loss(
    log: pd.DataFrame,
    gaps: pd.DataFrame,
    cpu: int | None = None,
    around_ms: tuple[float, float] | None = None,
    width_in: float = PAGE_IN,
) -> "Figure":
    """Planned and injected noise of a CPU on a time line, above what a program that only reads the
    clock lost there.

    Parameters
    ----------
    log
        Injection log of one run, with the column `took_ns`: what each event took
        (`nbhelpers.injection.observe_loss(…).drawn`).
    gaps
        When the program was without its CPU: `cpu`, `start_ns`, `duration_ns`, from the same zero.
    cpu
        Which; None: the one with the most planned noise.
    around_ms
        Begin and end of the part that the right half enlarges; None: around an event of the upper
        middle size.
    width_in
        Of the figure at print size, in inches.

    Returns ------- matplotlib Figure: above, when the CPU was taken (pale: interruptions that meet
    no injected event, the machine's own); below, how much of it was lost so far, without the pale
    ones. Where the three lines lie on each other, the replay took what was planned, when it was
    planned, and the program lost just that.
    """
    import matplotlib.pyplot as plt

    cpu, spans, shown = _loss_spans(log, gaps, cpu)
    whole = (0.0, 1.02 * float(max(spans["planned"][:, 1].max(), spans["injected"][:, 1].max())))
    zoom = around_ms or _part_to_enlarge(shown)
    with style():
        figure, panels = plt.subplots(
            2,
            2,
            figsize=(width_in, 3.3),
            height_ratios=[1.15, 1],
            sharex="col",
            width_ratios=[1.5, 1],
        )
        for (upper, lower), limits in zip(panels.T, (whole, zoom)):
            _draw_spans(upper, spans, limits)
            _draw_lost(lower, spans, limits)
            lower.set_xlim(*limits)
            lower.set_xlabel("time (ms)")
        panels[0, 0].axvspan(*zoom, color="#DDDDDD", linewidth=0, zorder=0)
        panels[0, 0].set_title(f"CPU {cpu}: when it was taken away", loc="left")
        panels[0, 1].set_title("the grey part, enlarged", loc="left")
        panels[0, 0].set_yticks(
            range(len(LOSS_ROWS)), [label for _, label, _ in LOSS_ROWS.values()]
        )
        panels[0, 1].set_yticks(range(len(LOSS_ROWS)), [""] * len(LOSS_ROWS))
        panels[1, 0].set_ylabel("time lost so far (ms)")
        panels[1, 0].legend(loc="upper left")
    return figure


def _loss_spans(
    log: pd.DataFrame, gaps: pd.DataFrame, cpu: int | None
) -> tuple[int, dict[str, np.ndarray], np.ndarray]:
    """(begin, end, time lost in it) in ms of what was planned, injected and observed on a CPU, and
    lost without injection; the planned ones to show.
    """
    need_events(log, LOG_COLUMNS)
    done = log[log["outcome"].isin(REACHED)]
    need_rows(
        done, "no event was injected", where="injection log", fix="look at the column outcome"
    )
    cpu = int(done.groupby("ran_on")["replayed_ns"].sum().idxmax()) if cpu is None else cpu
    done = done[done["ran_on"] == cpu].sort_values("taken_ns")
    lost = gaps[gaps["cpu"] == cpu].assign(end_ns=lambda gap: gap["start_ns"] + gap["duration_ns"])
    met = _meets(lost, done)
    planned_end = done["replay_start_ns"] + done["replayed_ns"]
    spans = {
        "planned": _in_ms(done["replay_start_ns"], planned_end, done["replayed_ns"]),
        "injected": _in_ms(done["taken_ns"], done["end_ns"], done["took_ns"]),
        "observed": _in_ms(*(lost.loc[met, name] for name in SPAN)),
        "other": _in_ms(*(lost.loc[~met, name] for name in SPAN)),
    }
    realtime = ~done["policy"].isin(["SCHED_OTHER", "SCHED_BATCH", "SCHED_IDLE"]).to_numpy()
    return cpu, spans, spans["planned"][realtime] if realtime.any() else spans["planned"]


def _meets(gaps: pd.DataFrame, done: pd.DataFrame) -> np.ndarray:
    """Which gaps an injected event meets: more events have begun by the gap's end than had ended by
    its beginning.
    """
    begun = np.searchsorted(done["taken_ns"], gaps["end_ns"])
    ended = np.searchsorted(np.sort(done["end_ns"]), gaps["start_ns"])
    return begun > ended


def _in_ms(*columns_ns: pd.Series) -> np.ndarray:
    return np.column_stack([np.asarray(column, float) / 1e6 for column in columns_ns])


def _part_to_enlarge(planned: np.ndarray) -> tuple[float, float]:
    """A window of some lengths of an event of the upper middle size; an interrupt if there is one,
    since it comes when it is to.
    """
    begin, end, length = planned[
        np.argsort(planned[:, 2], kind="stable")[int(0.7 * (len(planned) - 1))]
    ]
    margin = max(length, 0.15)
    return float(begin - margin), float(end + 1.5 * margin)


def _draw_spans(axes: Any, spans: dict[str, np.ndarray], limits: tuple[float, float]) -> None:
    rows = {name: (row, role) for row, (name, (role, _, _)) in enumerate(LOSS_ROWS.items())}
    for name, (row, role) in ({"other": rows["observed"]} | rows).items():
        shown = spans[name][(spans[name][:, 1] >= limits[0]) & (spans[name][:, 0] <= limits[1])]
        colour = ROLES[role].colour
        axes.broken_barh(
            [(begin, end - begin) for begin, end, _ in shown],
            (row - 0.4, 0.8),
            facecolor=colour,
            edgecolor=colour,
            linewidth=0.3,
            zorder=2,
            rasterized=len(shown) > MANY,
            alpha=0.25 if name == "other" else 1,
        )
    axes.set_ylim(len(LOSS_ROWS) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)


def _draw_lost(axes: Any, spans: dict[str, np.ndarray], limits: tuple[float, float]) -> None:
    """Time lost since the beginning of the panel."""
    for name, (role, _, dash) in LOSS_ROWS.items():
        times, lost = _lost_line(spans[name])
        grid = np.unique(np.concatenate([np.clip(times, *limits), limits]))
        values = np.interp(grid, times, lost) if len(times) else np.zeros(len(grid))
        axes.plot(
            grid,
            values - values[0],
            color=ROLES[role].colour,
            linestyle=dash,
            linewidth=2.4 if name == "planned" else 1.3,
            label=name,
            alpha=0.5 if name == "planned" else 1,
        )


def _lost_line(spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the line of lost time; each span's is spread evenly over it, and spans may
    overlap.
    """
    begin, end = spans[:, 0], np.maximum(spans[:, 1], spans[:, 0] + 1e-6)
    edges = np.concatenate([begin, end])
    steps = np.concatenate([spans[:, 2] / (end - begin), -spans[:, 2] / (end - begin)])
    order = np.argsort(edges, kind="stable")
    edges, slopes = edges[order], np.cumsum(steps[order])
    return edges, (
        np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(edges))]) if len(edges) else edges
    )
