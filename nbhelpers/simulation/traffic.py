"""Traffic: any messages between any ranks, all at the same time, as a schedule.

Owns what a packet simulator calls a connection matrix: incast, outcast, permutations.
"""

import numpy as np

from ..errors import InputError
from .schedule import RECV, SEND, Schedule


def messages(
    ranks: int,
    source: np.ndarray,
    target: np.ndarray,
    size: np.ndarray | int,
    name: str = "traffic",
    *,
    apart: bool = False,
) -> Schedule:
    """Messages that all begin at time 0, as far as their senders' CPUs allow.

    Parameters
    ----------
    ranks
        P.
    source, target
        int[n]; from which rank to which; a sender's messages go in this order.
    size
        Bytes, int[n] or one number.
    name
        Of the schedule.
    apart
        Each message of a receiver has a CPU and NIC of its own there, at most 256: as with threads
        or streams.

    Returns
    -------
    Schedule
        A send and a receive for each message; nothing depends on anything.

    Raises
    ------
    InputError
        Arrays of different lengths, or ranks that there are not.

    Examples
    --------
    >>> messages(4, [1, 2, 3], [0, 0, 0], 1000, name="incast")
    Schedule(incast: 4 ranks, 6 operations, 3 messages)
    """
    source, target = np.asarray(source, np.int64), np.asarray(target, np.int64)
    if source.shape != target.shape or source.ndim != 1:
        raise InputError(f"{source.shape} sources for {target.shape} targets", where=name)
    both = np.concatenate([source, target])
    if both.min(initial=0) < 0 or both.max(initial=0) >= ranks:
        raise InputError(f"ranks beyond 0 to {ranks - 1}", where=name)
    order = np.argsort(both, kind="stable")
    kind = np.repeat([SEND, RECV], len(source))[order]
    stream = _numbered(target) if apart else np.zeros(len(target), int)
    if stream.max(initial=0) > 255:
        raise InputError(f"{stream.max() + 1} messages to one rank, apart", where=name, fix="≤ 256")
    streams = np.concatenate([np.zeros_like(stream), stream])[order] if apart else 0
    return Schedule.from_arrays(
        np.bincount(both, minlength=ranks),
        kind=kind,
        peer=np.concatenate([target, source])[order],
        size=np.tile(np.broadcast_to(size, source.shape), 2)[order],
        cpu=streams,
        nic=streams,
        name=name,
    )


def _numbered(values: np.ndarray) -> np.ndarray:
    """Which of its kind each value is: 0, 1, …"""
    order = np.argsort(values, kind="stable")
    _, first, count = np.unique(values[order], return_index=True, return_counts=True)
    number = np.empty(len(values), int)
    number[order] = np.arange(len(values)) - np.repeat(first, count)
    return number


def permutation(ranks: int, size: int, seed: int = 0) -> Schedule:
    """Each rank sends to one other, and receives from one other: a random circle of all.

    Parameters
    ----------
    ranks
        P, 2 or more.
    size
        Bytes.
    seed
        Of the circle.
    """
    if ranks < 2:
        raise InputError(f"a permutation of {ranks} ranks", fix="2 or more")
    circle = np.random.default_rng(seed).permutation(ranks)
    return messages(ranks, circle, np.roll(circle, -1), size, name=f"permutation of {ranks}")
