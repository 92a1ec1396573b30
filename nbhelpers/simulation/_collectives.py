"""Collectives of MPI as messages, for any number of ranks: those in which all do the same, those
over trees, and recursive doubling and halving.

s bytes, P ranks; closed forms with LogGOPS' parameters, h = 2o + L + (s − 1) max(G, O), eager
messages. "Ordered" rounds are those of a program that sends and receives (MPI_Sendrecv) and goes on
when both are done. Algorithms: Thakur, Rabenseifner, Gropp, "Optimization of Collective
Communication Operations in MPICH", IJHPCA 19(1), 2005; Hensgen, Finkel, Manber 1988
(dissemination); Bruck et al. 1997.

With P no power of two, recursive doubling lets the first 2 (P − 2^k) ranks pair up before: the even
one hands its part to the odd one and waits for the result (Thakur et al., section 4.5). 2^k ranks,
the core, do the rest. A root other than 0 changes places with rank 0, as in the reference's
generator.
"""

import numpy as np

from ._building import RECV, SEND, Building, around, checked, rounds_of, shares, uniform
from .schedule import Schedule

Edge = tuple[int, int]

# --- everybody does the same ----------------------------------------------------------------------


def _sendrecv_edges(rounds: int, ordered: bool) -> list[Edge]:
    """Round r is a send (2 r) and a receive (2 r + 1)."""
    edges = [(2 * r, 2 * r - 1) for r in range(1, rounds)]
    return edges + [(2 * r, 2 * r - 2) for r in range(1, rounds)] if ordered else edges


def _rounds(
    name: str, ranks: int, shifts: list[int], sizes: list[int] | int, ordered: bool
) -> Schedule:
    """Round r: send to rank + shift[r], receive from rank − shift[r]; sizes one number or
    [rounds].
    """
    both = np.array([(shift, -shift) for shift in shifts], np.int64).reshape(-1)
    return uniform(
        name,
        [SEND, RECV] * len(shifts),
        around(ranks, both),
        np.repeat(sizes, 2) if isinstance(sizes, list) else sizes,
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


# --- one root -------------------------------------------------------------------------------------


def _places(ranks: int, root: int) -> np.ndarray:
    """Which rank stands at each place of the tree; place 0 is the root."""
    real = np.arange(ranks, dtype=np.int32)
    real[0], real[root] = root, 0
    return real


def binomial_bcast(ranks: int, bytes: int = 1, root: int = 0) -> Schedule:
    """Broadcast over a binomial tree (Schedgen's binomialtreebcast): in round j whoever has the
    data sends it 2^j places on.

    P − 1 messages, ceil(log2 P) rounds; ends at log2(P) h for a power of two and h ≥ max(o +
    (s−1)O, g + (s−1)G).
    """
    ranks, real = checked(ranks, bytes, root=root), _places(ranks, root)
    build = Building(ranks, "binomial broadcast")
    steps = [1 << j for j in range(rounds_of(ranks))]
    got = np.full(ranks, -1, np.int32)
    for step in steps:  # place 0 is the root, and each below has its parent a bit lower
        places = np.arange(step, min(2 * step, ranks))
        got[places] = build.recv(real[places], real[places - step], bytes)
    for step in steps:
        places = np.arange(max(0, min(step, ranks - step)))
        build.send(real[places], real[places + step], bytes, after=got[places])
    return build.schedule()


def binomial_reduce(ranks: int, bytes: int = 1, root: int = 0) -> Schedule:
    """Reduction over a binomial tree (Schedgen's binomialtreereduce): a broadcast turned round."""
    return _turned_round(binomial_bcast(ranks, bytes, root), "binomial reduction")


def _turned_round(schedule: Schedule, name: str) -> Schedule:
    """What is received is sent, and what waited is waited for."""
    needed, operation = schedule.edges()
    return Schedule.from_arrays(
        np.diff(schedule.rank_start),
        SEND + RECV - schedule.kind,
        schedule.peer,
        schedule.size,
        requires=(operation, needed),
        name=name,
    )


def scatter(ranks: int, bytes: int = 1, root: int = 0) -> Schedule:
    """The root sends to every other rank, in ascending order (Schedgen's scatter).

    Ends at (P − 2) max(o + (s−1)O, g + (s−1)G) + h.
    """
    counts = np.ones(checked(ranks, bytes, root=root), np.int64)
    counts[root] = ranks - 1
    is_roots = np.repeat(np.arange(ranks) == root, counts)
    peer = np.full(len(is_roots), root, np.int32)
    peer[is_roots] = np.delete(np.arange(ranks), root)
    return Schedule.from_arrays(counts, np.where(is_roots, SEND, RECV), peer, bytes, name="scatter")


def gather(ranks: int, bytes: int = 1, root: int = 0) -> Schedule:
    """Every rank sends to the root, which receives in ascending order (Schedgen's gather).

    Ends at o + L + (P − 2) max(o + (s−1) max(O, G), g + (s−1)G) + o + (s−1) max(O, G).
    """
    return _turned_round(scatter(ranks, bytes, root), "gather")


def binomial_scatter(ranks: int, bytes: int = 1, root: int = 0) -> Schedule:
    """Scatter of `bytes` to each rank over a binomial tree: a subtree's blocks travel in one
    message; P − 1 messages, ceil(log2 P) rounds.
    """
    ranks, real = checked(ranks, bytes, root=root), _places(ranks, root)
    build = Building(ranks, "binomial scatter")
    got = np.full(ranks, -1, np.int32)
    for step in (1 << j for j in reversed(range(rounds_of(ranks)))):
        parents = np.arange(0, ranks - step, 2 * step)
        sizes = np.minimum(step, ranks - (parents + step)) * bytes
        got[parents + step] = build.recv(real[parents + step], real[parents], sizes)
        build.send(real[parents], real[parents + step], sizes, after=got[parents])
    return build.schedule()


def binomial_gather(ranks: int, bytes: int = 1, root: int = 0) -> Schedule:
    """Gather of `bytes` from each rank over a binomial tree, the scatter turned round."""
    return _turned_round(binomial_scatter(ranks, bytes, root), "binomial gather")


# --- recursive doubling and halving ---------------------------------------------------------------


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
        self.masks = [1 << k for k in range(self.size.bit_length() - 1)]


def _exchange(
    build: Building,
    core: _Core,
    mask: int,
    out: np.ndarray | int,
    into: np.ndarray | int,
    last: tuple,
) -> tuple:
    """Every rank of the core exchanges with that at place XOR mask; returns what the next round has
    to wait for.
    """
    partner = core.rank[core.place ^ mask]
    sent = build.send(core.rank, partner, out, after=last)
    return (build.recv(core.rank, partner, into), sent)


def _hand_over(build: Building, core: _Core, bytes: int) -> tuple:
    """The guests give their data to their hosts: what the hosts have to wait for, by place in the
    core.
    """
    build.send(core.guests, core.hosts, bytes)
    received = np.full(core.size, -1, np.int32)
    received[: len(core.hosts)] = build.recv(core.hosts, core.guests, bytes)
    return (received,)


def _hand_back(build: Building, core: _Core, bytes: int, last: tuple) -> None:
    build.send(
        core.hosts, core.guests, bytes, after=tuple(numbers[: len(core.hosts)] for numbers in last)
    )
    build.recv(core.guests, core.hosts, bytes)


def recursive_doubling_allreduce(ranks: int, bytes: int = 1) -> Schedule:
    """All-reduce in which everybody exchanges all `bytes` with the rank 1, 2, 4, … places away.

    2^k k messages for 2^k ranks, ends at k h, h = 2o + L + (s − 1)G, if h ≥ g + (s − 1)G and O ≤ G;
    2 (P − 2^k) messages more, and two rounds, for other P.
    """
    build, core = Building(checked(ranks, bytes), "recursive doubling all-reduce"), _Core(ranks)
    last = _hand_over(build, core, bytes)
    for mask in core.masks:
        last = _exchange(build, core, mask, bytes, bytes, last)
    _hand_back(build, core, bytes, last)
    return build.schedule()


def rabenseifner_allreduce(ranks: int, bytes: int = 1) -> Schedule:
    """All-reduce after Rabenseifner: recursive halving reduces and scatters (each round a rank
    keeps a half of its chunks and sends the other), recursive doubling gathers.

    2 · 2^k k messages on 2^k ranks, of bytes / 2, / 4, …, / 2^k and back: 2 (1 − 1/P) bytes sent by
    a rank in all.
    """
    build, core = Building(checked(ranks, bytes), "Rabenseifner all-reduce"), _Core(ranks)
    last = _hand_over(build, core, bytes)
    ends = np.concatenate([[0], np.cumsum(shares(bytes, core.size))])  # of each chunk
    low, high, sizes = np.zeros(core.size, int), np.full(core.size, core.size), []
    for mask in core.masks:
        middle, upper = (low + high) // 2, (core.place & mask) > 0
        first, second = ends[middle] - ends[low], ends[high] - ends[middle]
        out, into = np.where(upper, first, second), np.where(upper, second, first)
        last = _exchange(build, core, mask, out, into, last)
        low, high = np.where(upper, middle, low), np.where(upper, high, middle)
        sizes.append((mask, out, into))
    for mask, out, into in reversed(sizes):
        last = _exchange(build, core, mask, into, out, last)
    _hand_back(build, core, bytes, last)
    return build.schedule()
