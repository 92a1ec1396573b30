"""What a program printed: caught within bounds, and the protocol line and series found in it."""

import math
import os
import re
import zlib

_HEAD = TAIL = 64 * 1024
_LARGEST_PIPE = 1024 * 1024
ROOM_FOR_SERIES = 4 * 1024 * 1024
_LINE = re.compile(r"^noisebook: (\S+)((?: +[^\s=]+=\S*)*)\s*$", re.MULTILINE)
_SERIES = re.compile(r"^noisebook-series: (\S+) (\S+)((?: +\S+)*)\s*$", re.MULTILINE)
_INTEGER = re.compile(r"[-+]?\d{1,18}")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


class Excluded(Exception):
    """A run is excluded: the text is the reason, for the message."""

    status = ""

    def __init__(self, reason: str, status: str = ""):
        super().__init__(reason)
        self.status = status or self.status


class NotReported(Excluded):
    """A number that is not where it should be."""

    status = "unreadable output"


class NoRegion(Excluded):
    """A region that never began or ended; the text has the fix."""

    status = "no region"

    def __init__(self, reason: str):
        super().__init__(f"its timed region is not known: {reason}")


class Capture:
    """Reads a pipe to its end and stores the first 64 KiB and the last ones, `tail` bytes."""

    def __init__(self, fd: int, tail: int = TAIL):
        self.fd, self.open, self._room = fd, True, tail
        self._head, self._tail, self._left_out = bytearray(), bytearray(), 0
        self.lines = 0
        os.set_blocking(fd, False)

    def read(self) -> bool:
        """Take what is there, at most 64 KiB; False: there was nothing. At the end of the pipe
        `open` becomes False.
        """
        try:
            data = os.read(self.fd, _HEAD) if self.open else b""
        except BlockingIOError:
            return False
        self.open = bool(data)
        self._store(data)
        return self.open

    def drain(self) -> None:
        """Take what is there now; no more than a pipe can hold, as an orphan may print for ever."""
        for _ in range(_LARGEST_PIPE // _HEAD):
            if not self.read():
                return

    def _store(self, data: bytes) -> None:
        self.lines += data.count(b"\n")
        room = _HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        surplus = len(self._tail) - self._room
        if surplus > self._room:  # trimmed now and then, not at every read
            self._left_out += surplus
            del self._tail[:surplus]

    def parts(self) -> list[tuple[int, bytes]]:
        """What is stored, each part with its place in the output; one part if that is all."""
        surplus = max(0, len(self._tail) - self._room)
        left_out = self._left_out + surplus
        if not left_out:
            return [(0, bytes(self._head + self._tail))]
        return [(0, bytes(self._head)), (len(self._head) + left_out, bytes(self._tail[surplus:]))]

    @property
    def size(self) -> int:
        """Bytes that were printed."""
        return len(self._head) + self._left_out + len(self._tail)

    @property
    def digest(self) -> str:
        """Digest of what is stored, without its digits: printed times differ in any case."""
        left = b"".join(part for _, part in self.parts()).translate(None, b"0123456789")
        return f"{zlib.crc32(left):08x}"

    @property
    def text(self) -> str:
        """The output; where more was printed than is stored, a line in the middle counts the
        missing bytes.
        """
        (_, head), *rest = self.parts()
        middle = [
            f"\n[{first - len(head)} bytes left out]\n".encode() + tail for first, tail in rest
        ]
        return b"".join([head, *middle]).decode(errors="replace")

    def close(self) -> None:
        """Called before the descriptor is closed."""


def parse_line(text: str) -> dict[str, int | float | str] | None:
    """The keys and values of the last protocol line in a program's output; None without one."""
    lines = list(_LINE.finditer(text))
    if not lines:
        return None
    words = (word.partition("=") for word in lines[-1].group(2).split())
    return {key: number(value) for key, _, value in words}


def parse_series(text: str) -> dict[str, dict]:
    """The series in a program's output: {name: {"unit": …, "values": […]}}; lines of one name are
    one series.

    Raises
    ------
    NotReported
        A value is not a finite number, or two lines of a name differ in unit.
    """
    found: dict[str, dict] = {}
    for name, unit, words in _SERIES.findall(text):
        series = found.setdefault(name, {"unit": unit, "values": []})
        values = [number(word) for word in words.split()]
        if series["unit"] != unit or any(isinstance(value, str) for value in values):
            raise NotReported(f"the series '{name}' has a value that is no number, or two units")
        series["values"] += map(float, values)
    return found


def number(text: str) -> int | float | str:
    """A word as a number, if it is a finite one."""
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) and math.isfinite(float(text)) else text


def shorten(text: str, limit: int = 2000) -> str:
    """The end of a text, from the beginning of a line where possible."""
    text = text.strip()
    return text if len(text) <= limit else "… " + text[-limit:]
