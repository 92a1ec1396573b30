"""When have there been enough runs? Rules that say stop or go on, and why; each can be evaluated on
recorded runs.

Owns the rule that chooses by the distribution, the one for tails, and the list of all. A rule has
no state: it looks at all runs so far each time.
"""

from dataclasses import dataclass

import numpy as np

from ._decision import AllOf, AnyOf, Decision, Rule, RuleEvaluation, evaluate_rule
from ._rules import (
    BlockBootstrap,
    ConfidenceInterval,
    Count,
    Duration,
    GaussianMixture,
    HighestDensityInterval,
    KolmogorovSmirnov,
    NarrowInterval,
    RareMode,
    RelativeStandardError,
    SampleRule,
)
from ._shape import fit_mixture, lag_one

__all__ = [
    "RULES",
    "Adaptive",
    "AllOf",
    "AnyOf",
    "BlockBootstrap",
    "ConfidenceInterval",
    "Count",
    "Decision",
    "Duration",
    "GaussianMixture",
    "HighestDensityInterval",
    "KolmogorovSmirnov",
    "NarrowInterval",
    "RareMode",
    "RelativeStandardError",
    "RuleEvaluation",
    "Rule",
    "for_tails",
    "evaluate_rule",
]


@dataclass(frozen=True)
class Adaptive(SampleRule):
    """Look at the distribution first, then apply the rule made for its kind.

    Constant: 20 runs. Dependent on the run before: block bootstrap. Several modes: mixture, and
    each seen. A tail: the interval of the 95th percentile. Else: the confidence interval of the
    mean. A small sample may not show its tail yet. So `unseen` (a mode of 5 % seen twice: 93 runs)
    must agree, except for constant samples.
    """

    target: float = 0.02
    least: int = 20
    unseen: RareMode = RareMode(0.05, 2)

    def judge(self, values: np.ndarray) -> Decision:
        """The decision of the rule made for this distribution."""
        kind, rule = self._rule(values)
        if kind != "constant":
            rule = AllOf((rule, self.unseen))
        decision = rule.decide(values)
        return Decision(decision.stop, f"{kind}: {decision.reason}")

    def _rule(self, values: np.ndarray) -> tuple[str, Rule]:
        if np.ptp(values) <= 1e-3 * abs(values.mean()):
            return "constant", Count(self.least)
        if lag_one(values) > 2.6 / np.sqrt(values.size):
            return "dependent", BlockBootstrap(self.target)
        mixture = fit_mixture(values, 3)
        if mixture.apart() > 4:
            return "modes", AllOf(
                (GaussianMixture(), RareMode(float(np.clip(mixture.weights.min(), 0.02, 0.5)), 5))
            )
        low, middle, high = np.quantile(values, 0.05), np.median(values), np.quantile(values, 0.95)
        if high - middle > 2 * (middle - low):
            return "tail", NarrowInterval("p95", 5 * self.target)
        return "one mode", ConfidenceInterval(self.target)


def for_tails(
    target: float = 0.1,
    weight: float = 0.05,
    times: int = 3,
    probability: float = 0.95,
    most: int | None = None,
) -> Rule:
    """The rule to take where the tail matters.

    It stops when the interval of the CV or of the p99 is narrow enough, and a rare mode would have
    been seen.

    Parameters
    ----------
    target
        Half width of the interval over the statistic.
    weight, times, probability
        Of a mode that must not have been missed.
    most
        Runs after which to stop in any case.
    """
    narrow = AnyOf((NarrowInterval("cv", target), NarrowInterval("p99", target)))
    goal = AllOf((RareMode(weight, times, probability), narrow))
    return AnyOf((goal, Count(most))) if most else goal


RULES: dict[str, Rule] = {
    "count": Count(),
    "duration": Duration(),
    "relative standard error": RelativeStandardError(),
    "confidence interval": ConfidenceInterval(),
    "highest-density interval": HighestDensityInterval(),
    "block bootstrap": BlockBootstrap(),
    "Gaussian mixture": GaussianMixture(),
    "Kolmogorov-Smirnov": KolmogorovSmirnov(),
    "adaptive": Adaptive(),
    "narrow CV": NarrowInterval("cv"),
    "narrow p99": NarrowInterval("p99"),
    "rare mode": RareMode(),
    "for tails": for_tails(),
}
