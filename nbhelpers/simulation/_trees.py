"""Patterns with a root: broadcasts, reductions, scatters and gathers over trees, rings and
directly.

A root other than 0 changes places with rank 0, as in the reference's generator. L, o, g, G, O, S of
closed forms: LogGOPS, s bytes, P ranks, h = 2o + L + (s − 1) max(G, O), eager messages.
"""

from collections.abc import Iterator

import numpy as np

from ._building import RECV, SEND, Building, at_least, checked, rounds_of
from .schedule import Schedule

_Pairs = Iterator[tuple[np.ndarray, np.ndarray]]
_Tree = tuple[_Pairs, _Pairs]


def _places(ranks: int, root: int) -> np.ndarray:
    """Which rank stands at each place of the tree; place 0 is the root."""
    real = np.arange(ranks, dtype=np.int32)
    real[0], real[root] = root, 0
    return real


def _knomial(ranks: int, radix: int) -> _Tree:
    """(places, their parents) from the root down, and (places, a child of each), in the order of
    the messages.
    """
    steps = [radix**j for j in range(rounds_of(ranks, radix))]
    below = ((np.arange(step, min(step * radix, ranks)), step) for step in steps)
    above = (
        (np.arange(max(0, min(step, ranks - digit * step))), digit * step)
        for step in steps
        for digit in range(1, radix)
    )
    return (
        ((places, places % step) for places, step in below),
        ((places, places + apart) for places, apart in above),
    )


def _kary(ranks: int, arity: int) -> _Tree:
    """As of `_knomial`."""
    at_least(1, arity=arity)
    below = np.arange(1, ranks)
    above = (
        (np.arange(max(0, -(-(ranks - child) // arity))), child) for child in range(1, arity + 1)
    )
    return (
        iter([(below, (below - 1) // arity)]),
        ((places, places * arity + child) for places, child in above),
    )


def _bcast(ranks: int, bytes: int, root: int, tree: _Tree, name: str) -> Schedule:
    build, real = Building(ranks, name), _places(ranks, root)
    to_parents, to_children = tree
    got = np.full(ranks, -1, np.int32)
    for places, parents in to_parents:
        got[places] = build.recv(real[places], real[parents], bytes)
    for places, children in to_children:
        build.send(real[places], real[children], bytes, after=got[places])
    return build.schedule()


def _reduce(
    ranks: int, bytes: int, root: int, tree: _Tree, ns_per_byte: float, name: str
) -> Schedule:
    build, real = Building(ranks, name), _places(ranks, root)
    to_parents, to_children = tree
    sent = np.full(ranks, -1, np.int32)
    for places, parents in to_parents:
        sent[places] = build.send(real[places], real[parents], bytes)
    for places, children in to_children:
        received = build.recv(real[places], real[children], bytes)
        combined = build.combine(real[places], received, bytes, ns_per_byte)
        build.need(real[places], sent[places], combined)
    return build.schedule()


def knomial_bcast(ranks: int, bytes: int = 1, radix: int = 2, root: int = 0) -> Schedule:
    """Broadcast over a k-nomial tree: in round j whoever has the data sends it to radix − 1 places,
    radix^j apart.

    P − 1 messages, ceil(log_radix P) rounds.
    """
    ranks = checked(ranks, bytes, root=root)
    name = "binomial broadcast" if radix == 2 else f"{radix}-nomial broadcast"
    return _bcast(ranks, bytes, root, _knomial(ranks, radix), name)


def binomial_bcast(ranks: int, bytes: int = 1, root: int = 0) -> Schedule:
    """Broadcast over a binomial tree (Schedgen's binomialtreebcast): ends at log2(P) h for a power
    of two and h ≥ max(o + (s−1)O, g + (s−1)G).
    """
    return knomial_bcast(ranks, bytes, 2, root)


def knomial_reduce(
    ranks: int, bytes: int = 1, radix: int = 2, root: int = 0, ns_per_byte: float = 0.0
) -> Schedule:
    """Reduction over a k-nomial tree, the broadcast turned round; combining what was received takes
    `ns_per_byte`.
    """
    ranks = checked(ranks, bytes, root=root)
    name = "binomial reduction" if radix == 2 else f"{radix}-nomial reduction"
    return _reduce(ranks, bytes, root, _knomial(ranks, radix), ns_per_byte, name)


def binomial_reduce(
    ranks: int, bytes: int = 1, root: int = 0, ns_per_byte: float = 0.0
) -> Schedule:
    """Reduction over a binomial tree (Schedgen's binomialtreereduce)."""
    return knomial_reduce(ranks, bytes, 2, root, ns_per_byte)


def kary_bcast(ranks: int, bytes: int = 1, arity: int = 2, root: int = 0) -> Schedule:
    """Broadcast over a complete k-ary tree: place v sends to places k v + 1 to k v + k. P − 1
    messages.
    """
    ranks = checked(ranks, bytes, root=root)
    return _bcast(ranks, bytes, root, _kary(ranks, arity), f"{arity}-ary broadcast")


def binary_bcast(ranks: int, bytes: int = 1, root: int = 0) -> Schedule:
    """Broadcast over a complete binary tree (Schedgen's binarytreebcast)."""
    return kary_bcast(ranks, bytes, 2, root)


def kary_reduce(
    ranks: int, bytes: int = 1, arity: int = 2, root: int = 0, ns_per_byte: float = 0.0
) -> Schedule:
    """Reduction over a complete k-ary tree."""
    ranks = checked(ranks, bytes, root=root)
    return _reduce(ranks, bytes, root, _kary(ranks, arity), ns_per_byte, f"{arity}-ary reduction")


def scatter(ranks: int, bytes: int = 1, root: int = 0) -> Schedule:
    """The root sends to every other rank, in ascending order (Schedgen's scatter).

    Ends at (P − 2) max(o + (s−1)O, g + (s−1)G) + h.
    """
    return _star(ranks, bytes, root, SEND, "scatter")


def gather(ranks: int, bytes: int = 1, root: int = 0) -> Schedule:
    """Every rank sends to the root, which receives in ascending order (Schedgen's gather).

    Ends at o + L + (P − 2) max(o + (s−1) max(O, G), g + (s−1)G) + o + (s−1) max(O, G).
    """
    return _star(ranks, bytes, root, RECV, "gather")


def _star(ranks: int, bytes: int, root: int, roots_kind: int, name: str) -> Schedule:
    build = Building(checked(ranks, bytes, root=root), name)
    others = np.delete(np.arange(ranks, dtype=np.int32), root)
    build.burst(roots_kind, root, others, bytes)
    (build.recv if roots_kind == SEND else build.send)(others, root, bytes)
    return build.schedule()


def linear_barrier(ranks: int) -> Schedule:
    """Everybody tells rank 0, then rank 0 tells everybody (Schedgen's linbarrier): 2 (P − 1)
    messages of 1 byte.
    """
    build = Building(checked(ranks), "linear barrier")
    all_came = build.calc(np.array([0]), 0)
    others = np.arange(1, ranks, dtype=np.int32)
    numbers = build.burst(np.tile([RECV, SEND], len(others)), 0, np.repeat(others, 2), 1)
    build.need(0, all_came, numbers[::2])
    build.need(0, numbers[1::2], all_came)
    build.send(others, 0, 1)
    build.recv(others, 0, 1)
    return build.schedule()


def binomial_scatter(ranks: int, bytes: int = 1, root: int = 0) -> Schedule:
    """Scatter of `bytes` to each rank over a binomial tree: a subtree's blocks travel in one
    message; P − 1 messages, ceil(log2 P) rounds.
    """
    ranks, real = checked(ranks, bytes, root=root), _places(ranks, root)
    build = Building(ranks, "binomial scatter")
    got = np.full(ranks, -1, np.int32)
    for step in _descending(ranks):
        parents = np.arange(0, ranks - step, 2 * step)
        sizes = np.minimum(step, ranks - (parents + step)) * bytes
        got[parents + step] = build.recv(real[parents + step], real[parents], sizes)
        build.send(real[parents], real[parents + step], sizes, after=got[parents])
    return build.schedule()


def binomial_gather(ranks: int, bytes: int = 1, root: int = 0) -> Schedule:
    """Gather of `bytes` from each rank over a binomial tree, the scatter turned round."""
    ranks, real = checked(ranks, bytes, root=root), _places(ranks, root)
    build = Building(ranks, "binomial gather")
    received: list[np.ndarray] = []
    for step in reversed(_descending(ranks)):
        parents = np.arange(0, ranks - step, 2 * step)
        sizes = np.minimum(step, ranks - (parents + step)) * bytes
        build.send(
            real[parents + step],
            real[parents],
            sizes,
            after=tuple(numbers[parents + step] for numbers in received),
        )
        received.append(np.full(ranks, -1, np.int32))
        received[-1][parents] = build.recv(real[parents], real[parents + step], sizes)
    return build.schedule()


def _descending(ranks: int) -> list[int]:
    return [1 << j for j in reversed(range(rounds_of(ranks)))]


def pipelined_ring(
    ranks: int, bytes: int = 1, segment: int = 4096, in_turn: bool = False
) -> Schedule:
    """Broadcast along the chain 0, 1, …, P − 1 in segments (Schedgen's pipelinedring; with
    `in_turn`, pipelinedringdep).

    in_turn : a rank receives the next segment only once it has sent the last one.
    """
    at_least(1, segment=segment)
    build = Building(checked(ranks, bytes), "pipelined ring")
    rank = np.arange(ranks, dtype=np.int32)
    sent = np.full(ranks, -1, np.int32)
    for begin in range(0, bytes, segment):
        size = min(segment, bytes - begin)
        got = np.full(ranks, -1, np.int32)
        got[1:] = build.recv(rank[1:], rank[:-1], size, after=sent[1:] if in_turn else -1)
        sent[:-1] = build.send(rank[:-1], rank[1:], size, after=got[:-1])
    return build.schedule()


def double_ring(ranks: int, bytes: int = 1) -> Schedule:
    """A message goes round the ring from rank 0 in each direction (Schedgen's doublering): 2 P
    messages.
    """
    build = Building(checked(ranks, bytes, least=2), "double ring")
    rank = np.arange(ranks, dtype=np.int32)
    for step in (1, -1):
        sent = build.send(rank, (rank + step) % ranks, bytes)
        got = build.recv(rank, (rank - step) % ranks, bytes)
        build.need(rank[1:], sent[1:], got[1:])
    return build.schedule()
