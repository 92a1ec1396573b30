"""When have there been enough runs? Two rules, each with its reason: the interval of a statistic is
narrow, and a rare kind of run would have been seen.

A rule has no state: it looks at all runs so far each time. Both waits are needed: a narrow interval
alone can come before the first slow run, and runs enough to have seen one say nothing of the
interval.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .intervals import STATISTICS, Values, bootstrap_interval, quantile_interval

SHARES = {"p95": 0.95, "p99": 0.99}  # of the values below each percentile


@dataclass(frozen=True)
class Decision:
    """Whether to stop, and why (or why not yet)."""

    stop: bool
    reason: str


class Rule(Protocol):
    """Anything with `decide`."""

    def decide(self, values: Values) -> Decision:
        """Look at the outcomes so far, in the order of the runs."""
        ...


@dataclass(frozen=True)
class Count:
    """Stop after so many runs.

    Examples
    --------
    >>> Count(2).decide([1.0])
    Decision(stop=False, reason='1 of 2 runs')
    """

    runs: int = 30

    def decide(self, values: Values) -> Decision:
        """Stop when there are as many."""
        return Decision(len(values) >= self.runs, f"{len(values)} of {self.runs} runs")


@dataclass(frozen=True)
class Narrow:
    """Stop when the 95 % interval of a statistic is at most ± this share of it.

    Percentiles (p95, p99) by order statistics: until there are enough runs (72 for p95, 368 for
    p99) the interval has no upper end, and the rule goes on. Others by bootstrap.

    Examples
    --------
    >>> Narrow("mean", 0.1).decide([1.0, 1.1] * 20).stop
    True
    """

    statistic: str = "cv"
    target: float = 0.1
    least: int = 30

    def decide(self, values: Values) -> Decision:
        """Wait for enough runs, then look at the interval."""
        if len(values) < self.least:
            return Decision(False, f"{len(values)} runs, at least {self.least} are wanted")
        sample = np.asarray(values, dtype=float)
        low, high = self._interval(sample)
        middle = abs(STATISTICS[self.statistic](sample))
        half = (high - low) / 2 / middle if middle else 0.0  # of constant runs
        if not np.isfinite(half):
            why = f"too few for an upper end of the interval of the {self.statistic}"
            return Decision(False, f"{sample.size} runs are {why}")
        word = "within" if half <= self.target else "beyond"
        reason = f"95% interval of the {self.statistic} ± {half:.2%}, {word} the goal of"
        return Decision(bool(half <= self.target), f"{reason} {self.target:.2%}")

    def _interval(self, values: np.ndarray) -> tuple[float, float]:
        if self.statistic in SHARES:
            return quantile_interval(values, SHARES[self.statistic])
        return bootstrap_interval(values, self.statistic, values.size, repeats=400)


@dataclass(frozen=True)
class Seen:
    """Stop when a kind of run of this share would have come so many times with this probability.

    It depends on the number of runs only: 59 runs for one in twenty to be seen once with 95 %.

    Examples
    --------
    >>> Seen(0.05, 1).decide([1.0] * 59).stop, Seen(0.05, 1).decide([1.0] * 58).stop
    (True, False)
    """

    weight: float = 0.05
    times: int = 3
    probability: float = 0.95

    def decide(self, values: Values) -> Decision:
        """Look at the number of runs."""
        from scipy.stats import binom

        seen = float(binom.sf(self.times - 1, len(values), self.weight))
        return Decision(
            seen >= self.probability,
            f"a mode of {self.weight:.1%} would have been seen {self.times} times with probability"
            f" {seen:.3f} (goal: {self.probability:.2f})",
        )


@dataclass(frozen=True)
class Tails:
    """The rule to take where the tail matters: the interval of the CV or of the p99 is narrow, and
    a rare kind of run would have been seen.

    Parameters
    ----------
    target
        Half width of the interval over the statistic.
    seen
        The kind of run that must not have been missed.
    most
        Runs after which to stop in any case; 0: none.

    Examples
    --------
    >>> Tails(most=40).decide([1.0] * 40)
    Decision(stop=True, reason='40 of 40 runs')
    """

    target: float = 0.1
    seen: Seen = Seen()
    most: int = 0

    def decide(self, values: Values) -> Decision:
        """Stop, or what is waited for."""
        if self.most and len(values) >= self.most:
            return Count(self.most).decide(values)
        rare = self.seen.decide(values)
        tried = [Narrow(name, self.target).decide(values) for name in ("cv", "p99")]
        done = [one.reason for one in tried if one.stop]
        waiting = [] if rare.stop else [rare.reason]
        waiting += [] if done else [one.reason for one in tried]
        return Decision(not waiting, "; ".join(waiting or [rare.reason, *done]))


RULES: dict[str, Rule] = {"count": Count(), "narrow": Narrow(), "seen": Seen(), "tails": Tails()}
