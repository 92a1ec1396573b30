"""The interface of stopping rules: a decision with its reason, rules combined, and a rule applied
to runs that were recorded.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from ..errors import InputError
from .intervals import Values


@dataclass(frozen=True)
class Decision:
    """Whether to stop, and why (or why not yet)."""

    stop: bool
    reason: str


@runtime_checkable
class Rule(Protocol):
    """Anything with `decide`."""

    def decide(self, values: Values, seconds_elapsed: float = 0.0) -> Decision:
        """Look at the outcomes so far (in the order of the runs) and the time spent, s."""
        ...


@dataclass(frozen=True)
class RuleEvaluation:
    """Where a rule would have stopped.

    Attributes
    ----------
    runs
        After how many runs.
    reason
        Why.
    stopped
        False: the record ended before the rule stopped.
    """

    runs: int
    reason: str
    stopped: bool


def evaluate_rule(
    rule: Rule, values: Values, seconds: Values | None = None, every: int = 1
) -> RuleEvaluation:
    """Apply a rule after each recorded run.

    Parameters
    ----------
    values
        Outcomes in the order of the runs.
    seconds
        Time spent on each run, s; None: the outcomes themselves.
    every
        Apply it after every so many runs only.

    Raises
    ------
    InputError
        No runs.
    """
    outcomes = np.asarray(values, dtype=float)
    if not outcomes.size:
        raise InputError("there are no runs to evaluate")
    elapsed = np.cumsum(outcomes if seconds is None else np.asarray(seconds, dtype=float))
    decision = Decision(False, "the rule was not applied")
    for count in range(every, outcomes.size + 1, every):
        decision = rule.decide(outcomes[:count], float(elapsed[count - 1]))
        if decision.stop:
            return RuleEvaluation(count, decision.reason, True)
    return RuleEvaluation(outcomes.size, f"the record ended first: {decision.reason}", False)


@dataclass(frozen=True)
class AllOf:
    """Stop when all of several rules would."""

    rules: tuple[Rule, ...]

    def decide(self, values: Values, seconds_elapsed: float = 0.0) -> Decision:
        """Stop, or what the rules that go on wait for."""
        decisions = [rule.decide(values, seconds_elapsed) for rule in self.rules]
        waiting = [decision.reason for decision in decisions if not decision.stop]
        return Decision(
            not waiting, "; ".join(waiting or [decision.reason for decision in decisions])
        )


@dataclass(frozen=True)
class AnyOf:
    """Stop when one of several rules would, such as a goal or a budget."""

    rules: tuple[Rule, ...]

    def decide(self, values: Values, seconds_elapsed: float = 0.0) -> Decision:
        """Stop for the reason of the rules that would, or go on."""
        decisions = [rule.decide(values, seconds_elapsed) for rule in self.rules]
        done = [decision.reason for decision in decisions if decision.stop]
        return Decision(bool(done), "; ".join(done or [decision.reason for decision in decisions]))
