"""How well the `occupied` table predicts what a loop saw, in runs that the costs are not from.

Owns that comparison, run by run and by class of interruption.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..statistics.intervals import ratio_of_sums_interval
from ..tracing.stolen_shares import explained_gaps
from .edges import Edges, edges_of_gaps
from .gaps import CLASSES, HYPERVISOR, INTERRUPTS, SWITCH, gaps_with_events
from .loop import LoopRun
from .occupied import occupied_intervals

UNRECORDED = "unrecorded"


def edge_accuracy(loops: Sequence[LoopRun], edges: Edges | None = None) -> pd.DataFrame:
    """Compare the occupied intervals of traced loops with the gaps that the loops saw.

    Parameters
    ----------
    loops
        Runs of the loop.
    edges
        Costs measured elsewhere; None: those of each run are fitted to all other runs.

    Returns
    -------
    One row a run and class (`CLASSES`, and "unrecorded": gaps in which nothing was recorded):
    `run`, `class`, `gaps`, `seen_ms` (length of the gaps of the loop), `recorded_ms` (net lengths
    of kernel events, and the hypervisor's time), `predicted_ms` (length of the occupied intervals),
    `loop_ms` (how long the loops looked).
    """
    held = [gaps_with_events(loop) for loop in loops]
    rows = []
    for at, loop in enumerate(loops):
        others = [gaps for number, gaps in enumerate(held) if number != at]
        used = edges or edges_of_gaps(pd.concat(others), repeats=0)
        rows += _compared(loop, held[at], used)
    return pd.DataFrame(rows)


def _compared(loop: LoopRun, held: pd.DataFrame, edges: Edges) -> list[dict]:
    events, stolen = loop.while_watched(loop.events), loop.while_watched(loop.stolen)
    occupied = occupied_intervals(events, stolen, edges)
    lengths = (occupied["end_ns"] - occupied["start_ns"]).groupby(occupied["interruption"]).sum()
    recorded = occupied.groupby("interruption")[["kernel_ns", "hypervisor_ns"]].sum().sum(axis=1)
    seen = _seen(loop, held)
    return [
        {
            "run": loop.run,
            "class": name,
            "gaps": int(seen["gaps"].get(name, 0)),
            "seen_ms": float(seen["ns"].get(name, 0)) / 1e6,
            "recorded_ms": float(recorded.get(name, 0)) / 1e6,
            "predicted_ms": float(lengths.get(name, 0)) / 1e6,
            "loop_ms": loop.loop_ns / 1e6,
        }
        for name in (*CLASSES, UNRECORDED)
    ]


def _seen(loop: LoopRun, held: pd.DataFrame) -> pd.DataFrame:
    """Gaps of the loop by class: how many, and their length."""
    events = loop.while_watched(loop.events)
    gaps = explained_gaps(loop.detours, events, loop.stolen)
    place = pd.MultiIndex.from_frame(gaps[["cpu", "start_ns"]])
    with_events = place.isin(pd.MultiIndex.from_frame(held[["cpu", "start_ns"]]))
    switched = held[held["switch"]]
    with_switch = place.isin(pd.MultiIndex.from_frame(switched[["cpu", "start_ns"]]))
    classes = np.select(
        [gaps["stolen_ns"] > 0, with_switch, with_events],
        [HYPERVISOR, SWITCH, INTERRUPTS],
        UNRECORDED,
    )
    return gaps["duration_ns"].groupby(classes).agg(ns="sum", gaps="size")


def accuracy_by_class(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """`edge_accuracy` summed over runs, with a bootstrap of runs.

    Returns
    -------
    One row a class, and "recorded" (all classes but "unrecorded"): `class`, `runs`, `gaps`,
    `seen_ms`, `recorded_share` (of `seen_ms`), `predicted_share` with its 95 % interval `low` and
    `high`, and `of_loop` (share of the loops' time that the gaps took).
    """
    recorded = table[table["class"] != UNRECORDED]
    groups = {"recorded": recorded} | dict(list(table.groupby("class", sort=False)))
    return pd.DataFrame(
        [{"class": name} | _shares(group, table, seed) for name, group in groups.items()]
    )


def _shares(group: pd.DataFrame, table: pd.DataFrame, seed: int) -> dict:
    of_runs = group.groupby("run")[["gaps", "seen_ms", "recorded_ms", "predicted_ms"]].sum()
    low, high = ratio_of_sums_interval(of_runs["predicted_ms"], of_runs["seen_ms"], seed)
    sums = of_runs.sum()
    seen_ms = sums["seen_ms"] or np.nan
    return {
        "runs": len(of_runs),
        "gaps": int(sums["gaps"]),
        "seen_ms": sums["seen_ms"],
        "recorded_share": sums["recorded_ms"] / seen_ms,
        "predicted_share": sums["predicted_ms"] / seen_ms,
        "low": low,
        "high": high,
        "of_loop": sums["seen_ms"] / table.groupby("run")["loop_ms"].first().sum(),
    }
