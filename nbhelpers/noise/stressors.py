"""Noise that does more than occupy a CPU, as events like those of a trace: memory, caches, files,
network, interrupts.

Owns the building of such events: when, how long, how much, on which CPUs. What each kind is stands
in `STRESSORS`, how it is made in injector_c/kinds*.c.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..errors import InputError
from ._signature_checks import cpu_numbers
from ._tables import made_events
from ._vocabulary import LARGEST_NS, STRESSOR_KINDS, STRESSORS


def stressor_noise(
    kind: str,
    intensity: float,
    seconds: float,
    cpus: Sequence[int],
    *,
    start_s: float = 0.0,
    duration_s: float | None = None,
    policy: str = "SCHED_OTHER",
    priority: int = 0,
) -> pd.DataFrame:
    """Make noise of one kind on each CPU, from a start on and for a time.

    Parameters
    ----------
    kind
        A name of `STRESSORS`, such as "timer".
    intensity
        How much, in the unit of the kind, on each CPU. More than the machine can do gives what it
        can: `achieved` in the log.
    seconds
        Length of the window.
    cpus
        The CPUs that suffer. Noise of memory, files and the network comes from there, if the
        placement says so; interrupts go there.
    start_s, duration_s
        When it begins and how long it lasts; None: until the end of the window.
    policy, priority
        Scheduling policy and priority of the process that makes the noise. It is an ordinary one:
        while it works it shares its CPU with whoever runs there, as any daemon does, so that noise
        of 1 GB/s also costs CPU time (`cpu_time_ns` in the log). With SCHED_FIFO it takes the CPU
        whenever it has something to do.

    Returns
    -------
    Noise events, run 0, with the column `intensity`; `attrs["seconds"]` is the window.

    Raises
    ------
    InputError
        An unknown kind, times that don't fit in the window. (What intensities and priorities there
        are `NoiseConfig.from_events` checks.)

    Examples
    --------
    >>> from nbhelpers.noise import stressor_noise
    >>> noise = stressor_noise(
    ...     "memory_stream", 2e9, seconds=1.0, cpus=[0], start_s=0.2, duration_s=0.5
    ... )
    >>> noise[["start_ns", "duration_ns", "intensity"]].values.tolist()
    [[200000000.0, 500000000.0, 2000000000.0]]
    """
    if kind not in STRESSORS:
        raise InputError(
            f"unknown kind {kind!r}", fix=f"kind is one of {', '.join(STRESSOR_KINDS)}"
        )
    start_ns, end_ns, window_ns = _times(seconds, start_s, duration_s)
    times = pd.DataFrame(
        {
            "cpu": np.array(cpu_numbers(cpus), np.int64),
            "start_ns": start_ns,
            "duration_ns": end_ns - start_ns,
            "end_ns": end_ns,
            "intensity": float(intensity),
        }
    )
    source = f"{kind} {intensity:g} {STRESSORS[kind].unit}"
    what = {"kind": kind, "source": source, "policy": policy, "priority": priority}
    return made_events(times, "stressor", window_ns / 1e9, with_intensity=True, **what)


def _times(seconds: float, start_s: float, duration_s: float | None) -> tuple[int, int, int]:
    """Start, end and window in ns."""
    end_s = seconds if duration_s is None else start_s + duration_s
    if not (
        np.isfinite([seconds, start_s, end_s]).all()
        and 0 <= start_s < end_s <= seconds <= LARGEST_NS / 1e9
    ):
        raise InputError(
            f"noise from {start_s} s to {end_s} s in a window of {seconds} s",
            fix="0 ≤ start_s < start_s + duration_s ≤ seconds",
        )
    return round(start_s * 1e9), round(end_s * 1e9), round(seconds * 1e9)
