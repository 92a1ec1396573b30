"""GOAL files: the text (ours, the reference simulator's, hand-written) and the reference's binary,
packed or not, read and written.

Owns what is done with files; the grammar is in simulator_c/goal_text.c, the messages in
_goal_errors.py. A text is read as a stream: next to the schedule itself, only a piece of it and the
labels of one rank are in memory.
"""

import gzip
import lzma
import mmap
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import InputError
from ..files import written
from ..reading import open_regular
from ._goal_arrays import schedule_of, view_of
from ._goal_errors import refusal
from ._simulator import ffi, lib
from .schedule import Schedule, ScheduleError

_PIECE_BYTES = 1 << 20
_WRITE_BYTES = 8 << 20
_MOST_BYTES = 1 << 40  # it is read piece by piece or mapped
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
        The file cannot be read.

    Examples
    --------
    >>> from nbhelpers.simulation import patterns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read_goal(write_goal(patterns.barrier(8), Path(folder) / "barrier.goal.gz")).messages
    24
    """
    path = Path(path)
    try:
        with open_regular(path, "schedule", _MOST_BYTES) as buffered:
            file = buffered.raw  # type: ignore[attr-defined]
            unpack = _PACKERS.get(file.read(2))
            file.seek(0)
            with (
                unpack(file, "rb") if unpack else open(file.fileno(), "rb", closefd=False)
            ) as content:
                return _read(content, path, bool(unpack))
    except OSError as error:
        raise InputError(f"cannot read the file: {error.strerror or error}", where=path) from None
    except (EOFError, zlib.error, lzma.LZMAError):
        raise ScheduleError(
            "a damaged archive", where=path, why="it is cut off, or neither gzip's nor xz's"
        ) from None


def _read(content: Any, path: Path, packed: bool) -> Schedule:
    reader = ffi.gc(lib.nb_goal_open(), lib.nb_goal_close)
    if reader == ffi.NULL:
        raise MemoryError(path)
    head = content.read(8)
    problem = (
        _read_binary(reader, content, packed)
        if head in _MAGICS
        else _read_text(reader, head, content)
    )
    columns = lib.nb_goal_columns(reader)
    if problem:
        error = lib.nb_goal_error(reader)
        word = ffi.string(error.word).decode("ascii", "backslashreplace")
        word = "".join(char if char.isprintable() else repr(char)[1:-1] for char in word)
        raise refusal(
            _PROBLEM_NAMES[problem],
            path,
            word=word,
            line=error.line,
            rank=error.rank,
            place=error.place,
            ranks=columns.ranks,
        )
    return schedule_of(columns, str(path))


def _read_text(reader: Any, head: bytes, content: Any) -> int:
    piece = bytearray(_PIECE_BYTES)
    memory = ffi.from_buffer("char[]", piece)
    problem = lib.nb_goal_feed(reader, head, len(head))
    while not problem and (length := content.readinto(piece)):
        problem = lib.nb_goal_feed(reader, memory, length)
    return problem or lib.nb_goal_finish(reader)


def _read_binary(reader: Any, content: Any, packed: bool) -> int:
    """Binaries are mapped, since their ranks may lie anywhere; a packed one is unpacked to an
    unnamed file first.
    """
    if not packed:
        return _read_mapped(reader, content)
    with tempfile.TemporaryFile() as unpacked:
        content.seek(0)
        shutil.copyfileobj(content, unpacked, _PIECE_BYTES)
        unpacked.flush()
        return _read_mapped(reader, unpacked)


def _read_mapped(reader: Any, file: BinaryIO) -> int:
    with (
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ffi.from_buffer("uint8_t[]", data) as memory,
    ):
        return lib.nb_goal_read_binary(reader, memory, len(data))


def write_goal(schedule: Schedule, path: str | Path, *, binary: bool | None = None) -> Path:
    """Write a schedule as GOAL text, or as the reference's binary; packed if the name ends in
    `.gz`, whole or not at all.

    Parameters
    ----------
    schedule
        What to write.
    path
        The file.
    binary
        None: by the name, which ends in `.bin` or `.bin.gz` for a binary.

    Returns
    -------
    Path
        The path, as passed.

    Notes
    -----
    Labels are l1, l2, … in each rank. A rank's dependencies follow its operations, grouped by the
    operation that is needed: their order in that group decides which is released first.
    """
    path = Path(path)
    binary = path.name.removesuffix(".gz").endswith(".bin") if binary is None else binary
    view, alive = view_of(schedule)
    with _packed(path) as file:
        for piece in _binary_pieces(schedule, view) if binary else _text_pieces(schedule, view):
            file.write(piece)
    del alive  # C has read from it until here
    return path


@contextmanager
def _packed(path: Path) -> Iterator[Any]:
    """A file as of `written`; what is written is compressed where its name ends in .gz."""
    with (
        written(path) as file,
        (
            gzip.GzipFile("", "wb", 1, file, mtime=0)
            if path.suffix == ".gz"
            else open(file.fileno(), "wb", 0, closefd=False)
        ) as packer,
    ):
        yield packer


def _text_pieces(schedule: Schedule, view: Any) -> Iterator[bytes | memoryview]:
    yield f"num_ranks {schedule.ranks}\n\n".encode()
    text = bytearray(_WRITE_BYTES)
    memory = ffi.from_buffer("char[]", text)
    place = ffi.new("struct goal_place *", (0, -1, 0))
    while place.rank < schedule.ranks:
        yield memoryview(text)[: lib.nb_goal_print(view, place, memory, len(text))]


def _binary_pieces(schedule: Schedule, view: Any) -> Iterator[bytes | bytearray]:
    lengths = np.zeros(schedule.ranks, np.int64)
    _need_memory(lib.nb_goal_binary_lengths(view, ffi.from_buffer("int64_t[]", lengths)))
    ends = 6 + 16 * schedule.ranks + np.cumsum(lengths)
    yield (
        (4223).to_bytes(8, "little")
        + schedule.ranks.to_bytes(4, "little")
        + bytes([schedule.cpus - 1, schedule.nics - 1])
    )
    yield np.stack([ends - lengths, ends], 1).astype("<u8").tobytes()
    for low, high in _portions(ends - lengths, ends):
        piece = bytearray(int(ends[high - 1] - (ends - lengths)[low]))
        _need_memory(lib.nb_goal_pack(view, low, high, ffi.from_buffer("uint8_t[]", piece)))
        yield piece


def _portions(begins: np.ndarray, ends: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranks low to high that take some megabytes together."""
    low = 0
    while low < len(ends):
        high = max(low + 1, int(np.searchsorted(ends, begins[low] + _WRITE_BYTES)))
        yield low, high
        low = high


def _need_memory(problem: int) -> None:
    if problem:
        raise MemoryError("writing a schedule")
