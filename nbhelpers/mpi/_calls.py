"""All MPI calls of a run as one table: `Calls`, `read_calls`.

Owns the meaning of its columns, and the numbers of communicators that are the same on all ranks.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ._records import COMPLETED, RankTrace, read_rank

_SENDS = ("Send", "Bsend", "Ssend", "Rsend", "Isend", "Ibsend", "Issend", "Irsend", "Start_send")
_LATER_RECEIVES = ("Irecv", "Imrecv", "Start_receive")
_RECEIVES = ("Recv", "Mrecv", *_LATER_RECEIVES)
_BOTH = ("Sendrecv", "Sendrecv_replace")
_SINGLE_WAITS = ("Wait", "Waitany", "Test", "Testany")
_WAITS = (*_SINGLE_WAITS, "Waitall", "Waitsome", "Testall", "Testsome")
_COLLECTIVES = (
    *("Barrier", "Bcast", "Reduce", "Allreduce", "Scan", "Exscan"),
    *("Reduce_scatter", "Reduce_scatter_block", "Gather", "Gatherv", "Scatter", "Scatterv"),
    *("Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw"),
    *("Neighbor_allgather", "Neighbor_allgatherv"),
    *("Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw"),
)
KINDS = {
    **dict.fromkeys(_SENDS, "send"),
    **dict.fromkeys(_RECEIVES, "receive"),
    **dict.fromkeys(_BOTH, "both"),
    **dict.fromkeys(_WAITS, "wait"),
    **dict.fromkeys(_COLLECTIVES, "collective"),
    **{f"I{name.lower()}": "collective" for name in _COLLECTIVES},
}
_AS_CALLED = {"Start_send": "Start", "Start_receive": "Start"}
NUMBERS = (
    *("rank", "start_ns", "end_ns", "peer", "tag", "bytes", "received_bytes"),
    *("source", "received_tag", "comm", "root", "request"),
)


@dataclass(frozen=True)
class Calls:
    """The MPI calls of all ranks of a run.

    Attributes
    ----------
    table
        One row a call, sorted by `rank` and `start_ns`. `call` is as the program calls it
        ("MPI_Send"); what MPI_Start begins of a persistent collective is called as the nonblocking
        one that it stands for ("MPI_Ibcast"). `kind` is send, receive, both, wait, collective or
        other. `start_ns` and `end_ns` (int64) count from the first end of an MPI_Init on that
        node. `peer` (to whom, or from whom it may come), `source` (from whom it came) and `root`
        are ranks of
        MPI_COMM_WORLD; −1: none, any, or not known; a peer of −2: none (MPI_PROC_NULL).
        `bytes` are sent or contributed. The row of a receive has `source`, `received_tag` and
        `received_bytes` of its message, which a wait completed later; `received_bytes` of a wait
        are 0. `comm` is 0 for MPI_COMM_WORLD and
        otherwise a number that is the same on all its ranks; `request` is unique in the rank. Last
        `thread`, from 0.
    waits
        Which requests a wait or test completed: `rank`, `row` (of `table`), `request`.
    comms
        Number of a communicator to its members' ranks in MPI_COMM_WORLD.
    ranks
        How many ranks MPI_COMM_WORLD has.
    cut
        Ranks that never ended their MPI_Finalize: they died, or were killed.
    notes
        A sentence for each thing that is missing.
    offloaded
        Collectives go on while their ranks compute, as those of GPUs do.
    """

    table: pd.DataFrame
    waits: pd.DataFrame
    comms: dict[int, tuple[int, ...]]
    ranks: int
    cut: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    offloaded: bool = False

    def __repr__(self) -> str:
        return f"<{len(self.table)} MPI calls of {self.ranks} ranks>"


def read_calls(folder: str | Path) -> Calls:
    """Read the traces of all ranks that `libnbtrace.so` wrote into a folder.

    A rank that died left what it had recorded until then; `Calls.notes` says so.

    Parameters
    ----------
    folder
        The folder that was named by NBTRACE.

    Raises
    ------
    InputError
        There is no trace; or each process was alone in its world, because launcher and program
        belong to different MPIs; or traces of several runs are mixed.
    """
    paths = sorted(Path(folder).glob("calls.*"))
    if not paths:
        raise InputError(
            "no MPI call was recorded",
            where=folder,
            why="no rank came to the end of MPI_Init with our library loaded",
            fix="start the program by nbhelpers.mpi.CallTrace, which says what went wrong; extras"
            " of noisebook doctor read traces of other tools",
        )
    traces = sorted((read_rank(path) for path in paths), key=lambda trace: trace.rank)
    _check_one_world(traces, Path(folder))
    numbers, comms = _common_numbers(traces)
    origins = _origins(traces)
    made = [_table(trace, numbers, origins[trace.host]) for trace in traces]
    offsets = np.cumsum([0, *(len(table) for table, _ in made)])
    waits = [part.assign(row=part["row"] + at) for (_, part), at in zip(made, offsets)]
    return Calls(
        table=pd.concat([table for table, _ in made], ignore_index=True),
        waits=pd.concat(waits, ignore_index=True),
        comms=comms,
        ranks=traces[0].ranks,
        cut=tuple(trace.rank for trace in traces if not trace.finalized),
        notes=tuple(_notes(traces)),
    )


def _check_one_world(traces: Sequence[RankTrace], folder: Path) -> None:
    alone = [trace for trace in traces if trace.ranks == 1]
    if len(alone) == len(traces) > 1:
        raise InputError(
            f"{len(traces)} processes started, and each was alone in its MPI_COMM_WORLD",
            where=folder,
            why=f"the launcher is not that of the program's MPI ({traces[0].mpi})",
            fix="start it by the mpirun of the MPI that it was built with, or build it by ours: "
            "make mpi",
        )
    if len({trace.rank for trace in traces}) < len(traces):
        raise InputError(
            "the folder holds traces of more than one run",
            where=folder,
            fix="give each run an empty folder",
        )


def _origins(traces: Sequence[RankTrace]) -> dict[str, int]:
    """The first end of MPI_Init of each host."""
    origins: dict[str, int] = {}
    for trace in traces:
        origins[trace.host] = min(trace.init_end_ns, origins.get(trace.host, trace.init_end_ns))
    return origins


def _common_numbers(
    traces: Sequence[RankTrace],
) -> tuple[dict[tuple[int, int], int], dict[int, tuple[int, ...]]]:
    """(Rank, number there) of a communicator to its number on all ranks; and the members of each.

    Kind, parent, place among the parent's children and members are the same on all its ranks; of
    those that agree in all that, the first of one rank is the first of the other.
    """
    numbers: dict[tuple[int, int], int] = {}
    known: dict[tuple, int] = {}
    comms: dict[int, tuple[int, ...]] = {}
    for trace in traces:
        seen: Counter = Counter()
        for own, (kind, parent, place, groups) in sorted(trace.communicators.items()):
            key = (kind, numbers.get((trace.rank, parent), -1), place, frozenset(groups))
            nth = seen[key]
            seen[key] += 1
            number = numbers[trace.rank, own] = known.setdefault((key, nth), len(known))
            comms.setdefault(
                number,
                tuple(sorted({rank for one in groups for rank in one}))
                if len(groups) > 1
                else groups[0],
            )
    return numbers, comms


def _table(
    trace: RankTrace, numbers: dict[tuple[int, int], int], origin_ns: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The calls of one rank, and what its waits completed; rows count from 0."""
    names = np.array(trace.names, dtype=object)
    done = pd.DataFrame(trace.records[trace.records["end"] != 0]).astype("int64")
    done["name"] = names[done["call"]]
    done["row"] = (done["name"] != COMPLETED).cumsum() - 1
    calls = done[done["name"] != COMPLETED].reset_index(drop=True)
    waits = _waits(calls, done[done["name"] == COMPLETED])
    _fill_receives(calls, waits)
    order = np.argsort(calls["start"].to_numpy(), kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    calls = calls.iloc[order].reset_index(drop=True)
    table = calls.assign(
        rank=trace.rank,
        call="MPI_" + calls["name"].replace(_AS_CALLED),
        kind=calls["name"].map(KINDS).fillna("other"),
        start_ns=calls["start"] - origin_ns,
        end_ns=calls["end"] - origin_ns,
        comm=[numbers.get((trace.rank, own), -1) for own in calls["comm"]],
    )
    waits = waits.assign(rank=trace.rank, row=places[waits["row"].to_numpy(dtype=np.int64)])
    return table[["call", "kind", *NUMBERS, "thread"]], waits[["rank", "row", "request"]]


def _waits(calls: pd.DataFrame, completed: pd.DataFrame) -> pd.DataFrame:
    """`row`, `request`, and what came: of waits for one, and of those for several, whose records
    follow theirs and end when they end.
    """
    single = calls["name"].isin(_SINGLE_WAITS) & (calls["request"] >= 0)
    columns = ["row", "request", "source", "received_tag", "received_bytes"]
    several = completed
    if len(completed) and calls["thread"].nunique() > 1:
        waited = calls[calls["name"].isin(_WAITS)].drop_duplicates(["thread", "end"])
        rows = waited.set_index(["thread", "end"])["row"]
        keys = pd.MultiIndex.from_frame(completed[["thread", "end"]])
        several = completed.assign(row=rows.reindex(keys).to_numpy(dtype=np.int64))
    return pd.concat([calls.loc[single, columns], several[columns]]).sort_values(
        "row", kind="stable", ignore_index=True
    )


def _fill_receives(calls: pd.DataFrame, waits: pd.DataFrame) -> None:
    """What a wait completed stands in the row of the receive itself."""
    later = calls["name"].isin(_LATER_RECEIVES) & (calls["request"] >= 0)
    came = waits.drop_duplicates("request").set_index("request")
    for column in ("source", "received_tag", "received_bytes"):
        found = calls.loc[later, "request"].map(came[column])
        kept = calls.loc[later, column]
        calls.loc[later, column] = found.fillna(kept).astype(np.int64)
    calls.loc[calls["name"].isin(_WAITS), "received_bytes"] = 0


def _notes(traces: Sequence[RankTrace]) -> list[str]:
    notes = []
    for trace in traces:
        if not trace.finalized:
            open_calls = trace.records[trace.records["end"] == 0]
            within = ", ".join(f"MPI_{trace.names[call]}" for call in open_calls["call"])
            notes.append(
                f"Rank {trace.rank} did not end its MPI_Finalize: its calls are known until it died"
                + (f", within {within}." if within else ".")
            )
        if trace.dropped:
            notes.append(
                f"Of rank {trace.rank} {trace.dropped} last calls are missing: there was no room"
                " for them (NBTRACE_MOST_MIB, or the disk)."
            )
    missing = sorted(set(range(traces[0].ranks)) - {trace.rank for trace in traces})
    if missing:
        ranks = ", ".join(map(str, missing))
        notes.append(f"There is no trace of rank {ranks}: it died in MPI_Init, or ran elsewhere.")
    if len({trace.host for trace in traces}) > 1:
        notes.append("Ranks ran on several nodes: times of different nodes cannot be compared.")
    return notes
