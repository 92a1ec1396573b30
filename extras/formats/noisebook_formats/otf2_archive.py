"""Traces in OTF2, the format of Score-P and others, by its reader from PyPI.

MPI's records are told apart by what they are (MpiSend, MpiIrecvRequest, …); the call around each is
the region that the location is in.
"""

from pathlib import Path
from typing import Any

import pandas as pd

from nbhelpers.errors import InputError
from nbhelpers.mpi import NUMBERS, Calls


def read_otf2(path: str | Path) -> Calls:
    """The MPI calls of a run in an OTF2 archive.

    Parameters
    ----------
    path
        The anchor file, `traces.otf2`, or the folder that Score-P makes, which has it.

    Returns
    -------
    Calls
        Times from the first event of the trace.

    Raises
    ------
    InputError
        The reader is not installed, there is no such archive, or it holds no MPI call.
    """
    otf2 = _library()
    path = Path(path, "traces.otf2") if Path(path).is_dir() else Path(path)
    if not path.is_file():
        raise InputError("no OTF2 archive", where=path, fix="give its file traces.otf2")
    try:
        with otf2.reader.open(str(path)) as trace:
            return _Reading(trace).calls()
    except otf2.error.Error as error:
        raise InputError(
            f"the archive can't be read: {error}",
            where=path,
            why="it is cut short, or of a later version",
            fix="trace the program again, and let it end",
        ) from None


def _library() -> Any:
    try:
        import otf2
        import otf2.events
    except ImportError:
        raise InputError(
            "OTF2's reader is not installed",
            why="the archive is a binary format of its own",
            fix=".venv/bin/python -m pip install otf2",
        ) from None
    return otf2


class _Reading:
    """The calls of an archive while its events are read, one location (a rank's thread) a rank."""

    def __init__(self, trace: Any):
        self.trace = trace
        self.ns = 1e9 / trace.timer_resolution
        self.rank_of: dict[Any, int] = {}
        self.comms: dict[Any, int] = {}
        self.members: dict[int, tuple[int, ...]] = {}
        self.rows: list[dict] = []
        self.waits: list[dict] = []
        self.open: dict[int, dict] = {}
        self.zero: int | None = None

    def calls(self) -> Calls:
        self._groups()
        for location, event in self.trace.events:
            rank = self.rank_of.get(location.group)
            if rank is not None:
                self._event(rank, event)
        if not self.rows:
            raise InputError("no MPI call in the archive", fix="trace with MPI's wrappers on")
        if self.open:
            rank = min(self.open)
            raise InputError(
                f"the trace of rank {rank} ends within {self.open[rank]['call']}",
                why="it was cut short",
                fix="trace the program again, and let it end",
            )
        return self._tables()

    def _groups(self) -> None:
        definitions = self.trace.definitions
        for location in definitions.locations:
            self.rank_of.setdefault(location.group, len(self.rank_of))
        for comm in definitions.comms:
            members = getattr(getattr(comm, "group", None), "members", None)
            ranks = tuple(self._rank(member) for member in members or ())
            number = 0 if ranks == tuple(range(len(self.rank_of))) else len(self.members) + 1
            self.comms[comm], self.members[number] = number, ranks
        self.members.setdefault(0, tuple(range(len(self.rank_of))))

    def _rank(self, member: Any) -> int:
        return member if isinstance(member, int) else self.rank_of[member.group]

    def _event(self, rank: int, event: Any) -> None:
        kind = type(event).__name__
        if self.zero is None:
            self.zero = event.time
        time = round((event.time - self.zero) * self.ns)
        name = event.region.name if kind in ("Enter", "Leave") else ""
        if kind == "Enter" and name.startswith("MPI_"):
            self.open[rank] = dict.fromkeys(NUMBERS, -1) | {
                "call": name,
                "rank": rank,
                "start_ns": time,
                "bytes": 0,
                "received_bytes": 0,
                "number": len(self.rows),
            }
        elif kind == "Leave" and rank in self.open and name == self.open[rank]["call"]:
            self.rows.append(self.open.pop(rank) | {"end_ns": time})
        elif rank in self.open:
            self._record(self.open[rank], kind, event)

    def _record(self, row: dict, kind: str, event: Any) -> None:
        """What a record within a call says of it."""
        comm = getattr(event, "communicator", None)
        if comm is not None:
            row["comm"] = self.comms[comm]
        members = self.members.get(row["comm"], ())
        if kind in ("MpiSend", "MpiIsend"):
            row |= {"peer": members[event.receiver], "tag": event.msg_tag}
            row["bytes"] = event.msg_length
        elif kind == "MpiRecv":
            row |= {"source": members[event.sender], "received_tag": event.msg_tag}
            row["received_bytes"] = event.msg_length
            if row["call"] == "MPI_Recv":
                row |= {"peer": row["source"], "tag": row["received_tag"]}
        elif kind == "MpiCollectiveEnd":
            row |= {"bytes": event.size_sent, "received_bytes": event.size_received}
            root = event.root if isinstance(event.root, int) else -1
            row["root"] = members[root] if 0 <= root < len(members) else -1
        if kind in ("MpiIsend", "MpiIrecvRequest"):
            row["request"] = event.request_id
        if kind in ("MpiIsendComplete", "MpiIrecv"):
            came = (
                {"source": members[event.sender], "tag": event.msg_tag, "bytes": event.msg_length}
                if kind == "MpiIrecv"
                else {}
            )
            self.waits.append(
                {
                    "rank": row["rank"],
                    "start_ns": row["start_ns"],
                    "request": event.request_id,
                    "comm": row["comm"],
                    **came,
                }
            )

    def _tables(self) -> Calls:
        table = pd.DataFrame(self.rows).sort_values(["rank", "start_ns"], ignore_index=True)
        at = {(row.rank, row.start_ns): row.Index for row in table.itertuples()}
        waits = pd.DataFrame(
            self.waits, columns=["rank", "start_ns", "request", "comm", "source", "tag", "bytes"]
        )
        waits["row"] = [at[key] for key in zip(waits["rank"], waits["start_ns"], strict=True)]
        waits = waits.fillna(-1).astype("int64")
        received = waits[waits["source"] >= 0].set_index(["rank", "request"])
        begun = table["call"] == "MPI_Irecv"
        for row in table[begun].itertuples():
            found = received.loc[(row.rank, row.request)]
            table.loc[row.Index, ["source", "received_tag", "received_bytes", "comm"]] = (
                found[["source", "tag", "bytes", "comm"]].to_numpy().reshape(-1)[:4]
            )
        return Calls(
            table[["call", *NUMBERS]],
            waits[["rank", "row", "request"]],
            self.members,
            len(self.rank_of),
        )
