"""The usual lines of osnoise text, a hundred thousand at a time, as columns of bytes.

Owns the layout in which the kernel prints a line (`trace_print_context`, `%16s-%-7d [%03d]`). A
line that deviates from it anywhere is left to the regular expressions of `osnoise.py`, which alone
say what a line means and what is wrong with it.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd

NUMBERS = ("cpu", "context_pid", "stamp_ns", "start_ns", "duration_ns")
_BLOCK_BYTES = 4 << 20  # columns of a block stay in the processor's cache
_SHORTEST = 86  # head, the shortest body, and the tail of the shortest numbers
_HEAD, _STAMP, _TAIL, _TIMES, _BODY = 46, 21, 14, 34, 48  # bytes that are looked at together
_DOTS = range(41, 46)  # columns in which the dot of the time stamp may be
_DOT, _SPACE, _COLON = b". :"
_MULTIPLIERS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9]
    + [0x27D4EB2F165667C5, 0x85EBCA77C2B2AE63, 0xD6E8FEB86659FD93],
    dtype=np.uint64,
)


@dataclass(frozen=True)
class Lines:
    """The lines of a block of text, and a column a field of the usual ones.

    `line` is the place of each usual line in the block; `body[i]` is the place in `bodies` of what
    stands between its time stamp and its times. `others` are the lines that are not usual.
    """

    text: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    others: np.ndarray
    line: np.ndarray
    body: np.ndarray
    bodies: list[bytes]
    numbers: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.ends)

    def row(self, line: int) -> bytes:
        """A line, without its end."""
        return self.text[self.begins[line] : self.ends[line]].tobytes()


def blocks_of_lines(text: bytes) -> Iterator[Lines]:
    """The text in blocks of whole lines, in order, read on all CPUs.

    The text ends with an end of line, or is empty.
    """
    places = _places(text)
    if len(places) < 2:
        yield from (_read(text, *place) for place in places)
        return
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        yield from threads.map(lambda place: _read(text, *place), places)


def _places(text: bytes) -> list[tuple[int, int]]:
    """Begin and end of each block."""
    places, begin = [], 0
    while begin < len(text):
        end = text.find(b"\n", min(begin + _BLOCK_BYTES, len(text)) - 1) + 1
        places.append((begin, end))
        begin = end
    return places


def _read(text: bytes, begin: int, end: int) -> Lines:
    block = np.frombuffer(text, np.uint8, end - begin, begin)
    ends = np.flatnonzero(block == ord("\n"))
    begins = np.concatenate([[0], ends[:-1] + 1])
    long = np.flatnonzero((ends - begins >= _SHORTEST) & (begins + _SHORTEST + _BODY < len(block)))
    fields = _Fields(block, begins[long], ends[long])
    usual = np.flatnonzero(fields.usual)
    body, bodies, same = _numbers_of(fields.bodies(usual))
    usual = usual[same]
    other = np.ones(len(ends), dtype=bool)
    other[long[usual]] = False
    numbers = {name: getattr(fields, name)[usual] for name in NUMBERS}
    others = np.flatnonzero(other)
    return Lines(block, begins, ends, others, long[usual], body[same], bodies, numbers)


class _Fields:
    """The fields of long lines, and which lines are `usual`: those of which each byte that is
    looked at is as the kernel prints it.
    """

    def __init__(self, block: np.ndarray, begin: np.ndarray, end: np.ndarray):
        self._block = block
        self.usual = np.ones(len(begin), dtype=bool)
        self._head(begin)
        self._stamp(begin)
        self._times(end)

    def _columns(self, at: np.ndarray, width: int) -> np.ndarray:
        """`width` bytes from each place, a row a column of the text."""
        return np.ascontiguousarray(self._windows(at, width).T)

    def _windows(self, at: np.ndarray, width: int) -> np.ndarray:
        if not len(at):
            return np.zeros((0, width), np.uint8)
        return np.lib.stride_tricks.sliding_window_view(self._block, width)[at]

    def _expect(self, columns: np.ndarray, text: bytes) -> None:
        for column, byte in zip(columns, text, strict=True):
            self.usual &= column == byte

    def _head(self, begin: np.ndarray) -> None:
        """`COMM-PID [CPU] flags`; a name with a `[` could be read in two ways."""
        head = self._columns(begin, _HEAD)
        self.usual &= ~(head[:25] == ord("[")).any(axis=0)
        self._expect(head[[16, 24, 25, 29, 30, 36]], b"- [] " + b" ")
        self.cpu, digits = _number(head[26:29])
        self.usual &= digits == 3
        self.context_pid = self._left_aligned(head[17:25])
        flags = head[31:36]
        plain = (flags != _SPACE) & (flags != _COLON)
        self.usual &= plain[:4].all(axis=0) & (plain[4] | (flags[4] == _SPACE))
        self._dot = np.zeros(len(begin), dtype=np.int64)
        for column in _DOTS:
            self._dot[head[column] == _DOT] = column
        self.usual &= self._dot > 0
        self._dot = np.maximum(self._dot, _DOTS.start)
        self._padding = head[37:46] == _SPACE

    def _left_aligned(self, columns: np.ndarray) -> np.ndarray:
        """A number with blanks behind it."""
        value = np.zeros(columns.shape[1], dtype=np.int64)
        blank = np.zeros(columns.shape[1], dtype=bool)
        for column in columns:
            digit = column - np.uint8(48)
            blank |= column == _SPACE
            self.usual &= blank == (column == _SPACE)
            self.usual &= blank | (digit < 10)
            np.multiply(value, 10, out=value, where=~blank)
            value += np.where(blank, 0, digit)
        self.usual &= columns[0] != _SPACE
        return value

    def _stamp(self, begin: np.ndarray) -> None:
        """`SECONDS.MICROS: `, with blanks before it."""
        stamp = self._columns(begin + self._dot - 12, _STAMP)
        seconds, digits = _number(stamp[3:12])
        micros, six = _number(stamp[13:19])
        self._expect(stamp[19:], b": ")
        first = self._dot - digits
        self.usual &= (digits > 0) & (six == 6) & (first > 36)
        for column, blank in enumerate(self._padding, start=37):
            self.usual &= blank | (column >= first)
        self.stamp_ns = seconds * 1_000_000_000 + micros * 1000
        self._body_begin = begin + self._dot + 9

    def _times(self, end: np.ndarray) -> None:
        """` start SECONDS.NANOS duration NANOS ns`, from its end."""
        tail = self._columns(end - _TAIL, _TAIL)
        self._expect(tail[-3:], b" ns")
        self.duration_ns, digits = _number(tail[:-3])
        self.usual &= (digits > 0) & (digits < 11)
        at = end - 3 - digits
        times = self._columns(at - _TIMES, _TIMES)
        self._expect(times[-10:], b" duration ")
        nanos, nine = _number(times[-19:-10])
        seconds, digits = _number(times[:-20])
        self._expect(times[-20:-19], b".")
        self.usual &= (nine == 9) & (digits > 0) & (digits < 10)
        self.start_ns = seconds * 1_000_000_000 + nanos
        at = at - 20 - digits
        start = self._columns(at - 8, 8)
        self._expect(start[1:], b" start ")
        self.usual &= start[0] != 0  # a body may not end as if it were a shorter one
        self._length = at - 7 - self._body_begin
        self.usual &= (self._length > 0) & (self._length <= _BODY)

    def bodies(self, lines: np.ndarray) -> np.ndarray:
        """What stands between time stamp and times: bytes, zeros behind them."""
        within = np.arange(_BODY) < np.arange(_BODY + 1)[:, None]
        return self._windows(self._body_begin[lines], _BODY) * within[self._length[lines]]


def _number(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The digits that end in the last column: their number, and how many they are."""
    value = np.zeros(columns.shape[1], dtype=np.int64)
    count = np.zeros(columns.shape[1], dtype=np.int64)
    digits = np.ones(columns.shape[1], dtype=bool)
    for place, column in enumerate(columns[::-1]):
        digit = column - np.uint8(48)
        digits &= digit < 10
        if not digits.any():
            break
        value += (digit * digits).astype(np.int64) * 10**place
        count += digits
    return value, count


def _numbers_of(bodies: np.ndarray) -> tuple[np.ndarray, list[bytes], np.ndarray]:
    """Numbers for the different bodies, these, and whether a line has the body of its number
    (bodies of equal hashes might differ).
    """
    words = bodies.view(np.uint64)
    code, found = pd.factorize((words * _MULTIPLIERS).sum(axis=1, dtype=np.uint64))
    first = np.empty(len(found), dtype=np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]
    same = (words == words[first[code]]).all(axis=1)
    return code, [bodies[place].tobytes().rstrip(b"\0") for place in first], same
