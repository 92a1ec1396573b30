"""A trace on a time line: the slowest run above the median run, to zoom and to select in."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from ..errors import InputError
from ..outcomes import worst_first
from ..palette import KINDS, PAGE_IN
from ..report.appearance import style
from ..report.images import DRAWING, embedded
from ..report.lanes import draw_lanes
from ._base import Control, Explorer

ALL = "all"
SIDES = ("slowest", "median")
MOST_SOURCES = 20  # to choose from: those that take the most time
MOST_CPUS = 8  # on the time line: those with the most noise
MOST_ROWS = 8  # of the table
STEPS = 400


def explore_trace(events: pd.DataFrame, runs: pd.DataFrame) -> Explorer:
    """Look around in the noise of the slowest run, beside that of the median run.

    Parameters
    ----------
    events
        Noise events table of traced runs.
    runs
        Runs table of these.

    Returns
    -------
    Explorer: part of the time, kind and source can be chosen.

    Raises
    ------
    InputError
        Fewer than two traced runs.
    """
    traced = worst_first(runs[runs["run"].isin(events["run"].unique())])
    if len(traced) < 2:
        fix = "trace at least two runs (stage 10)"
        raise InputError(f"{len(traced)} traced run(s) to compare", fix=fix)
    pair = traced.iloc[[0, len(traced) // 2]]
    sides = dict(zip(map(int, pair["run"]), SIDES, strict=True))
    events = events.assign(side=events["run"].map(sides)).dropna(subset="side")
    times = np.linspace(0, 1e3 * float(pair["region_seconds"].max()), STEPS + 1).tolist()
    kinds = [kind for kind in KINDS if (events["kind"] == kind).any()]
    taken = events.groupby("source", observed=True)["duration_ns"].sum()
    sources = map(str, taken.nlargest(MOST_SOURCES).index)
    whole = times[0], times[-1]
    return Explorer(
        partial(_trace, events),
        {
            "part": Control("part of the run", times, whole, "ms"),
            "kind": Control("kind", [ALL, *kinds], ALL),
            "source": Control("source", [ALL, *sources], ALL),
        },
        [*({"kind": kind} for kind in (ALL, *kinds)), {"part": _noisiest(events, times)}],
    )


def _noisiest(events: pd.DataFrame, times: list[float]) -> tuple[float, float]:
    """The tenth of the time in which the slowest run has the most noise, ms."""
    mine, edges = events[events["side"] == "slowest"], times[:: STEPS // 10]
    middle = (mine["start_ns"] + mine["end_ns"]) / 2e6
    at = int(np.histogram(middle, edges, weights=mine["duration_ns"])[0].argmax())
    return edges[at], edges[at + 1]


def _trace(events: pd.DataFrame, part: tuple[float, float], kind: str, source: str) -> str:
    """The time line, and a table of sources, of events that overlap the part of the time, ms."""
    import matplotlib.pyplot as plt

    low, high = part
    chosen = events[(events["start_ns"] < high * 1e6) & (events["end_ns"] > low * 1e6)]
    for name, value in (("kind", kind), ("source", source)):
        chosen = chosen[(chosen[name] == value) | (value == ALL)]
    cpus = sorted(events.groupby("cpu")["duration_ns"].sum().nlargest(MOST_CPUS).index)
    lanes = [f"{side}, CPU {cpu}" for side, cpu in product(SIDES, cpus)]
    drawn = chosen[chosen["cpu"].isin(cpus)]
    drawn = drawn.assign(lane=drawn["side"] + ", CPU " + drawn["cpu"].astype(str))
    with DRAWING, style():
        figure, axes = plt.subplots(figsize=(PAGE_IN, 0.9 + 0.2 * len(lanes)))
        draw_lanes(axes, drawn, lanes, "lane")
        axes.set(xlabel="ms from the start of the run", xlim=(low, max(high, low + 1e-3)))
        shown = embedded(figure, "noise on each CPU, the slowest run above the median run")
    if chosen.empty:
        return f"{shown}<p>No event of this kind in this part.</p>"
    columns: dict[str, pd.Series] = {}
    for side in SIDES:
        mine = chosen[chosen["side"] == side].groupby("source", observed=True)["duration_ns"]
        columns |= {f"events, {side} run": mine.size(), f"µs, {side} run": mine.sum() / 1e3}
    table = pd.DataFrame(columns).fillna(0)
    table = table.nlargest(MOST_ROWS, [f"µs, {side} run" for side in SIDES])
    return shown + table.to_html(float_format=lambda value: f"{value:.0f}", border=0)
