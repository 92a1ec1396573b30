"""Reading and writing of trace files: plain or gzip, every failure an error that names the file.

Written gzip files carry no time and no name, so that equal traces are equal bytes.
"""

import gzip
import json
from pathlib import Path

from ..errors import InputError, LostEvents
from ..files import write_atomically
from ..reading import parsed_json, read_bytes

LARGEST_BYTES = 4 << 30  # after unpacking; a damaged or malicious archive must not fill the memory


def read_trace(path: str | Path) -> bytes:
    """The content of a trace file, unpacked if it is gzip.

    Raises
    ------
    InputError
        Missing, unreadable, a damaged archive, or larger than 4 GiB.
    """
    return read_bytes(path, "trace", LARGEST_BYTES)


def damaged(what: str, where: object) -> InputError:
    """The error of a trace that cannot be what was recorded."""
    return InputError(what, where=where, why="the trace is damaged", fix="record the run again")


def lost(what: str, where: object) -> LostEvents:
    """The error of a trace in which events are missing."""
    why = "durations around each gap would be wrong"
    fix = "record again with a larger buffer: Tracer(…, buffer_kib=16384)"
    return LostEvents(what, where=where, why=why, fix=fix)


def write_trace(path: str | Path, content: bytes) -> Path:
    """Write a gzip file, whole or not at all."""
    return write_atomically(path, gzip.compress(content, compresslevel=6, mtime=0))


def header_line(header: dict) -> bytes:
    """A header as one line of JSON."""
    return json.dumps(header, sort_keys=True).encode() + b"\n"


def parse_header(line: bytes, format_name: str, path: str | Path) -> dict:
    """The header of one of our files.

    Raises
    ------
    InputError
        Not JSON, or of another format or version.
    """
    header = parsed_json(line, path, "header")
    found = header.get("format") if isinstance(header, dict) else type(header).__name__
    if found != format_name:
        raise InputError(f"expected '{format_name}', found {found!r}", where=f"{path}, line 1")
    return header


def header_integer(header: dict, key: str, path: str | Path, high: int = 1 << 62) -> int:
    """An integer of a header, within bounds, or an error that names the field."""
    value = header.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= high:
        raise InputError(
            f"'{key}' must be an integer from 0 to {high}, found {value!r}",
            where=f"{path}, header",
        )
    return value


def refuse_recorded_loss(header: dict, path: str | Path) -> None:
    """An error where the kernel lost events of a recorded run."""
    if count := header_integer(header, "lost", path):
        raise lost(f"the kernel lost {count} events", path)


def header_window(
    header: dict, path: str | Path, begin: str = "start_ns", end: str = "end_ns"
) -> tuple[int, int]:
    """Two times of a header: those of the timed region, or others."""
    return header_integer(header, begin, path), header_integer(header, end, path)


def checked_window(window: tuple[int, int], path: str | Path) -> tuple[int, int]:
    """The timed region itself, if it is one."""
    if not 0 <= window[0] < window[1] < 1 << 62:
        raise InputError(
            f"the window {window} of the timed region is empty or negative",
            where=path,
            why="times count from its begin",
            fix="give (begin_ns, end_ns), or record the run again",
        )
    return window


def header_integers(header: dict, key: str, path: str | Path) -> list[int]:
    """A list of non-negative integers of a header, or an error that names the field."""
    values = header.get(key, [])
    if not isinstance(values, list) or any(
        isinstance(v, bool) or not isinstance(v, int) or not 0 <= v < 1 << 32 for v in values
    ):
        raise InputError(f"'{key}' must be a list of process ids", where=f"{path}, header")
    return values
