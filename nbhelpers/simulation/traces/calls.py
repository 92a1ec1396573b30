"""The MPI calls of a run as tables: which columns there are, and what each call does.

Owns the record that every reader gives, and the checks that it is whole. What
`nbhelpers.mpi.read_calls` gives has the same columns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...errors import InputError

NUMBERS = (
    *("rank", "start_ns", "end_ns", "peer", "tag", "bytes", "received_bytes"),
    *("source", "received_tag", "comm", "root", "request"),
)
UNKNOWN = -1  # no number, or any
NOBODY = -2  # MPI_PROC_NULL, where a reader can tell it from MPI_ANY_SOURCE

SENDS = {"MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend"}
BEGUN_SENDS = {"MPI_Isend", "MPI_Issend", "MPI_Irsend", "MPI_Ibsend"}
RECEIVES = {"MPI_Recv", "MPI_Irecv"}
EXCHANGES = {"MPI_Sendrecv", "MPI_Sendrecv_replace"}
WAITS = {
    f"MPI_{word}{number}" for word in ("Wait", "Test") for number in ("", "all", "any", "some")
}
COLLECTIVES = {
    *("Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Gatherv", "Scatter", "Scatterv"),
    *("Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Scan", "Exscan"),
    *("Reduce_scatter", "Reduce_scatter_block"),
}
REFUSED = {
    *("MPI_Startall", "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Win_fence"),
    *("MPI_Alltoallw", "MPI_Mrecv", "MPI_Imrecv", "MPI_Neighbor_alltoall"),
}


def collective_of(call: str) -> tuple[str, bool] | None:
    """("Allreduce", whether it is nonblocking) of a collective call; None: it is none.

    >>> collective_of("MPI_Ibcast"), collective_of("MPI_Send")
    (('Bcast', True), None)
    """
    name = call.removeprefix("MPI_")
    if name in COLLECTIVES:
        return name, False
    if name.startswith("I") and name[1:].capitalize() in COLLECTIVES:
        return name[1:].capitalize(), True
    return None


@dataclass(frozen=True, eq=False, repr=False)
class TracedCalls:
    """The MPI calls of all ranks of a run.

    Parameters
    ----------
    table
        One row a call, sorted by rank and start: `call` ("MPI_Send") and int64 columns `rank`,
        `start_ns`, `end_ns` (from the beginning of the run), `peer` (rank in the world sent to, or
        received from as asked for), `tag`, `bytes` (sent or contributed), `received_bytes`,
        `source` and `received_tag` (of what came), `comm` (0: the world), `root`, `request`. −1:
        none, any or unknown; a peer of −2: none (MPI_PROC_NULL).
    waits
        `rank`, `row` (of `table`), `request`: which requests that call completed. Further columns
        `source` and `tag` say what came.
    comms
        Communicator -> its ranks in the world, in its order.
    ranks
        How many.
    """

    table: pd.DataFrame
    waits: pd.DataFrame
    comms: Mapping[int, tuple[int, ...]]
    ranks: int

    def __repr__(self) -> str:
        return f"TracedCalls({len(self.table)} calls of {self.ranks} ranks)"


def checked_calls(calls: Any) -> TracedCalls:
    """The same calls, if their tables are whole.

    Parameters
    ----------
    calls
        `TracedCalls`, or another object with the same fields.

    Raises
    ------
    InputError
        No call, a column missing, a rank without calls or beyond the last, times that go back, a
        call that no schedule can have, an unknown communicator.
    """
    table = calls.table
    missing = [name for name in ("call", *NUMBERS) if name not in table]
    if missing or table.empty:
        raise InputError(
            f"the table of calls has no column {missing[0]!r}" if missing else "no MPI call",
            fix="read it by nbhelpers.mpi.read_calls, or by the reader of another format",
        )
    silent = sorted(set(range(calls.ranks)) ^ set(table["rank"]))
    if silent:
        raise InputError(
            f"rank {silent[0]} has no call, or there is no such rank",
            why=f"each of the {calls.ranks} ranks calls MPI at least at its end",
            fix="bring the traces of all ranks, of one run only",
        )
    _check_times(table)
    refused = table["call"].isin(REFUSED)
    if refused.any():
        _refuse(
            table,
            refused,
            "a call that no schedule can have",
            "persistent requests, one-sided calls and neighbourhoods aren't read",
        )
    strange = ~table["comm"].isin(list(calls.comms)) & (table["comm"] >= 0)
    if strange.any():
        _refuse(table, strange, "an unknown communicator", "its ranks are not in `comms`")
    return TracedCalls(table.reset_index(drop=True), calls.waits, calls.comms, calls.ranks)


def _check_times(table: pd.DataFrame) -> None:
    before = table.groupby("rank", sort=False)["end_ns"].shift(fill_value=np.iinfo(np.int64).min)
    back = (table["end_ns"] < table["start_ns"]) | (table["start_ns"] < before)
    if back.any():
        _refuse(table, back, "time goes back", "a call began before the last one ended")


def _refuse(table: pd.DataFrame, wrong: pd.Series, what: str, why: str) -> None:
    row = table[wrong].iloc[0]
    number = int((table["rank"] == row["rank"]).to_numpy()[: int(np.argmax(wrong))].sum())
    raise InputError(what, where=f"rank {row['rank']}, call {number}: {row['call']}", why=why)
