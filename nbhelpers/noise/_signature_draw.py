"""The random part of a noise signature: when events begin on each CPU, and how long they last.

Owns the streams of random numbers: intervals, shifts and durations are separate ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import InputError
from ._merge import completion


@dataclass(frozen=True)
class Draw:
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
            first_ns = phase_ns(self.phase, cpu)
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
            shift_ns = phase_ns(self.phase, cpu)
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


def phase_ns(phases: Mapping[int, float], cpu: int) -> float:
    phase_us = phases.get(cpu)
    if phase_us is None or not (np.isfinite(phase_us) and phase_us >= 0):
        raise InputError(
            f"CPU {cpu} has {'no phase' if phase_us is None else f'the phase {phase_us}'}",
            where="phase",
            fix="phase is {CPU: µs} for each CPU, 0 or more",
        )
    return phase_us * 1e3
