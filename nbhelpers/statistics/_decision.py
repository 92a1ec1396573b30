"""The interface of stopping rules: a decision with its reason, rules combined, a rule replayed on
recorded runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from ..errors import InputError


@dataclass(frozen=True)
class Decision:
    """Whether to stop, and why (or why not yet)."""

    stop: bool
    reason: str


@runtime_checkable
class Rule(Protocol):
    """Anything with `decide`."""

    def decide(self, values: Sequence[float], seconds_elapsed: float = 0.0) -> Decision:
        """Look at the outcomes so far (in the order of the runs) and the time spent, s."""


@dataclass(frozen=True)
class RuleEvaluation:
    """Where a rule would have stopped: after how many runs, why, and whether it stopped at all
    before the record ended.
    """

    runs: int
    reason: str
    stopped: bool


def evaluate_rule(
    rule: Rule, values: Sequence[float], seconds: Sequence[float] | None = None, every: int = 1
) -> RuleEvaluation:
    """Ask a rule after each recorded run.

    Parameters
    ----------
    values
        Outcomes in the order of the runs.
    seconds
        Time spent on each run, s; None: the outcomes themselves.
    every
        Ask after every so many runs only.

    Raises
    ------
    InputError
        No runs.
    """
    values = np.asarray(values, dtype=float)
    if not values.size:
        raise InputError("there are no runs to evaluate")
    elapsed = np.cumsum(values if seconds is None else np.asarray(seconds, dtype=float))
    decision = Decision(False, "never asked")
    for count in range(every, values.size + 1, every):
        decision = rule.decide(values[:count], float(elapsed[count - 1]))
        if decision.stop:
            return RuleEvaluation(count, decision.reason, True)
    return RuleEvaluation(values.size, f"the record ended first: {decision.reason}", False)


@dataclass(frozen=True)
class AllOf:
    """Stop when all of several rules would."""

    rules: tuple[Rule, ...]

    def decide(self, values: Sequence[float], seconds_elapsed: float = 0.0) -> Decision:
        decisions = [rule.decide(values, seconds_elapsed) for rule in self.rules]
        waiting = [decision.reason for decision in decisions if not decision.stop]
        return Decision(
            not waiting, "; ".join(waiting or [decision.reason for decision in decisions])
        )


@dataclass(frozen=True)
class AnyOf:
    """Stop when one of several rules would, such as a goal or a budget."""

    rules: tuple[Rule, ...]

    def decide(self, values: Sequence[float], seconds_elapsed: float = 0.0) -> Decision:
        decisions = [rule.decide(values, seconds_elapsed) for rule in self.rules]
        done = [decision.reason for decision in decisions if decision.stop]
        return Decision(bool(done), "; ".join(done or [decision.reason for decision in decisions]))
