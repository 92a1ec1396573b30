"""Causes of detours: the detour loop while the kernel's tracer records.

Owns the matching of gaps with kernel events; what no event explains was the hypervisor's or the
hardware's.
"""

import tempfile
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import RunError
from ..measurement import run_once
from ..workloads import format_cpu_list
from .campaign import read_traces
from .detours import detour_workload, read_loop
from .tracer import Tracer

BEYOND_KERNEL = "beyond the kernel"
EDGE_NS = (
    2000  # entry and exit of an interrupt happen before and after the kernel's tracepoints see it
)


def attribute_detours(detours: pd.DataFrame, events: pd.DataFrame) -> pd.DataFrame:
    """Name the kernel event that each detour was made of.

    Parameters
    ----------
    detours
        `cpu`, `start_ns`, `duration_ns`, `end_ns`.
    events
        Noise events of the same run, times from the same start.

    Returns
    -------
    detours, with `kind` and `source` of the event that took most of it ("beyond the kernel" where
    none did: the hypervisor, the firmware, a cache), `explained_ns` (time of all its events within
    it) and `events` (how many). A detour's ends may miss an event's by 2 µs.
    """
    parts = [
        _attributed(on_cpu, events[events["cpu"] == cpu])
        for cpu, on_cpu in detours.groupby("cpu", sort=True)
    ]
    table = (
        pd.concat(parts) if parts else detours.assign(kind="", source="", explained_ns=0, events=0)
    )
    table = table.loc[detours.index]
    table.attrs = dict(detours.attrs)
    return table


def _attributed(detours: pd.DataFrame, events: pd.DataFrame) -> pd.DataFrame:
    detours = detours.sort_values("start_ns")
    start_ns, end_ns = detours["start_ns"].to_numpy(), detours["end_ns"].to_numpy()
    middle_ns = (events["start_ns"] + events["end_ns"]).to_numpy() // 2
    place = np.searchsorted(start_ns - EDGE_NS, middle_ns, side="right") - 1
    inside = (
        (place >= 0) & (middle_ns <= end_ns[place] + EDGE_NS)
        if len(detours)
        else np.zeros(len(events), bool)
    )
    hits = pd.DataFrame(
        {
            "detour": place[inside],
            "duration_ns": events["duration_ns"].to_numpy()[inside],
            "kind": events["kind"].astype(str).to_numpy()[inside],
            "source": events["source"].astype(str).to_numpy()[inside],
        }
    )
    greatest = (
        hits.sort_values("duration_ns", ascending=False, kind="stable")
        .drop_duplicates("detour")
        .set_index("detour")
    )
    sums = hits.groupby("detour")["duration_ns"]
    numbers = pd.RangeIndex(len(detours))
    return detours.assign(
        kind=greatest["kind"].reindex(numbers).fillna("hardware").to_numpy(),
        source=greatest["source"].reindex(numbers).fillna(BEYOND_KERNEL).to_numpy(),
        explained_ns=np.minimum(
            sums.sum().reindex(numbers).fillna(0).to_numpy(), detours["duration_ns"].to_numpy()
        ).astype(np.int64),
        events=sums.count().reindex(numbers).fillna(0).astype(int).to_numpy(),
    )


def record_explained_detours(
    seconds: float, cpus: Collection[int] | None = None, source: str = "auto"
) -> pd.DataFrame:
    """Record detours while the kernel's tracer records, and name each (`attribute_detours`).

    The tracer lengthens each interruption a little; for lengths take `record_detours`.

    Parameters
    ----------
    seconds
        Undisturbed time a CPU.
    cpus
        None: all that this process may use.
    source
        Of the kernel's events, as in `Tracer`: "auto", "osnoise" or "tracepoints".

    Raises
    ------
    RunError
        The loop failed, or there is no kernel tracer for this user (then nothing can be named).
    LostEvents
        There were too many events or detours.
    """
    with tempfile.TemporaryDirectory(prefix="noisebook-") as folder:
        tracer = Tracer(Path(folder), source=source)
        if tracer.source == "detours":
            raise RunError(
                "no kernel tracer for this user",
                why="without one the cause of a detour is not known",
                fix="run as root; make doctor says more",
            )
        workload = detour_workload(seconds, folder)
        workload = (
            workload
            if cpus is None
            else replace(
                workload,
                command=(*workload.command, "--cpus", format_cpu_list(tuple(sorted(cpus)))),
            )
        )
        try:
            row = run_once(workload, [tracer])
            if row["status"] != "ok":
                raise RunError(f"the detour loop failed: {row['status']}", why=row["message"])
            detours = read_loop(folder)
            return attribute_detours(detours, read_traces(folder, pd.DataFrame([row])))
        finally:
            tracer.close()
