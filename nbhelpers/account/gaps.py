"""Gaps that a loop saw on every CPU while tracepoints were recorded, each with what was recorded
within it.

Owns the loop's campaign and the matching.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ..empty import because
from ..measurement import Campaign, Cell, finished, metrics
from ..tracing.campaign import recording_of
from ..tracing.detours import DetourTracer, detour_workload, read_detours_run
from ..tracing.tracer import Tracer

NO_TRACEPOINTS = (
    "the loop needs tracepoints recorded at the same time, and this machine or user has none; make"
    " doctor says why"
)


def loop_gaps(
    folder: str | Path, runs: int, seconds: float, recorded_only: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run the detour loop on every CPU with the kernel's tracepoints recorded, and tell what was
    recorded within each gap that it saw.

    Parameters
    ----------
    folder
        Folder for runs, gaps and traces.
    runs
        Number of runs of the loop.
    seconds
        Undisturbed time that a loop needs.
    recorded_only
        True: read what was recorded.

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
    folder = Path(folder)
    workload = detour_workload(seconds, folder)
    cell, looped, found = Cell("loop", workload), [], []
    tracer = None if recorded_only else Tracer(folder / "traces")
    if tracer:
        recorders = (tracer, DetourTracer(folder, prefix="loop"))
        cell = Cell("loop", workload, attachments=(*recorders, *metrics("kernel")))
    if not tracer or tracer.source == "tracepoints":
        done = finished(Campaign(folder, [cell], runs=runs, recorded_only=recorded_only).run())
        for run, steal_s in zip(done["run"], done["steal_s"]):
            detours = read_detours_run(folder / f"run-{run:06d}.detours.gz")
            watched = detours.attrs["watched"].values()
            looped.append((run, sum(last - first for first, last in watched) / 1e9, steal_s))
            recording = recording_of(folder / "traces", run)
            found.append(explained_gaps(detours, *recording).assign(run=run))
    columns = ["run", "cpu", "start_ns", "duration_ns", "kernel_ns", "stolen_ns"]
    gaps = pd.concat(found)[columns] if found else pd.DataFrame(columns=columns, dtype=float)
    kinds = {"run": int, "loop_s": float, "steal_s": float}  # without rows, too
    loops = pd.DataFrame(looped, columns=list(kinds)).astype(kinds)
    return because(loops, NO_TRACEPOINTS), gaps.reset_index(drop=True)


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
        on_cpu.assign(kernel_ns=_within(on_cpu, events), stolen_ns=_within(on_cpu, stolen))
        for _, on_cpu in detours.groupby("cpu")
    ]
    return pd.concat(parts) if parts else detours.assign(kernel_ns=0.0, stolen_ns=0.0)


def _within(gaps: pd.DataFrame, events: pd.DataFrame) -> np.ndarray:
    """How much of the events' net time lies in each gap of one CPU, ns; an event may have been
    placed a little outside its gap (slack).
    """
    result = np.zeros(len(gaps))
    starts, ends = gaps["start_ns"].to_numpy(), (gaps["start_ns"] + gaps["duration_ns"]).to_numpy()
    own = events[events["cpu"] == gaps["cpu"].iloc[0]]
    own = own.assign(slack_ns=own.get("slack_ns", 0))
    columns = ["start_ns", "end_ns", "duration_ns", "slack_ns"]
    for start, end, net, reach in own[columns].itertuples(index=False, name=None):
        low = np.searchsorted(ends, start - reach, side="right")
        high = np.searchsorted(starts, end + reach, side="left")
        if low < high:
            if reach:  # the whole of it is in the gap that fits best
                result[low + int(np.argmin(np.abs(ends[low:high] - starts[low:high] - net)))] += net
            else:
                inside = np.minimum(ends[low:high], end) - np.maximum(starts[low:high], start)
                result[low:high] += inside * (net / max(end - start, 1))
    return result
