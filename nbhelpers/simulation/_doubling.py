"""Recursive doubling and halving: all-reduce, reduce-scatter, all-gather, on any number of ranks.

With P no power of two, the first 2 (P − 2^k) ranks pair up before: the even one hands its part to
the odd one and waits for the result (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, section 4.5).
2^k ranks, the core, do the rest.
"""

from collections.abc import Callable

import numpy as np

from ._building import Building, checked, shares
from .schedule import Schedule


class _Core:
    """The 2^k ranks of the core: `rank` [2^k] who they are; `guests` those that have handed over,
    `hosts` to whom.
    """

    def __init__(self, ranks: int):
        self.size = 1 << (ranks.bit_length() - 1)
        extra = ranks - self.size
        self.guests = np.arange(0, 2 * extra, 2, dtype=np.int32)
        self.hosts = self.guests + 1
        self.rank = np.concatenate([self.hosts, np.arange(2 * extra, ranks, dtype=np.int32)])
        self.place = np.arange(self.size)
        self.weight = np.where(self.place < extra, 2, 1)  # ranks that each stands for

    def masks(self) -> list[int]:
        return [1 << k for k in range(self.size.bit_length() - 1)]


def _exchange(
    build: Building,
    core: _Core,
    mask: int,
    out: np.ndarray | int,
    into: np.ndarray | int,
    last: tuple,
    ordered: bool,
    ns_per_byte: float = 0.0,
) -> tuple:
    """Every rank of the core exchanges with that at place XOR mask; returns what the next round has
    to wait for.
    """
    partner = core.rank[core.place ^ mask]
    sent = build.send(core.rank, partner, out, after=last)
    received = build.recv(core.rank, partner, into)
    received = build.combine(core.rank, received, into, ns_per_byte)
    return (received, sent) if ordered else (received,)


def _hand_over(build: Building, core: _Core, bytes: int, ns_per_byte: float = 0.0) -> tuple:
    """The guests give their data to their hosts: what the hosts have to wait for, by place in the
    core.
    """
    build.send(core.guests, core.hosts, bytes)
    received = np.full(core.size, -1, np.int32)
    numbers = build.recv(core.hosts, core.guests, bytes)
    received[: len(core.hosts)] = build.combine(core.hosts, numbers, bytes, ns_per_byte)
    return (received,)


def _hand_back(build: Building, core: _Core, bytes: np.ndarray | int, last: tuple) -> None:
    build.send(
        core.hosts, core.guests, bytes, after=tuple(numbers[: len(core.hosts)] for numbers in last)
    )
    build.recv(core.guests, core.hosts, bytes)


def recursive_doubling_allreduce(ranks: int, bytes: int = 1, ns_per_byte: float = 0.0) -> Schedule:
    """All-reduce in which everybody exchanges all `bytes` with the rank 1, 2, 4, … places away.

    2^k k messages for 2^k ranks, ends at k h, h = 2o + L + (s − 1)G, if h ≥ g + (s − 1)G and O ≤ G;
    2 (P − 2^k) messages more, and two rounds, for other P.
    """
    build, core = Building(checked(ranks, bytes), "recursive doubling all-reduce"), _Core(ranks)
    last = _hand_over(build, core, bytes, ns_per_byte)
    for mask in core.masks():
        last = _exchange(build, core, mask, bytes, bytes, last, True, ns_per_byte)
    _hand_back(build, core, bytes, last)
    return build.schedule()


def rabenseifner_allreduce(
    ranks: int, bytes: int = 1, ordered: bool = True, ns_per_byte: float = 0.0
) -> Schedule:
    """All-reduce after Rabenseifner: recursive halving reduces and scatters, recursive doubling
    gathers.

    2 · 2^k k messages on 2^k ranks, of bytes / 2, / 4, …, / 2^k and back: 2 (1 − 1/P) bytes sent by
    a rank in all. With ordered=False a send waits only for the receive before it, as in Schedgen's
    allreduce_recdoub, which works for powers of two only.
    """
    build, core = Building(checked(ranks, bytes), "Rabenseifner all-reduce"), _Core(ranks)
    last = _hand_over(build, core, bytes, ns_per_byte)
    last, sizes = _halve(build, core, _ends(bytes, core), last, ordered, ns_per_byte)
    for mask, (out, into) in zip(reversed(core.masks()), reversed(sizes), strict=True):
        last = _exchange(build, core, mask, into, out, last, ordered)
    _hand_back(build, core, bytes, last)
    return build.schedule()


def _ends(bytes: int, core: _Core) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(shares(bytes, core.size))])


def _halve(
    build: Building,
    core: _Core,
    ends: np.ndarray,
    last: tuple,
    ordered: bool,
    ns_per_byte: float,
    masks: Callable[[list[int]], list[int]] = list,
) -> tuple[tuple, list]:
    """Recursive halving: each round a rank keeps a half of its chunks, and sends the other half to
    its partner.

    ends : bytes up to the end of each chunk, [2^k + 1]. Returns what comes after has to wait for,
    and [(sent, received) bytes a round].
    """
    low, high, sizes = np.zeros(core.size, int), np.full(core.size, core.size), []
    for mask in masks(core.masks()):
        middle, upper = (low + high) // 2, (core.place & mask) > 0
        first, second = ends[middle] - ends[low], ends[high] - ends[middle]
        out, into = np.where(upper, first, second), np.where(upper, second, first)
        last = _exchange(build, core, mask, out, into, last, ordered, ns_per_byte)
        low, high = np.where(upper, middle, low), np.where(upper, high, middle)
        sizes.append((out, into))
    return last, sizes


def recursive_halving_reduce_scatter(
    ranks: int, bytes: int = 1, ns_per_byte: float = 0.0
) -> Schedule:
    """Reduce-scatter of `bytes` by recursive halving: afterwards each rank has its share of the
    result.

    2^k k messages on 2^k ranks, of bytes / 2, / 4, …; for other P each host ends with its guest's
    share as well, and hands it over.
    """
    build, core = Building(checked(ranks, bytes), "recursive halving reduce-scatter"), _Core(ranks)
    chunk = shares(bytes, ranks)
    held = np.add.reduceat(chunk, np.concatenate([[0], np.cumsum(core.weight)[:-1]]))
    last = _hand_over(build, core, bytes, ns_per_byte)
    last, _ = _halve(
        build,
        core,
        np.concatenate([[0], np.cumsum(held)]),
        last,
        True,
        ns_per_byte,
        lambda masks: masks[::-1],
    )
    _hand_back(build, core, chunk[core.guests], last)
    return build.schedule()


def recursive_doubling_allgather(ranks: int, bytes: int = 1) -> Schedule:
    """All-gather of `bytes` from every rank: all that one has is exchanged with the rank 1, 2, 4, …
    places away.

    2^k k messages on 2^k ranks, of bytes, 2 bytes, 4 bytes, …; for other P the guests' blocks go
    before, and all others come back to them.
    """
    build, core = Building(checked(ranks, bytes), "recursive doubling all-gather"), _Core(ranks)
    last, blocks = _hand_over(build, core, bytes), core.weight
    for mask in core.masks():
        last = _exchange(
            build, core, mask, blocks * bytes, blocks[core.place ^ mask] * bytes, last, True
        )
        blocks = blocks + blocks[core.place ^ mask]
    _hand_back(build, core, (ranks - 1) * bytes, last)
    return build.schedule()
