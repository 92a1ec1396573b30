"""What each MPI call of a traced run is to a schedule, and whether the calls are whole.

The calls are `nbhelpers.mpi.Calls`, whoever read them.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from ...errors import InputError
from ...mpi import KINDS, NUMBERS, Calls
from .collectives import BY_SIZE, algorithm_name

NOBODY = -2  # a peer: MPI_PROC_NULL, where a reader can tell it from MPI_ANY_SOURCE
REFUSED = {
    *("MPI_Startall", "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Win_fence"),
    *("MPI_Mrecv", "MPI_Imrecv"),
}


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
    unknown = ~table["collective"].map(algorithm_name).isin(["", *BY_SIZE])
    _refuse(
        table,
        table["call"].isin(REFUSED) | unknown,
        "a call that no schedule can have",
        "one-sided calls, neighbourhoods and several persistent requests at a time aren't read",
    )
    strange = ~table["comm"].isin(list(calls.comms)) & (table["comm"] >= 0)
    _refuse(table, strange, "an unknown communicator", "its ranks are not in `comms`")
    return replace(calls, table=table)


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """With `kind`, `begins` and `collective`; of MPI_Start what the persistent request is."""
    comes = (table["source"] >= 0) | (table["received_bytes"] > 0)  # what a receive says
    begun = pd.Series(np.where(comes, "Irecv", "Isend"), table.index)
    name = table["call"].str.removeprefix("MPI_").where(table["call"] != "MPI_Start", begun)
    kind = name.map(KINDS).fillna("other")
    collective = name.str.removeprefix("I").str.capitalize().where(kind == "collective", "")
    return table.assign(kind=kind, begins=name.str.startswith("I"), collective=collective)


def _refuse(table: pd.DataFrame, wrong: pd.Series, what: str, why: str) -> None:
    """An error that names the first of the wrong calls, if there is any."""
    if wrong.any():
        row = table[wrong].iloc[0]
        number = int((table["rank"] == row["rank"]).to_numpy()[: int(np.argmax(wrong))].sum())
        raise InputError(what, where=f"rank {row['rank']}, call {number}: {row['call']}", why=why)
