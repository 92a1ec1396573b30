"""Between the C reader of GOAL and a Schedule: columns without a copy, ranks in order."""

from typing import Any

import numpy as np

from ._simulator import ffi, lib
from .schedule import ANY, Schedule, ScheduleError

_DTYPES = {1: np.uint8, 4: np.int32, 8: np.int64}
_NONE = np.zeros(0, np.int32)


def ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """starts[0], starts[0] + 1, … (counts[0] of them), starts[1], …: the places of many ranges, one
    after the other.
    """
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


def taken(column: Any, unsigned: bool = False) -> np.ndarray:
    """A column of the C reader as an array that owns its memory; one entry if all are the same."""
    dtype: Any = np.uint32 if unsigned and column.width == 4 else _DTYPES[column.width]
    if not column.varied:
        fits = np.iinfo(dtype).min <= column.value <= np.iinfo(dtype).max
        return np.full(1, column.value, dtype if fits else np.int64)
    count = column.count
    if not count:
        return np.zeros(0, dtype)
    length = count * column.width
    memory = ffi.gc(lib.nb_goal_take(ffi.addressof(column)), lib.nb_goal_release, length)
    return np.frombuffer(ffi.buffer(memory, length), dtype)


def schedule_of(columns: Any, name: str) -> Schedule:
    """The schedule that the C reader has collected, ranks in order."""
    rank, counts = taken(columns.rank), taken(columns.operations).astype(np.int64)
    data = {
        field: taken(getattr(columns, field))
        for field in ("kind", "peer", "tag", "cpu", "nic", "line", "done_op", "begun_op")
    }
    data["size"] = taken(columns.size, unsigned=True)
    if data["tag"].dtype == np.int64:
        data["tag"] = _numbered(data["tag"])
    if data["cpu"].dtype != np.uint8:
        data["cpu"] = _numbered_on_ranks(data["cpu"], counts, name)
    for field in ("done", "begun"):
        data[f"{field}_start"] = (
            taken(getattr(columns, f"{field}_start")) if len(data[f"{field}_op"]) else _NONE
        )
    if not np.array_equal(rank, np.arange(len(rank))):
        counts, data = _in_order(rank, counts, data)
    return Schedule(np.concatenate([[0], np.cumsum(counts)]), **data, name=name)


def _numbered(tag: np.ndarray) -> np.ndarray:
    """Tags beyond 32 bits (ATLAHS has such) as 0, 1, 2, …: only which are equal matters."""
    known, place = np.unique(tag, return_inverse=True)
    return (place - int(known[0] == ANY)).astype(np.int32)


def _numbered_on_ranks(cpu: np.ndarray, counts: np.ndarray, name: str) -> np.ndarray:
    """CPU numbers beyond 255 as 0, 1, 2, … of each rank; CPU 0, which takes messages that nobody
    waits for, stays itself.
    """
    wide = np.int64(2**31)
    own = np.repeat(np.arange(len(counts)) * wide, counts) + cpu
    known = np.unique(np.concatenate([np.arange(len(counts)) * wide, own]))
    place = np.searchsorted(known, own) - np.searchsorted(known, own // wide * wide)
    if place.max(initial=0) > 255:
        rank = int(own[np.argmax(place)] // wide)
        raise ScheduleError(f"block {rank} uses more than 256 CPUs", where=name)
    return place.astype(np.uint8)


def _in_order(rank: np.ndarray, counts: np.ndarray, data: dict) -> tuple[np.ndarray, dict]:
    """The columns of rank blocks that stand in another order in the file."""
    order = np.argsort(rank, kind="stable")
    moved = ranges((np.cumsum(counts) - counts)[order], counts[order])
    result = {
        field: values[moved] if len(values) > 1 else values
        for field, values in data.items()
        if not field.startswith(("done", "begun"))
    }
    for field in ("done", "begun"):
        start, released = data[f"{field}_start"], data[f"{field}_op"]
        if len(start):
            several = np.diff(start)[moved]
            released = released[ranges(start[moved], several)]
            start = np.concatenate([[0], np.cumsum(several)]).astype(start.dtype)
        result |= {f"{field}_start": start, f"{field}_op": released}
    return counts[order], result
