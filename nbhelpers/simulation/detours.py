"""What one CPU loses to noise, and when: traces of detours, as recorded or synthetic.

Owns `Detours`, the tables that the C side reads of it (simulator_c/noise.h), and the generators.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from ..errors import InputError

LONGEST_NS = 2**62 / 1000  # what the engine counts up to in picoseconds: 53 days


@dataclass(frozen=True, eq=False, repr=False)
class Detours:
    """What one CPU lost, and when: K detours in one period, then again from the beginning.

    Parameters
    ----------
    start_ns, duration_ns
        float64[K], sorted by start, both 0 or more; detours may overlap.
    period_ns
        After how long the trace begins anew. The reference simulator takes the start of the last
        detour, which then falls onto the next period's beginning.
    source
        int32[K], index into `sources`, or empty: not known.
    sources
        The names of the sources of noise.
    name
        For titles and errors.
    """

    start_ns: np.ndarray
    duration_ns: np.ndarray
    period_ns: float
    source: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    sources: tuple[str, ...] = ()
    name: str = "detours"

    def __post_init__(self) -> None:
        start = np.ascontiguousarray(self.start_ns, np.float64)
        duration = np.ascontiguousarray(self.duration_ns, np.float64)
        self._check(start, duration)
        if (np.diff(start) < 0).any():
            order = np.argsort(start, kind="stable")
            start, duration = start[order], duration[order]
            source = np.asarray(self.source)[order] if len(self.source) else self.source
            object.__setattr__(self, "source", source)
        period = float(self.period_ns)
        if not (period >= 1 and start[-1] <= period < LONGEST_NS):
            raise InputError(
                f"a trace can't be repeated every {period:g} ns",
                where=self.name,
                why=(
                    "it must be at least 1 ns, at most 53 days, and not end before the last detour"
                    f" begins ({start[-1]:g} ns)"
                ),
            )
        for key, value in (("start_ns", start), ("duration_ns", duration), ("period_ns", period)):
            object.__setattr__(self, key, value)

    def _check(self, start: np.ndarray, duration: np.ndarray) -> None:
        if start.shape != duration.shape or start.ndim != 1:
            raise InputError(
                f"{start.shape} starts for {duration.shape} durations of detours", where=self.name
            )
        if not len(start):
            raise InputError(
                "a trace without detours",
                where=self.name,
                fix="leave the noise away, or the rank out of `noisy`",
            )
        both = np.concatenate([start, duration])
        if not (np.isfinite(both).all() and both.min() >= 0):
            raise InputError(
                "a detour begins before 0, or lasts less than nothing", where=self.name
            )
        if duration.sum() >= LONGEST_NS:
            raise InputError(
                f"detours of {duration.sum():g} ns together",
                where=self.name,
                why="picoseconds are counted up to 53 days",
                fix="durations are in ns",
            )

    @classmethod
    def from_table(cls, table: pd.DataFrame, period_ns: float, name: str) -> "Detours":
        """From a table with `start_ns`, `duration_ns` and perhaps `source`: noise events of one CPU
        and run, or detours.
        """
        start, duration = (table[one].to_numpy(float) for one in ("start_ns", "duration_ns"))
        if "source" not in table:
            return cls(start, duration, period_ns, name=name)
        codes, sources = pd.factorize(table["source"], sort=True)
        return cls(start, duration, period_ns, codes.astype(np.int32), tuple(sources), name)

    def __len__(self) -> int:
        return len(self.start_ns)

    @cached_property
    def overhead(self) -> float:
        """Share of the time that is lost, overlaps counted once, as `exact` sees it."""
        start, end, period = self._lost
        return 1 - (period - int((end - start).sum())) / period

    @cached_property
    def _lost(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Start and end of each stretch of lost time, and the period, in ps.

        Detours that overlap or touch are one stretch; what reaches beyond the period's end
        continues at its beginning.
        """
        period = round(self.period_ns * 1000)
        start, length = (
            np.rint(ns * 1000).astype(np.int64) for ns in (self.start_ns, self.duration_ns)
        )
        return *_united(*_unrolled(start, np.minimum(length, period), period)), period

    @cached_property
    def exact_table(self) -> tuple[np.ndarray, int, int]:
        """(int64[M, 2]: start of each stretch of lost time and noise-free time before it in the
        period; period; noise-free time of it), in ps.
        """
        start, end, period = self._lost
        lost = np.cumsum(end - start)
        free = period - int(lost[-1]) if len(lost) else period
        if free <= 0:
            raise InputError(
                "the detours leave no time at all to compute",
                where=self.name,
                why="no operation would ever end",
                fix="record for longer, or when the machine is less loaded",
            )
        table = np.column_stack([start, start - lost + (end - start)])
        return np.ascontiguousarray(table), period, free

    @cached_property
    def compat_table(self) -> tuple[np.ndarray, int, int]:
        """(int64[K, 2]: start and duration of each detour; period; 0), in whole ns, as the
        reference simulator reads a trace.
        """
        rounded = np.floor(np.column_stack([self.start_ns, self.duration_ns]) + 0.5).astype(
            np.int64
        )
        return np.ascontiguousarray(rounded), int(np.floor(self.period_ns + 0.5)), 0

    def __repr__(self) -> str:
        return (
            f"Detours({self.name}: {len(self)} in {self.period_ns / 1e9:g} s,"
            f" {100 * self.overhead:.3g} % lost)"
        )


def _unrolled(start: np.ndarray, length: np.ndarray, period: int) -> tuple[np.ndarray, np.ndarray]:
    """Every detour within [0, period): what reaches beyond continues at the beginning."""
    start = start % period
    end = start + length
    beyond = end > period
    start = np.concatenate([start, np.zeros(int(beyond.sum()), np.int64)])
    end = np.concatenate([np.minimum(end, period), end[beyond] - period])
    return start, end


def _united(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The union of the intervals, sorted, without empty ones."""
    real = end > start
    order = np.argsort(start[real], kind="stable")
    start, end = start[real][order], np.maximum.accumulate(end[real][order])
    first = np.ones(len(start), bool)
    first[1:] = start[1:] > end[:-1]
    last = np.append(first[1:], True)[: len(start)]
    return start[first], end[last]


# --- where traces come from -----------------------------------------------------------------------


def periodic(frequency_hz: float, duration_us: float) -> Detours:
    """One detour every 1/frequency: the regular noise of injection studies.

    Parameters
    ----------
    frequency_hz
        How often.
    duration_us
        How long each detour is.

    Returns
    -------
    Detours
        One period of the trace.

    Examples
    --------
    >>> round(periodic(1000, 100).overhead, 3)
    0.1
    """
    _positive(frequency_hz=frequency_hz, duration_us=duration_us)
    name, duration_ns = f"{frequency_hz:g} Hz x {duration_us:g} us", np.array([duration_us * 1e3])
    source = np.zeros(1, np.int32)
    return Detours(np.zeros(1), duration_ns, 1e9 / frequency_hz, source, (name,), name)


def pareto(
    rate_hz: float,
    shortest_us: float,
    alpha: float,
    longest_us: float,
    seconds: float = 10.0,
    seed: int = 0,
) -> Detours:
    """Detours at random moments whose length has a Pareto tail: P(longer than x) = (shortest /
    x)^alpha.

    `longest_us` bounds the lengths (the distribution is truncated there, not clipped): with alpha ≤
    1 its mean would be infinite.
    """
    _positive(rate_hz=rate_hz, shortest_us=shortest_us, alpha=alpha, seconds=seconds)
    if not longest_us > shortest_us:
        raise InputError(f"longest_us = {longest_us:g} is not above shortest_us = {shortest_us:g}")
    rng = np.random.default_rng(seed)
    count = max(1, rng.poisson(rate_hz * seconds))
    start = np.sort(rng.random(count)) * seconds * 1e9
    beyond = (shortest_us / longest_us) ** alpha
    duration_us = shortest_us * (1 - rng.random(count) * (1 - beyond)) ** (-1 / alpha)
    name = f"pareto {rate_hz:g} Hz, {shortest_us:g} µs, alpha {alpha:g}"
    return Detours(
        start, duration_us * 1e3, seconds * 1e9, np.zeros(count, np.int32), (name,), name
    )


def _positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"{name} must be a positive number, not {value!r}")
