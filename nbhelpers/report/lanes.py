"""Events on time lines: a lane a CPU, run or rank, a mark an event."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

MANY = 3000  # marks from which they are stored as pixels


def draw_lanes(
    axes: Any,
    events: pd.DataFrame,
    lanes: Sequence[object],
    lane: str = "cpu",
    kind: str = "kind",
    colours: Mapping[str, str] | None = None,
) -> None:
    """Draw events at their place in time, on a lane each, coloured by their kind.

    Parameters
    ----------
    axes
        Axes of matplotlib; their time is in ms.
    events
        Events with `start_ns` and `duration_ns`.
    lanes
        Values of the column `lane`, from top to bottom.
    lane, kind
        Columns.
    colours
        Colours by kind, in the order of the legend; None: `nbhelpers.palette.KINDS`.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> figure, axes = plt.subplots()
    >>> one = {"cpu": [0], "kind": ["irq"], "start_ns": [1_000_000], "duration_ns": [5_000]}
    >>> draw_lanes(axes, pd.DataFrame(one), lanes=[0, 1])
    >>> plt.close(figure)
    """
    from matplotlib.patches import Patch

    from ..palette import KINDS

    place = {value: number for number, value in enumerate(lanes)}
    colours = KINDS if colours is None else colours
    for (value, name), part in events.groupby([lane, kind], observed=True):
        spans = part[["start_ns", "duration_ns"]].to_numpy(float) / 1e6
        look = {"color": colours.get(name, "#cccccc"), "linewidth": 0.5}
        axes.broken_barh(spans, (place[value] - 0.4, 0.8), rasterized=len(part) > MANY, **look)
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    axes.set_yticks(range(len(lanes)), [str(value) for value in lanes])
    axes.grid(axis="y", visible=False)
    handles = [Patch(color=colour, label=name) for name, colour in colours.items()]
    axes.figure.legend(handles=handles, loc="outside upper right", ncols=len(handles))
