"""What a library or program holds in a running process: the value of a variable that it exports,
and which of its functions are not bound yet.

Owns the reading of dynamic symbols and of /proc/PID/mem; nothing is stopped or changed.
"""

import os
import struct
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from . import _proc

_DYNAMIC, _DYNSYM, _LOAD = 6, 11, 1  # types of sections and of segments, elf.h
_FLAGS, _FLAGS_1, _BIND_NOW = 30, 0x6FFFFFFB, 24  # tags
_PAGE = 4096


class Image:
    """The dynamic part of a 64-bit little-endian ELF file.

    Attributes
    ----------
    symbols
        Those that it defines: name to address in the file.
    imports
        Names of those that it needs.
    slots
        Addresses that hold the places of functions which are bound at their first call.
    stubs
        First and last address of the code that binds them.
    segments
        Offset in the file -> address, of each part that is loaded.
    """

    def __init__(self, path: str):
        data = Path(path).read_bytes()
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is no 64-bit little-endian ELF file")
        (table_at,) = struct.unpack_from("<Q", data, 40)
        size, count, names_at = struct.unpack_from("<HHH", data, 58)
        rows = [struct.unpack_from("<IIQQQQII", data, table_at + size * n) for n in range(count)]
        names = data[rows[names_at][4] :] if rows else b""
        self._sections = {_text(names, row[0]): row for row in rows}
        self._data = data
        self.segments = _segments(data)
        self.symbols: dict[str, int] = {}
        self.imports: set[str] = set()
        for row in (row for row in rows if row[1] == _DYNSYM):
            self._read_symbols(row, rows[row[6]][4])
        self.stubs = self._range(".plt")
        self.slots = [] if self._binds_now() else self._jump_slots()
        self._data, self._sections = b"", {}  # not cached

    def _read_symbols(self, section: tuple, texts_at: int) -> None:
        texts = self._data[texts_at:]
        table = self._data[section[4] : section[4] + section[5]]
        for name, _, _, index, value, _ in struct.iter_unpack(
            "<IBBHQQ", table[: len(table) // 24 * 24]
        ):
            if index:
                self.symbols[_text(texts, name)] = value
            elif name:
                self.imports.add(_text(texts, name))

    def _range(self, name: str) -> tuple[int, int]:
        section = self._sections.get(name)
        return (section[3], section[3] + section[5]) if section else (0, 0)

    def _binds_now(self) -> bool:
        """Whether it was linked so that all is bound at the start (-z now)."""
        for row in (row for row in self._sections.values() if row[1] == _DYNAMIC):
            for tag, value in struct.iter_unpack("<QQ", self._data[row[4] : row[4] + row[5]]):
                if (
                    tag == _BIND_NOW
                    or (tag == _FLAGS and value & 8)
                    or (tag == _FLAGS_1 and value & 1)
                ):
                    return True
        return False

    def _jump_slots(self) -> list[int]:
        section = self._sections.get(".rela.plt")
        if not section or not self.stubs[1]:
            return []
        table = self._data[section[4] : section[4] + section[5]]
        return [offset for offset, _, _ in struct.iter_unpack("<QQq", table)]


def _segments(data: bytes) -> dict[int, int]:
    """Offset in the file, of the page where a loaded segment begins -> address of that page."""
    (table_at,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    rows = [struct.unpack_from("<IIQQ", data, table_at + size * n) for n in range(count)]
    page = ~(_PAGE - 1)
    return {at & page: address & page for kind, _, at, address in rows if kind == _LOAD}


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode(errors="replace") if at < len(table) else ""


def image(path: str) -> Image | None:
    """The dynamic part of a file; None if it has none that can be read."""
    with suppress(OSError, ValueError, struct.error, IndexError):
        found = os.stat(path)
        return _image(path, found.st_mtime_ns, found.st_size)
    return None


@lru_cache(maxsize=64)
def _image(path: str, changed_ns: int, size: int) -> Image:
    return Image(path)


def exported_number(pid: int, path: str, symbol: str) -> int | None:
    """The value of an int that a mapped file exports, as the process has it now; None: it does not
    export it, or it cannot be read.
    """
    found, base = image(path), _base(pid, path)
    if found is None or base is None or symbol not in found.symbols:
        return None
    with suppress(OSError), open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        content = os.pread(memory.fileno(), 4, base + found.symbols[symbol])
        return struct.unpack("<i", content)[0] if len(content) == 4 else None
    return None


def unbound(pid: int, path: str) -> tuple[int, int] | None:
    """How many functions of a mapped file are not bound yet, and of how many; None: it binds none
    at the first call, or that cannot be read.
    """
    found, base = image(path), _base(pid, path)
    if found is None or base is None or not found.slots:
        return None
    low, high = min(found.slots), max(found.slots) + 8
    with suppress(OSError), open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        content = os.pread(memory.fileno(), high - low, base + low)
        places = [struct.unpack_from("<Q", content, slot - low)[0] - base for slot in found.slots]
        waiting = sum(found.stubs[0] <= place < found.stubs[1] for place in places)
        return waiting, len(places)
    return None


def _base(pid: int, path: str) -> int | None:
    """What is added to the addresses in the file, by the segments that lie where they were mapped;
    0 for a program at a fixed place.
    """
    found = image(path)
    for one in _proc.maps(pid) if found else ():
        if found and one.path == path and one.offset in found.segments:
            return one.start - found.segments[one.offset]
    return None
