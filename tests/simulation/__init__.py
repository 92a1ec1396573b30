"""The simulator against the reference's recorded results, slow models and closed forms."""

import numpy as np

from nbhelpers.simulation import Detours


def trace_of(start_ns, duration_ns, period_ns: float = 10**9, sources=()) -> Detours:
    """A trace of detours from plain lists; `sources`: a name for each."""
    numbers = np.arange(len(sources), dtype=np.int32)
    ends = np.array(start_ns, float), np.array(duration_ns, float)
    return Detours(*ends, period_ns, numbers, tuple(sources))
