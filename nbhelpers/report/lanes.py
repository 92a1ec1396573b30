"""Events on time lines: a lane a CPU, run or rank, a mark an event."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

MANY = 3000  # marks from which they are stored as pixels


def draw_lanes(
    axes: Any,
    events: pd.DataFrame,
    lanes: Sequence[object],
    lane: str = "cpu",
    kind: str = "kind",
) -> None:
    """Draw events at their place in time, on a lane each, in colour and height of their kind.

    Parameters
    ----------
    axes
        Axes of matplotlib; their time is in ms.
    events
        Events with `start_ns` and `duration_ns`.
    lanes
        Values of the column `lane`, from top to bottom.
    lane, kind
        Columns; `kind` as in `nbhelpers.palette.KINDS`.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> figure, axes = plt.subplots()
    >>> one = {"cpu": [0], "kind": ["irq"], "start_ns": [1_000_000], "duration_ns": [5_000]}
    >>> draw_lanes(axes, pd.DataFrame(one), lanes=[0, 1])
    >>> plt.close(figure)
    """
    from matplotlib.patches import Patch

    from ..palette import GREY, HEIGHTS, KINDS

    place = {value: number for number, value in enumerate(lanes)}
    for (value, name), part in events.groupby([lane, kind], observed=True):
        spans = part[["start_ns", "duration_ns"]].to_numpy(float) / 1e6
        look = {"color": KINDS.get(name, GREY), "linewidth": 0.5}
        high = HEIGHTS.get(name, 0.8)
        at = (place[value] - high / 2, high)
        axes.broken_barh(spans, at, rasterized=len(part) > MANY, **look)
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    axes.set_yticks(range(len(lanes)), [str(value) for value in lanes])
    axes.grid(axis="y", visible=False)
    handles = [Patch(color=colour, label=name) for name, colour in KINDS.items()]
    axes.figure.legend(handles=handles, loc="outside upper right", ncols=len(handles))
