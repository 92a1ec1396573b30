"""The files that `libnbtrace.so` writes, a pair a rank, as they are.

Owns their format, which is that of workloads/mpi/nbtrace.h.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..reading import read_bytes

MAGIC = b"nbtrace1"
HEADER_BYTES = 8192
COMPLETED = "Completed"  # a record of a request that a wait for several completed
RECORD = np.dtype(
    [
        ("start", "i8"),
        ("end", "i8"),
        ("bytes", "i8"),
        ("received_bytes", "i8"),
        ("call", "i2"),
        ("thread", "i2"),
        *((name, "i4") for name in ("peer", "tag", "source", "received_tag")),
        *((name, "i4") for name in ("comm", "root", "request")),
    ]
)
_HEADER = struct.Struct("=8s4i8q64s128s")


@dataclass(frozen=True)
class RankTrace:
    """What one rank recorded.

    Attributes
    ----------
    rank, ranks
        Its number in MPI_COMM_WORLD, and how many there are.
    host, mpi
        Where it ran, and the MPI's own words on its version.
    records
        Calls, an array of dtype `RECORD`, in the order in which the calls began; times in ns of
        CLOCK_MONOTONIC.
    names
        Names of the calls, by their number in `records`.
    init_end_ns
        When its MPI_Init ended.
    finalized
        It ended its MPI_Finalize; otherwise it died, or was killed, before.
    dropped
        Calls for which there was no room.
    communicators
        Number in this rank to the words of its line: kind, parent, place, groups of world ranks.
    """

    rank: int
    ranks: int
    host: str
    mpi: str
    records: np.ndarray
    names: list[str]
    init_end_ns: int
    finalized: bool
    dropped: int
    communicators: dict[int, tuple[str, int, int, tuple[tuple[int, ...], ...]]]


def read_rank(path: Path) -> RankTrace:
    """Read the trace of one rank, as far as it was written.

    Parameters
    ----------
    path
        The file `calls.RANK`; `comms.RANK` lies beside it.

    Raises
    ------
    InputError
        It is no such file, or it ends within its header.
    """
    # records are as large in memory as on disk: no child reads them
    content = read_bytes(path, "trace of MPI calls")
    if len(content) < HEADER_BYTES or content[: len(MAGIC)] != MAGIC:
        raise InputError(
            "the file is no trace of MPI calls, or the rank died while it began it",
            where=path,
            fix="run the program again; its folder for traces must be empty",
        )
    (_, rank, ranks, codes, tsc, _, *numbers, host, mpi) = _HEADER.unpack_from(content)
    first_ns, first_ticks, last_ns, last_ticks, init_end, finalized, dropped = numbers
    names = (
        content[_HEADER.size : HEADER_BYTES].split(b"\0")[0].decode(errors="replace").split("\n")
    )
    names = ["", *names][:codes]
    whole = (len(content) - HEADER_BYTES) // RECORD.itemsize
    records = np.frombuffer(content, RECORD, whole, HEADER_BYTES).copy()
    records = records[records["call"] != 0]
    clock = _Clock(first_ns, first_ticks, last_ns, last_ticks, bool(tsc))
    in_progress = records["end"] == 0
    records["start"] = clock.ns(records["start"])
    records["end"] = np.where(in_progress, 0, clock.ns(records["end"]))
    (init_end_ns,) = clock.ns(np.array([init_end]))
    return RankTrace(
        rank=rank,
        ranks=ranks,
        host=_text(host),
        mpi=_text(mpi),
        records=records,
        names=names,
        init_end_ns=int(init_end_ns),
        finalized=bool(finalized),
        dropped=dropped,
        communicators=_communicators(path.with_name(path.name.replace("calls", "comms", 1))),
    )


@dataclass(frozen=True)
class _Clock:
    """Ticks to ns by two instants that were read on both clocks."""

    first_ns: int
    first_ticks: int
    last_ns: int
    last_ticks: int
    tsc: bool

    def ns(self, ticks: np.ndarray) -> np.ndarray:
        if not self.tsc or self.last_ticks <= self.first_ticks:
            return ticks
        rate = (self.last_ns - self.first_ns) / (self.last_ticks - self.first_ticks)
        return self.first_ns + np.rint((ticks - self.first_ticks) * rate).astype(np.int64)


def _text(field: bytes) -> str:
    return field.split(b"\0")[0].decode(errors="replace").split("\n")[0]


def _communicators(path: Path) -> dict[int, tuple[str, int, int, tuple[tuple[int, ...], ...]]]:
    """The communicators of the lines that end; the last may have been cut short."""
    known = {}
    text = (
        read_bytes(path, "list of communicators").decode(errors="replace") if path.exists() else ""
    )
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        about, *groups = line.split(":")
        try:
            index, kind, parent, place = about.split()
            ranks = tuple(tuple(map(int, group.split())) for group in groups)
            known[int(index)] = (kind, int(parent), int(place), ranks)
        except ValueError:
            raise InputError(
                f"this is no communicator: {line[:60]!r}",
                where=f"{path}, line {number}",
                fix="run the program again; its folder for traces must be empty",
            ) from None
    return known
