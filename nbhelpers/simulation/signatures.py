"""A noise signature on simulated ranks.

Owns how `nbhelpers.noise.signature.Signature` becomes traces of detours with a phase of each rank.
"""

from collections.abc import Mapping

import numpy as np

from ..errors import InputError
from ..noise.signature import Signature
from .detours import Detours, periodic
from .noise import Noise

_EVENTS = 10_000  # of a random trace at least, so that its share is right within 1 %
_SECONDS = 10.0


def signature_on_ranks(signature: Signature, ranks: int, seed: int = 0) -> Noise:
    """Put a noise signature on simulated ranks.

    Parameters
    ----------
    signature
        What strikes. "aligned" and co-scheduled: all ranks begin at one place of the trace, which
        the seed draws. A random signature is a trace of 10 s or 10,000 events, whichever is longer,
        that every rank begins at a place of its own.
    ranks
        How many.
    seed
        Seed of the phases; the signature's own seed draws its events.

    Returns
    -------
    Noise of the ranks.

    Raises
    ------
    InputError
        A rank of `signature.ranks` that is not simulated, or a rank without a phase.

    Examples
    --------
    >>> from nbhelpers.noise.signature import Signature
    >>> from nbhelpers.simulation import signature_on_ranks
    >>> signature_on_ranks(Signature(10, ranks=[0, 2]), ranks=4, seed=1)
    Noise(10 Hz x 2500 us on 2 of 4 ranks, seed 1)
    """
    trace = signature_detours(signature)
    phases = None
    if isinstance(signature.phase, Mapping):
        phases = _phases_ns(signature, signature.phase, ranks, trace.period_ns)
    together = signature.simultaneous
    noisy = None if signature.ranks is None else list(signature.ranks)
    return Noise.on_ranks(trace, ranks, seed, together, phases, noisy)


def signature_detours(signature: Signature) -> Detours:
    """What one CPU loses under a signature, and when."""
    if (signature.distribution, signature.durations) == ("periodic", "fixed"):
        return periodic(signature.frequency_hz, signature.duration_us)
    seconds = max(_SECONDS, _EVENTS / signature.frequency_hz)
    first = signature.with_(phase={0: 0.0}, ranks=None)  # begins with an event, as periodic() does
    events = first.events(seconds, [0])
    period_ns = seconds * 1e9
    if signature.distribution != "poisson":  # one mean interval from the last event to the first
        period_ns = float(events["start_ns"].iloc[-1]) + 1e9 / signature.frequency_hz
    return Detours.from_table(events, period_ns, signature.label)


def _phases_ns(
    signature: Signature, phases_us: Mapping[int, float], ranks: int, period_ns: float
) -> np.ndarray:
    """Where in its trace each rank begins, so that the first event comes at the rank's phase."""
    noisy = range(ranks) if signature.ranks is None else signature.ranks
    first_us = np.array([phases_us.get(rank, 0.0) for rank in range(ranks)], float)
    for rank in noisy:
        if not 0 <= phases_us.get(rank, -1.0) < np.inf:
            raise InputError(
                f"the phase of rank {rank} is {phases_us.get(rank)}",
                where="phase",
                fix="phase is {rank: µs} for each rank, 0 or more",
            )
    return -first_us * 1e3 % period_ns
