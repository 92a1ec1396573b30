"""Regular collectives on up to millions of ranks, evaluated without a schedule:
`evaluate("dissemination", ranks=1_000_000)`.

Owns the face of simulator_c/implicit.c: the patterns' names and steps, the checks, the result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from ._binding import UNIT_NS, bind_network, bind_noise, check_threads
from ._building import rounds_of
from .detours import LONGEST_NS
from .loggops import LogGOPS
from .noise import Noise

# detours that a rank meets; above, ties are so likely that a first attempt without a history is
# mostly in vain. Of recorded traces on 2^20 ranks, at 0.028 it was in vain for 1 of 5 seeds, at
# 0.036 for 3 of 3; it pays below 2 of 5.
HISTORY_ABOVE = 0.03
# detours that all ranks meet together; above, the order of the rounds does not hold, unless noise
# strikes all at once
BY_ROUNDS_BELOW = 0.5
BLOCKING, FREELY, ORDERED = 0, 1, 2
SHIFT, XOR, BCAST, REDUCE, SCATTER, GATHER, ALLTOALL, HALO = range(8)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What a pattern took, rank by rank.

    Parameters
    ----------
    finish_ns
        float64[P]; when each rank's CPU was done.
    noise_ns
        float64[P]; by how much noise lengthened what the CPU did.
    messages
        How many were exchanged.
    ties
        1 if a history of all events was recorded, to order those that happen in the same moment.
    """

    pattern: str
    finish_ns: np.ndarray
    noise_ns: np.ndarray
    messages: int
    ties: int
    network: LogGOPS
    noise: Noise | None = None

    @property
    def ranks(self) -> int:
        """Number of ranks, P."""
        return len(self.finish_ns)

    def __repr__(self) -> str:
        return (
            f"Evaluation({self.pattern} on {self.ranks} ranks: {self.makespan_ns:.0f} ns,"
            f" {self.messages} messages, noise {self.noise_ns.mean():.0f} ns a rank)"
        )

    @property
    def makespan_ns(self) -> float:
        """When the last rank was done."""
        return float(self.finish_ns.max())


@dataclass(frozen=True)
class _Shape:
    """A pattern with its numbers, as struct nb_implicit wants them: a step and a size a round."""

    pattern: int
    order: int = BLOCKING
    step: Sequence[int] = (0,)
    sizes: Sequence[int] = (0,)
    dims: Sequence[int] = (1, 1, 1)
    parts: int = 0
    total: int = 0
    first: int = 0


def evaluate(
    pattern: str,
    ranks: int,
    network: LogGOPS = LogGOPS(),
    noise: Noise | None = None,
    *,
    bytes: int | Sequence[int] = 1,
    repetitions: int = 1,
    compute_ns: int | np.ndarray | None = None,
    root: int = 0,
    rotate_root: bool = False,
    radix: int = 2,
    shape: Sequence[int] | None = None,
    periodic: bool = True,
    threads: int = 1,
) -> Evaluation:
    """Simulate a regular pattern, or a loop of them with computation between, without its messages
    ever lying in memory together.

    The result is that of `simulate(patterns.PATTERN(...))` in the mode `exact`; with repetitions
    that of `patterns.repeat` (without `compute_ns`), `patterns.loop` (with it) and
    `patterns.rotate_root`. See the notes for the one exception.

    Parameters
    ----------
    pattern
        a name of `PATTERNS`, which are those of the functions in `patterns`.
    ranks
        P; for "halo" the product of `shape`.
    network
        L, o, g, G, O, S; o + L must be above 0.
    noise
        On these ranks, or None.
    bytes
        As of the function in `patterns` ("halo": one number, or one an axis).
    repetitions
        How often, one after the other; a rank begins the next when its own part of the last is
        done.
    compute_ns
        Calculation of each rank before each repetition, whole ns: a number, int[P], or
        int[repetitions, P]. None: none before the first.
    root, rotate_root
        Of patterns with a root; rotating, repetition i has the root i.
    radix
        Of the k-nomial trees.
    shape, periodic
        Of "halo": ranks along each of one to three axes, and whether the grid closes upon itself.
    threads
        1 or 2, the results are the same. Two share windows of time on 32,768 ranks and more.

    Returns
    -------
    Evaluation
        When each rank ended, ns, and by how much noise lengthened what its CPU did.

    Raises
    ------
    InputError
        a number that makes no sense, messages above S (a rendezvous reaches back in time; the
        engine can do it), o + L of 0.

    Notes
    -----
    A window of o + L is evaluated at a time, rank after rank: no message can arrive within the
    window in which it is sent. Without noise, or with little or co-scheduled noise, exchanges round
    the ring (dissemination, rings, Bruck) take two passes over the ranks a round, if no message
    comes before its receiver's own send: by one thread.

    Times are whole picoseconds, as in the engine. Where several events of a rank fall on the same
    picosecond, their order follows from what came before them. At first each event carries a 32-bit
    hash of its past. If two hashes differ where the order matters, all is evaluated again with a
    history of all events, which orders them as the engine does (`ties` is 1). Two events with
    different pasts and equal hashes (by chance one such pair in 2^32) are not noticed: their order,
    and the ends of ranks after them, may then differ from the engine's.

    Examples
    --------
    >>> evaluate("dissemination", 1024).makespan_ns / 1000
    55.0
    """
    _check_whole(pattern, ranks=ranks, repetitions=repetitions, radix=radix, root=root)
    check_threads(threads)
    _check_options(pattern, ranks, bool(root or rotate_root), radix, shape)
    sizes = _sizes(bytes, len(shape) if shape else 1)
    made = _PATTERNS[pattern](int(ranks), sizes, tuple(shape or ()))
    _check_possible(pattern, made, ranks, repetitions, network, noise)
    numbers = _expected(noise, network, len(made.step) * int(repetitions)) | {
        "ranks": int(ranks),
        "repetitions": int(repetitions),
        "root": int(root),
        "rotate": bool(rotate_root),
        "radix": int(radix),
        "periodic": bool(periodic),
        "threads": int(threads),
    }
    compute = _compute(compute_ns, int(ranks), int(repetitions))
    finish, lost, job = _run(made, numbers, compute, network, noise)
    unit = UNIT_NS["exact"]
    noise_ns = np.zeros(int(ranks)) if lost is None else lost * unit
    return Evaluation(
        pattern, finish * unit, noise_ns, int(job.messages), int(job.ties), network, noise
    )


def _check_possible(
    pattern: str,
    made: _Shape,
    ranks: int,
    repetitions: int,
    network: LogGOPS,
    noise: Noise | None,
) -> None:
    """What the evaluation cannot do, though each argument makes sense."""
    if max(made.sizes, default=0) > network.S and ranks > 1:
        raise InputError(
            f"messages of {max(made.sizes)} bytes are above S = {network.S}",
            why="a rendezvous reaches back to the sender at once",
            fix="let the engine do it, or send eagerly: network.with_(S=2**40)",
        )
    if max(made.sizes, default=0) * max(network.G, network.O) >= LONGEST_NS and ranks > 1:
        raise InputError(
            f"a message of {max(made.sizes)} bytes is too long for 64-bit times",
            why="picoseconds are counted up to 53 days",
            fix="G and O are ns a byte",
        )
    if network.picoseconds()[0] + network.picoseconds()[1] <= 0 and ranks > 1:
        raise InputError(
            "o + L is 0: a message arrives in the moment it is sent",
            why="then no rank can be evaluated before the others",
            fix="let the engine do it",
        )
    if len(made.step) * int(repetitions) >= 2**32 - 2:
        raise InputError(
            f"{repetitions} repetitions of '{pattern}' on {ranks} ranks",
            why="rounds are counted in 32 bits",
        )
    if noise is not None and noise.ranks != ranks:
        raise InputError(f"noise on {noise.ranks} ranks for a pattern on {ranks}")


def _expected(noise: Noise | None, network: LogGOPS, rounds: int) -> dict[str, bool]:
    """By the detours that begin on a rank while it goes through its rounds undisturbed, about: what
    is tried first. The result is the same.
    """
    if noise is None:
        return {"with_history": False, "by_rounds": False}
    a_ns = [len(trace) / trace.period_ns for trace in noise.traces]
    met = rounds * (2 * network.o + network.L) * sum(a_ns) / len(a_ns)
    return {
        "with_history": met > HISTORY_ABOVE,
        "by_rounds": noise.cosched or met * noise.ranks < BY_ROUNDS_BELOW,
    }


def _run(
    made: _Shape,
    numbers: dict[str, Any],
    compute: np.ndarray | None,
    network: LogGOPS,
    noise: Noise | None,
) -> tuple[np.ndarray, np.ndarray | None, Any]:
    from ._simulator import ffi, lib

    ranks = numbers["ranks"]
    arrays: dict[str, np.ndarray] = {
        "step": np.array(made.step, np.uint32),
        "bytes": np.array(made.sizes, np.int64),
        "finish": np.empty(ranks, np.uint64),
    }
    if noise is not None:
        arrays["noise"] = np.empty(ranks, np.uint64)
    if compute is not None:
        arrays["compute_ns"] = compute
        numbers["compute_ranks"] = int(compute.shape[1] > 1)
        numbers["compute_repetitions"] = compute.shape[1] if compute.shape[0] > 1 else 0
    fields = numbers | {
        "pattern": made.pattern,
        "order": made.order,
        "rounds": len(made.step),
        "dims": list(made.dims),
        "parts": made.parts,
        "total": made.total,
        "first": made.first,
    }
    for name, array in arrays.items():
        fields[name] = ffi.from_buffer(f"{array.dtype}_t[]", array)
    job = ffi.new("struct nb_implicit *", fields)
    net, struck = bind_network(network, "exact"), bind_noise(noise, "exact")
    stop = lib.nb_implicit_evaluate(job, net, struck)
    _raise_for(stop, lib, ranks, f"{made} with {numbers}")
    return arrays["finish"], arrays.get("noise"), job


def _raise_for(stop: int, lib: Any, ranks: int, what: str) -> None:
    """The error for a result of nb_implicit_evaluate; none for 0."""
    if stop == lib.NB_IMPLICIT_MEMORY:
        raise MemoryError(
            f"the messages on their way between {ranks} ranks did not fit into memory"
        )
    if stop == lib.NB_IMPLICIT_TIME:
        raise InputError(
            "simulated time has left 64 bits", why="picoseconds are counted up to 53 days"
        )
    if stop:
        raise RuntimeError(f"{what} did not come to its end; please report it")


# --- the patterns: what is in a round -------------------------------------------------------------


def _shifts(ranks: int, hops: Sequence[int], sizes: Sequence[int], order: int) -> _Shape:
    return _Shape(SHIFT, order, [hop % ranks for hop in hops] or [0], list(sizes) or [0])


def _hops(ranks: int) -> list[int]:
    return [1 << r for r in range(rounds_of(ranks))]


def _dissemination(order: int, size: int | None = None) -> Callable[..., _Shape]:
    return lambda ranks, sizes, _: _shifts(
        ranks, _hops(ranks), [sizes[0] if size is None else size] * rounds_of(ranks), order
    )


def _ring(rounds: int, first: int) -> Callable[..., _Shape]:
    """`rounds` times round the ring but one step, with a share of the bytes in each message."""

    def made(ranks: int, sizes: Sequence[int], _: tuple) -> _Shape:
        count = rounds * (ranks - 1)
        shape = _shifts(ranks, [1] * count, [-(-sizes[0] // ranks)] * count, FREELY)
        return (
            shape
            if sizes[0] % ranks == 0
            else _Shape(
                SHIFT, FREELY, shape.step, shape.sizes, parts=ranks, total=sizes[0], first=first
            )
        )

    return made


def _bruck_alltoall(ranks: int, sizes: Sequence[int], _: tuple) -> _Shape:
    blocks = [int(np.count_nonzero(np.arange(ranks) & hop)) for hop in _hops(ranks)]
    return _shifts(ranks, _hops(ranks), [count * sizes[0] for count in blocks], ORDERED)


def _pairwise(ranks: int, sizes: Sequence[int], _: tuple) -> _Shape:
    steps = list(range(1, ranks)) or [0]
    return _Shape(
        XOR if ranks & (ranks - 1) == 0 else SHIFT, BLOCKING, steps, [sizes[0]] * len(steps)
    )


def _with_guests(
    ranks: int, masks: Sequence[int], sizes: Sequence[int], size: int, **chunks: Any
) -> _Shape:
    guests = ranks & (ranks - 1) != 0
    edge, at_edge = ([0], [size]) if guests else ([], [])
    return _Shape(
        XOR, ORDERED, [*edge, *masks, *edge] or [0], [*at_edge, *sizes, *at_edge] or [0], **chunks
    )


def _recursive_doubling(ranks: int, sizes: Sequence[int], _: tuple) -> _Shape:
    masks = [1 << k for k in range(ranks.bit_length() - 1)]
    return _with_guests(ranks, masks, [sizes[0]] * len(masks), sizes[0])


def _rabenseifner(ranks: int, sizes: Sequence[int], _: tuple) -> _Shape:
    masks = [1 << k for k in range(ranks.bit_length() - 1)]
    core = 1 << len(masks)
    halves = [-(-sizes[0] // core) * (core >> (k + 1)) for k in range(len(masks))]
    uneven = {} if sizes[0] % core == 0 else {"parts": core, "total": sizes[0]}
    return _with_guests(ranks, masks + masks[::-1], halves + halves[::-1], sizes[0], **uneven)


def _plain(pattern: int, rounds: int = 1) -> Callable[..., _Shape]:
    return lambda ranks, sizes, _: _Shape(pattern, BLOCKING, [0] * rounds, [sizes[0]] * rounds)


def _halo(_: int, sizes: Sequence[int], shape: tuple) -> _Shape:
    return _Shape(HALO, BLOCKING, [0], [*sizes, 0, 0][:3], [*shape, 1, 1][:3])


_PATTERNS = {
    "dissemination": _dissemination(FREELY),
    "barrier": _dissemination(ORDERED, 1),
    "ring_allreduce": _ring(2, 0),
    "ring_reduce_scatter": _ring(1, -1),
    "ring_allgather": lambda ranks, sizes, _: _shifts(
        ranks, [1] * (ranks - 1), [sizes[0]] * (ranks - 1), FREELY
    ),
    "bruck_allgather": lambda ranks, sizes, _: _shifts(
        ranks,
        [-hop for hop in _hops(ranks)],
        [min(hop, ranks - hop) * sizes[0] for hop in _hops(ranks)],
        ORDERED,
    ),
    "bruck_alltoall": _bruck_alltoall,
    "pairwise_alltoall": _pairwise,
    "linear_alltoall": _plain(ALLTOALL),
    "recursive_doubling_allreduce": _recursive_doubling,
    "rabenseifner_allreduce": _rabenseifner,
    "binomial_bcast": _plain(BCAST, 2),
    "knomial_bcast": _plain(BCAST, 2),
    "binomial_reduce": _plain(REDUCE, 2),
    "knomial_reduce": _plain(REDUCE, 2),
    "scatter": _plain(SCATTER),
    "gather": _plain(GATHER),
    "halo": _halo,
}
_ROOTED = (
    "binomial_bcast",
    "knomial_bcast",
    "binomial_reduce",
    "knomial_reduce",
    "scatter",
    "gather",
)
PATTERNS = tuple(_PATTERNS)


# --- from what a caller says to numbers that fit --------------------------------------------------


_LIMITS = {
    "ranks": (1, 2**30),
    "repetitions": (1, 2**31 - 1),
    "radix": (2, 2**16),
    "root": (0, 2**30),
}


def _check_whole(pattern: str, **values: int) -> None:
    """The pattern exists, and its numbers are whole and in their limits."""
    if pattern not in _PATTERNS:
        raise InputError(
            f"there is no implicit pattern '{pattern}'",
            fix="one of: "
            + ", ".join(PATTERNS)
            + "; or let the engine do it: simulate(patterns....)",
        )
    for name, value in values.items():
        low, high = _LIMITS[name]
        high = values["ranks"] - 1 if name == "root" else high
        if isinstance(value, bool) or int(value) != value or not low <= value <= high:
            raise InputError(
                f"{name} = {value!r}",
                where=pattern,
                why=f"it must be a whole number from {low} to {high}",
            )


def _check_options(
    pattern: str, ranks: int, rooted: bool, radix: int, shape: Sequence[int] | None
) -> None:
    """Options that the pattern does not have, or lacks."""
    if rooted and pattern not in _ROOTED:
        raise InputError(f"'{pattern}' has no root", fix="one of: " + ", ".join(_ROOTED))
    if radix != 2 and not pattern.startswith("knomial"):
        raise InputError(f"'{pattern}' has no radix", fix="knomial_bcast or knomial_reduce")
    if (pattern == "halo") != (shape is not None):
        raise InputError(
            (
                "a halo needs the shape of its grid"
                if pattern == "halo"
                else f"'{pattern}' has no shape"
            ),
            fix="shape=(nx, ny, nz)",
        )
    if shape is not None and (
        not 1 <= len(shape) <= 3 or min(shape) < 1 or int(np.prod(shape)) != ranks
    ):
        raise InputError(
            f"the shape {tuple(shape)} is not one of {ranks} ranks",
            fix="one to three numbers with that product",
        )


def _sizes(bytes: int | Sequence[int], axes: int) -> list[int]:
    sizes = np.broadcast_to(np.asarray(bytes), (axes,))
    if sizes.dtype.kind not in "iu" or (sizes < 0).any() or (sizes >= 2**40).any():
        raise InputError(
            f"messages of {bytes} bytes", why="a size is a whole number from 0 to 2^40"
        )
    return sizes.tolist()


def _compute(
    compute_ns: int | np.ndarray | None, ranks: int, repetitions: int
) -> np.ndarray | None:
    """[1 or repetitions, 1 or P] in whole ns, or None."""
    if compute_ns is None:
        return None
    grain = np.asarray(compute_ns)
    if grain.shape not in ((), (ranks,), (repetitions, ranks)):
        raise InputError(
            f"compute_ns of shape {grain.shape}",
            fix=f"one number, ({ranks},) or ({repetitions}, {ranks})",
        )
    if (
        grain.dtype.kind not in "iuf"
        or not np.isfinite(grain).all()
        or (grain < 0).any()
        or (grain > 1e15).any()
        or (grain != np.rint(grain)).any()
    ):
        raise InputError(
            "compute_ns must be whole ns, 0 or more, at most 11 days",
            fix="round it: np.rint(compute_ns)",
        )
    return np.ascontiguousarray(np.atleast_2d(grain), np.int64)
