"""The figure of simulated ranks on a time line: work, messages, detours and the critical path."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ._blank import need_columns, or_blank
from .appearance import PAGE_IN, ROLES, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WORK = {
    "calc": ROLES["baseline"],
    "send": ROLES["traced"],
    "reception": ROLES["fast"],
    "detour": ROLES["injected"],
}
_WORK_NAMES = {
    "calc": "computation",
    "send": "overhead of sending",
    "reception": "overhead of receiving",
    "detour": "detour",
}


@or_blank
def figure_ranks(
    timeline: pd.DataFrame, path: pd.DataFrame | None = None, width_in: float = PAGE_IN
) -> "Figure":
    """What every rank did when: computation, overheads, messages between ranks, detours; and the
    critical path through them.

    Parameters
    ----------
    timeline
        Of `Result.timeline`; small cases, up to some 32 ranks.
    path
        Of `Result.path`, outlined.
    width_in
        Of the figure at print size, in inches.

    Returns
    -------
    matplotlib Figure: a line a rank, time to the right; a message is a line from the sender to the
    receiver.
    """
    import matplotlib.pyplot as plt

    need_columns(timeline, ["rank", "what", "start_ns", "end_ns", "peer"])
    ranks = np.unique(timeline["rank"]).tolist()
    place = {rank: number for number, rank in enumerate(ranks)}
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 0.9 + 0.22 * len(ranks)))
        for what, role in _WORK.items():
            spans = timeline[timeline["what"] == what]
            offset, height = (0.36, 0.16) if what == "detour" else (0.0, 0.5)
            axes.barh(
                spans["rank"].map(place) - offset,
                (spans["end_ns"] - spans["start_ns"]) / 1e3,
                left=spans["start_ns"] / 1e3,
                height=height,
                color=role.colour,
                hatch=role.hatch * 2,
                edgecolor="white",
                linewidth=0.3,
                label=_WORK_NAMES[what] if len(spans) else None,
            )
        _draw_messages(axes, timeline[timeline["what"] == "message"], place)
        if path is not None and len(path):
            _draw_path(axes, path, place, _latency_ns(timeline))
        axes.set_yticks(range(len(ranks)), [str(rank) for rank in ranks])
        axes.set_ylim(len(ranks) - 0.4, -0.7)
        axes.set_xlim(left=0)
        axes.set_ylabel("rank")
        axes.set_xlabel("simulated time (µs)")
        axes.grid(axis="y", visible=False)
        figure.legend(loc="outside upper left", ncols=6)
    return figure


def _draw_messages(axes: Any, messages: pd.DataFrame, place: Mapping[int, int]) -> None:
    for number, row in enumerate(messages.itertuples()):
        axes.plot(
            [row.start_ns / 1e3, row.end_ns / 1e3],
            [place[row.rank], place[row.peer]],
            color="#999999",
            linewidth=0.5,
            zorder=1,
            label="message" if number == 0 else None,
        )


def _draw_path(axes: Any, path: pd.DataFrame, place: Mapping[int, int], latency_ns: float) -> None:
    """On a rank while it is busy, and across to the next rank while a message travels."""
    points = []
    for row, later in zip(path.itertuples(), [*path["rank"].tolist()[1:], path["rank"].iloc[-1]]):
        crosses = row.via == "network" and later != row.rank
        points += [
            (row.begin_ns / 1e3, place[row.rank]),
            ((row.end_ns - latency_ns * crosses) / 1e3, place[row.rank]),
        ]
        points += [(row.end_ns / 1e3, place[later])] if crosses else []
    axes.plot(*zip(*points), color="black", linewidth=1.6, zorder=4, label="critical path")


def _latency_ns(timeline: pd.DataFrame) -> float:
    """L: how long the first byte of any message is on its way."""
    messages = timeline[timeline["what"] == "message"]
    return float((messages["end_ns"] - messages["start_ns"]).max()) if len(messages) else 0.0
