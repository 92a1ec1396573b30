"""What a program printed: caught within bounds, and the times found in it."""

import math
import os
import re

_HEAD = _TAIL = 64 * 1024
_LARGEST_PIPE = 1024 * 1024
_LINE = re.compile(r"^noisebook: (\S+)((?: +[^\s=]+=\S*)*)\s*$", re.MULTILINE)
_INTEGER = re.compile(r"[-+]?\d{1,18}")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


class Capture:
    """Reads a pipe to its end and keeps the first and the last 64 KiB."""

    def __init__(self, fd: int):
        self.fd, self.open = fd, True
        self._head, self._tail, self._left_out = bytearray(), bytearray(), 0
        os.set_blocking(fd, False)

    def read(self) -> bool:
        """Take what is there, at most 64 KiB; False: there was nothing. At the end of the pipe `open` becomes False."""
        try:
            data = os.read(self.fd, _HEAD) if self.open else b""
        except BlockingIOError:
            return False
        self.open = bool(data)
        self._keep(data)
        return self.open

    def drain(self) -> None:
        """Take what is there now; no more than a pipe can hold, as an orphan may print for ever."""
        for _ in range(_LARGEST_PIPE // _HEAD):
            if not self.read():
                return

    def _keep(self, data: bytes) -> None:
        room = _HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        surplus = len(self._tail) - _TAIL
        if surplus > _TAIL:  # trimmed now and then, not at every read
            self._left_out += surplus
            del self._tail[:surplus]

    @property
    def text(self) -> str:
        """The output; where more than 128 KiB were printed, a line says how much is missing in the middle."""
        surplus = max(0, len(self._tail) - _TAIL)
        left_out = self._left_out + surplus
        middle = f"\n[{left_out} bytes left out]\n".encode() if left_out else b""
        return bytes(self._head + middle + self._tail[surplus:]).decode(errors="replace")


def parse_line(text: str) -> dict[str, int | float | str] | None:
    """The keys and values of the last protocol line in a program's output; None without one."""
    found = None
    for found in _LINE.finditer(text):
        pass
    if found is None:
        return None
    words = (word.partition("=") for word in found.group(2).split())
    return {key: _value(value) for key, _, value in words}


def _value(text: str) -> int | float | str:
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) and math.isfinite(float(text)) else text


def parse_pattern(pattern: str, text: str) -> float | None:
    """The seconds of the last match of a pattern; None without a match, or if it is not a positive number."""
    found = None
    for found in re.finditer(pattern, text, re.MULTILINE):
        pass
    try:
        seconds = float(found["seconds"]) if found else math.nan
    except (TypeError, ValueError):
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def shorten(text: str, limit: int = 2000) -> str:
    """The end of a text, from the beginning of a line where possible."""
    text = text.strip()
    return text if len(text) <= limit else "… " + text[-limit:]
