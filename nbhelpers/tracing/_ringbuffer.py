"""Decodes pages of the kernel's ring buffer, as `trace_pipe_raw` gives them, all pages at once.

Owns the binary layout (Linux: include/linux/ring_buffer.h, kernel/trace/ring_buffer.c). Events of a
page must be walked one after the other, because each says how long it is; so step k walks the k-th
event of every page together, in NumPy.
"""

import re
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ._files import damaged, lost
from ._table import LARGEST_NS

_MISSED = 1 << 31  # of the commit word: events are missing before this page
_LONG, _PADDING, _EXTEND, _STAMP = 0, 29, 30, 31  # type_len: 1..28 is the data's length in words
_DELTA_BITS = 27
# an absolute stamp has 59 bits; the rest (but the sign) comes from the time before it
_STAMP_TOP = np.int64(0xF << 59)
_FIELD = re.compile(r"field:\s*[^;]*?(\w+);\s*offset:(\d+);\s*size:(\d+);")


@dataclass(frozen=True)
class PageLayout:
    """Where things are in a page, from tracefs' events/header_page."""

    commit_offset: int
    commit_bytes: int
    data_offset: int
    page_bytes: int

    @classmethod
    def parse(cls, text: str, where: object = None) -> "PageLayout":
        """Read the kernel's description.

        Raises
        ------
        InputError
            A field is missing, or the sizes make no sense.
        """
        fields = {
            name: (int(offset), int(size))
            for name, offset, size in _FIELD.findall(text)
            if len(offset) < 8 and len(size) < 8
        }
        if not {"timestamp", "commit", "data"} <= set(fields) or fields["timestamp"] != (0, 8):
            raise InputError(
                "the description of the ring buffer's pages (header_page) is not understood",
                where=where,
            )
        (commit, commit_bytes), (data, data_bytes) = fields["commit"], fields["data"]
        layout = cls(commit, commit_bytes, data, data + data_bytes)
        sensible = (
            commit == 8
            and commit_bytes in (4, 8)
            and data == 8 + commit_bytes
            and 512 <= layout.page_bytes <= 1 << 22
        )
        if not sensible or layout.page_bytes % 8:
            raise InputError("the ring buffer's pages have an unknown layout", where=where)
        return layout


@dataclass(frozen=True)
class Records:
    """Every event of a buffer in the order it was written: its time, and where in the bytes its
    data lie.
    """

    time_ns: np.ndarray
    offset: np.ndarray
    size: np.ndarray


def decode_pages(data: np.ndarray, layout: PageLayout, where: object = None) -> Records:
    """Find the events in the pages of one CPU.

    Parameters
    ----------
    data
        uint8, shape (pages × page_bytes).

    Raises
    ------
    LostEvents
        A page says that events are missing before it.
    InputError
        Lengths that leave the page, or a part of a page.
    """
    if len(data) % layout.page_bytes:
        raise damaged("a truncated trace: the last page is not whole", where)
    pages = data.reshape(-1, layout.page_bytes)
    commit = pages[:, layout.commit_offset : layout.commit_offset + 4].copy().view("<u4").ravel()
    if missed := np.flatnonzero(commit & _MISSED).tolist():
        raise lost("the kernel lost events", f"{where}, page {missed[0]}")
    used = (commit & 0x3FFFFFFF).astype(np.int64)
    if (used > layout.page_bytes - layout.data_offset).any() or (used % 4).any():
        raise damaged("a page claims more data than it has", where)
    return _walk(data, pages[:, :8].copy().view("<i8").ravel(), used, layout, where)


def _walk(
    data: np.ndarray, time_ns: np.ndarray, used: np.ndarray, layout: PageLayout, where: object
) -> Records:
    words = data.view("<u4")
    first = np.arange(len(used), dtype=np.int64) * layout.page_bytes + layout.data_offset
    page, position, end, time_ns = np.arange(len(used)), first, first + used, time_ns.copy()
    found: list[tuple] = []
    while True:
        alive = position < end
        page, position, end, time_ns = page[alive], position[alive], end[alive], time_ns[alive]
        if not len(page):
            break
        position, time_ns, record = _step(words, page, position, end, time_ns, where)
        found.append(record)
    if not found:
        return Records(*(np.zeros(0, np.int64) for _ in range(3)))
    page, times, offset, size = (np.concatenate(part) for part in zip(*found))
    order = np.lexsort((offset, page))
    return Records(times[order], offset[order], size[order])


def _step(
    words: np.ndarray,
    page: np.ndarray,
    position: np.ndarray,
    end: np.ndarray,
    time_ns: np.ndarray,
    where: object,
) -> tuple[np.ndarray, np.ndarray, tuple]:
    """Walk one event of every page that has one left.

    Returns the next positions and times, and (page, time, offset, size) of the events with data.
    """
    word = words[position >> 2].astype(np.int64)
    kind, delta = word & 31, word >> 5
    next_word = words[np.minimum((position >> 2) + 1, len(words) - 1)].astype(np.int64)
    length, bad = _lengths(kind, delta, next_word, end - position)
    if bad.any():
        raise damaged(
            "an event that leaves its page", f"{where}, page {page[np.flatnonzero(bad)[0]]}"
        )
    time_ns = _times(kind, delta, next_word, time_ns)
    if ((time_ns < 0) | (time_ns >= LARGEST_NS)).any():
        raise damaged("an impossible time", where)
    real = kind < _PADDING
    begin = position + np.where(kind == _LONG, 8, 4)
    record = (page[real], time_ns[real], begin[real], (position + length - begin)[real])
    return position + length, time_ns, record


def _lengths(
    kind: np.ndarray, delta: np.ndarray, next_word: np.ndarray, left: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bytes of each event with its header, and which of these lengths are impossible."""
    rest_is_empty = (kind == _PADDING) & (delta == 0)
    length = np.where(kind <= 28, kind * 4 + 4, 8)
    length = np.where((kind == _LONG) | (kind == _PADDING), next_word + 4, length)
    length = (np.where(rest_is_empty, left, length) + 3) & ~3
    return length, (length < 8) & ~rest_is_empty | (length > left)


def _times(
    kind: np.ndarray, delta: np.ndarray, next_word: np.ndarray, before_ns: np.ndarray
) -> np.ndarray:
    extended = (next_word << _DELTA_BITS) | delta
    later_ns = before_ns + np.where(kind == _EXTEND, extended, delta)
    return np.where(kind == _STAMP, _absolute(extended, before_ns), later_ns)


def _absolute(stamp: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The kernel's rb_fix_abs_ts(): the five top bits come from the time before, one more if the
    stamp went round.
    """
    top = before & _STAMP_TOP
    fixed = stamp | top
    return np.where((top != 0) & (fixed < before), fixed + (np.int64(1) << 59), fixed)
