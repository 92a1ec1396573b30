"""What one CPU loses to noise, and when: traces of detours, as recorded or synthetic.

Owns `Detours`, the tables that the C side reads of it (simulator_c/noise.h), and the generators.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

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
        After how long the trace begins anew. None: at the start of the last detour (that one then
        falls onto the next period's beginning), which is the reference simulator's rule.
    source
        int32[K], index into `sources`, or empty: not known.
    sources
        The names of the sources of noise.
    name
        For titles and errors.
    """

    start_ns: np.ndarray
    duration_ns: np.ndarray
    # never None once made: __post_init__ replaces it
    period_ns: float = None  # type: ignore[assignment]
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
        period = float(start[-1] if self.period_ns is None else self.period_ns)
        if not (period >= 1 and start[-1] <= period < LONGEST_NS):
            raise InputError(
                f"a trace can't be repeated every {period:g} ns",
                where=self.name,
                why=(
                    "it must be at least 1 ns, at most 53 days, and not end before the last detour"
                    f" begins ({start[-1]:g} ns)"
                ),
                fix="give period_ns",
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
        if not (
            np.isfinite(start).all()
            and np.isfinite(duration).all()
            and start.min() >= 0
            and duration.min() >= 0
        ):
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
    def from_table(
        cls, table: pd.DataFrame, period_ns: float | None = None, name: str = "detours"
    ) -> "Detours":
        """From a table with `start_ns`, `duration_ns` and perhaps `source`: noise events of one CPU
        and run, or detours.

        `period_ns`: None = what `attrs["seconds"]` says, or the end of the last detour where that
        is later; the reference's rule if it says nothing.
        """
        if period_ns is None and "seconds" in table.attrs:
            last_ns = float((table["start_ns"] + table["duration_ns"]).max())
            period_ns = max(float(table.attrs["seconds"]) * 1e9, last_ns)
        codes, sources = (
            pd.factorize(table["source"], sort=True)
            if "source" in table
            else (np.zeros(0, np.int32), ())
        )
        return cls(
            table["start_ns"].to_numpy(float),
            table["duration_ns"].to_numpy(float),
            cast("float", period_ns),
            np.asarray(codes, np.int32),
            tuple(map(str, sources)),
            name,
        )

    def __len__(self) -> int:
        return len(self.start_ns)

    @cached_property
    def overhead(self) -> float:
        """Share of the time that is lost, overlaps counted once, as `exact` sees it."""
        free_ps = self.exact_table[2]
        return 1 - free_ps / round(self.period_ns * 1000)

    @cached_property
    def exact_table(self) -> tuple[np.ndarray, int, int]:
        """(int64[M, 2]: start of each stretch of lost time and noise-free time before it in the
        period; period; noise-free time of it), in ps.

        Detours that overlap or touch are one stretch; what reaches beyond the period's end
        continues at its beginning.
        """
        period = round(self.period_ns * 1000)
        start = np.rint(self.start_ns * 1000).astype(np.int64)
        end = start + np.rint(self.duration_ns * 1000).astype(np.int64)
        if (end - start).max() >= period:
            raise self._never_free()
        start, end = _unrolled(start, end, period)
        start, end = _united(start, end)
        before = start - np.concatenate([[0], np.cumsum(end - start)[:-1]])
        free = period - int((end - start).sum())
        if free <= 0:
            raise self._never_free()
        return np.ascontiguousarray(np.column_stack([start, before])), period, free

    def _never_free(self) -> InputError:
        return InputError(
            "the detours leave no time at all to compute",
            where=self.name,
            why="no operation would ever end",
            fix="record for longer, or when the machine is less loaded",
        )

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


def _unrolled(start: np.ndarray, end: np.ndarray, period: int) -> tuple[np.ndarray, np.ndarray]:
    """Every detour within [0, period): what reaches beyond continues at the beginning."""
    end = end - start // period * period
    start = start % period
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
    return Detours(
        np.zeros(1),
        np.array([duration_us * 1e3]),
        1e9 / frequency_hz,
        np.zeros(1, np.int32),
        (f"{frequency_hz:g} Hz x {duration_us:g} us",),
        f"{frequency_hz:g} Hz x {duration_us:g} us",
    )


def poisson(rate_hz: float, duration_us: float, seconds: float = 10.0, seed: int = 0) -> Detours:
    """Detours of one length at random moments.

    Parameters
    ----------
    rate_hz
        How many a second, on average.
    duration_us
        How long each is.
    seconds
        After how long the trace repeats.
    seed
        Of the moments.

    Returns
    -------
    Detours
        The trace.
    """
    _positive(rate_hz=rate_hz, duration_us=duration_us, seconds=seconds)
    start = _moments(rate_hz, seconds, np.random.default_rng(seed))
    return Detours(
        start,
        np.full(len(start), duration_us * 1e3),
        seconds * 1e9,
        np.zeros(len(start), np.int32),
        (f"poisson {rate_hz:g} Hz x {duration_us:g} us",),
        f"poisson {rate_hz:g} Hz x {duration_us:g} us",
    )


def pareto(
    rate_hz: float,
    shortest_us: float,
    alpha: float,
    longest_us: float | None = None,
    seconds: float = 10.0,
    seed: int = 0,
) -> Detours:
    """Detours at random moments whose length has a Pareto tail: P(longer than x) = (shortest /
    x)^alpha.

    `longest_us` bounds the lengths (the distribution is truncated there, not clipped); needed for
    alpha ≤ 1, whose mean is infinite.
    """
    _positive(rate_hz=rate_hz, shortest_us=shortest_us, alpha=alpha, seconds=seconds)
    if longest_us is None and alpha <= 1:
        raise InputError(
            f"a Pareto distribution with alpha = {alpha:g} has no mean",
            fix="give longest_us, or alpha above 1",
        )
    if longest_us is not None and not longest_us > shortest_us:
        raise InputError(f"longest_us = {longest_us:g} is not above shortest_us = {shortest_us:g}")
    rng = np.random.default_rng(seed)
    start = _moments(rate_hz, seconds, rng)
    beyond = 0.0 if longest_us is None else (shortest_us / longest_us) ** alpha
    duration_us = shortest_us * (1 - rng.random(len(start)) * (1 - beyond)) ** (-1 / alpha)
    name = f"pareto {rate_hz:g} Hz, {shortest_us:g} µs, alpha {alpha:g}"
    return Detours(
        start, duration_us * 1e3, seconds * 1e9, np.zeros(len(start), np.int32), (name,), name
    )


def _moments(rate_hz: float, seconds: float, rng: np.random.Generator) -> np.ndarray:
    count = max(1, rng.poisson(rate_hz * seconds))
    return np.sort(rng.random(count)) * seconds * 1e9


def _positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"{name} must be a positive number, not {value!r}")
