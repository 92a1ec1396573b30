"""GOAL files, packed or not: the text (ours, the reference simulator's, hand-written), read and
written, and the reference's binary, read.

Owns what is done with files; the grammar is in simulator_c/goal_text.c, the messages in
data/knowledge/goal.yml. A text is read as a stream: next to the schedule itself, only a piece of it
and the labels of one rank are in memory. Above 256 KiB, and packed, a child reads it.
"""

import gzip
import lzma
import mmap
import os
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import written
from ..places import shipped
from ..reading import MOST_BYTES, in_child, open_regular, pieces, read_yaml
from ._goal_arrays import schedule_of
from ._simulator import ffi, lib
from .schedule import CALC, RECV, SEND, Schedule, ScheduleError

KNOWLEDGE = shipped() / "data" / "knowledge" / "goal.yml"  # with the grammar, not a user's
_MOST_BYTES = 1 << 40  # it is read piece by piece or mapped, and what grows is read by a child
_PACKERS: dict[bytes, Callable[..., Any]] = {  # by the first bytes of a file
    b"\x1f\x8b": gzip.open,
    b"\xfd7": lzma.open,
}
_MAGICS = {(4223).to_bytes(8, "little"), (2342).to_bytes(8, "little")}
_PROBLEM_NAMES = {
    number: name.removeprefix("GOAL_")
    for number, name in ffi.typeof("enum goal_problem").elements.items()
}


def read_goal(path: str | Path) -> Schedule:
    """Read a schedule from GOAL text or from the reference's binary, packed (gzip, xz) or not: its
    first bytes say which it is.

    Text: the dialect of the reference (Hoefler, Schneider, Lumsdaine, "LogGOPSim", LSAP 2010), with
    labels in any order, forward references, rank blocks in any order, options (tag, cpu, nic) in
    any order, and comments (`//` and `/* */`) wherever a blank may stand. `schedule.line` has the
    line of each operation. A 0 stands for the peer and the tag of a calculation. Tags of 2^31 and
    more, and a rank's CPUs if one is beyond 255 (ATLAHS has both), are numbered anew from 0.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Schedule
        Its operations, ranks in order.

    Raises
    ------
    ScheduleError
        The file, the line, the rank, and what is wrong: unknown or doubled labels, peers and ranks
        that do not exist, ranks without a block, negative or too large numbers, cycles of
        dependencies, anything unexpected, files that are cut off or damaged.
    InputError
        The file cannot be read, or takes too much (see `reading.in_child`).

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from nbhelpers.simulation import patterns
    >>> with TemporaryDirectory() as folder:
    ...     read_goal(write_goal(patterns.barrier(8), Path(folder) / "barrier.goal.gz")).messages
    24
    """
    path = Path(path)
    try:
        with open_regular(path, "schedule", _MOST_BYTES) as file:
            unpack = _PACKERS.get(file.read(2))
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            read = partial(_read, unpack(file, "rb") if unpack else file, path, unpack is None)
            return in_child(read, path, "schedule", size if unpack is None else MOST_BYTES)
    except OSError as error:
        raise InputError(f"cannot read the file: {error.strerror or error}", where=path) from None
    except (EOFError, zlib.error, lzma.LZMAError):
        raise ScheduleError(
            "a damaged archive", where=path, why="it is cut off, or neither gzip's nor xz's"
        ) from None


def _read(content: Any, path: Path, is_plain: bool) -> Schedule:
    reader = ffi.gc(lib.nb_goal_open(), lib.nb_goal_close)
    if reader == ffi.NULL:
        raise MemoryError(path)
    head = content.read(8)
    following = pieces(content, path, "schedule", _MOST_BYTES)
    if head not in _MAGICS:
        problem = _read_text(reader, head, following)
    elif is_plain:
        with mmap.mmap(content.fileno(), 0, access=mmap.ACCESS_READ) as data:
            problem = _read_binary(reader, data)
    else:
        problem = _read_binary(reader, b"".join([head, *following]))
    columns = lib.nb_goal_columns(reader)
    if problem:
        raise _refusal(_PROBLEM_NAMES[problem], path, lib.nb_goal_error(reader), columns.ranks)
    return schedule_of(columns, str(path))


def _refusal(problem: str, path: Path, error: Any, ranks: int) -> Exception:
    """The error for a problem of the C reader, by its name without GOAL_."""
    if problem == "NO_MEMORY":
        return MemoryError(f"{path} needs more memory than there is")
    raw = ffi.string(error.word).decode("ascii", "backslashreplace")
    word = "".join(char if char.isprintable() else repr(char)[1:-1] for char in raw)
    rank = error.rank
    where = f"{path}{f', line {error.line}' * (error.line > 0)}{f', rank {rank}' * (rank >= 0)}"
    names = {"word": word, "rank": rank, "place": error.place, "ranks": ranks, "last": ranks - 1}
    texts = read_yaml(KNOWLEDGE, "texts of what GOAL files have wrong")[problem]
    said = {part: text.format(**names) for part, text in texts.items()}
    return ScheduleError(**said, where=where)


def _read_text(reader: Any, head: bytes, following: Iterator[bytes]) -> int:
    for piece in chain([head], following):
        if problem := lib.nb_goal_feed(reader, piece, len(piece)):
            return problem
    return lib.nb_goal_finish(reader)


def _read_binary(reader: Any, data: Any) -> int:
    """Ranks of a binary may lie anywhere in it: it is mapped, or unpacked whole."""
    with ffi.from_buffer("uint8_t[]", data) as memory:
        return lib.nb_goal_read_binary(reader, memory, len(data))


def write_goal(schedule: Schedule, path: str | Path) -> Path:
    """Write a schedule as GOAL text; packed if the name ends in `.gz`, whole or not at all.

    Parameters
    ----------
    schedule
        What to write.
    path
        The file.

    Returns
    -------
    Path
        The path, as passed.

    Notes
    -----
    Labels are l1, l2, … in each rank. A rank's dependencies follow its operations, grouped by the
    operation that is needed: their order in that group decides which is released first. The
    reference's txt2bin makes its binary of the text.
    """
    path = Path(path)
    with written(path) as file:
        packed = path.suffix == ".gz"
        packer: Any = gzip.GzipFile("", "wb", 1, file, mtime=0) if packed else file
        packer.write(f"num_ranks {schedule.ranks}\n\n".encode())
        for rank in range(schedule.ranks):
            packer.write("".join(_block(schedule, rank)).encode())
        if packed:
            packer.close()
    return path


_COLUMNS = ("kind", "size", "peer", "tag", "cpu", "nic")
_WORDS = {SEND: "send {}b to {} tag {}", RECV: "recv {}b from {} tag {}", CALC: "calc {}"}


def _block(schedule: Schedule, rank: int) -> Iterator[str]:
    """The lines of a rank."""
    low, high = (int(end) for end in schedule.rank_start[rank : rank + 2])
    yield f"rank {rank} {{\n"
    rows = zip(*(schedule.column(name)[low:high].tolist() for name in _COLUMNS))
    for number, (kind, size, peer, tag, cpu, nic) in enumerate(rows, 1):
        options = [("cpu", cpu), ("nic", 0 if kind == CALC else nic)]
        more = "".join(f" {name} {value}" for name, value in options if value)
        yield f"l{number}: {_WORDS[kind].format(size, peer, tag)}{more}\n"
    graphs = [
        ("requires", schedule.done_start[low : high + 1].tolist(), schedule.done_op),
        ("irequires", schedule.begun_start[low : high + 1].tolist(), schedule.begun_op),
    ]
    for needed in range(high - low):
        for word, start, released in graphs:
            for other in released[start[needed] : start[needed + 1]].tolist() if start else ():
                yield f"l{other + 1} {word} l{needed + 1}\n"
    yield "}\n\n"
