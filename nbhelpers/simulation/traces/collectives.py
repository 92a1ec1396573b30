"""How a collective becomes messages: by ours for its size, the reference's or one's own."""

from collections.abc import Callable

import numpy as np

from .. import patterns
from ..loggops import CallCosts
from ..schedule import Schedule

Algorithm = Callable[[int, int, int], Schedule]  # ranks, bytes, root -> schedule
SHORT_BYTES = 2048  # up to this many, latency decides; beyond, the bytes


def _rootless(pattern: Callable[..., Schedule]) -> Algorithm:
    return lambda ranks, bytes, root: pattern(ranks, bytes)


def _rooted(pattern: Callable[..., Schedule]) -> Algorithm:
    return lambda ranks, bytes, root: pattern(ranks, bytes, root=root)


def _by_size(short: Algorithm, long: Algorithm, limit: int = SHORT_BYTES) -> Algorithm:
    return lambda ranks, bytes, root: (short if bytes <= limit else long)(ranks, bytes, root)


_allreduce = _rootless(patterns.recursive_doubling_allreduce)


def _reduce_scatter(ranks: int, bytes: int, root: int) -> Schedule:
    return patterns.sequence(
        patterns.binomial_reduce(ranks, bytes), patterns.binomial_scatter(ranks, bytes // ranks)
    )


_scan = _rootless(patterns.scan)
BY_SIZE: dict[str, Algorithm] = {
    "Barrier": lambda ranks, bytes, root: patterns.barrier(ranks),
    "Bcast": _rooted(patterns.binomial_bcast),
    "Reduce": _rooted(patterns.binomial_reduce),
    "Allreduce": _by_size(_allreduce, _rootless(patterns.rabenseifner_allreduce)),
    "Gather": _rooted(patterns.binomial_gather),
    "Scatter": _rooted(patterns.binomial_scatter),
    "Allgather": _by_size(
        _rootless(patterns.bruck_allgather), _rootless(patterns.ring_allgather), 81_920
    ),
    "Alltoall": _by_size(
        _rootless(patterns.bruck_alltoall), _rootless(patterns.pairwise_alltoall), 256
    ),
    "Scan": _scan,
    "Exscan": _scan,
    "Reduce_scatter": _reduce_scatter,
}


_COPIES = ("Allreduce", "Allgather", "Alltoall")  # a rank's own part


def local_ns(name: str, ranks: int, bytes: int, costs: CallCosts) -> float:
    """What a rank takes in a collective where all do the same: it copies and adds, or makes a
    communicator.

    >>> local_ns("Allreduce", 2, 8000, CallCosts(copy=1, add=2))
    16000.0
    """
    if name in MAKERS:
        return costs.make
    name = algorithm_name(name)
    added = float(np.ceil(np.log2(ranks))) if bytes <= SHORT_BYTES else 1 - 1 / ranks
    added *= bytes * (name == "Allreduce")
    return costs.add * added + costs.copy * bytes * (name in _COPIES)


# All ranks of a communicator make another of it: they wait for each other, as in a barrier.
MAKERS = (
    *("Comm_dup", "Comm_dup_with_info", "Comm_create", "Comm_split", "Comm_split_type"),
    *("Cart_create", "Cart_sub", "Graph_create", "Dist_graph_create", "Dist_graph_create_adjacent"),
)


def algorithm_name(collective: str) -> str:
    """The collective whose algorithm it takes: those with sizes for each rank take the plain
    one's, with the mean of the sizes; those that make a communicator take a barrier's.

    >>> algorithm_name("Allgatherv"), algorithm_name("Reduce_scatter_block")
    ('Allgather', 'Reduce_scatter')
    >>> algorithm_name("Alltoallw"), algorithm_name("Comm_split")
    ('Alltoall', 'Barrier')
    """
    if collective in MAKERS:
        return "Barrier"
    plain = collective.removesuffix("_block")
    return plain[:-1] if plain not in BY_SIZE and plain[-1:] in ("v", "w") else plain
