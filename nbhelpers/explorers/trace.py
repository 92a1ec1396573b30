"""A trace on a time line: the slowest run above the median run, to zoom and to select in.

Owns the view of a part of two traces.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..outcomes import worst_first
from . import _drawing as draw
from ._base import Explorer
from ._controls import Control, Pick, Span

ALL = "all"
MOST_SOURCES = 20  # to choose from: those that take the most time
MOST_CPUS = 8  # on the time line: those with the most noise
MOST_ROWS = 8  # of the table
STEPS = 400
ROW, LEFT = 26, 150  # px
KINDS = {
    "irq": "#0072B2",
    "softirq": "#56B4E9",
    "thread": "#D55E00",
    "nmi": "#CC79A7",
    "hardware": "#767676",
}


@dataclass(frozen=True, eq=False)
class TraceExplorer(Explorer):
    """The slowest and the median run's noise on each CPU.

    Attributes
    ----------
    events
        Noise events of the two runs.
    runs
        Seconds of each, by run: the slowest first.
    """

    events: pd.DataFrame = field(repr=False)
    runs: dict[int, float]

    def controls(self) -> tuple[Control, ...]:
        """The part of the time, the kind, the source."""
        return self._controls

    @cached_property
    def _controls(self) -> tuple[Control, ...]:
        end = max(self.runs.values()) * 1e3
        taken = self.events.groupby("source", observed=True)["duration_ns"].sum()
        sources = taken.sort_values(ascending=False, kind="stable").index[:MOST_SOURCES]
        return (
            Span("part", "part of the run", (0.0, end), 0.0, end, end / STEPS, "ms"),
            Pick("kind", "kind", ALL, [ALL, *self._kinds]),
            Pick("source", "source", ALL, [ALL, *map(str, sources)]),
        )

    @cached_property
    def _kinds(self) -> list[str]:
        return [kind for kind in KINDS if (self.events["kind"] == kind).any()]

    def chosen(self) -> list[dict[str, Any]]:
        """Everything, each kind, and the tenth of the time that was noisiest."""
        kinds = [{"kind": kind} for kind in (ALL, *self._kinds)]
        return [*kinds, {"part": self._noisiest()}]

    def selected(self, state: dict[str, Any]) -> pd.DataFrame:
        """Events of this kind and source that overlap the part of the time."""
        low, high = (end * 1e6 for end in state["part"])
        events = self.events
        inside = (events["start_ns"] < high) & (events["end_ns"] > low)
        for name in ("kind", "source"):
            if state[name] != ALL:
                inside &= events[name] == state[name]
        return events[inside]

    def draw(self, state: dict[str, Any]) -> str:
        """The time line, and a table of sources."""
        chosen = self.selected(state)
        return self._time_line(chosen, state["part"]) + self._table(chosen)

    def _time_line(self, events: pd.DataFrame, part: tuple[float, float]) -> str:
        rows = [(run, cpu) for run in self.runs for cpu in self._cpus]
        frame = draw.Frame(LEFT, 10, draw.WIDTH - LEFT - 20, ROW * len(rows), part)
        parts = []
        for number, (run, cpu) in enumerate(rows):
            top = frame.top + ROW * number
            here = events[(events["run"] == run) & (events["cpu"] == cpu)]
            parts.append(draw.text(LEFT - 10, top + 18, self._name(run, cpu), "end"))
            parts.append(draw.line(LEFT, top + ROW - 3, draw.WIDTH - 20, top + ROW - 3, _FAINT))
            for kind, colour in KINDS.items():
                parts.append(_marks(here[here["kind"] == kind], frame, top, colour))
        bottom = frame.top + frame.height
        legend = "".join(
            draw.box(LEFT + 110 * place, bottom + 50, 12, 12, f'fill="{colour}"')
            + draw.text(LEFT + 110 * place + 18, bottom + 61, kind)
            for place, (kind, colour) in enumerate(KINDS.items())
        )
        label = "noise on each CPU, the slowest run above the median run"
        axis = frame.x_axis("ms from the start of the run")
        return draw.picture(bottom + 72, label, *parts, axis, legend)

    def _name(self, run: int, cpu: int) -> str:
        return f"{'slowest' if run == next(iter(self.runs)) else 'median'}, CPU {cpu}"

    @cached_property
    def _cpus(self) -> list[int]:
        taken = self.events.groupby("cpu")["duration_ns"].sum()
        return sorted(map(int, taken.nlargest(MOST_CPUS).index))

    def _table(self, events: pd.DataFrame) -> str:
        """Events and their time by source, slowest beside median run."""
        if events.empty:
            return "<p>No event of this kind in this part.</p>"
        groups = events.groupby(["source", "run"], observed=True)["duration_ns"]
        table = pd.DataFrame({"events": groups.size(), "µs": groups.sum() / 1e3}).unstack("run")
        table = table.fillna(0).reindex(
            columns=[(what, run) for run in self.runs for what in ("events", "µs")], fill_value=0
        )
        slowest = next(iter(self.runs))
        table = table.sort_values(("µs", slowest), ascending=False, kind="stable").head(MOST_ROWS)
        table.columns = [
            f"{what}, {'slowest' if run == slowest else 'median'} run"
            for what, run in table.columns
        ]
        return table.to_html(float_format=lambda value: f"{value:.0f}", border=0)

    def _noisiest(self) -> tuple[float, float]:
        """The tenth of the time in which the slowest run has the most noise, ms."""
        slowest, seconds = next(iter(self.runs.items()))
        mine = self.events[self.events["run"] == slowest]
        edges = np.linspace(0, seconds * 1e3, 11)
        middle = (mine["start_ns"] + mine["end_ns"]) / 2e6
        taken = np.histogram(middle, edges, weights=mine["duration_ns"])[0]
        at = int(taken.argmax())
        return float(edges[at]), float(edges[at + 1])


_FAINT = 'stroke="#bbbbbb" stroke-width="0.5"'


def explore_trace(events: pd.DataFrame, runs: pd.DataFrame) -> TraceExplorer:
    """Look around in the noise of the slowest run, beside that of the median run.

    Parameters
    ----------
    events
        Noise events table of traced runs.
    runs
        Runs table of these.

    Returns
    -------
    TraceExplorer: part of the time, kind and source can be chosen.

    Raises
    ------
    InputError
        Fewer than two traced runs.
    """
    traced = runs[runs["run"].isin(events["run"].unique())]
    if len(traced) < 2:
        raise InputError(
            f"{len(traced)} traced run(s) to compare", fix="trace at least two runs (stage 10)"
        )
    ordered = worst_first(traced)
    pair = ordered.iloc[[0, len(ordered) // 2]]
    seconds = dict(zip(map(int, pair["run"]), map(float, pair["region_seconds"]), strict=True))
    return TraceExplorer(events[events["run"].isin(list(seconds))], seconds)


def _marks(events: pd.DataFrame, frame: draw.Frame, top: float, colour: str) -> str:
    """A mark an event; those within one pixel column are one."""
    if events.empty:
        return ""
    right = frame.left + frame.width
    first = np.clip(frame.at_x(events["start_ns"] / 1e6), frame.left, right)
    last = np.clip(frame.at_x(events["end_ns"] / 1e6), frame.left, right)
    wide = np.maximum(last - first, 0.8)
    places = np.unique(np.column_stack([np.round(first, 1), np.round(wide, 1)]), axis=0)
    return draw.bars(places[:, 0], top + 3, places[:, 1], ROW - 6, colour)
