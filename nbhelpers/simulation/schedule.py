"""A GOAL schedule: what every rank sends, receives and computes, and what has to wait for what;
flat arrays, no objects.

Owns the arrays (operations by rank, in file order), their building, their checks, and how an
operation is named in an error.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ..errors import InputError
from ._simulator import ffi, lib

SEND, RECV, CALC = 1, 2, 3
ANY = -1
KIND_NAMES = {SEND: "send", RECV: "recv", CALC: "calc"}
Edges = tuple[np.ndarray, np.ndarray]
_NONE = np.zeros(0, np.int32)


class ScheduleError(InputError):
    """A schedule that cannot be simulated: the message names the rank, the operation and, where
    there is one, the line.
    """


@dataclass(frozen=True, eq=False, repr=False)
class Schedule:
    """All operations of all ranks. N operations on P ranks; build it with `from_arrays`.

    A column that is the same for every operation may have length 1 (`size`, `tag`, `cpu` and `nic`
    usually do): `column` gives it in full.

    Parameters
    ----------
    rank_start
        int64[P + 1]; the operations of rank r are rank_start[r] to rank_start[r + 1], in file
        order.
    kind
        uint8[N]; SEND (1), RECV (2), CALC (3).
    peer
        int32[N]; destination of a send, source of a receive (ANY = −1: whoever comes); of no
        meaning for a calculation.
    size
        uint32 or int64, [N] or [1]; bytes, or ns of a calculation.
    tag
        int32, [N] or [1]; ANY for any tag (receives only).
    cpu, nic
        uint8, [N] or [1].
    done_start, done_op
        Who may start when an operation is *done* (`requires`): those that operation i releases are
        done_op[done_start[i]:done_start[i + 1]], numbers within the rank, in the file order of the
        dependencies. int32 or int64 [N + 1], int32[E]. Both empty when there is none.
    begun_start, begun_op
        The same for who may start once an operation has *begun* (`irequires`).
    line
        int32[N] or empty; the line of the file each operation stands in (0: not known).
    name
        What it is, for errors and titles: a file, a pattern.

    Examples
    --------
    Rank 0 sends 8 bytes to rank 1:

    >>> pair = Schedule.from_arrays([1, 1], kind=[SEND, RECV], peer=[1, 0], size=8, name="a pair")
    >>> pair
    Schedule(a pair: 2 ranks, 2 operations, 1 messages)
    >>> pair.where(1)
    'rank 1, operation 0: recv 8b from 0 tag 0'
    """

    rank_start: np.ndarray
    kind: np.ndarray
    peer: np.ndarray
    size: np.ndarray
    tag: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int32))
    cpu: np.ndarray = field(default_factory=lambda: np.zeros(1, np.uint8))
    nic: np.ndarray = field(default_factory=lambda: np.zeros(1, np.uint8))
    done_start: np.ndarray = field(default_factory=lambda: _NONE)
    done_op: np.ndarray = field(default_factory=lambda: _NONE)
    begun_start: np.ndarray = field(default_factory=lambda: _NONE)
    begun_op: np.ndarray = field(default_factory=lambda: _NONE)
    line: np.ndarray = field(default_factory=lambda: _NONE)
    name: str = "schedule"

    @classmethod
    def from_arrays(
        cls,
        counts: np.ndarray,
        kind: np.ndarray,
        peer: np.ndarray,
        size: np.ndarray | int,
        *,
        tag: np.ndarray | int = 0,
        cpu: np.ndarray | int = 0,
        nic: np.ndarray | int = 0,
        requires: Edges | None = None,
        irequires: Edges | None = None,
        line: np.ndarray | None = None,
        name: str = "schedule",
    ) -> "Schedule":
        """Build a schedule from arrays in rank order; nothing is copied that is already as it has
        to be.

        Parameters
        ----------
        counts
            int[P]; operations of each rank.
        kind, peer
            [N]; see the class.
        size, tag, cpu, nic
            [N] or one number for all.
        requires, irequires
            (operation, needed), each int[E], numbers in the whole schedule (rank_start[rank] +
            number in the rank), in file order: `operation` may start when `needed` is done
            (requires) or has begun (irequires).

        Raises
        ------
        ScheduleError
            What `validate` finds wrong in the schedule.
        """
        rank_start = np.concatenate([[0], np.cumsum(np.asarray(counts, np.int64))])
        n = int(rank_start[-1])
        columns = dict(
            kind=_integers("kind", kind, np.uint8),
            peer=_integers("peer", peer, np.int32),
            size=_sizes(size),
            tag=_compact(_integers("tag", tag, np.int32)),
            cpu=_compact(_integers("cpu", cpu, np.uint8)),
            nic=_compact(_integers("nic", nic, np.uint8)),
        )
        _check_lengths(columns, n, name)
        done = _group(requires, rank_start, name)
        begun = _group(irequires, rank_start, name)
        schedule = cls(
            rank_start,
            **columns,
            done_start=done[0],
            done_op=done[1],
            begun_start=begun[0],
            begun_op=begun[1],
            line=_NONE if line is None else _integers("line", line, np.int32),
            name=name,
        )
        return schedule.validate()

    # --- what is in it ----------------------------------------------------------------------------

    @property
    def ranks(self) -> int:
        """Number of ranks, P."""
        return len(self.rank_start) - 1

    def __len__(self) -> int:
        """Number of operations, N."""
        return len(self.kind)

    @property
    def messages(self) -> int:
        """Number of messages: of sends."""
        return int(np.count_nonzero(self.kind == SEND))

    @property
    def events(self) -> int:
        """Operations and messages together, as the reference simulator counts them."""
        return len(self) + self.messages

    @property
    def cpus(self) -> int:
        """1 + the largest CPU index that any operation uses."""
        return 1 + int(self.cpu.max(initial=0))

    @property
    def nics(self) -> int:
        """1 + the largest NIC index that any operation uses."""
        return 1 + int(self.nic.max(initial=0))

    def column(self, name: str) -> np.ndarray:
        """A column in full length (a view, not to be written to)."""
        return np.broadcast_to(getattr(self, name), (len(self),))

    def rank_of(self, operations: np.ndarray) -> np.ndarray:
        """The rank that each operation (number in the whole schedule) belongs to."""
        return np.searchsorted(self.rank_start, operations, side="right") - 1

    def edges(self, which: str = "requires") -> Edges:
        """(operation, needed) of every `requires` or `irequires`, numbers in the whole schedule,
        ordered by `needed`.
        """
        when = "done" if which == "requires" else "begun"
        start, local = getattr(self, f"{when}_start"), getattr(self, f"{when}_op")
        if not len(local):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        needed = np.repeat(np.arange(len(self), dtype=np.int64), np.diff(start))
        return local + self.rank_start[self.rank_of(needed)], needed

    def where(self, operation: int) -> str:
        """An operation as a person would look for it: "rank 3, operation 5 (line 17): recv 8 b
        from 2 tag 0".
        """
        rank = int(self.rank_of(np.asarray(operation)))
        number = operation - int(self.rank_start[rank])
        line = f" (line {self.line[operation]})" if len(self.line) and self.line[operation] else ""
        kind, peer, size, tag = (
            int(self.column(name)[operation]) for name in ("kind", "peer", "size", "tag")
        )
        said = f"{KIND_NAMES.get(kind, '?')} {size}"
        if kind != CALC:
            said += f"b {'to' if kind == SEND else 'from'} {peer} tag {tag}"
        return f"rank {rank}, operation {number}{line}: {said}"

    def __repr__(self) -> str:
        return (
            f"Schedule({self.name}: {self.ranks} ranks, {len(self)} operations, {self.messages}"
            " messages)"
        )

    # --- changing and checking --------------------------------------------------------------------

    def validate(self) -> "Schedule":
        """Check all that can be seen without running it; returns the schedule itself.

        Raises
        ------
        ScheduleError
            No rank; an unknown kind; a peer that does not exist; a send to ANY, or with tag ANY; a
            negative size; a dependency that leaves its rank or names itself. Cycles and messages
            without a partner come to light in `simulate`.
        """
        if self.ranks < 1:
            raise ScheduleError("a schedule needs at least one rank", where=self.name)
        for wrong, what, why in self._faults():
            if wrong.any():
                self._refuse(int(np.argmax(wrong)), what, why)
        for start, local in ((self.done_start, self.done_op), (self.begun_start, self.begun_op)):
            self._check_edges(start, local)
        return self

    def _faults(self) -> Iterator[tuple[np.ndarray, str, str | None]]:
        sends = self.kind == SEND
        yield (
            (self.kind < SEND) | (self.kind > CALC),
            "an operation of unknown kind",
            "only send (1), recv (2) and calc (3) exist",
        )
        yield sends & (self.peer < 0), "a send needs a destination", None
        yield (
            (self.kind != CALC) & (self.peer >= self.ranks),
            "the peer does not exist",
            f"there are {self.ranks} ranks, 0 to {self.ranks - 1}",
        )
        yield (
            (self.kind == RECV) & (self.peer < ANY),
            "the peer does not exist",
            f"there are {self.ranks} ranks, and −1 for any",
        )
        if self.tag.min(initial=0) < 0:
            yield (
                sends & (self.tag < 0),
                "a send needs a tag",
                "only a receive can take any tag",
            )
        if self.size.dtype.kind == "i" and self.size.min(initial=0) < 0:
            yield np.broadcast_to(self.size < 0, self.kind.shape), "a negative size", None

    def _check_edges(self, start: np.ndarray, local: np.ndarray) -> None:
        if not len(start) and not len(local):
            return
        if (
            len(start) != len(self) + 1
            or start[0] != 0
            or start[-1] != len(local)
            or (np.diff(start) < 0).any()
        ):
            raise ScheduleError(
                "the dependencies' index does not fit the operations", where=self.name
            )
        bad = lib.nb_schedule_bad_edge(
            _pointer(self.rank_start, "int64_t"),
            self.ranks,
            ffi.from_buffer(start),
            start.itemsize,
            _pointer(local, "int32_t"),
        )
        if bad >= 0:
            self._refuse(
                int(bad),
                "a dependency on itself, or on an operation that the rank does not have",
                None,
            )

    def _refuse(self, operation: int, what: str, why: str | None) -> None:
        raise ScheduleError(what, where=f"{self.name}: {self.where(operation)}", why=why)


# --- from what a caller has to what the engine wants ----------------------------------------------


def _check_lengths(columns: dict[str, np.ndarray], operations: int, name: str) -> None:
    for key, column in columns.items():
        may_be_one = key not in ("kind", "peer")
        if column.shape != (operations,) and not (column.shape == (1,) and may_be_one):
            raise ScheduleError(
                f"the column '{key}' has {len(column)} entries for {operations} operations",
                where=name,
            )


def _integers(name: str, values: np.ndarray | int, dtype: type) -> np.ndarray:
    """The values as an array of the type, checked to fit it; no copy when it is one already."""
    array = np.atleast_1d(np.asarray(values))
    if array.dtype == dtype or not array.size:
        return np.ascontiguousarray(array, dtype)
    if array.dtype.kind not in "iub":
        raise ScheduleError(f"the column '{name}' must hold whole numbers, not {array.dtype}")
    limits = np.iinfo(dtype)
    if array.size and (array.min() < limits.min or array.max() > limits.max):
        raise ScheduleError(
            f"the column '{name}' goes from {array.min()} to {array.max()}",
            why=f"it must lie in {limits.min} to {limits.max}",
        )
    return np.ascontiguousarray(array, dtype)


def _compact(array: np.ndarray) -> np.ndarray:
    """One entry for all if all are equal."""
    return array[:1].copy() if len(array) > 1 and array.min() == array.max() else array


def _sizes(size: np.ndarray | int) -> np.ndarray:
    array = np.atleast_1d(np.asarray(size))
    if array.dtype == np.uint32:
        return _compact(np.ascontiguousarray(array))
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ScheduleError(f"a size of {array.max()}", why="sizes must stay below 2^63")
    array = _integers("size", array, np.int64)
    narrow = array.size == 0 or (array.min() >= 0 and array.max() < 2**32)
    return _compact(array.astype(np.uint32) if narrow else array)


def _group(edges: Edges | None, rank_start: np.ndarray, name: str) -> Edges:
    """(operation, needed) pairs ─► for each needed operation, whom it releases, in file order."""
    if edges is None or not len(edges[0]):
        return _NONE, _NONE
    n = int(rank_start[-1])
    number: type = np.int32 if n < 2**31 else np.int64
    operation, needed = (_integers("dependencies", part, number) for part in edges)
    if len(operation) != len(needed):
        raise ScheduleError(
            f"{len(operation)} operations, but {len(needed)} that they need", where=name
        )
    if min(operation.min(), needed.min()) < 0 or max(operation.max(), needed.max()) >= n:
        raise ScheduleError(
            "a dependency names an operation that does not exist",
            where=name,
            why=f"there are {n} operations",
        )
    start = np.zeros(n + 1, np.int32 if len(operation) < 2**31 else np.int64)
    local = np.empty(len(operation), np.int32)
    bad = lib.nb_schedule_group(
        _pointer(rank_start, "int64_t"),
        len(rank_start) - 1,
        len(operation),
        ffi.from_buffer(operation),
        ffi.from_buffer(needed),
        number().itemsize,
        ffi.from_buffer(start),
        start.itemsize,
        _pointer(local, "int32_t"),
    )
    if bad >= 0:
        rank = np.searchsorted(rank_start, [operation[bad], needed[bad]], side="right") - 1
        raise ScheduleError(
            f"an operation of rank {rank[0]} depends on one of rank {rank[1]}",
            where=f"{name}, dependency {bad}",
            why="ranks wait for each other by messages only",
        )
    return start, local


def _pointer(array: np.ndarray, ctype: str) -> object:
    return ffi.from_buffer(f"{ctype}[]", array)
