"""Single stopping rules, each on its own criterion. Owns nothing else; `stopping` puts them
together.
"""

from dataclasses import dataclass

import numpy as np

from ._decision import Decision
from ._shape import Mixture, block_length, fit_mixture
from .intervals import (
    STATISTICS,
    Values,
    as_statistic,
    bootstrap_interval,
    percentile_interval,
    quantile_interval,
    shortest_interval,
)

SHARES = {"p95": 0.95, "p99": 0.99}  # of the values below each percentile


class SampleRule:
    """A rule that looks at the values as soon as there are `least` runs, and `window` more."""

    least: int
    window: int = 0

    def decide(self, values: Values, seconds_elapsed: float = 0.0) -> Decision:
        """Wait for enough runs, then judge them."""
        needed = self.least + self.window
        if len(values) < needed:
            return Decision(False, f"{len(values)} runs, at least {needed} are wanted")
        return self.judge(np.asarray(values, dtype=float))

    def judge(self, values: np.ndarray) -> Decision:
        """The decision on enough runs."""
        raise NotImplementedError


def narrow(name: str, half_width: float, target: float) -> Decision:
    """The verdict on a relative half width."""
    word = "within" if half_width <= target else "beyond"
    return Decision(
        bool(half_width <= target), f"{name} ± {half_width:.2%}, {word} the goal of {target:.2%}"
    )


@dataclass(frozen=True)
class Count:
    """Stop after so many runs."""

    runs: int = 30

    def decide(self, values: Values, seconds_elapsed: float = 0.0) -> Decision:
        return Decision(len(values) >= self.runs, f"{len(values)} of {self.runs} runs")


@dataclass(frozen=True)
class Duration:
    """Stop after so much time, s."""

    seconds: float = 60.0

    def decide(self, values: Values, seconds_elapsed: float = 0.0) -> Decision:
        return Decision(
            seconds_elapsed >= self.seconds, f"{seconds_elapsed:.3g} of {self.seconds:.3g} s"
        )


@dataclass(frozen=True)
class RelativeStandardError(SampleRule):
    """Stop when the standard error of the mean is at most this share of the mean."""

    target: float = 0.01
    least: int = 10

    def judge(self, values: np.ndarray) -> Decision:
        error = (
            values.std(ddof=1) / np.sqrt(values.size) / abs(values.mean())
            if values.size > 1
            else np.inf
        )
        return narrow("standard error of the mean", error, self.target)


@dataclass(frozen=True)
class ConfidenceInterval(SampleRule):
    """Stop when Student's interval of the mean is at most ± this share of the mean."""

    target: float = 0.02
    level: float = 0.95
    least: int = 10

    def judge(self, values: np.ndarray) -> Decision:
        from scipy.stats import t

        half = (
            t.ppf((1 + self.level) / 2, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
        )
        return narrow(
            f"{self.level:.0%} interval of the mean", half / abs(values.mean()), self.target
        )


@dataclass(frozen=True)
class HighestDensityInterval(SampleRule):
    """Stop when the shortest interval that holds a share of the runs no longer moves: its ends, by
    this share of its width.
    """

    target: float = 0.05
    share: float = 0.9
    window: int = 10
    least: int = 30

    def judge(self, values: np.ndarray) -> Decision:
        now = shortest_interval(values, self.share)
        then = shortest_interval(values[: -self.window], self.share)
        width = now[1] - now[0]
        moved = max(abs(now[0] - then[0]), abs(now[1] - then[1])) / width if width else 0.0
        word = "at most" if moved <= self.target else "more than"
        return Decision(
            bool(moved <= self.target),
            f"in the last {self.window} runs the {self.share:.0%} interval moved by {moved:.1%} of"
            f" its width, {word} {self.target:.1%}",
        )


@dataclass(frozen=True)
class BlockBootstrap(SampleRule):
    """Stop when the moving-block bootstrap interval of a statistic (Künsch 1989) is narrow: runs
    that depend on each other count for less.
    """

    target: float = 0.02
    statistic: str = "mean"
    level: float = 0.95
    least: int = 20
    repeats: int = 400

    def judge(self, values: np.ndarray) -> Decision:
        length = block_length(values)
        random = np.random.default_rng(values.size)
        function = as_statistic(self.statistic)
        starts = random.integers(
            0, values.size - length + 1, (self.repeats, -(-values.size // length))
        )
        samples = values[
            (starts[..., None] + np.arange(length)).reshape(self.repeats, -1)[:, : values.size]
        ]
        low, high = percentile_interval(function(samples, axis=1), self.level)
        half = (high - low) / 2 / abs(function(values, axis=0))
        return narrow(
            f"{self.level:.0%} interval of the {self.statistic}, blocks of {length} runs,",
            half,
            self.target,
        )


@dataclass(frozen=True)
class GaussianMixture(SampleRule):
    """Stop when a mixture of normal distributions (their number by BIC) no longer changes: as many,
    and none moved or grew by this much.
    """

    target: float = 0.1
    most: int = 4
    window: int = 20
    least: int = 40

    def judge(self, values: np.ndarray) -> Decision:
        now, then = fit_mixture(values, self.most), fit_mixture(values[: -self.window], self.most)
        if len(now.weights) != len(then.weights):
            return Decision(
                False,
                f"{len(now.weights)} modes now, {len(then.weights)} before the last {self.window}"
                " runs",
            )
        moved = self._moved(now, then)
        return Decision(
            bool(moved <= self.target),
            f"{len(now.weights)} modes; in the last {self.window} runs they moved by {moved:.2f} of"
            f" their sd or share, {'at most' if moved <= self.target else 'more than'}"
            f" {self.target:.2f}",
        )

    @staticmethod
    def _moved(now: Mixture, then: Mixture) -> float:
        return float(
            max(
                np.max(np.abs(now.means - then.means) / now.sds),
                np.max(np.abs(now.weights - then.weights)),
            )
        )


@dataclass(frozen=True)
class KolmogorovSmirnov(SampleRule):
    """Stop when the first and the second half of the runs have nearly the same distribution:
    largest distance of the two at most this.
    """

    target: float = 0.1
    least: int = 40

    def judge(self, values: np.ndarray) -> Decision:
        from scipy.stats import ks_2samp

        middle = values.size // 2
        distance = float(ks_2samp(values[:middle], values[middle:], method="asymp").statistic)
        word = "at most" if distance <= self.target else "more than"
        return Decision(
            distance <= self.target,
            f"the two halves differ by {distance:.3f} (Kolmogorov and Smirnov), {word}"
            f" {self.target:.3f}",
        )


@dataclass(frozen=True)
class NarrowInterval(SampleRule):
    """Made for tails: stop when the interval of the coefficient of variation, or of a high
    percentile, is at most ± this share of it.

    Percentiles (p95, p99) by order statistics, which asks nothing of the distribution (David and
    Nagaraja 2003, section 7.1): until there are enough runs (72 for p95, 368 for p99, at 95 %) the
    interval has no upper end, and the rule goes on. Others by bootstrap.
    """

    statistic: str = "p99"
    target: float = 0.1
    level: float = 0.95
    least: int = 30

    def judge(self, values: np.ndarray) -> Decision:
        low, high = self._interval(values)
        if not np.isfinite([low, high]).all():
            return Decision(
                False,
                f"{values.size} runs are too few for an upper end of the interval of the"
                f" {self.statistic}",
            )
        middle = STATISTICS[self.statistic](values)
        return narrow(
            f"{self.level:.0%} interval of the {self.statistic}",
            (high - low) / 2 / abs(middle),
            self.target,
        )

    def _interval(self, values: np.ndarray) -> tuple[float, float]:
        if self.statistic in SHARES:
            return quantile_interval(values, SHARES[self.statistic], self.level)
        return bootstrap_interval(values, self.statistic, values.size, self.level, 400)


@dataclass(frozen=True)
class RareMode:
    """Made for tails: stop when a mode that holds this share of the runs would have been seen so
    many times with this probability.

    It depends on the number of runs only: 59 runs for a mode of 5 % to be seen once with 95 %, 93
    for twice.
    """

    weight: float = 0.05
    times: int = 3
    probability: float = 0.95

    def decide(self, values: Values, seconds_elapsed: float = 0.0) -> Decision:
        seen = self._seen_with(len(values))
        return Decision(
            seen >= self.probability,
            f"a mode of {self.weight:.1%} would have been seen {self.times} times with probability"
            f" {seen:.3f} (goal: {self.probability:.2f})",
        )

    @property
    def runs(self) -> int:
        """Runs after which it stops."""
        count = max(self.times, int(self.times / self.weight))
        while self._seen_with(count) < self.probability:
            count += 1
        while count > self.times and self._seen_with(count - 1) >= self.probability:
            count -= 1
        return count

    def _seen_with(self, runs: int) -> float:
        """Probability that so many runs show the mode often enough."""
        from scipy.stats import binom

        return float(binom.sf(self.times - 1, runs, self.weight))
