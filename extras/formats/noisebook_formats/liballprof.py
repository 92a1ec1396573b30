"""Traces of the reference's tracing library (liballprof): a text file a rank, a line a call.

A line is `MPI_Send:start:buffer:count:type,size,extent:peer:tag:comm,rank,size:end`, times in µs on
the rank's own clock; the fields are the call's arguments in order. The format tells neither the
members of communicators nor what came of a test.
"""

import math
import re
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from nbhelpers.errors import InputError
from nbhelpers.mpi import KINDS, NUMBERS, Calls
from nbhelpers.reading import MOST_BYTES, in_child, open_regular, read_bytes, refusing
from nbhelpers.simulation.traces.calls import NOBODY

_PAIR = "buffer count type buffer rcount rtype"  # what is sent, and what received
_FIELDS = {
    "Send": "buffer count type peer tag comm",
    "Recv": "buffer count type peer tag comm status",
    "Isend": "buffer count type peer tag comm request",
    "Irecv": "buffer count type peer tag comm request",
    "Sendrecv": "buffer count type peer tag buffer rcount rtype source rtag comm status",
    "Wait": "request status",
    "Waitall": "number request statuses",
    "Barrier": "comm",
    "Bcast": "buffer count type root comm",
    "Reduce": "buffer buffer count type op root comm",
    "Allreduce": "buffer buffer count type op comm",
    "Scan": "buffer buffer count type op comm",
    "Exscan": "buffer buffer count type op comm",
    "Reduce_scatter_block": "buffer buffer count type op comm",
    "Allgather": f"{_PAIR} comm",
    "Alltoall": f"{_PAIR} comm",
    "Gather": f"{_PAIR} root comm",
    "Scatter": f"{_PAIR} root comm",
}
_FIELDS |= {f"{kind}send": _FIELDS["Send"] for kind in "SRB"}
_FIELDS |= {f"I{kind}send": _FIELDS["Isend"] for kind in ("s", "r", "b")}
_COLLECTIVES = [name for name in _FIELDS if KINDS[name] == "collective"]
_FIELDS |= {f"I{name.lower()}": f"{_FIELDS[name]} request" for name in _COLLECTIVES}
_MOST_REQUESTS = 1_000_000  # of one call
_UNREADABLE = {"Waitany", "Waitsome", "Alltoallv", "Gatherv", "Scatterv", "Allgatherv", "Start"}
_NUMBER = re.compile(r"(\d+)")


def read_liballprof(paths: str | Path | Sequence[str | Path]) -> Calls:
    """The calls of a run that liballprof traced.

    Parameters
    ----------
    paths
        A folder with the files `…rank-N.txt` of all ranks, an archive (.tar.xz) of them, or these
        files in the ranks' order.

    Returns
    -------
    Calls
        Times of each rank count from the end of its own MPI_Init: clocks of different nodes are not
        compared.

    Raises
    ------
    InputError
        No file, a rank without a file, a file that is cut short or is no trace; a call of which
        the format doesn't tell enough.
    """
    if isinstance(paths, (str, Path)) and Path(paths).name.endswith((".tar.xz", ".tar.gz")):
        with tempfile.TemporaryDirectory() as folder:
            unpack(paths, Path(folder))
            return read_liballprof(folder)
    files = _files(paths)
    comms: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
    read = [_read(path, rank, len(files), comms) for rank, path in enumerate(files)]
    numbers, members = _communicators(comms, len(files))
    table = pd.DataFrame([row for rows, _ in read for row in rows])
    waits = pd.DataFrame(
        [wait for _, found in read for wait in found], columns=["rank", "line", "request"]
    )
    return _in_the_world(table, waits, numbers, members, len(files))


def unpack(archive: str | Path, folder: Path) -> None:
    """Put the files of an archive (.tar.xz, .tar.gz) into a folder, without the archive's own
    folders and links: no name in it leads elsewhere (`extractall` has a filter only since 3.11.4).

    Raises
    ------
    InputError
        It is no such archive, or cut short.
    """
    fix = "copy it again, or unpack it by hand and give the folder"
    with refusing("this archive can't be read", archive, fix):
        open_regular(archive, "archive").close()
        in_child(partial(_unpack, archive, folder), archive, "archive")


def _unpack(archive: str | Path, folder: Path) -> None:
    left = MOST_BYTES  # the limits of the child do not hold for a disk
    with tarfile.open(archive) as opened:
        for member in opened:
            left -= member.size
            if left < 0:
                raise tarfile.TarError(f"it would have more than {MOST_BYTES:,} bytes")
            if member.isfile() and (content := opened.extractfile(member)):
                (folder / Path(member.name).name).write_bytes(content.read())


def _files(paths: str | Path | Sequence[str | Path]) -> list[Path]:
    if not isinstance(paths, (str, Path)):
        return [Path(path) for path in paths]
    folder = Path(paths)
    named = {
        int(_NUMBER.findall(path.stem)[-1]): path
        for path in folder.glob("*-[0-9]*.txt")
        if "rank" in path.stem or "trace" in path.stem
    }
    missing = set(range(len(named))) - named.keys()
    if missing or not named:
        raise InputError(
            f"no trace of rank {min(missing, default=0)}",
            where=folder,
            why="a schedule needs what every rank did",
            fix="bring the files pmpi-trace-rank-0.txt, … of all ranks into one folder",
        )
    return [named[rank] for rank in sorted(named)]


def _read(path: Path, rank: int, ranks: int, comms: dict) -> tuple[list[dict], list[tuple]]:
    """Rows of the calls of one rank, and (rank, line, request) of what its waits completed."""
    rows: list[dict] = []
    waits: list[tuple] = []
    open_requests: dict[int, bool] = {}
    zero, done = None, False
    lines = read_bytes(path, "trace").decode(errors="replace").splitlines()
    for number, text in enumerate(lines, 1):
        if not text.startswith("MPI_"):
            continue
        name, *values = text.strip().split(":")
        where = f"{path}, line {number}: {name}"
        if name in ("MPI_Init", "MPI_Init_thread"):
            zero = _time(values[-1:], where)
            continue
        if zero is None:
            raise InputError(
                "a call before MPI_Init", where=where, why="the beginning of the trace is missing"
            )
        start, end = _time(values[:1], where), _time(values[-1:], where)
        done = done or name == "MPI_Finalize"
        row = dict.fromkeys(NUMBERS, -1) | {
            "rank": rank,
            "call": name,
            "start_ns": round((start - zero) * 1000),
            "end_ns": round(((start if done else end) - zero) * 1000),
            "bytes": 0,
            "received_bytes": 0,
            "line": number,
        }
        _fill(row, name.removeprefix("MPI_"), values[1:-1], where, comms, open_requests, waits)
        rows.append(row)
    if not done:
        raise InputError(
            f"the trace of rank {rank} ends without MPI_Finalize",
            where=path,
            why="it was cut short: what the others wait for may be missing",
            fix="trace the program again and let it end, or leave this run out",
        )
    return rows, waits


def _time(value: list[str], where: str) -> float:
    try:
        time_us = float(value[0]) if value and value[0] != "-" else 0.0
    except ValueError:
        time_us = math.nan
    if not abs(time_us) < 2**52:  # whole ns are counted in 64 bits
        raise InputError(
            f"{value[0][:40]!r} is no time", where=where, fix="the trace is damaged: bring it anew"
        )
    return time_us


def _fill(
    row: dict, name: str, values: list[str], where: str, comms: dict, requests: dict, waits: list
) -> None:
    """What the arguments of a call say, into its row; requests that are begun or done."""
    if name in _UNREADABLE:
        raise InputError(
            "a call of which the trace doesn't tell enough",
            where=where,
            why="liballprof notes addresses there, and not what they hold",
            fix="trace the program by Noisebook's own layer, or to OTF2",
        )
    if name not in _FIELDS:
        return
    names = _FIELDS[name].split()
    if len(values) < len(names):
        raise InputError(
            f"{len(values)} arguments, {len(names)} are needed",
            where=where,
            why="the line is cut short",
            fix="bring the trace anew",
        )
    # an array of numbers is written over several fields: the last ones still count from the end
    values_of = dict(zip(names, values, strict=False))
    try:
        _numbers(row, name, values_of, comms)
        _requests(row, name, values_of, requests, waits)
    except (ValueError, LookupError):
        raise InputError(
            "a line that can't be read", where=where, fix="bring the trace anew"
        ) from None


def _size(values_of: Mapping[str, str], count: str, type: str) -> int:
    return int(values_of[count]) * int(values_of[type].split(",")[1])


def _numbers(row: dict, name: str, values_of: Mapping[str, str], comms: dict) -> None:
    if "comm" in values_of:
        handle, place, size = (int(part) for part in values_of["comm"].split(",")[:3])
        row |= {"handle": handle, "place": place, "size": size}
        comms[handle][row["rank"]] = (place, size)
    size = _size(values_of, "count", "type") if "count" in values_of else 0
    receives = name in ("Recv", "Irecv")
    row["received_bytes" if receives else "bytes"] = size
    if name == "Sendrecv":
        row["received_bytes"] = _size(values_of, "rcount", "rtype")
        row |= {"source": int(values_of["source"]), "received_tag": int(values_of["rtag"])}
    if name in ("Alltoall", "Ialltoall"):
        row["bytes"] = size * row["size"]
    for field in ("peer", "tag", "root"):
        row[field] = int(values_of.get(field, -1))


def _requests(
    row: dict, name: str, values_of: Mapping[str, str], requests: dict, waits: list
) -> None:
    """A request is the address of its variable: the same one may be used again when it is done."""
    if "request" not in values_of:
        return
    address = int(values_of["request"])
    if name not in ("Wait", "Waitall"):
        requests[address] = True
        row["request"] = address
        return
    number = int(values_of["number"]) if name == "Waitall" else 1
    if number > _MOST_REQUESTS:
        raise ValueError(number)
    wide = 4 if any(other % 8 for other in requests) else 8
    for one in range(address, address + wide * number, wide):
        if requests.pop(one, False):
            waits.append((row["rank"], row["line"], one))


# --- communicators --------------------------------------------------------------------------------


def _communicators(
    comms: Mapping[int, Mapping[int, tuple[int, int]]], ranks: int
) -> tuple[dict[int, int], dict[int, tuple[int, ...]]]:
    """Handle -> number, and number -> members, as far as the calls show them: communicators of all
    ranks in their order are the world.
    """
    numbers: dict[int, int] = {}
    members = {0: tuple(range(ranks))}
    for handle, places in comms.items():
        found = tuple(sorted(places, key=lambda rank: places[rank][0]))
        whole = [places[rank][0] for rank in found] == list(range(len(found)))
        sizes = {size for _, size in places.values()}
        if sizes == {ranks} and all(places[rank][0] == rank for rank in places):
            numbers[handle] = 0
        elif whole and sizes == {len(found)}:
            numbers[handle] = len(members)
            members[numbers[handle]] = found
    return numbers, members


def _in_the_world(
    table: pd.DataFrame,
    waits: pd.DataFrame,
    numbers: Mapping[int, int],
    members: Mapping[int, tuple[int, ...]],
    ranks: int,
) -> Calls:
    """Ranks of communicators become ranks of the world."""
    if "handle" in table:
        table["comm"] = table["handle"].map(numbers).fillna(-1).astype(int)
        lost = table["handle"].notna() & (table["comm"] < 0)
        if lost.any():
            row = table[lost].iloc[0]
            raise InputError(
                f"whose communicator of {row['size']:.0f} ranks it is, the trace doesn't tell",
                where=f"rank {row['rank']}, line {row['line']}: {row['call']}",
                why="liballprof notes only a handle, the caller's rank and the size",
                fix="trace the program by Noisebook's own layer, or to OTF2",
            )
        for comm, world in members.items():
            if comm:
                inside = table["comm"] == comm
                for field in ("peer", "source", "root"):
                    known = inside & (table[field] >= 0)
                    table.loc[known, field] = [world[place] for place in table.loc[known, field]]
    two_sided = table["call"].str.contains("send|recv", case=False)
    table.loc[two_sided & (table["peer"] < -1), "peer"] = NOBODY
    rows = pd.MultiIndex.from_frame(table[["rank", "line"]])
    at = rows.get_indexer(pd.MultiIndex.from_frame(waits[["rank", "line"]]))
    return Calls(
        table[["call", *NUMBERS]].astype(dict.fromkeys(NUMBERS, "int64")),
        waits.assign(row=at)[["rank", "row", "request"]],
        dict(members),
        ranks,
    )
