"""Between the C reader and writer of GOAL and a Schedule: columns without a copy, labels without a
string each, ranks in order.
"""

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from ._simulator import ffi, lib
from .schedule import Schedule

_DTYPES = {1: np.uint8, 4: np.int32, 8: np.int64}
_NONE = np.zeros(0, np.int32)


class Labels(Sequence):
    """The labels of all operations, in one text; without one they are l1, l2, … in every rank."""

    def __init__(
        self,
        rank_start: np.ndarray,
        start: np.ndarray | None = None,
        text: np.ndarray | None = None,
    ):
        self.rank_start, self.start, self.text = rank_start, start, text

    def __len__(self) -> int:
        return int(self.rank_start[-1])

    @overload
    def __getitem__(self, operation: int) -> str: ...

    @overload
    def __getitem__(self, operation: slice) -> list[str]: ...

    def __getitem__(self, operation: int | slice) -> str | list[str]:
        if isinstance(operation, slice):
            return [self[at] for at in range(*operation.indices(len(self)))]
        if operation not in range(-len(self), len(self)):
            raise IndexError(operation)
        operation = int(operation) % len(self)
        if self.start is None or self.text is None:
            rank = np.searchsorted(self.rank_start, operation, side="right") - 1
            return f"l{operation + 1 - int(self.rank_start[rank])}"
        return (
            self.text[self.start[operation] : self.start[operation + 1]].tobytes().decode("ascii")
        )

    @property
    def complete(self) -> bool:
        """Whether every operation has one."""
        return self.start is None or bool((np.diff(self.start) > 0).all())


def ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """starts[0], starts[0] + 1, … (counts[0] of them), starts[1], …: the places of many ranges, one
    after the other.
    """
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


def taken(column: Any, unsigned: bool = False) -> np.ndarray:
    """A column of the C reader as an array that owns its memory; one entry if all are the same."""
    dtype = np.uint32 if unsigned and column.width == 4 else _DTYPES[column.width]
    if not column.varied:
        narrow = 0 <= column.value < 2**32 if unsigned else column.value < 2**31
        return np.full(1, column.value, dtype if narrow else np.int64)
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
    for field in ("done", "begun"):
        data[f"{field}_start"] = (
            taken(getattr(columns, f"{field}_start")) if len(data[f"{field}_op"]) else _NONE
        )
    names = (
        (taken(columns.label_start), taken(columns.label_text))
        if columns.label_start.count > 1
        else None
    )
    if not np.array_equal(rank, np.arange(len(rank))):
        counts, data, names = _in_order(rank, counts, data, names)
    rank_start = np.concatenate([[0], np.cumsum(counts)])
    label = (
        () if names and len(names[0]) == 1 else Labels(rank_start, *(names or ()))
    )  # () where no operation has one
    return Schedule(rank_start, **data, label=label, name=name)


def _in_order(rank: np.ndarray, counts: np.ndarray, data: dict, names: tuple | None) -> tuple:
    order = np.argsort(rank, kind="stable")
    moved = ranges((np.cumsum(counts) - counts)[order], counts[order])
    result = {
        field: values[moved] if len(values) > 1 else values
        for field, values in data.items()
        if not field.startswith(("done", "begun"))
    }
    for field in ("done", "begun"):
        result[f"{field}_start"], result[f"{field}_op"] = _lists(
            data[f"{field}_start"], data[f"{field}_op"], moved
        )
    if names and len(names[0]) > 1:
        names = _lists(names[0], names[1], moved)
    return counts[order], result, names


def _lists(
    start: np.ndarray, values: np.ndarray, moved: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lists of values (list i is values[start[i]:start[i + 1]]), in another order."""
    if not len(start):
        return start, values
    counts = np.diff(start)[moved]
    return (
        np.concatenate([[0], np.cumsum(counts)]).astype(start.dtype),
        values[ranges(start[moved], counts)],
    )


def view_of(schedule: Schedule) -> tuple[Any, list]:
    """What the C writers read from, and what has to live as long as it."""
    alive: list[np.ndarray] = []

    def pointer(array: np.ndarray, ctype: str) -> object:
        alive.append(np.ascontiguousarray(array))
        return ffi.cast(ctype, ffi.from_buffer(alive[-1]))

    view = ffi.new("struct goal_view *")
    view.ranks = schedule.ranks
    view.rank_start = pointer(schedule.rank_start, "int64_t *")
    view.size, view.size_width = pointer(schedule.size, "void *"), schedule.size.itemsize
    for field, ctype in (
        ("kind", "uint8_t *"),
        ("peer", "int32_t *"),
        ("tag", "int32_t *"),
        ("cpu", "uint8_t *"),
        ("nic", "uint8_t *"),
    ):
        setattr(view, field, pointer(getattr(schedule, field), ctype))
    for field in ("size", "tag", "cpu", "nic"):
        setattr(
            view,
            f"{field}_step",
            len(getattr(schedule, field)) == len(schedule) and len(schedule) > 1,
        )
    for field in ("done", "begun"):
        start, operations = getattr(schedule, f"{field}_start"), getattr(schedule, f"{field}_op")
        if len(operations):
            setattr(view, f"{field}_start", pointer(start, "void *"))
            setattr(view, f"{field}_op", pointer(operations, "int32_t *"))
            setattr(view, f"{field}_width", start.itemsize)
    _add_labels(view, schedule, pointer)
    return view, alive


def _add_labels(view: Any, schedule: Schedule, pointer: Callable[[np.ndarray, str], Any]) -> None:
    labels = schedule.label
    if isinstance(labels, Labels) and labels.start is not None and labels.complete:
        assert labels.text is not None
        view.label_start, view.label_width = pointer(labels.start, "void *"), labels.start.itemsize
        view.label_text = pointer(labels.text, "char *")
