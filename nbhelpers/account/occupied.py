"""From when to when a program was without its CPU: the `occupied` table.

Owns the joining of events and of the hypervisor's gaps to intervals that have one way in and one
way out. Pure: tables in, tables out. The plain way adds the net lengths of the events and what the
hypervisor took: 64.1 % of what a traced loop lost in 30 runs, off by 7.5 of 21.0 ms a run. These
intervals are 98.8 % of it, off by 0.7 ms, with the edges of another campaign (benchmarks/rivals.py
gaps).
"""

import numpy as np
import pandas as pd

from ..measurement import region_seconds
from .edges import Edges
from .gaps import HYPERVISOR, INTERRUPTS, SWITCH

COLUMNS = {
    "run": "int64",
    "cpu": "int64",
    "start_ns": "int64",
    "end_ns": "int64",
    "kernel_ns": "int64",
    "hypervisor_ns": "int64",
    "edges_ns": "int64",
    "events": "int64",
    "interruption": pd.CategoricalDtype([INTERRUPTS, SWITCH, HYPERVISOR]),
}
_NUMBERS = ("run", "cpu", "start_ns", "end_ns", "kernel_ns", "hypervisor_ns")
_PIECES = dict.fromkeys(_NUMBERS, "int64") | {"thread": "bool", "hits": "bool"}


def occupied_intervals(
    events: pd.DataFrame,
    stolen: pd.DataFrame,
    edges: Edges,
    runs: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """When a program was without its CPU, from its last instruction to its next.

    Events nearer to each other than a way out and a way in are one interval: the program did not
    run in between. It begins the way in before its first event and ends the way out after its last.
    Where the hypervisor took time as well, this is the way in.

    Parameters
    ----------
    events
        Noise events of one or more runs.
    stolen
        What the hypervisor took in these runs (`stolen_times`); may have no rows.
    edges
        Length of the ways out and in, as `measure_edges` returns them.
    runs
        Runs table, which ends the intervals at the end of the timed region; None: they may exceed
        it by a way out.

    Returns
    -------
    One row an interval, disjoint on each CPU of a run, in order: `run`, `cpu`, `start_ns`, `end_ns`
    (from the begin of the timed region), `kernel_ns` (net length of the events), `hypervisor_ns`,
    `edges_ns` (the three sum to `end_ns` − `start_ns`), `events` (count), `interruption`:
    interrupts, switch (to another thread) or hypervisor. Events that interrupted an idle CPU, or
    another program while the workload did not wait, are in none.
    """
    kernel, taken = _kernel_pieces(events), _hypervisor_pieces(stolen)
    pieces = pd.concat([kernel, taken], ignore_index=True).astype(_PIECES)
    pieces = pieces.sort_values(["run", "cpu", "start_ns", "end_ns"], kind="stable")
    ends_ns: dict[int, int] = {}
    if runs is not None:
        lengths_ns = np.rint(region_seconds(runs).to_numpy() * 1e9).astype(np.int64)
        ends_ns = dict(zip(runs["run"].tolist(), lengths_ns.tolist()))
    parts = [
        _of_cpu(on_cpu, edges, ends_ns) for _, on_cpu in pieces.groupby(["run", "cpu"], sort=True)
    ]
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in COLUMNS.items()})
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)].astype(COLUMNS)


def _kernel_pieces(events: pd.DataFrame) -> pd.DataFrame:
    """Events of CPUs that were not idle."""
    events = events[(events["interrupted"] != "idle").to_numpy()]
    return events[["run", "cpu", "start_ns", "end_ns"]].assign(
        kernel_ns=events["duration_ns"],
        hypervisor_ns=0,
        thread=(events["kind"] == "thread").to_numpy(),
        hits=(events["interrupted"] == "workload").to_numpy(),
    )


def _hypervisor_pieces(stolen: pd.DataFrame) -> pd.DataFrame:
    return stolen[["run", "cpu", "start_ns", "end_ns"]].assign(
        kernel_ns=0, hypervisor_ns=stolen["duration_ns"], thread=False, hits=True
    )


def _of_cpu(pieces: pd.DataFrame, edges: Edges, ends_ns: dict[int, int]) -> pd.DataFrame:
    """The intervals of one CPU in one run."""
    run, cpu = (int(pieces[name].iloc[0]) for name in ("run", "cpu"))
    table = _joined(pieces, edges)
    table = table[table["hits"]].reset_index(drop=True)
    return _with_ways(table, edges, ends_ns.get(run)).assign(run=run, cpu=cpu)


def _joined(pieces: pd.DataFrame, edges: Edges) -> pd.DataFrame:
    """Pieces (in order) that the program did not run between, as one row.

    A way out and a way in must fit into the time from the end of all before to the next begin. A
    thread begins within an interruption, too: the switch to it takes less than a way in.
    """
    start_ns, thread = pieces["start_ns"].to_numpy(), pieces["thread"].to_numpy(bool)
    reach_ns = np.maximum.accumulate(pieces["end_ns"].to_numpy())
    of_kernel = (pieces["hypervisor_ns"] == 0).to_numpy()
    # what tells the length of the way in: net length of an interrupt; of a thread nothing
    first_ns = np.where(thread, edges.short_us * 1e3, pieces["kernel_ns"].to_numpy())
    way_in_ns = edges.way_in_ns(first_ns, np.zeros(len(pieces), bool)) * of_kernel
    room_ns = start_ns[1:] - reach_ns[:-1]
    apart = room_ns >= way_in_ns[1:] + edges.way_out_ns(thread[:-1]) * of_kernel[:-1]
    member = np.cumsum(np.append(0, apart))
    return (
        pieces.assign(of_kernel=of_kernel, first_ns=first_ns)
        .groupby(member)
        .agg(
            start_ns=("start_ns", "min"),
            end_ns=("end_ns", "max"),
            first_ns=("first_ns", "first"),
            kernel_ns=("kernel_ns", "sum"),
            hypervisor_ns=("hypervisor_ns", "sum"),
            thread=("thread", "any"),
            hits=("hits", "any"),
            events=("of_kernel", "sum"),
        )
    )


def _with_ways(table: pd.DataFrame, edges: Edges, end_ns: int | None) -> pd.DataFrame:
    """The intervals with their ways in and out, disjoint, and what each consists of."""
    switch, taken_ns = table["thread"].to_numpy(bool), table["hypervisor_ns"].to_numpy()
    of_kernel = table["events"].to_numpy() > 0
    way_in_ns = edges.way_in_ns(table["first_ns"].to_numpy(), switch)
    before_ns = np.where(of_kernel & (taken_ns == 0), way_in_ns, 0)
    after_ns = np.where(of_kernel, edges.way_out_ns(switch), 0)
    # time of the hypervisor that is placed where events are lies before them
    hidden_ns = table["kernel_ns"].to_numpy() + taken_ns - (table["end_ns"] - table["start_ns"])
    first_ns = table["start_ns"].to_numpy() - before_ns - np.maximum(hidden_ns.to_numpy(), 0)
    last_ns = table["end_ns"].to_numpy() + after_ns
    last_ns = last_ns if end_ns is None else np.minimum(last_ns, end_ns)
    first_ns = np.maximum(first_ns, np.append(0, last_ns[:-1]))
    length_ns = last_ns - first_ns
    kernel_ns = np.minimum(table["kernel_ns"].to_numpy(), length_ns)
    hypervisor_ns = np.minimum(taken_ns, length_ns - kernel_ns)
    result = table.assign(
        start_ns=first_ns,
        end_ns=last_ns,
        kernel_ns=kernel_ns,
        hypervisor_ns=hypervisor_ns,
        edges_ns=length_ns - kernel_ns - hypervisor_ns,
        interruption=np.select([taken_ns > 0, switch], [HYPERVISOR, SWITCH], INTERRUPTS),
    )
    return result[length_ns > 0]
