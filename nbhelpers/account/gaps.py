"""Gaps that the traced loop saw, each with the events within it.

Owns the matching.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ..empty import because
from .loop import NO_TRACEPOINTS, LoopRun, run_traced_loop

INTERRUPTS, SWITCH, HYPERVISOR = "interrupts", "switch", "hypervisor"
CLASSES = (INTERRUPTS, SWITCH, HYPERVISOR)


def loop_gaps(
    folder: str | Path, runs: int, seconds: float, recorded_only: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run the detour loop on every CPU with the kernel's tracepoints recorded, and tell what was
    recorded within each gap that it saw.

    Parameters
    ----------
    folder, runs, seconds, recorded_only
        Folder, number of runs, seconds of a loop, and whether only to read; see `run_traced_loop`.

    Returns
    -------
    Two tables: a row a run (`run`, `loop_s` of all CPUs together, `steal_s` of /proc/stat), and a
    row a gap (`run`, `cpu`, `start_ns`, `duration_ns`, and of these `kernel_ns`, `stolen_ns`). No
    row, with the reason, where tracepoints cannot be recorded.

    Raises
    ------
    InputError
        Not measured yet, and `recorded_only` is True.
    LostEvents
        A trace or the loop had no room.
    """
    table = run_traced_loop(folder, runs, seconds, recorded_only)
    loops = [LoopRun(int(run), Path(folder)) for run in table["run"]]
    found = [
        explained_gaps(loop.detours, loop.events, loop.stolen).assign(run=loop.run)
        for loop in loops
    ]
    looped = pd.DataFrame({"run": table["run"], "loop_s": [loop.loop_ns / 1e9 for loop in loops]})
    looped["steal_s"] = table["steal_s"] if len(table) else 0.0
    columns = ["run", "cpu", "start_ns", "duration_ns", "kernel_ns", "stolen_ns"]
    gaps = pd.concat(found)[columns] if found else pd.DataFrame(columns=columns, dtype=float)
    return because(looped, NO_TRACEPOINTS), gaps.reset_index(drop=True)


def explained_gaps(
    detours: pd.DataFrame, events: pd.DataFrame, stolen: pd.DataFrame
) -> pd.DataFrame:
    """How much of each gap that the detour loop saw is explained by a recording of the same run.

    Parameters
    ----------
    detours
        Gaps of the detour loop: `cpu`, `start_ns`, `duration_ns`, from the start of the timed
        region.
    events
        Noise events of a recording of the same run (`read_tracepoints`).
    stolen
        What the hypervisor took during that run (`stolen_time`).

    Returns
    -------
    `detours` with `kernel_ns` and `stolen_ns`, the time in each gap that events and the hypervisor
    took; 0 of both: nothing that was recorded explains the gap.
    """
    parts = [
        on_cpu.assign(
            **{
                name: _within(on_cpu, table[table["cpu"] == cpu])
                for name, table in (("kernel_ns", events), ("stolen_ns", stolen))
            }
        )
        for cpu, on_cpu in detours.groupby("cpu")
    ]
    return pd.concat(parts) if parts else detours.assign(kernel_ns=0.0, stolen_ns=0.0)


def _within(gaps: pd.DataFrame, events: pd.DataFrame) -> np.ndarray:
    """How much of the events' net time lies in each gap, ns; an event may have been placed a little
    outside its gap (slack).
    """
    result = np.zeros(len(gaps))
    starts, ends = gaps["start_ns"].to_numpy(), (gaps["start_ns"] + gaps["duration_ns"]).to_numpy()
    slack = (
        events["slack_ns"].to_numpy() if "slack_ns" in events else np.zeros(len(events), np.int64)
    )
    for start, end, net, reach in zip(
        events["start_ns"].to_numpy(),
        events["end_ns"].to_numpy(),
        events["duration_ns"].to_numpy(),
        slack,
    ):
        low = np.searchsorted(ends, start - reach, side="right")
        high = np.searchsorted(starts, end + reach, side="left")
        if low < high:
            overlap = np.minimum(ends[low:high], end + reach) - np.maximum(
                starts[low:high], start - reach
            )
            if reach:  # the whole of it is in the gap that fits best
                result[low + int(np.argmin(np.abs(ends[low:high] - starts[low:high] - net)))] += net
            else:
                result[low:high] += overlap * (net / max(end - start, 1))
    return result


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
