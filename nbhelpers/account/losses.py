"""When runs lost time that a replay can take away again: the `losses` table.

Owns the joining of three records: when the CPUs were taken, when others held a CPU so that threads
of the program shared what was left, and when the same calls took longer than in ordinary runs. The
plain way is the delta of the noise events; page 37 replays both.
"""

from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from ..speed.ruler import slowness
from ..tracing.campaign import EVENTS, OWNERS, STATES, STOLEN, each_recording
from .edges import Edges
from .occupied import occupied_intervals
from .owned import FEWEST, TOGETHER
from .owners import held_elsewhere, without_cpu

LOST = {
    "run": "int64",
    "cpu": "int64",
    "start_ns": "int64",
    "end_ns": "int64",
    "lost_ns": "int64",
    "cause": "str",
}

# part of the critical path -> cause of the losses that a replay can take away
CAUSE_OF = {
    "taken": "kernel",
    "runnable": "kernel",
    "hypervisor": "hypervisor",
    "slower": "slower",
}


def lost_times(folder: Path, runs: pd.DataFrame, speed: Path, edges: Edges) -> pd.DataFrame:
    """When each run lost time that a replay can take away again.

    Parameters
    ----------
    folder, speed
        Where `Tracer` put the traces, and `SpeedProbe` its files.
    runs
        Finished runs of one configuration.
    edges
        Length of the ways into the kernel and out, as `measure_edges` returns them.

    Returns
    -------
    One row an interval and CPU: `run`, `cpu`, `start_ns`, `end_ns`, `lost_ns`, `cause` (kernel,
    hypervisor, slower). Intervals without the CPU are lost whole, their ways in and out included.
    Calls that took longer lose what they took beyond ordinary runs' same calls. No rows where the
    runs were not recorded by tracepoints; no slower calls without marks, or with less than 8 runs.

    Raises
    ------
    LostEvents, InputError
        A recording has losses, is missing or damaged.
    """
    recordings, parts, off, ran = each_recording(folder, runs), [], [], []
    while batch := list(islice(recordings, TOGETHER)):
        states, events, stolen, had = (
            pd.concat([tables[name] for tables in batch], ignore_index=True)
            for name in (STATES, EVENTS, STOLEN, OWNERS)
        )
        runnable = states[states["state"] == "runnable"]
        occupied = occupied_intervals(events, stolen, edges, runs)
        held = held_elsewhere(runnable, had, occupied).rename(columns={"ns": "lost_ns"})
        parts += [_taken_whole(occupied), held.assign(cause="kernel")]
        off.append(without_cpu(states, events, stolen))
        ran.append(states.loc[states["state"] == "running", ["run", "thread", "start_ns", "cpu"]])
    marks = "wait_marks" in runs and runs["wait_marks"].gt(0).any()
    if ran and marks and len(runs) >= FEWEST:
        parts.append(_longer_calls(slowness(speed, runs, pd.concat(off)), pd.concat(ran)))
    tables = [part[list(LOST)] for part in parts if len(part)]
    return pd.concat(tables, ignore_index=True).astype(LOST) if tables else _nothing()


def _nothing() -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in LOST.items()})


def _taken_whole(taken: pd.DataFrame) -> pd.DataFrame:
    return taken[["run", "cpu", "start_ns", "end_ns"]].assign(
        lost_ns=taken["end_ns"] - taken["start_ns"],
        cause=np.where(taken["hypervisor_ns"] > taken["kernel_ns"], "hypervisor", "kernel"),
    )


def _longer_calls(slower: pd.DataFrame, ran: pd.DataFrame) -> pd.DataFrame:
    """What pieces of calls took longer, on the CPU on which their thread ran in their middle."""
    slower = slower.assign(middle=(slower["start_ns"] + slower["end_ns"]) // 2)
    on = pd.merge_asof(
        slower.astype({"run": "int64", "thread": "int64"}).sort_values("middle"),
        ran.rename(columns={"start_ns": "middle"}).sort_values("middle"),
        on="middle",
        by=["run", "thread"],
    ).dropna(subset="cpu")
    lost_ns = (on["busy_ns"] * (1 - 1 / on["factor"])).round()
    return on.assign(lost_ns=lost_ns, cause="slower")[lost_ns > 0]
