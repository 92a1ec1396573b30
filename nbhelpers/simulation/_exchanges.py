"""Patterns in which all ranks do the same: dissemination, rings, recursive doubling and halving,
all-to-all, scans.

s bytes, P ranks; closed forms with LogGOPS' parameters, h = 2o + L + (s − 1) max(G, O), eager
messages. "Ordered" rounds are those of a program that sends and receives (MPI_Sendrecv) and goes on
when both are done. Algorithms: Thakur, Rabenseifner, Gropp, "Optimization of Collective
Communication Operations in MPICH", IJHPCA 19(1), 2005; Hensgen, Finkel, Manber 1988
(dissemination); Bruck et al. 1997.
"""

import numpy as np

from ..errors import InputError
from ._building import (
    CALC,
    RECV,
    SEND,
    Building,
    around,
    at_least,
    checked,
    rounds_of,
    shares,
    uniform,
)
from .schedule import Schedule

Edge = tuple[int, int]


def _sendrecv_edges(rounds: int, ordered: bool) -> list[Edge]:
    """Round r is a send (2 r) and a receive (2 r + 1)."""
    edges = [(2 * r, 2 * r - 1) for r in range(1, rounds)]
    return edges + [(2 * r, 2 * r - 2) for r in range(1, rounds)] if ordered else edges


def _rounds(
    name: str, ranks: int, shifts: list[int], sizes: list[int] | np.ndarray | int, ordered: bool
) -> Schedule:
    """Round r: send to rank + shift[r], receive from rank − shift[r]; sizes one number, [rounds] or
    [P, rounds, 2].
    """
    both = np.array([(shift, -shift) for shift in shifts], np.int64).reshape(-1)
    sizes = np.asarray(sizes)
    sizes = (
        sizes.reshape(ranks, -1)
        if sizes.ndim == 3
        else np.repeat(sizes, 2)
        if sizes.ndim
        else sizes
    )
    return uniform(
        name,
        [SEND, RECV] * len(shifts),
        around(ranks, both),
        sizes,
        _sendrecv_edges(len(shifts), ordered),
    )


def dissemination(ranks: int, bytes: int = 1, ordered: bool = False) -> Schedule:
    """In round r every rank sends to rank + 2^r and receives from rank − 2^r (Schedgen's
    dissemination).

    P ceil(log2 P) messages; ends at ceil(log2 P) h if h ≥ g + (s − 1)G and O ≤ G. A send waits for
    the receive of the round before, which does not force that of the round before *that* to be
    over; with `ordered` a round begins when the last one is over, as in a program.
    """
    rounds = rounds_of(checked(ranks, bytes))
    return _rounds("dissemination", ranks, [1 << r for r in range(rounds)], bytes, ordered)


def barrier(ranks: int) -> Schedule:
    """The dissemination barrier, ordered, with 1-byte messages: nobody leaves before everybody has
    come.
    """
    return dissemination(ranks, 1, ordered=True)


def nway_dissemination(
    ranks: int, bytes: int = 1, ways: int = 2, ns_per_byte: float = 1.0
) -> Schedule:
    """Dissemination to `ways` ranks a round, (ways + 1)^r apart (Schedgen's nwaydissemination);
    combining takes `ns_per_byte`.

    P ways ceil(log_{ways+1} P) messages. In a round that wraps around, ranks may be reached twice.
    """
    at_least(1, ways=ways)
    rounds = rounds_of(checked(ranks, bytes), ways + 1)
    kinds: list[int] = []
    shifts: list[int] = []
    edges: list[Edge] = []
    received = range(0)
    for r in range(rounds):
        hops = [way * (ways + 1) ** r for way in range(1, ways + 1)]
        sends = range(len(kinds), len(kinds) + ways)
        combines = range(sends.stop, sends.stop + (ways if r else 0))
        for back, combine in enumerate(combines):
            edges += [(combine, received[way]) for way in reversed(range(ways - back))]
        for back, combine in enumerate(combines):
            edges += [(sends[way], combine) for way in range(ways - back - 1, ways)]
        received = range(combines.stop, combines.stop + ways)
        kinds += [SEND] * ways + [CALC] * len(combines) + [RECV] * ways
        shifts += hops + [0] * len(combines) + [-hop for hop in hops]
    peers = around(ranks, shifts)
    peers[:, np.array(kinds, int) == CALC] = 0
    sizes = np.where(np.array(kinds, int) == CALC, round(bytes * ns_per_byte), bytes)
    return uniform(f"{ways}-way dissemination", kinds, peers, sizes, edges)


def ring_allreduce(ranks: int, bytes: int = 1) -> Schedule:
    """All-reduce of `bytes` over a ring (Schedgen's allreduce_ring): P − 1 rounds reduce and
    scatter, P − 1 rounds gather.

    2 P (P − 1) messages of bytes / P; where that leaves a rest, the first `bytes mod P` of the P
    chunks are a byte longer (the reference drops it).
    """
    return _ring("ring all-reduce", ranks, bytes, 2 * (checked(ranks, bytes) - 1), 0)


def ring_reduce_scatter(ranks: int, bytes: int = 1) -> Schedule:
    """Reduce-scatter of `bytes` over a ring: P − 1 rounds; afterwards rank r has chunk r, reduced.
    P (P − 1) messages of bytes / P.
    """
    return _ring("ring reduce-scatter", ranks, bytes, checked(ranks, bytes) - 1, -1)


def _ring(name: str, ranks: int, bytes: int, rounds: int, first: int) -> Schedule:
    """In round s rank r sends chunk r + first − s to rank r + 1."""
    if bytes % ranks == 0:
        return _rounds(
            name, ranks, [1] * rounds if ranks > 1 else [], bytes // ranks, ordered=False
        )
    chunk = (np.arange(ranks)[:, None] + first - np.arange(rounds)) % ranks
    sizes = shares(bytes, ranks)[np.stack([chunk, (chunk - 1) % ranks], axis=2)]
    return _rounds(name, ranks, [1] * rounds, sizes, ordered=False)


def ring_allgather(ranks: int, bytes: int = 1) -> Schedule:
    """All-gather of `bytes` from every rank over a ring: P (P − 1) messages, P − 1 rounds."""
    return _rounds(
        "ring all-gather", checked(ranks, bytes), [1] * (ranks - 1), bytes, ordered=False
    )


def bruck_allgather(ranks: int, bytes: int = 1) -> Schedule:
    """All-gather of `bytes` from every rank after Bruck: in round r min(2^r, P − 2^r) blocks go to
    rank − 2^r. P ceil(log2 P) messages, any P.
    """
    hops = [1 << r for r in range(rounds_of(checked(ranks, bytes)))]
    return _rounds(
        "Bruck all-gather",
        ranks,
        [-hop for hop in hops],
        [min(hop, ranks - hop) * bytes for hop in hops],
        ordered=True,
    )


def linear_alltoall(ranks: int, bytes: int = 1) -> Schedule:
    """Every rank sends `bytes` to rank + 1, rank + 2, … all at once, and receives as it comes
    (Schedgen's linear_alltoall): P (P − 1) messages.
    """
    shifts = [(shift, -shift) for shift in range(1, checked(ranks, bytes))]
    return uniform(
        "linear all-to-all",
        [SEND, RECV] * (ranks - 1),
        around(ranks, np.array(shifts, np.int64).reshape(-1)),
        bytes,
        [],
    )


def linear_alltoallv(sizes: np.ndarray) -> Schedule:
    """As `linear_alltoall`, with sizes[i, j] bytes from rank i to rank j (Schedgen's
    linear_alltoallv): int[P, P]; 0 bytes are sent as well.
    """
    sizes = np.asarray(sizes, np.int64)
    if sizes.ndim != 2 or sizes.shape[0] != sizes.shape[1] or sizes.min(initial=0) < 0:
        raise InputError(
            f"sizes of shape {sizes.shape}",
            why="there has to be one size, not negative, from every rank to every rank",
        )
    ranks = len(sizes)
    rank, shift = np.arange(ranks)[:, None], np.arange(1, ranks)
    to, source = (rank + shift) % ranks, (rank - shift) % ranks
    peers = np.stack([to, source], 2).reshape(ranks, -1).astype(np.int32)
    return uniform(
        "linear all-to-all, v",
        [SEND, RECV] * (ranks - 1),
        peers,
        np.stack([sizes[rank, to], sizes[source, rank]], 2).reshape(ranks, -1),
        [],
    )


def pairwise_alltoall(ranks: int, bytes: int = 1) -> Schedule:
    """Every rank exchanges `bytes` with one rank after the other: rank XOR i for a power of two,
    else to rank + i and from rank − i.

    P (P − 1) messages in P − 1 ordered rounds: at any time a rank sends one message and receives
    one.
    """
    rank = np.arange(checked(ranks, bytes), dtype=np.int32)[:, None]
    step = np.arange(1, ranks, dtype=np.int32)
    both = (
        (rank ^ step, rank ^ step)
        if ranks & (ranks - 1) == 0
        else ((rank + step) % ranks, (rank - step) % ranks)
    )
    edges = _sendrecv_edges(ranks - 1, ordered=True) + [
        (2 * r + 1, 2 * r - back) for r in range(1, ranks - 1) for back in (1, 2)
    ]
    return uniform(
        "pairwise all-to-all",
        [SEND, RECV] * (ranks - 1),
        np.stack(both, 2).reshape(ranks, -1).astype(np.int32),
        bytes,
        edges,
    )


def bruck_alltoall(ranks: int, bytes: int = 1) -> Schedule:
    """All-to-all of `bytes` to each rank after Bruck: in round r all blocks whose distance has bit
    r set go to rank + 2^r.

    P ceil(log2 P) messages; every block travels as often as its distance has bits.
    """
    hops = [1 << r for r in range(rounds_of(checked(ranks, bytes)))]
    blocks = [int(np.count_nonzero(np.arange(ranks) & hop)) for hop in hops]
    return _rounds(
        "Bruck all-to-all", ranks, hops, [count * bytes for count in blocks], ordered=True
    )


def scan(ranks: int, bytes: int = 1) -> Schedule:
    """Inclusive prefix reduction: in round r rank sends what it has to rank + 2^r, where there is
    one. P ceil(log2 P) − 2^ceil(log2 P) + 1 messages.
    """
    build = Building(checked(ranks, bytes), "scan")
    rank = np.arange(ranks, dtype=np.int32)
    received: list[np.ndarray] = []
    for hop in (1 << r for r in range(rounds_of(ranks))):
        build.send(
            rank[:-hop], rank[hop:], bytes, after=tuple(numbers[:-hop] for numbers in received)
        )
        received.append(np.full(ranks, -1, np.int32))
        received[-1][hop:] = build.recv(rank[hop:], rank[:-hop], bytes)
    return build.schedule()


def linear_scan(ranks: int, bytes: int = 1) -> Schedule:
    """Inclusive prefix reduction along the chain: P − 1 messages one after the other; ends at (P −
    1) h.
    """
    build = Building(checked(ranks, bytes), "linear scan")
    rank = np.arange(ranks, dtype=np.int32)
    got = np.concatenate([[-1], build.recv(rank[1:], rank[:-1], bytes)])
    build.send(rank[:-1], rank[1:], bytes, after=got[:-1])
    return build.schedule()


def random_bisection(
    ranks: int, bytes: int = 1, seed: int = 0, both_ways: bool = False
) -> Schedule:
    """A random half of the ranks sends to the other half, each to a partner of its own (Schedgen's
    random_bisect; both_ways: random_bisect_fd_sym).

    With an odd number of ranks one stays idle. Used to measure the effective bisection bandwidth.
    """
    build = Building(checked(ranks, bytes), "random bisection")
    mixed = np.random.default_rng(seed).permutation(ranks).astype(np.int32)
    one, other = mixed[: ranks // 2], mixed[ranks // 2 : 2 * (ranks // 2)]
    for source, to in ((one, other), (other, one))[: 1 + both_ways]:
        build.send(source, to, bytes)
        build.recv(to, source, bytes)
    return build.schedule()
