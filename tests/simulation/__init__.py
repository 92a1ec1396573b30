"""The simulator against the reference's recorded results, slow models and closed forms."""

import numpy as np

from nbhelpers.simulation import Detours


def trace_of(start_ns, duration_ns, period_ns: float = 10**9) -> Detours:
    """A trace of detours from plain lists."""
    return Detours(np.array(start_ns, float), np.array(duration_ns, float), period_ns)
