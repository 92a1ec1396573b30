"""Artificial noise of a given frequency and duration: a signature, and its events on CPUs.

Owns the noise signatures of Ferreira, Bridges and Brightwell (SC 2008). What is random in them is
in `_signature_draw.py`, the paper's own values are in `presets.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import pandas as pd

from ..errors import InputError
from ._signature_checks import (
    check_words,
    checked_ranks,
    checked_window,
    cpu_numbers,
    policy_of,
    two_of_three,
)
from ._signature_draw import Draw
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
        Of the starts: "periodic", "poisson" (a Poisson process) or "ferreira" (section 3 of the
        paper: the interval is the mean of a Poisson-distributed number of µs).
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
        Of the random numbers.

    Raises
    ------
    InputError
        Numbers that contradict each other or are not positive, a share of 1 or more, an unknown
        word.

    Notes
    -----
    Ferreira, Bridges, Brightwell: Characterizing application sensitivity to OS interference using
    kernel-level noise injection, SC 2008, section 3.

    Examples
    --------
    >>> from nbhelpers.noise.signature import Signature
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
        ranks = None if self.ranks is None else checked_ranks(self.ranks)
        for name, value in zip(_FIELDS, (*made, ranks), strict=True):
            object.__setattr__(self, name, value)

    @property
    def label(self) -> str:
        """Frequency and duration, as in the tables."""
        return f"{self.frequency_hz:g} Hz x {self.duration_us:g} us"

    @property
    def local_slowdown(self) -> float:
        """Run time over undisturbed run time of a program that waits for nobody: 1 / (1 − share).

        The share is one of the disturbed run's time; of 2.5 % the program takes 2.56 % longer.
        """
        return 1 / (1 - self.share)

    @property
    def simultaneous(self) -> bool:
        """Whether each event strikes all CPUs or ranks at the same moment."""
        return self.coscheduled and self.phase == "aligned"

    def with_(self, **changes: Any) -> "Signature":
        """The same signature with other values.

        Of frequency, duration and share, one that is changed alone keeps the share; a share that is
        changed alone keeps the duration.

        Examples
        --------
        >>> from nbhelpers.noise.signature import Signature
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
        draw = Draw(
            period_ns=1e9 / self.frequency_hz,
            duration_ns=self.duration_us * 1e3,
            window_ns=round(seconds * 1e9),
            distribution=self.distribution,
            durations=self.durations,
            phase=self.phase,
            seed=self.seed,
            coscheduled=self.coscheduled,
        )
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
            As of `events`.
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

    `Signature` says what the words mean; this makes the events of one in a single call.

    Parameters
    ----------
    frequency_hz, duration_us, share
        Of `Signature`: events a second on each CPU, their length in µs, and the share of each CPU's
        time that they take.
    seconds
        Length of the window; an event that reaches beyond it is shortened.
    cpus
        CPU numbers.
    kind, policy, priority
        Of `Signature.events`; here thread noise is the default.
    distribution, durations, coscheduled, seed
        Of `Signature`. An event that falls into the one before begins when that is over; a CPU's
        noise does not depend on which others have noise.
    phase
        Of `Signature`; here "aligned" is the default. A Poisson process has no first period: a
        phase that is given shifts it, in a ring.

    Returns
    -------
    Noise events (columns as in data/README.md), run 0, sorted by CPU and start; `attrs["seconds"]`
    is the window.

    Raises
    ------
    InputError
        As `Signature` and `Signature.events`.

    Notes
    -----
    Ferreira, Bridges, Brightwell, SC 2008, section 3. Randomised parameters are there "the
    arithmetic mean of a Poisson-distributed random variable"; the unit, which decides how much it
    varies, is not stated: here it is the µs of the paper's figures.

    Examples
    --------
    >>> from nbhelpers import signature_noise
    >>> noise = signature_noise(10, 2500, seconds=1.0, cpus=[0])
    >>> noise["start_ns"].tolist()[:2], float(noise["duration_ns"].sum() / 1e9)
    ([50000000, 150000000], 0.025)
    >>> signature_noise(100, share=0.025, seconds=1.0, cpus=[0])["duration_ns"].unique().tolist()
    [250000]
    >>> len(signature_noise(1000, seconds=1.0, cpus=[0, 1]))
    2000
    """
    signature = Signature(
        *(frequency_hz, duration_us, share),  # type: ignore[arg-type]
        *(distribution, durations, phase, coscheduled),  # type: ignore[arg-type]
        seed=seed,
    )
    return signature.events(seconds, cpus, kind, policy, priority)  # type: ignore[arg-type]
