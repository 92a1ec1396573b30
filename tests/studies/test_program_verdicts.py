"""Answers of a study of one program, where the truth is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from nbhelpers.outcomes import Outcome
from nbhelpers.statistics import compare
from nbhelpers.studies.program_study.verdicts import CANNOT, _as_slow, _change


def runs(mean: float, spread: float, count: int = 20) -> np.ndarray:
    """Values whose mean and standard deviation are exactly these."""
    values = np.linspace(-1, 1, count)
    return mean + spread * values / values.std(ddof=1)


@pytest.mark.parametrize(
    ("replayed", "undisturbed", "expected"),
    [
        (runs(1.98, 0.02), runs(1.0, 0.02), "yes"),
        (runs(1.5, 0.02), runs(1.0, 0.02), "no"),
        (runs(1.9, 0.9), runs(1.0, 0.02), CANNOT),  # the interval holds 2, and much else
        (runs(2.0, 0.02), runs(2.0, 0.02), CANNOT),  # undisturbed runs are as slow
    ],
)
def test_a_replay_is_as_slow_as_the_worst_run_if_that_is_shown(replayed, undisturbed, expected):
    assert _as_slow(2.0, replayed, undisturbed) == expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (runs(1.1, 0.01), "yes"),
        (runs(0.9, 0.01), "no, the contrary"),
        (runs(1.001, 0.002), "no"),
        (runs(1.01, 0.1), CANNOT),
    ],
)
def test_that_nothing_changes_has_to_be_shown(after, expected):
    steps = SimpleNamespace(outcome=Outcome("seconds"))
    found = _change(steps, compare(runs(1.0, 0.002), after), "it", 20)
    assert found.answer == expected
    assert ("would settle it" in found.sentence) == (expected == CANNOT)
