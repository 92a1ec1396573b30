"""Files of records that are only ever appended to: a JSON line each, with two checks.

Owns their format. Each line ends in `"crc"`, a CRC-32 of the rest of the line, and `"chain"`, a
hash of the chain before it and of the line. So a changed, missing, doubled or exchanged line shows
itself, and all others stay usable. Files of before there were checks are read as they were, and get
them when somebody appends. The plain way is JSON alone: of 1,000 changed bytes it shows 380, of
1,000 lines taken out none; the checks show all of both (benchmarks/rivals.py records).
"""

import hashlib
import json
import os
import re
import textwrap
import warnings
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path

from .files import new_aside, open_regular_file, packed, sync_folder, write_atomically, writing
from .reading import in_child, read_bytes

SEAL = "seal.json"  # of a campaign: how many records it had when it was complete
_SUFFIX = re.compile(rb', "crc": "([0-9a-f]{8})", "chain": "([0-9a-f]{16})"\}')
_SUFFIX_BYTES = len(', "crc": "01234567", "chain": "0123456789abcdef"}')
_WHAT = "file of records"
_BEGIN = "0" * 16


@dataclass(frozen=True)
class Damage:
    """A line that cannot be trusted.

    Attributes
    ----------
    line
        Its number, from 1.
    what
        What is wrong with it, and which run it seems to be.
    content
        The line as it is.
    """

    line: int
    what: str
    content: bytes


@dataclass(frozen=True)
class Records:
    """What is in a file of records.

    Attributes
    ----------
    rows
        The records that can be trusted, in order, without their checks.
    damage
        What cannot be trusted.
    checked
        Whether the lines have checks; those of before there were any have none.
    chain
        The last chain; "" without checks.
    """

    rows: list[dict]
    damage: tuple[Damage, ...]
    checked: bool
    chain: str


# ---- writing -------------------------------------------------------------------------------------


def append_record(path: str | Path, record: dict) -> None:
    """Append a record and force it to disk before returning.

    What a crash left of a last line goes: it was never acknowledged. A packed file is unpacked, and
    one without checks gets them first; as it was, it stays in ``aside/DATE``.
    """
    path = Path(path)
    with writing(path):
        is_new = not path.exists()
        if is_new and packed(path).exists():
            write_atomically(path, read_bytes(packed(path), _WHAT))
        with FileIO(open_regular_file(path, os.O_RDWR | os.O_APPEND), "ab+") as file:
            size = _close_off(file)
            chain = _last_chain(file, size)
            if chain is not None:
                _write_line(file, size, _line(record, chain))
        if chain is None:  # of before there were checks, or its last line is damaged
            write_atomically(new_aside(path.parent) / f"{path.name}.before", path.read_bytes())
            write_records(path, read(path).rows)
            append_record(path, record)
        elif is_new:
            sync_folder(path.parent)


def _write_line(file: FileIO, size: int, line: bytes) -> None:
    try:
        while line:
            line = line[file.write(line) :]
        os.fsync(file.fileno())
    except OSError:
        file.truncate(size)
        raise


def _close_off(file: FileIO) -> int:
    """Cut off what a crash left of a last line; returns the size without it.

    A whole record that lacks only its line feed stays.
    """
    size = file.seek(0, os.SEEK_END)
    if not size or os.pread(file.fileno(), 1, size - 1) == b"\n":
        return size
    whole = os.pread(file.fileno(), size, 0)
    begin = whole.rfind(b"\n") + 1
    if _is_whole(whole[begin:]):
        file.write(b"\n")
        return size + 1
    file.truncate(begin)
    return begin


def _is_whole(line: bytes) -> bool:
    return bool(_SUFFIX.search(line)) or _json(line) is not None


def _last_chain(file: FileIO, size: int) -> str | None:
    """The chain of the last line; None: it has none."""
    if not size:
        return _BEGIN
    tail = os.pread(file.fileno(), _SUFFIX_BYTES + 1, max(0, size - _SUFFIX_BYTES - 1))
    found = _SUFFIX.fullmatch(tail[:-1])
    return found[2].decode() if found else None


def write_records(path: str | Path, records: Iterable[dict]) -> Path:
    """Write all records of a file anew, whole or not at all."""
    chain, lines = _BEGIN, []
    for record in records:
        lines.append(_line(record, chain))
        chain = lines[-1][-19:-3].decode()
    return write_atomically(path, b"".join(lines))


def _line(record: dict, chain: str) -> bytes:
    body = json.dumps(record, sort_keys=True, ensure_ascii=False)
    return _with_checks(body.encode(), chain) + b"\n"


def _with_checks(body: bytes, chain: str) -> bytes:
    crc, link = f"{zlib.crc32(body):08x}", _link(chain, body)
    return body[:-1] + f', "crc": "{crc}", "chain": "{link}"}}'.encode()


def _link(chain: str, body: bytes) -> str:
    return hashlib.sha256(chain.encode() + b"\n" + body).hexdigest()[:16]


def with_new_checks(content: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """The content of a file whose records were changed on purpose, with checks that are right.

    Parameters
    ----------
    content
        Bytes of a file of records.
    change
        From the bytes of a record, without its checks, to others. Damaged lines are changed too,
        and stay damaged.

    Returns
    -------
    bytes; the same where nothing changes.
    """
    lines, after = content.split(b"\n"), _BEGIN
    before: str | None = _BEGIN
    for at, line in enumerate(lines):
        row, _, before = _check(line, before)
        if row is None:
            lines[at], after = change(line), before or after
            continue
        lines[at] = _with_checks(change(line[:-_SUFFIX_BYTES] + b"}"), after)
        after = lines[at][-18:-2].decode()
    return b"\n".join(lines)


# ---- reading -------------------------------------------------------------------------------------


def read_records(path: str | Path) -> list[dict]:
    """The records of a file, or of its packed copy, that can be trusted; without a file none.

    A warning names those that cannot. A last line torn by a crash was never acknowledged, and is
    passed over.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    found = read(path)
    if found.damage:
        what = "; ".join(f"line {one.line}: {one.what}" for one in found.damage)
        what = f"{len(found.damage)}: {textwrap.shorten(what, 200)}"
        said = f"{path}: damaged records were left out ({what})"
        advice = f"see: noisebook verify {Path(path).parent}"
        warnings.warn(f"{said}; {advice}", RuntimeWarning, stacklevel=2)
    return found.rows


def read(path: str | Path) -> Records:
    """Read a file of records, or its packed copy, with what is damaged in it.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    path = Path(path)
    places = [one for one in (path, packed(path)) if one.exists()]
    if not places:
        return _records(b"")
    content = read_bytes(places[0], _WHAT)
    return in_child(partial(_records, content), places[0], _WHAT, len(content))


def _records(content: bytes) -> Records:
    *lines, last = content.split(b"\n")
    if last and _is_whole(last):
        lines.append(last)
    # no single change takes both keys of a line away
    ends = [line[-_SUFFIX_BYTES - 8 :] for line in lines]
    checked = not lines or any(b'"crc"' in end or b'"chain"' in end for end in ends)
    rows: list[dict] = []
    damage: list[Damage] = []
    chain: str | None = _BEGIN if checked else None
    for number, line in enumerate(lines, start=1):
        if checked:
            row, what, chain = _check(line, chain)
        else:
            row, what = _json(line), f"no whole record{_whose(line)}"
        if row is None:
            damage.append(Damage(number, what, line))
        else:
            rows.append(row)
    return Records(rows, tuple(damage), checked, chain or "")


def _check(line: bytes, chain: str | None) -> tuple[dict | None, str, str | None]:
    """(record, "", its chain); or (None, what is wrong, the chain to go on from).

    Without a chain, which a damaged line may have taken along, the line's own check has to do.
    """
    found = _SUFFIX.fullmatch(line[-_SUFFIX_BYTES:])
    whose = _whose(line)
    if found is None:
        return None, f"no whole record{whose}", None
    crc, link = found[1].decode(), found[2].decode()
    body = line[:-_SUFFIX_BYTES] + b"}"
    row = _json(body) if f"{zlib.crc32(body):08x}" == crc else None
    if row is None:
        return None, f"changed after it was written{whose}", link
    if chain is None or link == _link(chain, body):
        return row, "", link
    return None, f"what stood before it is missing or changed{whose}", link


def _whose(line: bytes) -> str:
    found = re.search(rb'"run": (\d{1,9})[,}]', line)
    return f" (run {found[1].decode()})" if found else ""


def _json(line: bytes) -> dict | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
