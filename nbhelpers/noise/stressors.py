"""Noise that does more than occupy a CPU, as events like those of a trace: memory, caches, files,
network, interrupts.

Owns the building of such events: when, how long, how much, on which CPUs, alone or together with
other noise. What each kind is and which generator of HPAS it covers is in `_vocabulary.py`, how it
is made in injector_c/kinds*.c.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ._signature_checks import cpu_numbers
from ._tables import made_events
from ._vocabulary import LARGEST_NS, POLICIES, STRESSOR_KINDS, STRESSORS
from .signature import signature_noise

STEPS = 20  # of a ramp
SHORTEST_STEP_S = 0.005


def stressor_table() -> pd.DataFrame:
    """List the kinds of noise that do more than occupy a CPU.

    Returns
    -------
    One row a kind: `kind`, `unit` (of its intensity, and of what is achieved), `does`, `hpas` (the
    generator of HPAS that it covers; empty: HPAS has none), `needs`.

    Notes
    -----
    HPAS: Ates et al., HPAS: An HPC performance anomaly suite for reproducing performance
    variations, ICPP 2019. Its eight generators run for whole seconds at a requested pace;
    here every event has a start and a duration in ns and its achieved intensity in the log.
    """
    rows = [
        {
            "kind": kind,
            "unit": stressor.unit,
            "does": stressor.does,
            "hpas": stressor.hpas,
            "needs": stressor.needs,
        }
        for kind, stressor in STRESSORS.items()
    ]
    return pd.DataFrame(rows)


def stressor_noise(
    kind: str,
    intensity: float,
    seconds: float,
    cpus: Sequence[int],
    *,
    start_s: float = 0.0,
    duration_s: float | None = None,
    ramp_s: float = 0.0,
    policy: str = "SCHED_OTHER",
    priority: int = 0,
) -> pd.DataFrame:
    """Make noise of one kind on each CPU, from a start on and for a time, as HPAS does.

    Parameters
    ----------
    kind
        A name of `stressor_table`.
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
    ramp_s
        The intensity rises to its value for so long, in steps. Not for memory_hold: memory_leak is
        its ramp.
    policy, priority
        Of the process that makes the noise. It is an ordinary one: while it works it shares its CPU
        with whoever runs there, as any daemon does, so that noise of 1 GB/s also costs CPU time
        (`cpu_time_ns` in the log). With SCHED_FIFO it takes the CPU whenever it has something to
        do.

    Returns
    -------
    Noise events, run 0, with the column `intensity`; `attrs["seconds"]` is the window.

    Raises
    ------
    InputError
        An unknown kind, an intensity that is none, times that don't fit in the window.

    Examples
    --------
    >>> from nbhelpers.noise import stressor_noise
    >>> noise = stressor_noise(
    ...     "memory_read", 2e9, seconds=1.0, cpus=[0], start_s=0.2, duration_s=0.5
    ... )
    >>> noise[["start_ns", "duration_ns", "intensity"]].values.tolist()
    [[200000000.0, 500000000.0, 2000000000.0]]
    """
    _check(kind, intensity, policy, priority)
    start_ns, end_ns, window_ns = _times(seconds, start_s, duration_s)
    starts, shares = _ramp(kind, start_ns, end_ns, ramp_s)
    ends = np.append(starts[1:], end_ns)
    parts = [
        pd.DataFrame(
            {
                "cpu": np.int64(cpu),
                "start_ns": starts,
                "duration_ns": ends - starts,
                "end_ns": ends,
                "intensity": shares * float(intensity),
            }
        )
        for cpu in cpu_numbers(cpus)
    ]
    return _events(
        pd.concat(parts, ignore_index=True), kind, intensity, policy, priority, window_ns / 1e9
    )


def stressor_pattern(
    kind: str, intensity: float, *, policy: str = "SCHED_OTHER", priority: int = 0, **pattern: Any
) -> pd.DataFrame:
    """Make noise of one kind that comes and goes with a frequency, as `signature_noise` does.

    Parameters
    ----------
    kind
        As of `stressor_noise`.
    intensity
        As of `stressor_noise`.
    policy
        As of `stressor_noise`.
    priority
        As of `stressor_noise`.
    pattern
        Of `signature_noise`: frequency_hz, duration_us, seconds, cpus, distribution, phase, seed,
        ….

    Examples
    --------
    >>> from nbhelpers.noise.stressors import stressor_pattern
    >>> noise = stressor_pattern(
    ...     "ipi",
    ...     10_000,
    ...     frequency_hz=10,
    ...     duration_us=5000,
    ...     seconds=1.0,
    ...     cpus=[0, 1],
    ...     phase="random",
    ... )
    >>> len(noise), set(noise["kind"])
    (20, {'ipi'})
    """
    _check(kind, intensity, policy, priority)
    times = signature_noise(**pattern)
    return _events(
        times[["cpu", "start_ns", "duration_ns", "end_ns"]].assign(intensity=float(intensity)),
        kind,
        intensity,
        policy,
        priority,
        times.attrs["seconds"],
    )


def combined_noise(*parts: pd.DataFrame) -> pd.DataFrame:
    """Put several tables of noise events on one time line, sorted by CPU and start.

    The window is the longest one of them.

    Events of one kind that overlap on a CPU are refused when a config is made of them; different
    kinds may overlap, and each is then made by a separate process.

    Raises
    ------
    InputError
        No table, or tables of different runs.
    """
    if not parts or len({run for part in parts for run in part["run"].unique()}) > 1:
        raise InputError(
            f"{len(parts)} tables of noise cannot be combined",
            why="one replay is one run",
            fix="pass one table or more, all of one run: events.assign(run=0)",
        )
    events = pd.concat(
        [part.assign(kind=part["kind"].astype(str)) for part in parts], ignore_index=True
    )
    events = events.sort_values(["cpu", "start_ns"], kind="stable", ignore_index=True)
    windows = [part.attrs["seconds"] for part in parts if "seconds" in part.attrs]
    events.attrs = {
        "clock": "none",
        "tracer": "combined",
        "lost": 0,
        **({"seconds": max(windows)} if windows else {}),
    }
    return events


def _events(
    times: pd.DataFrame, kind: str, intensity: float, policy: str, priority: int, seconds: float
) -> pd.DataFrame:
    source = f"{kind} {intensity:g} {STRESSORS[kind].unit}"
    what = {"kind": kind, "source": source, "policy": policy, "priority": priority}
    return made_events(times, "stressor", float(seconds), with_intensity=True, **what)


def _check(kind: str, intensity: float, policy: str, priority: int) -> None:
    if kind not in STRESSORS:
        raise InputError(
            f"unknown kind {kind!r}",
            fix=f"kind is one of {', '.join(STRESSOR_KINDS)}; see stressor_table()",
        )
    most = 1.0 if kind == "duty" else np.inf
    if not isinstance(intensity, (int, float, np.number)) or not (
        np.isfinite(intensity) and 0 < intensity <= most
    ):
        raise InputError(
            f"the intensity of {kind} noise is {intensity!r}",
            where="intensity",
            fix=(
                "a share, more than 0, at most 1"
                if kind == "duty"
                else f"a positive number of {STRESSORS[kind].unit}"
            ),
        )
    lowest, highest = POLICIES.get(policy, (1, 0))
    if not lowest <= priority <= highest:
        raise InputError(
            f"policy {policy!r} with priority {priority}",
            fix=(
                f"known policies: {', '.join(POLICIES)}; 1 … 99 for SCHED_FIFO and "
                "SCHED_RR, −20 … 19 for the others"
            ),
        )


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


def _ramp(kind: str, start_ns: int, end_ns: int, ramp_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Starts of the steps, and the share of the intensity that each has: its mean over the step."""
    if ramp_s and STRESSORS[kind].unit == "bytes":
        raise InputError(
            f"{kind} noise has no ramp",
            why="each step would free what the one before had taken",
            fix="memory_leak grows slowly",
        )
    if not 0 <= ramp_s <= (end_ns - start_ns) / 1e9:
        raise InputError(
            f"a ramp of {ramp_s} s",
            where="ramp_s",
            fix=f"0 to {(end_ns - start_ns) / 1e9:g} s, the length of the noise",
        )
    length_ns = round(ramp_s * 1e9)
    steps = max(min(STEPS, int(ramp_s / SHORTEST_STEP_S)), 1) if length_ns else 0
    edges = start_ns + np.round(np.arange(steps + 1) * (length_ns / max(steps, 1))).astype(np.int64)
    shares = np.append((np.arange(steps) + 0.5) / max(steps, 1), 1.0)
    inside = edges < end_ns
    return edges[inside], shares[inside]
