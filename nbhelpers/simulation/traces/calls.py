"""What each MPI call of a traced run is to a schedule, and whether the calls are whole.

The calls are `nbhelpers.mpi.Calls`, whoever read them.
"""

import re
from dataclasses import replace

import numpy as np
import pandas as pd

from ...errors import InputError
from ...mpi import KINDS, NUMBERS, Calls
from .collectives import BY_SIZE, MAKERS, algorithm_name

NOBODY = -2  # a peer: MPI_PROC_NULL, where a reader can tell it from MPI_ANY_SOURCE
# Kinds that a schedule can have; of a collective there must be an algorithm, too.
_SCHEDULED = ("send", "receive", "both", "wait", "collective")
# In these a rank waits for others: their time is no computation. The message that a probe finds is
# received later; what Startall begins, and messages among neighbours, have rows of their own.
WAITS = (
    *("MPI_Probe", "MPI_Mprobe", "MPI_Startall", "MPI_Neighbor_allgather"),
    *("MPI_Neighbor_allgatherv", "MPI_Neighbor_alltoall", "MPI_Neighbor_alltoallv"),
    "MPI_Neighbor_alltoallw",
)
# What else a program may call: it asks, describes data, or makes communicators and requests. All
# others of the standard (one-sided calls, files, processes, partitioned messages) are refused by
# name: their time is no computation.
LOCAL = re.compile(
    r"MPI_(Init|Init_thread|Finalize|Initialized|Finalized|Iprobe|Improbe|Request_free"
    r"|Request_get_status\w*|Test_cancelled|Wtime|Wtick|Pcontrol|Abort|Get_(count|elements|address"
    r"|hw_resource_info|version|processor_name|library_version)(_x|_c)?|Address|Query_thread"
    r"|Is_thread_main"
    r"|Topo_test|(Cart|Graph)dims?_get|Dims_create|(Alloc|Free)_mem|Buffer_\w+"
    r"|Reduce_local(_c)?|Register_datarep(_c)?|Pack\w*|Unpack\w*|(T|Abi)_\w+|(Add|Remove)_error_\w+"
    r"|(Type|Group|Op|Info|Attr|Keyval|Errhandler|Error|Status|Aint|Session)_\w+"
    r"|(Cart|Graph|Dist_graph)_\w+|Intercomm_(create|merge)"
    r"|Comm_(?!(spawn|connect|accept|join|create_from|idup_with))\w+"
    r"|(Win|File)_(get|call|create_(errhandler|keyval)|delete_attr|free_keyval"
    r"|set_(attr|errhandler|name|info)|attach|detach|shared_query)\w*"
    r"|\w+_(c2f|f2c|toint|fromint)\w*"
    r"|(Send|Bsend|Ssend|Rsend|Recv|[A-Z](?!recv|send)\w*)_init)"
)


def checked_calls(calls: Calls) -> Calls:
    """The same calls, if their table is whole, with what each is.

    Returns
    -------
    In `table` also `kind` (send, receive, both, wait, collective, other), `begins` (nonblocking)
    and `collective` ("Allreduce" of MPI_Iallreduce; "" of another call).

    Raises
    ------
    InputError
        No call, a column missing, a rank without calls or beyond the last, times that go back, a
        call that no schedule can have, an unknown communicator.
    """
    missing = [name for name in ("call", *NUMBERS) if name not in calls.table]
    if missing or calls.table.empty:
        raise InputError(
            f"the table of calls has no column {missing[0]!r}" if missing else "no MPI call",
            fix="read it by nbhelpers.mpi.read_calls, or by the reader of another format",
        )
    table = _named(calls.table.reset_index(drop=True))
    silent = sorted(set(range(calls.ranks)) ^ set(table["rank"]))
    if silent:
        raise InputError(
            f"rank {silent[0]} has no call, or there is no such rank",
            why=f"each of the {calls.ranks} ranks calls MPI at least at its end",
            fix="bring the traces of all ranks, of one run only",
        )
    before = table.groupby("rank", sort=False)["end_ns"].shift(fill_value=np.iinfo(np.int64).min)
    back = (table["end_ns"] < table["start_ns"]) | (table["start_ns"] < before)
    _refuse(table, back, "time goes back", "a call began before the last one ended")
    _require_known(table)
    strange = ~table["comm"].isin(list(calls.comms)) & (table["comm"] >= 0)
    _refuse(table, strange, "an unknown communicator", "its ranks are not in `comms`")
    return replace(calls, table=table)


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """With `kind`, `begins` and `collective`; of MPI_Start what the persistent request is."""
    comes = (table["source"] >= 0) | (table["received_bytes"] > 0)  # what a receive says
    begun = pd.Series(np.where(comes, "Irecv", "Isend"), table.index)
    # of a request that is not known ("other"), and of older traces' collectives, nobody noted what
    known = ~table.get("kind", begun).isin(["collective", "other"])
    name = table["call"].str.removeprefix("MPI_")
    name = name.mask((name == "Start") & known, begun)
    kind = name.map(KINDS).fillna("other")
    collective = name.str.removeprefix("I").str.capitalize().where(kind == "collective", "")
    # the rows of its messages begin and end as it ends; a trace of before has none
    times = table[["rank", "start_ns", "end_ns"]]
    ends = times.assign(start_ns=times["end_ns"])
    told = name.str.startswith("Neighbor_") & (times.shift(-1) == ends).all(axis=1)
    kind, collective = kind.mask(told, "other"), collective.mask(told, "")
    makes = name.isin(MAKERS) & (table["comm"] >= 0)
    kind, collective = kind.mask(makes, "collective"), collective.mask(makes, name)
    return table.assign(kind=kind, begins=name.str.startswith("I"), collective=collective)


def _require_known(table: pd.DataFrame) -> None:
    """An error that names the calls that no schedule can have, and how many there are of each."""
    scheduled = table["kind"].isin(_SCHEDULED) & table["collective"].map(algorithm_name).isin(
        ["", *BY_SIZE]
    )
    other = (table["kind"] == "other") & (
        table["call"].isin(WAITS) | table["call"].str.fullmatch(LOCAL)
    )
    counts = table.loc[~scheduled & ~other, "call"].value_counts()
    if len(counts):
        named = ", ".join(f"{count} × {call}" for call, count in counts.head(8).items())
        raise InputError(
            f"calls that no schedule can have: {named}",
            why="what they do between ranks would count as computation, and the time be wrong",
            fix="simulate a program that communicates by messages and by collectives of all ranks",
        )


def _refuse(table: pd.DataFrame, wrong: pd.Series, what: str, why: str) -> None:
    """An error that names the first of the wrong calls, if there is any."""
    if wrong.any():
        row = table[wrong].iloc[0]
        number = int((table["rank"] == row["rank"]).to_numpy()[: int(np.argmax(wrong))].sum())
        raise InputError(what, where=f"rank {row['rank']}, call {number}: {row['call']}", why=why)
