"""How patterns become schedules: one template for all ranks, or operations appended to many ranks
at a time.

Nothing here loops over ranks. Numbers of operations are counted within their rank; −1 stands for
"no such operation".
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from .schedule import CALC, RECV, SEND, Schedule

Numbers = np.ndarray | int
After = tuple | Numbers


def checked(ranks: int, *sizes: int, root: int = 0) -> int:
    """The number of ranks, if it is one, and if the sizes and the root are possible."""
    if int(ranks) != ranks or not 1 <= ranks < 2**31:
        raise InputError(f"a pattern for {ranks} ranks", why="it takes 1 to 2^31 − 1")
    if any(size < 0 for size in sizes):
        raise InputError(f"a negative size: {min(sizes)}")
    if not 0 <= root < ranks:
        raise InputError(
            f"the root {root} does not exist", why=f"there are {ranks} ranks, 0 to {ranks - 1}"
        )
    return int(ranks)


def rounds_of(ranks: int) -> int:
    """The smallest number of rounds with 2 ** rounds >= ranks."""
    return (ranks - 1).bit_length()


def shares(bytes: int, parts: int) -> np.ndarray:
    """`bytes` in parts that differ by at most one, the larger ones first: int64[parts]."""
    return np.full(parts, bytes // parts, np.int64) + (np.arange(parts) < bytes % parts)


def around(ranks: int, shifts: Sequence[int] | np.ndarray) -> np.ndarray:
    """(rank + shift) mod ranks for all ranks and shifts (−ranks < shift < ranks): int32[ranks,
    shifts].
    """
    steps = np.asarray(shifts, np.int64) % ranks
    peers = np.add.outer(np.arange(ranks, dtype=np.int32), steps.astype(np.int32), dtype=np.int32)
    np.subtract(peers, np.int32(ranks), out=peers, where=(peers >= ranks) | (peers < 0))
    return peers


def uniform(
    name: str,
    kinds: Sequence[int],
    peer: np.ndarray,
    size: Numbers,
    requires: Iterable[tuple[int, int]],
) -> Schedule:
    """A schedule in which every rank has the same operations and dependencies.

    Parameters
    ----------
    kinds
        [k], the operations of a rank.
    peer
        int32[P, k]; becomes part of the schedule.
    size
        One number or [k].
    requires
        (operation, needed), numbers within the rank, in file order.
    """
    ranks, count = peer.shape
    edges = np.array(list(requires), np.int32).reshape(-1, 2)
    edges = edges[np.argsort(edges[:, 1], kind="stable")]
    starts = np.searchsorted(edges[:, 1], np.arange(count))
    kind = np.broadcast_to(np.array(kinds, np.uint8), peer.shape).reshape(-1)
    done: dict[str, Any] = {}
    if len(edges):
        total = ranks * len(edges)
        done_start = np.empty(ranks * count + 1, np.int32 if total < 2**31 else np.int64)
        done_start[-1] = total
        first = np.arange(ranks, dtype=done_start.dtype) * done_start.dtype.type(len(edges))
        np.add(
            first[:, None], starts.astype(done_start.dtype), out=done_start[:-1].reshape(peer.shape)
        )
        done = {"done_start": done_start, "done_op": np.tile(edges[:, 0], ranks)}
    return Schedule(
        np.arange(ranks + 1, dtype=np.int64) * count,
        kind,
        peer.reshape(-1),
        size=_column(size, peer.shape),
        name=name,
        **done,
    )


def _column(values: Numbers, shape: tuple[int, int]) -> np.ndarray:
    values = np.atleast_1d(np.asarray(values))
    dtype = np.uint32 if values.max(initial=0) < 2**32 else np.int64
    if not values.size or values.min() == values.max():
        return np.full(1, values.flat[0] if values.size else 0, dtype)
    return np.ascontiguousarray(np.broadcast_to(values, shape), dtype).reshape(-1)


class Building:
    """A schedule under construction: each call appends one operation to every one of some ranks,
    and returns their numbers.

    In all calls `ranks` is int[n], each rank at most once; `to`, `source`, `size`, `ns` and `tag`
    are [n] or one number for all. `after` is the operations that have to be done first: numbers as
    returned before, [n], −1 for none, or a tuple of several such.
    """

    def __init__(self, ranks: int, name: str):
        self.name, self.ranks = name, ranks
        self.counts = np.zeros(ranks, np.int64)
        self._pieces: list[tuple] = []
        self._edges: list[tuple] = []

    def send(
        self, ranks: np.ndarray, to: Numbers, size: Numbers, after: After = -1, tag: Numbers = 0
    ) -> np.ndarray:
        """Append a send to every one of the ranks."""
        return self._append(SEND, ranks, to, size, after, tag)

    def recv(
        self, ranks: np.ndarray, source: Numbers, size: Numbers, after: After = -1, tag: Numbers = 0
    ) -> np.ndarray:
        """Append a receive to every one of the ranks."""
        return self._append(RECV, ranks, source, size, after, tag)

    def calc(self, ranks: np.ndarray, ns: Numbers, after: After = -1) -> np.ndarray:
        """Append a computation of some ns to every one of the ranks."""
        return self._append(CALC, ranks, 0, ns, after, 0)

    def need(self, ranks: Numbers, operations: Numbers, needed: Numbers) -> None:
        """In every one of the ranks, an operation (−1: none) waits for the end of another (−1:
        none).
        """
        ranks, operations, needed = np.broadcast_arrays(ranks, operations, needed)
        real = (operations >= 0) & (needed >= 0)
        parts = (ranks[real], operations[real], needed[real])
        self._edges.append(tuple(part.astype(np.int32) for part in parts))

    def schedule(self) -> Schedule:
        """All that was appended, as a schedule; the pieces are freed meanwhile."""
        start = np.cumsum(self.counts) - self.counts
        count = int(self.counts.sum())
        dtypes = (np.uint8, np.int32, np.int64, np.int32)
        columns = kind, peer, size, tag = [np.empty(count, dtype) for dtype in dtypes]
        self._pieces.reverse()
        while self._pieces:
            ranks, numbers, *values = self._pieces.pop()
            at = start[ranks] + numbers
            for column, value in zip(columns, values, strict=True):
                column[at] = value
        return Schedule.from_arrays(
            self.counts,
            kind,
            peer,
            size,
            tag=tag,
            requires=self._requires(start),
            name=self.name,
        )

    def _requires(self, start: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        if not self._edges:
            return None
        ranks, operation, needed = map(np.concatenate, zip(*self._edges))
        # as narrow as they are: there are many
        first = start.astype(np.int32 if start[-1] + self.counts[-1] < 2**31 else np.int64)[ranks]
        return first + operation, first + needed

    def _append(
        self,
        kind: int,
        ranks: np.ndarray,
        peers: Numbers,
        size: Numbers,
        after: After,
        tag: Numbers,
    ) -> np.ndarray:
        numbers = self.counts[ranks].astype(np.int32)
        self._pieces.append((np.asarray(ranks, np.int32), numbers, kind, peers, size, tag))
        self.counts[ranks] += 1
        for needed in after if isinstance(after, tuple) else (after,):
            self.need(ranks, numbers, needed)
        return numbers
