"""Noise on simulated ranks: a trace of detours for all or for each, repeated for ever, at a phase
of each rank's own.

Owns the spreading of traces over ranks and the draw of their phases; simulator_c/noise.h says what
noise does to an operation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError
from .detours import Detours

NOISELESS = -1


@dataclass(frozen=True, eq=False, repr=False)
class Noise:
    """Which trace strikes which rank, and where in it the rank begins. Build it with
    `Noise.on_ranks`.

    Parameters
    ----------
    traces
        The distinct traces.
    rank_trace
        int32[P]; index into `traces`, NOISELESS (−1) for a rank without noise.
    phase_ns
        int64[P]; at simulated time t a rank is at t + phase of its trace (modulo the period).
    seed
        Seed of the phases; None if they were set.
    cosched
        Whether all ranks begin at the same place.
    """

    traces: tuple[Detours, ...]
    rank_trace: np.ndarray
    phase_ns: np.ndarray
    seed: int | None = None
    cosched: bool = False

    @classmethod
    def on_ranks(
        cls,
        trace: Detours | Sequence[Detours],
        ranks: int,
        seed: int = 0,
        cosched: bool = False,
        phases_ns: np.ndarray | float | None = None,
        noisy: Sequence[int] | None = None,
        which: np.ndarray | None = None,
    ) -> "Noise":
        """Spread a trace, or several, over ranks.

        Parameters
        ----------
        trace
            One for all, or a sequence: one a rank, or any number with `which`.
        ranks
            P.
        seed
            Seed of the phases: a Mersenne Twister's first draw is the co-scheduled phase, the next
            P the ranks' own (the reference's order).
        cosched
            All ranks take the first draw: noise strikes everywhere at once.
        phases_ns
            [P] or one number, instead of draws.
        noisy
            The ranks that have noise; None = all. A rank's phase doesn't depend on which others
            are noisy.
        which
            int[P], which of the traces each rank has; −1 for none.

        Raises
        ------
        InputError
            Numbers that don't fit each other.
        """
        traces = (trace,) if isinstance(trace, Detours) else tuple(trace)
        rank_trace = _assigned(traces, ranks, which)
        if noisy is not None:
            rank_trace[_others(noisy, ranks)] = NOISELESS
        if phases_ns is None:
            return cls(traces, rank_trace, _drawn(traces, rank_trace, seed, cosched), seed, cosched)
        if np.shape(phases_ns) not in ((), (ranks,)):
            raise InputError(f"{np.size(phases_ns)} phases for {ranks} ranks")
        phases = np.broadcast_to(np.asarray(phases_ns), (ranks,))
        possible = (phases >= 0) & (phases < 2**62)
        if not possible.all():
            rank = int(np.argmin(possible))
            raise InputError(
                f"a phase of {phases[rank]:g} ns",
                where=f"rank {rank}",
                why="it must be 0 or more, and below 2^62 ns (146 years)",
            )
        together = bool((phases == phases[0]).all())
        return cls(traces, rank_trace, phases.astype(np.int64), None, together)

    @property
    def ranks(self) -> int:
        """Number of ranks, P."""
        return len(self.rank_trace)

    def with_seed(self, seed: int) -> "Noise":
        """The same noise with phases drawn anew, another replicate; the traces are shared."""
        return replace(
            self, seed=seed, phase_ns=_drawn(self.traces, self.rank_trace, seed, self.cosched)
        )

    def tables(self, mode: str = "exact") -> dict[str, np.ndarray]:
        """What `struct nb_noise` points to, in the mode's unit (exact: ps, compat: ns): detour [K,
        2], first [T + 1], period [T], free [T], rank_trace [P], phase [P].

        Keep the dictionary alive as long as C reads it.
        """
        parts = [
            trace.exact_table if mode == "exact" else trace.compat_table for trace in self.traces
        ]
        period = np.array([part[1] for part in parts], np.int64)
        lengths = [len(part[0]) for part in parts]
        return {
            "detour": (
                parts[0][0] if len(parts) == 1 else np.concatenate([part[0] for part in parts])
            ),
            "first": np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
            "period": period,
            "free": np.array([part[2] for part in parts], np.int64),
            "rank_trace": np.ascontiguousarray(self.rank_trace, np.int32),
            "phase": self._phases(period, mode),
        }

    def _phases(self, period: np.ndarray, mode: str) -> np.ndarray:
        """In the mode's unit, within the period: times 1000 a phase of years would leave 64 bits.
        compat, for which a trace has edges, takes it as it stands.
        """
        phase = np.array(self.phase_ns, np.int64)
        if mode != "exact":
            return phase
        period = period[self.rank_trace]
        phase %= period
        if phase.max(initial=0) < 2**53:
            return phase * 1000 % period
        # Python's integers have any length where NumPy's would overflow
        return np.array([1000 * int(a) % int(p) for a, p in zip(phase, period)], np.int64)

    def __repr__(self) -> str:
        noisy = int((self.rank_trace != NOISELESS).sum())
        phases = "phases set" if self.seed is None else f"seed {self.seed}"
        phases = "co-scheduled" if self.cosched else phases
        return (
            f"Noise({', '.join(trace.name for trace in self.traces[:3])} on {noisy} of {self.ranks}"
            f" ranks, {phases})"
        )


def _others(noisy: Sequence[int], ranks: int) -> np.ndarray:
    """The ranks that are not among the noisy ones."""
    chosen = np.asarray(noisy)
    if len(chosen) and (chosen.dtype.kind not in "iu" or not np.isin(chosen, range(ranks)).all()):
        raise InputError(f"`noisy` must be ranks of 0 to {ranks - 1}")
    return np.setdiff1d(np.arange(ranks), chosen)


def _assigned(traces: tuple[Detours, ...], ranks: int, which: np.ndarray | None) -> np.ndarray:
    """int32[ranks]: which trace each has."""
    if which is None:
        if len(traces) not in (1, ranks):
            raise InputError(
                f"{len(traces)} traces for {ranks} ranks",
                fix="give one for all, one a rank, or `which`",
            )
        return np.resize(np.arange(len(traces), dtype=np.int32), ranks)
    chosen = np.asarray(which)
    known = np.isin(chosen, range(NOISELESS, len(traces)))
    if chosen.shape != (ranks,) or chosen.dtype.kind not in "iu" or not known.all():
        raise InputError(
            f"`which` must name one of {len(traces)} traces (or −1) for each of {ranks} ranks"
        )
    return chosen.astype(np.int32)


def _drawn(
    traces: tuple[Detours, ...], rank_trace: np.ndarray, seed: int, cosched: bool
) -> np.ndarray:
    """phase = trunc(draw / (2^32 − 1) × period); the generator and the order of the draws are the
    reference simulator's.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise InputError(f"the seed must be a whole number below 2^32, not {seed!r}")
    draws = np.random.RandomState(seed).randint(
        0, 2**32, size=1 if cosched else 1 + len(rank_trace), dtype=np.uint64
    )
    share = (draws[0] if cosched else draws[1:]) / 4294967295.0
    periods = np.array([trace.compat_table[1] for trace in traces], float)
    return np.where(rank_trace == NOISELESS, 0, np.trunc(share * periods[rank_trace])).astype(
        np.int64
    )
