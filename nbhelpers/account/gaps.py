"""Gaps that the traced loop saw, each with the events within it.

Owns the matching and the table of costs by class of gap. Pure: tables in, tables out.
"""

import numpy as np
import pandas as pd

from ..statistics.intervals import ratio_of_sums_interval
from ..tracing.stolen_shares import explained_gaps
from .loop import LoopRun

INTERRUPTS, SWITCH, HYPERVISOR = "interrupts", "switch", "hypervisor"
CLASSES = (INTERRUPTS, SWITCH, HYPERVISOR)
_WAYS = {"way_in_us": "in_ns", "between_us": "between_ns", "way_out_us": "out_ns"}


def gaps_with_events(loop: LoopRun) -> pd.DataFrame:
    """Each gap that holds an event of the kernel, and how far its ends are from the records.

    Returns
    -------
    One row a gap: `run`, `cpu`, `start_ns`, `end_ns`; `events` (count), `net_ns` (their net
    lengths), `first_ns` (net length of the first one), `begins_with_interrupt`, `switch` (a thread
    is among them), `stolen_ns` (of the hypervisor); `in_ns` (begin of the gap to the first record),
    `between_ns` (first record to last, less `net_ns`), `out_ns` (last record to the end of the
    gap). The loop may show a gap a little shorter than its records: then a way is negative.
    """
    events = loop.while_watched(loop.events)
    parts = [
        _matched(gaps, events[events["cpu"] == cpu])
        for cpu, gaps in explained_gaps(loop.detours, events, loop.stolen).groupby("cpu")
    ]
    return pd.concat(parts, ignore_index=True).assign(run=loop.run) if parts else pd.DataFrame()


def _matched(gaps: pd.DataFrame, events: pd.DataFrame) -> pd.DataFrame:
    gaps = gaps.sort_values("start_ns", ignore_index=True)
    events = events.sort_values(["start_ns", "end_ns"], kind="stable")
    middle_ns = (events["start_ns"].to_numpy() + events["end_ns"].to_numpy()) // 2
    place = np.searchsorted(gaps["start_ns"].to_numpy(), middle_ns, side="right") - 1
    inside = (place >= 0) & (middle_ns <= gaps["end_ns"].to_numpy()[np.maximum(place, 0)])
    held = _held(events[inside], place[inside])
    table = gaps.loc[held.index, ["cpu", "start_ns", "end_ns", "stolen_ns"]].join(held)
    return table.assign(
        in_ns=table["from_ns"] - table["start_ns"],
        between_ns=table["to_ns"] - table["from_ns"] - table["net_ns"],
        out_ns=table["end_ns"] - table["to_ns"],
    ).drop(columns=["from_ns", "to_ns"])


def _held(events: pd.DataFrame, place: np.ndarray) -> pd.DataFrame:
    """The events of each gap, one row a gap."""
    table = events[["start_ns", "end_ns", "duration_ns"]].assign(
        place=place, thread=(events["kind"] == "thread").to_numpy()
    )
    return table.groupby("place").agg(
        from_ns=("start_ns", "min"),
        to_ns=("end_ns", "max"),
        events=("duration_ns", "size"),
        net_ns=("duration_ns", "sum"),
        first_ns=("duration_ns", "first"),
        begins_with_interrupt=("thread", lambda threads: not threads.iloc[0]),
        switch=("thread", "any"),
    )


def edge_costs(gaps: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """What gaps cost beyond the net lengths of their events, by class.

    Parameters
    ----------
    gaps
        Of `gaps_with_events`, of several runs.
    seed
        Of the bootstrap of runs.

    Returns
    -------
    One row a class ("interrupts": interrupts and softirqs only; "switch": with another thread;
    "hypervisor": with time that it took): `runs`, `gaps`; means in µs of `way_in_us`, `between_us`
    and `way_out_us`; `edge_us`, their sum less the hypervisor's time, with its 95 % interval `low`
    and `high`, and `share` of the gaps' length.
    """
    stolen = gaps["stolen_ns"] > 0
    classes = np.select([stolen, gaps["switch"]], [HYPERVISOR, SWITCH], INTERRUPTS)
    return pd.DataFrame(
        [
            {"class": name} | _mean_costs(gaps[classes == name], seed)
            for name in CLASSES
            if (classes == name).any()
        ]
    )


def _mean_costs(gaps: pd.DataFrame, seed: int) -> dict:
    edge_ns = gaps[list(_WAYS.values())].sum(axis=1) - gaps["stolen_ns"]
    of_runs = edge_ns.groupby(gaps["run"]).agg(["sum", "size"])
    low, high = (end / 1e3 for end in ratio_of_sums_interval(of_runs["sum"], of_runs["size"], seed))
    means = {name: float(gaps[column].mean()) / 1e3 for name, column in _WAYS.items()}
    length_ns = (gaps["end_ns"] - gaps["start_ns"]).sum()
    return (
        {"runs": len(of_runs), "gaps": len(gaps)}
        | means
        | {
            "edge_us": float(edge_ns.mean()) / 1e3,
            "low": low,
            "high": high,
            "share": float(edge_ns.sum() / length_ns),
        }
    )
