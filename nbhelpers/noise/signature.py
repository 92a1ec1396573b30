"""Artificial noise of a given frequency and duration: a signature, and its events on CPUs.

Owns the noise signatures of Ferreira, Bridges and Brightwell (SC 2008), and their streams of random
numbers: intervals, shifts and durations are separate ones. The paper's own values are in
`presets.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ._merge import completion
from ._signature_checks import (
    check_words,
    checked_window,
    cpu_numbers,
    different_numbers,
    policy_of,
    two_of_three,
)
from ._tables import made_events
from .config import NoiseConfig


@dataclass(frozen=True, repr=False)
class Signature:
    """Noise of one frequency and duration, for the injector and for the simulator alike.

    Parameters
    ----------
    frequency_hz
        Events a second on each CPU or rank (mean).
    duration_us
        Length of an event in µs (mean).
    share
        Net share of the time that the noise takes: frequency × duration. Two of these three fix
        the third; with one of the first two alone, the share is the paper's 2.5 %.
    distribution
        How the starts are distributed: "periodic", "poisson" (a Poisson process) or "ferreira"
        (section 3 of the paper: the interval is the mean of a Poisson-distributed number of µs).
    durations
        "fixed", "exponential" or "ferreira" (a Poisson-distributed number of µs).
    phase
        "random": each CPU begins somewhere in the first period. "aligned": all half a period after
        the start. {CPU or rank: µs}: there. None: "aligned" if `coscheduled`, else "random".
    coscheduled
        Whether all share one draw of intervals and durations; with the phase "aligned" the noise
        strikes everywhere at once. None: unless the phase is "random".
    ranks
        The CPUs or ranks that have the noise; None: all that are asked for.
    seed
        Seed of the random numbers.

    Raises
    ------
    InputError
        Numbers that contradict each other or are not positive, a share of 1 or more, an unknown
        word.

    Notes
    -----
    Ferreira, Bridges, Brightwell: Characterizing application sensitivity to OS interference using
    kernel-level noise injection, SC 2008, section 3. Randomised parameters are there "the
    arithmetic mean of a Poisson-distributed random variable". The unit, which decides how much it
    varies, is not stated: here it is the µs of the figures. An event that falls into another
    begins when that is over. A Poisson process has no first period: a phase that is given shifts
    it, in a ring.

    Examples
    --------
    >>> from nbhelpers import Signature
    >>> daemon = Signature(frequency_hz=10)
    >>> daemon
    Signature(10 Hz x 2500 us: 2.5 %, periodic, random phase)
    >>> daemon.config(seconds=1.0, cpus=[0, 1]).summary()["share"].round(6).tolist()
    [0.025, 0.025]
    >>> Signature(1000, 25, coscheduled=True).phase
    'aligned'
    """

    # never None after __post_init__, which fills in what follows from the rest
    frequency_hz: float = None  # type: ignore[assignment]
    duration_us: float = None  # type: ignore[assignment]
    share: float = None  # type: ignore[assignment]
    distribution: str = "periodic"
    durations: str = "fixed"
    phase: str | Mapping[int, float] = None  # type: ignore[assignment]
    coscheduled: bool = None  # type: ignore[assignment]
    ranks: Sequence[int] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        three = two_of_three(self.frequency_hz, self.duration_us, self.share)
        phase = self.phase
        if phase is None:
            phase = "aligned" if self.coscheduled else "random"
        check_words(self.distribution, self.durations, phase)
        together = phase != "random" if self.coscheduled is None else bool(self.coscheduled)
        made = (*map(float, three), self.distribution, self.durations, phase, together)
        ranks = self.ranks
        if ranks is not None:
            ranks = tuple(different_numbers(ranks, "ranks", "CPU or rank numbers, or None"))
        for name, value in zip(_FIELDS, (*made, ranks), strict=True):
            object.__setattr__(self, name, value)

    @property
    def label(self) -> str:
        """Frequency and duration, as in the tables."""
        return f"{self.frequency_hz:g} Hz x {self.duration_us:g} us"

    @property
    def simultaneous(self) -> bool:
        """Whether each event strikes all CPUs or ranks at the same moment."""
        return self.coscheduled and self.phase == "aligned"

    def with_(self, **changes: Any) -> "Signature":
        """The same signature with other values.

        A frequency or duration that is changed alone keeps the share; a share that is changed alone
        keeps the duration.

        Examples
        --------
        >>> from nbhelpers import Signature
        >>> Signature(10, 2500).with_(frequency_hz=100).duration_us
        250.0
        """
        three = {"frequency_hz", "duration_us", "share"}
        changed = three & set(changes)
        if len(changed) == 1:
            other = "duration_us" if changed == {"share"} else "share"
            changes |= dict.fromkeys(three - changed - {other})
        elif len(changed) == 2:
            changes |= dict.fromkeys(three - changed)
        return replace(self, **changes)

    def events(
        self,
        seconds: float,
        cpus: Sequence[int],
        kind: str = "irq",
        policy: str | None = None,
        priority: int | None = None,
    ) -> pd.DataFrame:
        """Make its noise events on CPUs.

        Parameters
        ----------
        seconds
            Length of the window; an event that reaches beyond it is shortened.
        cpus
            CPU numbers; those outside `ranks` have no noise.
        kind
            nmi, irq, softirq, thread or hardware. All but thread are injected with a real-time
            policy: the paper's noise is the kernel's, which no program can delay.
        policy, priority
            None: as `NoiseConfig` injects the kind (irq: SCHED_FIFO 50, thread: SCHED_OTHER 0).

        Returns
        -------
        Noise events (columns as in data/README.md), run 0, sorted by CPU and start;
        `attrs["seconds"]` is the window.

        Raises
        ------
        InputError
            A CPU without a phase, no CPU that has noise, more events than fit in memory.
        """
        numbers = self._chosen(cpu_numbers(cpus))
        check_words(kind=kind)
        seconds = checked_window(self.frequency_hz, seconds, len(numbers))
        policy, priority = policy_of(kind, policy, priority)
        draw = _Draw(self, round(seconds * 1e9))
        return made_events(
            pd.concat([draw.table(cpu) for cpu in numbers], ignore_index=True),
            "signature",
            seconds,
            kind=kind,
            source=self.label,
            policy=policy,
            priority=priority,
        )

    def config(self, seconds: float, cpus: Sequence[int], **kind: Any) -> NoiseConfig:
        """Make the noise config that the injector replays.

        Parameters
        ----------
        seconds, cpus
            Length of the window in seconds, and CPU numbers; see `events`.
        kind
            `kind`, `policy`, `priority` of `events`.
        """
        return NoiseConfig.from_events(
            self.events(seconds, cpus, **kind), provenance={"signature": self.label}
        )

    def _chosen(self, cpus: Sequence[int]) -> list[int]:
        chosen = [cpu for cpu in cpus if self.ranks is None or cpu in self.ranks]
        if not chosen:
            raise InputError(
                f"none of the CPUs {', '.join(map(str, cpus))} has the noise",
                where=f"ranks={self.ranks}",
                fix="name CPUs in ranks that the noise goes to",
            )
        return chosen

    def __repr__(self) -> str:
        words = [self.distribution]
        if self.durations != "fixed":
            words.append(f"{self.durations} durations")
        phase = f"{self.phase} phase" if isinstance(self.phase, str) else "phases set"
        words.append("everywhere at once" if self.simultaneous else phase)
        if self.ranks is not None:
            words.append(f"on {len(self.ranks)} CPUs or ranks")
        return f"Signature({self.label}: {100 * self.share:.3g} %, {', '.join(words)})"


_FIELDS = tuple(field.name for field in fields(Signature))[:-1]


@dataclass(frozen=True)
class _Draw:
    """Starts and durations of a signature, CPU by CPU.

    Intervals, shifts and durations are separate streams of random numbers.
    """

    signature: "Signature"
    window_ns: int

    @property
    def _period_ns(self) -> float:
        return 1e9 / self.signature.frequency_hz

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
        common = 0 if self.signature.coscheduled else cpu
        starts = (
            self._process(common)
            if self.signature.distribution == "poisson"
            else self._spaced(common, cpu)
        )
        starts = np.floor(starts[starts < self.window_ns]).astype(np.int64)
        return self._in_ring(cpu, starts, self._durations(common, len(starts)))

    def _random(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self.signature.seed, *stream])

    def _process(self, common: int) -> np.ndarray:
        random = self._random(common)
        return np.sort(
            random.uniform(0, self.window_ns, random.poisson(self.window_ns / self._period_ns))
        )

    def _spaced(self, common: int, cpu: int) -> np.ndarray:
        """A first strike and intervals after it."""
        if isinstance(self.signature.phase, Mapping):
            first_ns = _phase_ns(self.signature.phase, cpu)
        elif self.signature.phase == "random":
            first_ns = self._random(cpu).uniform(0, 1) * self._period_ns
        else:
            first_ns = 0.5 * self._period_ns
        count = int(self.window_ns / self._period_ns) + 2
        if self.signature.distribution == "periodic":
            return (np.arange(count) + first_ns / self._period_ns) * self._period_ns
        random, steps = self._random(common, 3), np.zeros(1)
        while steps.sum() < self.window_ns:
            steps = np.append(steps, random.poisson(self._period_ns / 1e3, count) * 1e3)
        return first_ns + np.cumsum(steps)

    def _in_ring(
        self, cpu: int, starts: np.ndarray, durations: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A Poisson process that is shared, shifted for this CPU; what leaves the window at its end
        comes in at its beginning.
        """
        if self.signature.distribution != "poisson":
            return starts, durations
        if isinstance(self.signature.phase, Mapping):
            shift_ns = _phase_ns(self.signature.phase, cpu)
        elif self.signature.phase == "random" and self.signature.coscheduled:
            shift_ns = self._random(cpu, 1).uniform(0, self.window_ns)
        else:
            return starts, durations
        starts = (starts + int(shift_ns)) % self.window_ns
        order = np.argsort(starts, kind="stable")
        return starts[order], durations[order]

    def _durations(self, common: int, count: int) -> np.ndarray:
        random = self._random(common, 2)
        if self.signature.durations == "exponential":
            lengths = np.maximum(
                np.round(random.exponential(self.signature.duration_us * 1e3, count)), 1
            )
        elif self.signature.durations == "ferreira":
            lengths = random.poisson(self.signature.duration_us * 1e3 / 1e3, count) * 1000
        else:
            lengths = np.full(count, max(round(self.signature.duration_us * 1e3), 1))
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
