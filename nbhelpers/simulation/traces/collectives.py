"""By which algorithm a collective call becomes messages: ours by size, the reference's, or one's
own.
"""

from collections.abc import Callable, Mapping

from ...errors import InputError
from .. import patterns
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
    "Reduce_scatter": _rootless(patterns.recursive_halving_reduce_scatter),
}
_dissemination = _rootless(patterns.dissemination)
REFERENCE: dict[str, Algorithm] = BY_SIZE | {
    "Barrier": lambda ranks, bytes, root: patterns.dissemination(ranks, 1),
    "Allreduce": _dissemination,
    "Allgather": _dissemination,
    "Alltoall": _rootless(patterns.linear_alltoall),
}


def chosen_algorithms(choice: str | Mapping[str, Algorithm] = "by size") -> dict[str, Algorithm]:
    """Collective -> algorithm.

    Parameters
    ----------
    choice
        "by size": as MPI libraries choose them, short messages by few rounds, long ones by few
        bytes (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005). "reference": those of the reference
        simulator's generator (dissemination, binomial trees, linear). Or a mapping that replaces
        some of the first: `{"Allreduce": lambda ranks, bytes, root: …}`.

    Raises
    ------
    InputError
        No such choice, or no such collective.
    """
    if isinstance(choice, str):
        known = {"by size": BY_SIZE, "reference": REFERENCE}
        if choice not in known:
            raise InputError(f"no algorithms {choice!r}", fix=f"one of: {', '.join(known)}")
        return dict(known[choice])
    strange = set(choice) - set(BY_SIZE)
    if strange:
        raise InputError(
            f"no collective {min(strange)!r}", fix=f"one of: {', '.join(sorted(BY_SIZE))}"
        )
    return {**BY_SIZE, **choice}


def algorithm_name(collective: str) -> str:
    """The collective whose algorithm it takes: those with sizes for each rank take the plain
    one's, with the mean of the sizes.

    >>> algorithm_name("Allgatherv"), algorithm_name("Reduce_scatter_block")
    ('Allgather', 'Reduce_scatter')
    """
    plain = collective.removesuffix("_block")
    return plain[:-1] if plain not in BY_SIZE and plain.endswith("v") else plain
