"""Artificial noise of a given frequency and duration.

Owns the noise signatures of Ferreira, Bridges and Brightwell (SC 2008), as events like those of a trace.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..errors import InputError
from ._merge import completion
from ._vocabulary import INJECTED_AS, INTERRUPT_KINDS, KINDS, POLICIES, REAL_TIME

DISTRIBUTIONS = ("periodic", "poisson")
PHASES = ("aligned", "random")


def signature_noise(frequency_hz: float, duration_us: float, seconds: float, cpus: Sequence[int], kind: str = "thread",
                    policy: str | None = None, priority: int | None = None, distribution: str = "periodic",
                    phase: str = "aligned", seed: int = 0) -> pd.DataFrame:
    """Noise events of one frequency and duration on each CPU: a share frequency × duration of its time.

    Parameters
    ----------
    frequency_hz, duration_us : events a second on each CPU, and the length of one.
    seconds : length of the window; an event that reaches beyond it is shortened.
    cpus : CPU numbers.
    kind : nmi, irq, softirq, thread or hardware. All but thread are injected with a real-time policy.
    policy, priority : None = as `NoiseConfig` injects the kind (thread: SCHED_OTHER 0, irq: SCHED_FIFO 50).
    distribution : "periodic": equally spaced; "poisson": a Poisson process, in which an event that falls into the one
        before begins when that is over.
    phase : "aligned": the CPUs are struck at the same moments, the first time half a period after the start; "random": each
        CPU has a phase of its own (periodic) or a process of its own (poisson).
    seed : of the random numbers; CPU by CPU, so that a CPU's noise doesn't depend on what other CPUs there are.

    Returns
    -------
    Noise events (columns as in data/README.md), run 0, sorted by CPU and start; `attrs["seconds"]` is the window.

    Raises
    ------
    InputError : a number that is not positive, a share of 1 or more, an unknown word.

    Notes
    -----
    Ferreira, Bridges, Brightwell: Characterizing application sensitivity to OS interference using kernel-level noise
    injection, SC 2008, section 3. Their 2.5 % signatures: 1000 Hz × 25 µs (a timer), 10 Hz × 2500 µs (a daemon).

    Examples
    --------
    >>> noise = signature_noise(10, 2500, seconds=1.0, cpus=[0])
    >>> noise["start_ns"].tolist()[:2], float(noise["duration_ns"].sum() / 1e9)
    ([50000000, 150000000], 0.025)
    """
    _check_words(kind, distribution, phase)
    _check_numbers(frequency_hz, duration_us, seconds)
    policy, priority = _policy(kind, policy, priority)
    window_ns, duration_ns = round(seconds * 1e9), max(round(duration_us * 1e3), 1)
    drawn = [_starts(frequency_hz, window_ns, distribution, np.random.default_rng([seed, cpu if phase == "random" else 0]),
                     phase) for cpu in _cpu_numbers(cpus)]
    parts = [_table(cpu, starts, duration_ns, window_ns) for cpu, starts in zip(sorted(cpus), drawn)]
    events = pd.concat(parts, ignore_index=True)
    events = events.assign(run=0, kind=kind, source=f"{frequency_hz:g} Hz x {duration_us:g} us", policy=policy,
                           priority=priority, pid=0, interrupted="workload")
    events = events[["run", "cpu", "kind", "source", "start_ns", "duration_ns", "end_ns", "policy", "priority", "pid",
                     "interrupted"]]
    events.attrs = {"clock": "none", "tracer": "signature", "lost": 0, "seconds": float(seconds)}
    return events


def _check_words(kind: str, distribution: str, phase: str) -> None:
    for name, word, known in (("kind", kind, KINDS), ("distribution", distribution, DISTRIBUTIONS), ("phase", phase, PHASES)):
        if word not in known:
            raise InputError(f"unknown {name} {word!r}", mend=f"{name} is one of {', '.join(known)}")


def _check_numbers(frequency_hz: float, duration_us: float, seconds: float) -> None:
    for name, value in (("frequency_hz", frequency_hz), ("duration_us", duration_us), ("seconds", seconds)):
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"{name} is {value}", mend=f"{name} must be a positive number")
    share = frequency_hz * duration_us / 1e6
    if share >= 1:
        raise InputError(f"the noise would take {share:.0%} of each CPU", where="frequency_hz × duration_us",
                         why="nothing would be left for the workload", mend="choose a product below 1 000 000")


def _cpu_numbers(cpus: Sequence[int]) -> list[int]:
    numbers = sorted(cpus) if not isinstance(cpus, (int, str)) else []
    if not numbers or any(int(cpu) != cpu or cpu < 0 for cpu in numbers) or len(set(numbers)) < len(numbers):
        raise InputError(f"cpus is {cpus!r}", mend="cpus is a list of different CPU numbers, for instance [0, 1]")
    return [int(cpu) for cpu in numbers]


def _policy(kind: str, policy: str | None, priority: int | None) -> tuple[str, int]:
    if policy is None:
        policy, usual = INJECTED_AS[kind]
    else:
        usual = INJECTED_AS[kind][1] if policy in REAL_TIME and kind in INTERRUPT_KINDS else 1 if policy in REAL_TIME else 0
    if policy not in POLICIES or (kind in INTERRUPT_KINDS and policy not in REAL_TIME):
        raise InputError(f"policy {policy!r} does not go with {kind} noise", mend=f"known: {', '.join(POLICIES)}; for all kinds "
                         f"but thread {' or '.join(REAL_TIME)}")
    priority = usual if priority is None else priority
    lowest, highest = POLICIES[policy]
    if not lowest <= priority <= highest:
        raise InputError(f"priority {priority} is none of {policy}'s", mend=f"{policy} has {lowest} … {highest}")
    return policy, priority


def _starts(frequency_hz: float, window_ns: int, distribution: str, random: np.random.Generator, phase: str) -> np.ndarray:
    """Starts in ns, ascending, all inside the window."""
    period_ns = 1e9 / frequency_hz
    if distribution == "periodic":
        offset = random.uniform(0, 1) if phase == "random" else 0.5
        starts = (np.arange(int(window_ns / period_ns) + 2) + offset) * period_ns
    else:
        count = random.poisson(window_ns / period_ns)
        starts = np.sort(random.uniform(0, window_ns, count))
    starts = np.floor(starts).astype(np.int64)
    return starts[starts < window_ns]


def _table(cpu: int, starts: np.ndarray, duration_ns: int, window_ns: int) -> pd.DataFrame:
    ends = completion(starts, np.full(len(starts), duration_ns, np.int64))
    starts = ends - duration_ns
    inside = starts < window_ns
    starts, ends = starts[inside], np.minimum(ends[inside], window_ns)
    return pd.DataFrame({"cpu": np.int64(cpu), "start_ns": starts, "duration_ns": ends - starts, "end_ns": ends})
