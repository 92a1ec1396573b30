"""Artificial noise of a given frequency and duration.

Owns the noise signatures of Ferreira, Bridges and Brightwell (SC 2008), as events like those of a
trace.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from ..errors import InputError
from ._merge import completion
from ._tables import made_events
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
    """Make noise events of one frequency and duration on each CPU.

    They take the share frequency × duration of each CPU's time.

    Parameters
    ----------
    frequency_hz
        Events a second on each CPU (mean). Give two of `frequency_hz`, `duration_us`, `share`.
    duration_us
        Length of an event in µs (mean).
    seconds
        Length of the window; an event that reaches beyond it is shortened.
    cpus
        CPU numbers.
    kind
        nmi, irq, softirq, thread or hardware. All but thread are injected with a real-time policy.
    policy
        None: as `NoiseConfig` injects the kind (thread: SCHED_OTHER, irq: SCHED_FIFO).
    priority
        None: as `NoiseConfig` injects the kind (thread: 0, irq: 50).
    distribution
        Of the starts. "periodic": equally spaced. "poisson": a Poisson process (exponentially
        distributed intervals). "ferreira": the intervals are a Poisson-distributed number of µs, as
        the paper words it, so nearly periodic. An event that falls into the one before begins when
        that is over.
    phase
        "aligned": the first event of a periodic CPU comes half a period after the start. "random":
        it comes somewhere within the first period. {CPU: µs}: it comes then. A Poisson process has
        no first period: it is shifted by so much, in a ring.
    seed
        Of the random numbers, CPU by CPU: a CPU's noise does not depend on the other CPUs.
    share
        Share of each CPU's time that the noise takes, between 0 and 1.
    durations
        "fixed". "exponential": of that mean. "ferreira": a Poisson-distributed number of µs.
    coscheduled
        Whether all CPUs share one draw of intervals and durations, so that with "aligned" their
        events coincide. None: unless the phase is "random".

    Returns
    -------
    Noise events (columns as in data/README.md), run 0, sorted by CPU and start; `attrs["seconds"]`
    is the window.

    Raises
    ------
    InputError
        A number that is not positive, a share of 1 or more, not two of the three, an unknown word,
        or a CPU without a phase.

    Notes
    -----
    Ferreira, Bridges, Brightwell: Characterizing application sensitivity to OS interference using
    kernel-level noise injection, SC 2008, section 3. Randomised parameters are there "the
    arithmetic mean of a Poisson-distributed random variable"; the unit, which decides how much it
    varies, is not stated there: here it is the µs of the paper's figures. `SIGNATURES` has its
    three of 2.5 %.

    Examples
    --------
    >>> from nbhelpers import signature_noise
    >>> noise = signature_noise(10, 2500, seconds=1.0, cpus=[0])
    >>> noise["start_ns"].tolist()[:2], float(noise["duration_ns"].sum() / 1e9)
    ([50000000, 150000000], 0.025)
    >>> signature_noise(100, share=0.025, seconds=1.0, cpus=[0])["duration_ns"].unique().tolist()
    [250000]
    >>> from nbhelpers.noise.signature import SIGNATURES
    >>> len(signature_noise(**SIGNATURES["timer"], seconds=1.0, cpus=[0, 1]))
    2000
    """
    _check_words(kind, distribution, durations, phase)
    frequency_hz, duration_us = _two_of_three(frequency_hz, duration_us, share)
    numbers = _cpu_numbers(cpus)
    seconds = _checked_window(frequency_hz, seconds, len(numbers))
    policy, priority = _policy(kind, policy, priority)
    draw = _Draw(
        period_ns=1e9 / frequency_hz,
        duration_ns=duration_us * 1e3,
        window_ns=round(seconds * 1e9),
        distribution=distribution,
        durations=durations,
        phase=phase,
        seed=seed,
        coscheduled=phase != "random" if coscheduled is None else bool(coscheduled),
    )
    return made_events(
        pd.concat([draw.table(cpu) for cpu in numbers], ignore_index=True),
        "signature",
        seconds,
        kind=kind,
        source=f"{frequency_hz:g} Hz x {duration_us:g} us",
        policy=policy,
        priority=priority,
    )


def _check_words(kind: str, distribution: str, durations: str, phase: object) -> None:
    words: dict[str, tuple[object, tuple[str, ...]]] = {
        "kind": (kind, KINDS),
        "distribution": (distribution, DISTRIBUTIONS),
        "durations": (durations, DURATIONS),
    }
    if not isinstance(phase, Mapping):
        words["phase"] = (phase, PHASES)
    for name, (word, known) in words.items():
        if word not in known:
            raise InputError(f"unknown {name} {word!r}", fix=f"{name} is one of {', '.join(known)}")


def _two_of_three(
    frequency_hz: float | None, duration_us: float | None, share: float | None
) -> tuple[float, float]:
    """Frequency and duration."""
    three = {"frequency_hz": frequency_hz, "duration_us": duration_us, "share": share}
    passed = {name: value for name, value in three.items() if value is not None}
    if len(passed) != 2:
        raise InputError(
            f"{len(passed)} of frequency, duration and share are given",
            where=", ".join(passed) or "arguments",
            fix="give two of frequency_hz, duration_us and share: the third follows",
        )
    for name, value in passed.items():
        _check_positive(name, value)
    if frequency_hz is not None and duration_us is not None:
        share = frequency_hz * duration_us / 1e6
    _check_share(passed.get("share", share))
    if frequency_hz is None:
        frequency_hz = passed["share"] * 1e6 / passed["duration_us"]
    if duration_us is None:
        duration_us = passed["share"] * 1e6 / frequency_hz
    return frequency_hz, duration_us


def _check_share(share: float | None) -> None:
    if share is not None and share >= 1:
        raise InputError(
            f"the noise would take {share:.0%} of each CPU",
            where="frequency_hz × duration_us",
            why="nothing would be left for the workload",
            fix="choose a product below 1 000 000, a share below 1",
        )


def _check_positive(name: str, value: float | None) -> None:
    # false for NaN; beyond, periods and lengths overflow
    if value is None or not 1e-9 <= value <= 1e12:
        raise InputError(
            f"{name} is {value}", fix=f"{name} must be a positive number, 1e-9 to 1e12"
        )


def _checked_window(frequency_hz: float, seconds: float | None, cpus: int) -> float:
    _check_positive("seconds", seconds)
    seconds = float(seconds or 0)
    if frequency_hz * seconds * cpus > LARGEST_COUNT:
        raise InputError(
            f"{frequency_hz * seconds * cpus:.2g} events",
            where="frequency_hz × seconds × CPUs",
            why=f"more than {LARGEST_COUNT:.0e} don't fit in memory",
            fix="choose a lower frequency or a shorter window",
        )
    return seconds


def _cpu_numbers(cpus: Sequence[int]) -> list[int]:
    numbers = sorted(cpus) if not isinstance(cpus, (int, str)) else []
    valid = all(int(cpu) == cpu and cpu >= 0 for cpu in numbers)
    if not numbers or not valid or len(set(numbers)) < len(numbers):
        raise InputError(
            f"cpus is {cpus!r}", fix="cpus is a list of different CPU numbers, for instance [0, 1]"
        )
    return [int(cpu) for cpu in numbers]


def _policy(kind: str, policy: str | None, priority: int | None) -> tuple[str, int]:
    if policy is None:
        policy, usual = INJECTED_AS[kind]
    elif policy not in REAL_TIME:
        usual = 0
    else:
        usual = INJECTED_AS[kind][1] if kind in INTERRUPT_KINDS else 1
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


@dataclass(frozen=True)
class _Draw:
    """Starts and durations of a signature, CPU by CPU.

    Intervals, shifts and durations are separate streams of random numbers.
    """

    period_ns: float
    duration_ns: float
    window_ns: int
    distribution: str
    durations: str
    phase: str | Mapping[int, float]
    seed: int
    coscheduled: bool

    def table(self, cpu: int) -> pd.DataFrame:
        """The events of a CPU; one that falls into another begins when that is over."""
        starts, durations = self.events(cpu)
        ends = completion(starts, durations)
        starts = ends - durations
        inside = (starts < self.window_ns) & (durations > 0)
        starts, ends = starts[inside], np.minimum(ends[inside], self.window_ns)
        return pd.DataFrame(
            {"cpu": np.int64(cpu), "start_ns": starts, "duration_ns": ends - starts, "end_ns": ends}
        )

    def events(self, cpu: int) -> tuple[np.ndarray, np.ndarray]:
        """Starts in ns, ascending and inside the window, and durations, which may overlap."""
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
            first_ns = _phase_ns(self.phase, cpu)
        elif self.phase == "random":
            first_ns = self._random(cpu).uniform(0, 1) * self.period_ns
        else:
            first_ns = 0.5 * self.period_ns
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
        if self.distribution != "poisson":
            return starts, durations
        if isinstance(self.phase, Mapping):
            shift_ns = _phase_ns(self.phase, cpu)
        elif self.phase == "random" and self.coscheduled:
            shift_ns = self._random(cpu, 1).uniform(0, self.window_ns)
        else:
            return starts, durations
        starts = (starts + int(shift_ns)) % self.window_ns
        order = np.argsort(starts, kind="stable")
        return starts[order], durations[order]

    def _durations(self, common: int, count: int) -> np.ndarray:
        random = self._random(common, 2)
        if self.durations == "exponential":
            lengths = np.maximum(np.round(random.exponential(self.duration_ns, count)), 1)
        elif self.durations == "ferreira":
            lengths = random.poisson(self.duration_ns / 1e3, count) * 1000
        else:
            lengths = np.full(count, max(round(self.duration_ns), 1))
        return lengths.astype(np.int64)


def _phase_ns(phases: Mapping[int, float], cpu: int) -> float:
    phase_us = phases.get(cpu)
    if phase_us is None or not (np.isfinite(phase_us) and phase_us >= 0):
        raise InputError(
            f"CPU {cpu} has {'no phase' if phase_us is None else f'the phase {phase_us}'}",
            where="phase",
            fix="phase is {CPU: µs} for each CPU, 0 or more",
        )
    return phase_us * 1e3
