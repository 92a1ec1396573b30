"""When runs lost time that a replay can take away again: the `losses` table.

Owns the joining of three records: when the CPUs were taken, when others held a CPU so that threads
of the program shared what was left, and when the same calls took longer than in ordinary runs. The
plain way is the delta of the noise events; page 37 replays both.
"""

import numpy as np
import pandas as pd

from .edges import Edges
from .occupied import occupied_intervals
from .owners import held_elsewhere

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


def taken_times(
    states: pd.DataFrame,
    events: pd.DataFrame,
    stolen: pd.DataFrame,
    cpu_owners: pd.DataFrame,
    edges: Edges,
    runs: pd.DataFrame,
) -> pd.DataFrame:
    """When CPUs were taken, or others were held so that threads of the program shared the rest."""
    taken = occupied_intervals(events, stolen, edges, runs)
    held = held_elsewhere(states[states["state"] == "runnable"], cpu_owners, taken)
    whole = taken.assign(
        lost_ns=taken["end_ns"] - taken["start_ns"],
        cause=np.where(taken["hypervisor_ns"] > taken["kernel_ns"], "hypervisor", "kernel"),
    )
    return joined_losses([whole, held.rename(columns={"ns": "lost_ns"}).assign(cause="kernel")])


def longer_calls(slower: pd.DataFrame, ran: pd.DataFrame) -> pd.DataFrame:
    """What pieces of calls took longer, on the CPU on which their thread ran in their middle;
    `ran`: from when on each ran on which CPU.
    """
    slower = slower.assign(middle=(slower["start_ns"] + slower["end_ns"]) // 2)
    on = pd.merge_asof(
        slower.astype({"run": "int64", "thread": "int64"}).sort_values("middle"),
        ran.rename(columns={"start_ns": "middle"}).sort_values("middle"),
        on="middle",
        by=["run", "thread"],
    ).dropna(subset="cpu")
    lost_ns = (on["busy_ns"] * (1 - 1 / on["factor"])).round()
    return on.assign(lost_ns=lost_ns, cause="slower")[lost_ns > 0]


def joined_losses(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """The tables as one, with the columns of `LOST`; there may be none."""
    nothing = pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in LOST.items()})
    tables = [part[list(LOST)] for part in parts if len(part)]
    return pd.concat(tables, ignore_index=True).astype(LOST) if tables else nothing
