"""Reading and writing of trace files: plain or gzip, every failure an error that names the file.

Written gzip files carry no time and no name, so that equal traces are equal bytes.
"""

import gzip
import json
import zlib
from pathlib import Path

from ..errors import InputError, LostEvents
from ..files import write_atomically
from ..reading import open_regular

LARGEST_BYTES = 4 << 30  # after unpacking; a damaged or malicious archive must not fill the memory
_CHUNK = 1 << 22


def read_trace(path: str | Path) -> bytes:
    """The content of a trace file, unpacked if it is gzip (known by its first bytes, not by its
    name).

    Raises
    ------
    InputError
        Missing, unreadable, a damaged archive, or larger than 4 GiB.
    """
    try:
        with open_regular(path, "trace", LARGEST_BYTES) as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            return _read_all(gzip.GzipFile(fileobj=file) if packed else file, path)
    except EOFError:
        raise InputError(
            "a truncated archive",
            where=path,
            why="the end of the trace is missing",
            fix="record the run again",
        ) from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"a damaged archive: {error}", where=path, fix="record the run again"
        ) from None
    except OSError as error:
        raise InputError(f"cannot read the trace: {error.strerror or error}", where=path) from None


def _read_all(file, path: str | Path) -> bytes:
    parts, size = [], 0
    while part := file.read(_CHUNK):
        parts.append(part)
        size += len(part)
        if size > LARGEST_BYTES:
            raise InputError(
                "the trace is larger than 4 GiB",
                where=path,
                fix="record shorter runs, or split the file by time",
            )
    return b"".join(parts)


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
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(
            "the header is not JSON",
            where=f"{path}, line 1",
            why="the file is damaged",
            fix="record the run again",
        ) from None
    if not isinstance(header, dict) or header.get("format") != format_name:
        found = header.get("format") if isinstance(header, dict) else type(header).__name__
        raise InputError(f"expected '{format_name}', found {found!r}", where=f"{path}, line 1")
    return header


def header_integer(
    header: dict, key: str, path: str | Path, low: int = 0, high: int = 1 << 62
) -> int:
    """An integer of a header, within bounds, or an error that names the field."""
    value = header.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError(
            f"'{key}' must be an integer from {low} to {high}, found {value!r}",
            where=f"{path}, header",
        )
    return value


def refuse_recorded_loss(header: dict, path: str | Path) -> None:
    """An error where the kernel lost events of a recorded run."""
    if lost := header_integer(header, "lost", path):
        raise LostEvents(
            f"the kernel lost {lost} events",
            where=path,
            why="durations around each gap would be wrong",
            fix="record again with a larger buffer: Tracer(…, buffer_kib=16384)",
        )


def header_integers(header: dict, key: str, path: str | Path) -> list[int]:
    """A list of non-negative integers of a header, or an error that names the field."""
    values = header.get(key, [])
    if not isinstance(values, list) or any(
        isinstance(v, bool) or not isinstance(v, int) or not 0 <= v < 1 << 32 for v in values
    ):
        raise InputError(f"'{key}' must be a list of process ids", where=f"{path}, header")
    return values
