"""The lists of events of a config's text as columns, read by the C of `reader_c`: a million in a
twentieth of a second.

Owns the way to that reader. What it does not take is not wrong, only unusual: `_reading.py` then
reads it as any other JSON, and names what is wrong, if something is.
"""

import json
from dataclasses import dataclass

import numpy as np

try:
    from ._reader import ffi, lib
except ImportError:  # not built: the slow way reads the same
    lib = None

PLACE = b'"lists, read apart"'


@dataclass(frozen=True)
class Lists:
    """The events of a text, in its order.

    `frame`: the document with `PLACE` where the lists were; empty if they are the whole document
    (the published format). `cpus`: the CPU of each list; `lengths`: its events. `start_ns`,
    `duration_ns` (0 to 2^62 - 1) and `tail`, an event each; `tail` is a place in `tails`, which
    holds the further fields of an event, each combination once. `fractions`: some time was written
    as 12.0.
    """

    frame: bytes
    cpus: np.ndarray
    lengths: np.ndarray
    start_ns: np.ndarray
    duration_ns: np.ndarray
    tail: np.ndarray
    tails: list[list]
    fractions: bool

    def by_cpu(self) -> "Lists":
        """The same with the lists by ascending CPU."""
        order = np.argsort(self.cpus, kind="stable")
        if (order == np.arange(len(order))).all():
            return self
        ends = np.cumsum(self.lengths)
        rows = np.concatenate([np.arange(ends[at] - self.lengths[at], ends[at]) for at in order])
        return Lists(
            self.frame,
            self.cpus[order],
            self.lengths[order],
            self.start_ns[rows],
            self.duration_ns[rows],
            self.tail[rows],
            self.tails,
            self.fractions,
        )


def read_lists(data: bytes) -> Lists | None:
    """The lists of a config's text, or None where the reader does not take it.

    Parameters
    ----------
    data
        a JSON document in UTF-8, of either format, in any layout.
    """
    if lib is None:
        return None
    room = len(data) // lib.NB_SHORTEST_EVENT + 1
    start_ns = np.empty(room, np.int64)
    duration_ns = np.empty(room, np.int64)
    tail = np.empty(room, np.int32)
    found = ffi.new("struct nb_config_lists *")
    found.room = room
    found.start_ns = ffi.from_buffer("int64_t[]", start_ns)
    found.duration_ns = ffi.from_buffer("int64_t[]", duration_ns)
    found.tail = ffi.from_buffer("int32_t[]", tail)
    if lib.nb_read_config(ffi.from_buffer(data), len(data), found) != 0:
        return None
    frame = b"" if found.whole_text else data[: found.lists_begin] + PLACE + data[found.lists_end :]
    tails = _tails(data, found)
    if tails is None or frame.count(PLACE) > 1:
        return None
    count, first = found.events, _copied(found.first_event, found.lists, np.int64)
    return Lists(
        frame,
        _copied(found.cpu, found.lists, np.int32),
        np.diff(first, append=count),
        start_ns[:count],
        duration_ns[:count],
        tail[:count],
        tails,
        bool(found.fractions),
    )


def _copied(numbers: object, count: int, kind: type) -> np.ndarray:
    return np.frombuffer(ffi.buffer(numbers), kind, count).astype(np.int64)


def _tails(data: bytes, found: object) -> list[list] | None:
    begins, ends = (
        _copied(numbers, found.tails, np.int64).tolist()
        for numbers in (found.tail_begin, found.tail_end)
    )
    text = b"],[".join(data[begin:end] for begin, end in zip(begins, ends))
    try:
        return json.loads((b"[[" + text + b"]]").decode()) if begins else []
    except ValueError:
        return None
