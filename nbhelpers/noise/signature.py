"""Artificial noise of a given frequency and duration.

Owns the noise signatures of Ferreira, Bridges and Brightwell (SC 2008), as events like those of a
trace.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd

from ..errors import InputError
from ._merge import completion
from ._vocabulary import INJECTED_AS, INTERRUPT_KINDS, KINDS, POLICIES, REAL_TIME

DISTRIBUTIONS = ("periodic", "poisson", "ferreira")
DURATIONS = ("fixed", "exponential", "ferreira")
PHASES = ("aligned", "random")
LARGEST_COUNT = 10**8

# The paper's three that take 2.5 % of a CPU (section 5.2, figure 2): a loaded timer interrupt, a
# daemon, and between the two.
SIGNATURES: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "timer": MappingProxyType({"frequency_hz": 1000.0, "duration_us": 25.0}),
        "between": MappingProxyType({"frequency_hz": 100.0, "duration_us": 250.0}),
        "daemon": MappingProxyType({"frequency_hz": 10.0, "duration_us": 2500.0}),
    }
)


def signature_noise(
    frequency_hz: float | None = None,
    duration_us: float | None = None,
    seconds: float | None = None,
    cpus: Sequence[int] = (),
    kind: str = "thread",
    policy: str | None = None,
    priority: int | None = None,
    distribution: str = "periodic",
    phase: str | Mapping[int, float] = "aligned",
    seed: int = 0,
    *,
    share: float | None = None,
    durations: str = "fixed",
    coscheduled: bool | None = None,
) -> pd.DataFrame:
    """Noise events of one frequency and duration on each CPU: a share frequency × duration of its
    time.

    Parameters
    ----------
    frequency_hz, duration_us, share
        Two of the three: (mean) events a second on each CPU, (mean) length of one, and the share of
        the CPU's time that they take, between 0 and 1.
    seconds
        Length of the window; an event that reaches beyond it is shortened.
    cpus
        CPU numbers.
    kind
        Nmi, irq, softirq, thread or hardware. All but thread are injected with a real-time policy.
    policy, priority
        None = as `NoiseConfig` injects the kind (thread: SCHED_OTHER 0, irq: SCHED_FIFO 50).
    distribution
        Of the starts. "periodic": equally spaced; "poisson": a Poisson process (exponentially
        distributed intervals); "ferreira": the intervals are a Poisson-distributed number of µs, as
        the paper words it, so nearly periodic. An event that falls into the one before begins when
        that is over.
    durations
        "fixed"; "exponential": of that mean; "ferreira": a Poisson-distributed number of µs of that
        mean.
    phase
        "aligned": periodic CPUs are struck for the first time half a period after the start;
        "random": each CPU somewhere within the first period; or {CPU: µs}: then. A Poisson process
        has no first period: it is shifted by so much, in a ring.
    coscheduled
        Whether all CPUs share one draw of intervals and durations, so that with "aligned" they are
        struck at the same moments; None: unless the phase is "random".
    seed
        Of the random numbers; CPU by CPU, so that a CPU's noise doesn't depend on what other CPUs
        there are.

    Returns
    -------
    Noise events (columns as in data/README.md), run 0, sorted by CPU and start; `attrs["seconds"]`
    is the window.

    Raises
    ------
    InputError
        a number that is not positive, a share of 1 or more, not two of the three, an unknown word,
        a CPU without a phase.

    Notes
    -----
    Ferreira, Bridges, Brightwell: Characterizing application sensitivity to OS interference using
    kernel-level noise injection, SC 2008, section 3. Randomised parameters are there "the
    arithmetic mean of a Poisson-distributed random variable"; the unit, which decides how much it
    varies, isn't told: here it is the µs of the paper's figures. `SIGNATURES` has its three of 2.5
    %.

    Examples
    --------
    >>> noise = signature_noise(10, 2500, seconds=1.0, cpus=[0])
    >>> noise["start_ns"].tolist()[:2], float(noise["duration_ns"].sum() / 1e9)
    ([50000000, 150000000], 0.025)
    >>> signature_noise(100, share=0.025, seconds=1.0, cpus=[0])["duration_ns"].unique().tolist()
    [250000]
    >>> len(signature_noise(**SIGNATURES["timer"], seconds=1.0, cpus=[0, 1]))
    2000
    """
    _check_words(kind, distribution, durations, phase)
    frequency_hz, duration_us = _two_of_three(frequency_hz, duration_us, share)
    numbers = _cpu_numbers(cpus)
    _check_window(frequency_hz, seconds, len(numbers))
    policy, priority = _policy(kind, policy, priority)
    window_ns = round(seconds * 1e9)
    draw = _Draw(
        1e9 / frequency_hz,
        duration_us * 1e3,
        window_ns,
        distribution,
        durations,
        phase,
        seed,
        phase != "random" if coscheduled is None else bool(coscheduled),
    )
    events = pd.concat(
        [_table(cpu, *draw.events(cpu), window_ns) for cpu in numbers], ignore_index=True
    )
    events = events.assign(
        run=0,
        kind=kind,
        source=f"{frequency_hz:g} Hz x {duration_us:g} us",
        policy=policy,
        priority=priority,
        pid=0,
        interrupted="workload",
    )
    events = events[
        [
            "run",
            "cpu",
            "kind",
            "source",
            "start_ns",
            "duration_ns",
            "end_ns",
            "policy",
            "priority",
            "pid",
            "interrupted",
        ]
    ]
    events.attrs = {"clock": "none", "tracer": "signature", "lost": 0, "seconds": float(seconds)}
    return events


def _check_words(kind: str, distribution: str, durations: str, phase: object) -> None:
    words = [
        ("kind", kind, KINDS),
        ("distribution", distribution, DISTRIBUTIONS),
        ("durations", durations, DURATIONS),
    ]
    for name, word, known in words + (
        [] if isinstance(phase, Mapping) else [("phase", phase, PHASES)]
    ):
        if word not in known:
            raise InputError(f"unknown {name} {word!r}", fix=f"{name} is one of {', '.join(known)}")


def _two_of_three(
    frequency_hz: float | None, duration_us: float | None, share: float | None
) -> tuple[float, float]:
    """Frequency and duration."""
    given = {
        name: value
        for name, value in (
            ("frequency_hz", frequency_hz),
            ("duration_us", duration_us),
            ("share", share),
        )
        if value is not None
    }
    if len(given) != 2:
        raise InputError(
            f"{len(given)} of frequency, duration and share are given",
            where=", ".join(given) or "arguments",
            fix="give two of frequency_hz, duration_us and share: the third follows",
        )
    for name, value in given.items():
        _check_positive(name, value)
    if share is not None and share < 1:
        frequency_hz, duration_us = (
            frequency_hz or share * 1e6 / duration_us,
            duration_us or share * 1e6 / frequency_hz,
        )
    share = frequency_hz * duration_us / 1e6 if share is None else share
    if share >= 1:
        raise InputError(
            f"the noise would take {share:.0%} of each CPU",
            where="frequency_hz × duration_us",
            why="nothing would be left for the workload",
            fix="choose a product below 1 000 000, a share below 1",
        )
    return frequency_hz, duration_us


def _check_positive(name: str, value: object) -> None:
    if (
        value is None or not 1e-9 <= value <= 1e12
    ):  # false for NaN; beyond, periods and lengths overflow
        raise InputError(
            f"{name} is {value}", fix=f"{name} must be a positive number, 1e-9 to 1e12"
        )


def _check_window(frequency_hz: float, seconds: float | None, cpus: int) -> None:
    _check_positive("seconds", seconds)
    if frequency_hz * seconds * cpus > LARGEST_COUNT:
        raise InputError(
            f"{frequency_hz * seconds * cpus:.2g} events",
            where="frequency_hz × seconds × CPUs",
            why=f"more than {LARGEST_COUNT:.0e} don't fit in memory",
            fix="choose a lower frequency or a shorter window",
        )


def _cpu_numbers(cpus: Sequence[int]) -> list[int]:
    numbers = sorted(cpus) if not isinstance(cpus, (int, str)) else []
    if (
        not numbers
        or any(int(cpu) != cpu or cpu < 0 for cpu in numbers)
        or len(set(numbers)) < len(numbers)
    ):
        raise InputError(
            f"cpus is {cpus!r}", fix="cpus is a list of different CPU numbers, for instance [0, 1]"
        )
    return [int(cpu) for cpu in numbers]


def _policy(kind: str, policy: str | None, priority: int | None) -> tuple[str, int]:
    if policy is None:
        policy, usual = INJECTED_AS[kind]
    else:
        usual = (
            INJECTED_AS[kind][1]
            if policy in REAL_TIME and kind in INTERRUPT_KINDS
            else 1
            if policy in REAL_TIME
            else 0
        )
    if policy not in POLICIES or (kind in INTERRUPT_KINDS and policy not in REAL_TIME):
        raise InputError(
            f"policy {policy!r} does not go with {kind} noise",
            fix=f"known: {', '.join(POLICIES)}; for all kinds but thread {' or '.join(REAL_TIME)}",
        )
    priority = usual if priority is None else priority
    lowest, highest = POLICIES[policy]
    if not lowest <= priority <= highest:
        raise InputError(
            f"priority {priority} is none of {policy}'s", fix=f"{policy} has {lowest} … {highest}"
        )
    return policy, priority


class _Draw:
    """Starts and durations of a signature, CPU by CPU. Intervals, shifts and durations are streams
    of random numbers of their own.
    """

    def __init__(
        self,
        period_ns: float,
        duration_ns: float,
        window_ns: int,
        distribution: str,
        durations: str,
        phase: str | Mapping[int, float],
        seed: int,
        coscheduled: bool,
    ):
        self.period_ns, self.duration_ns, self.window_ns = period_ns, duration_ns, window_ns
        self.distribution, self.durations, self.phase = distribution, durations, phase
        self.seed, self.coscheduled = seed, coscheduled

    def events(self, cpu: int) -> tuple[np.ndarray, np.ndarray]:
        """Starts in ns, ascending and inside the window, and durations in ns, not yet in a queue."""
        common = 0 if self.coscheduled else cpu
        starts = (
            self._process(common) if self.distribution == "poisson" else self._spaced(common, cpu)
        )
        starts = np.floor(starts[starts < self.window_ns]).astype(np.int64)
        return self._in_ring(cpu, starts, self._durations(common, len(starts)))

    def _random(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *stream])

    def _process(self, common: int) -> np.ndarray:
        random = self._random(common)
        return np.sort(
            random.uniform(0, self.window_ns, random.poisson(self.window_ns / self.period_ns))
        )

    def _spaced(self, common: int, cpu: int) -> np.ndarray:
        """A first strike and intervals after it."""
        if isinstance(self.phase, Mapping):
            first_ns = self._told_ns(cpu)
        else:
            first_ns = (
                self._random(cpu).uniform(0, 1) if self.phase == "random" else 0.5
            ) * self.period_ns
        count = int(self.window_ns / self.period_ns) + 2
        if self.distribution == "periodic":
            return (np.arange(count) + first_ns / self.period_ns) * self.period_ns
        random, steps = self._random(common, 3), np.zeros(1)
        while steps.sum() < self.window_ns:
            steps = np.append(steps, random.poisson(self.period_ns / 1e3, count) * 1e3)
        return first_ns + np.cumsum(steps)

    def _in_ring(
        self, cpu: int, starts: np.ndarray, durations: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A Poisson process that is shared, shifted for this CPU; what leaves the window at its end
        comes in at its beginning.
        """
        if self.distribution != "poisson" or not (
            isinstance(self.phase, Mapping) or (self.phase == "random" and self.coscheduled)
        ):
            return starts, durations
        told = isinstance(self.phase, Mapping)
        shift_ns = self._told_ns(cpu) if told else self._random(cpu, 1).uniform(0, self.window_ns)
        starts = (starts + int(shift_ns)) % self.window_ns
        order = np.argsort(starts, kind="stable")
        return starts[order], durations[order]

    def _told_ns(self, cpu: int) -> float:
        phase_us = self.phase.get(cpu)
        if phase_us is None or not (np.isfinite(phase_us) and phase_us >= 0):
            raise InputError(
                f"CPU {cpu} has {'no phase' if phase_us is None else f'the phase {phase_us}'}",
                where="phase",
                fix="phase is {CPU: µs} for each CPU, 0 or more",
            )
        return phase_us * 1e3

    def _durations(self, common: int, count: int) -> np.ndarray:
        random = self._random(common, 2)
        if self.durations == "exponential":
            lengths = np.maximum(np.round(random.exponential(self.duration_ns, count)), 1)
        elif self.durations == "ferreira":
            lengths = random.poisson(self.duration_ns / 1e3, count) * 1000
        else:
            lengths = np.full(count, max(round(self.duration_ns), 1))
        return lengths.astype(np.int64)


def _table(cpu: int, starts: np.ndarray, durations: np.ndarray, window_ns: int) -> pd.DataFrame:
    ends = completion(starts, durations)
    starts = ends - durations
    inside = (starts < window_ns) & (durations > 0)
    starts, ends = starts[inside], np.minimum(ends[inside], window_ns)
    return pd.DataFrame(
        {"cpu": np.int64(cpu), "start_ns": starts, "duration_ns": ends - starts, "end_ns": ends}
    )
