"""Answers of a study of one program, where the truth is known."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain
from nbhelpers.mitigation.trials import TOO_FEW
from nbhelpers.outcomes import Outcome
from nbhelpers.statistics import compare
from nbhelpers.studies.known import NOTHING, is_shown
from nbhelpers.studies.program_study.plan import FEWEST_REPLAYED, plan_study
from nbhelpers.studies.program_study.verdicts import CANNOT, _came_back, _cause, _change, _remedy


def runs(mean: float, spread: float, count: int = 20) -> np.ndarray:
    """Values whose mean and standard deviation are exactly these."""
    values = np.linspace(-1, 1, count)
    return mean + spread * values / values.std(ddof=1)


@pytest.mark.parametrize(
    ("replayed", "undisturbed", "expected", "is_grade"),
    [
        (runs(1.98, 0.02), runs(1.0, 0.02), "yes", True),
        (runs(1.2, 0.02), runs(1.0, 0.02), "no", False),
        (runs(1.6, 0.02), runs(1.0, 0.02), "60 % of it", True),
        (runs(1.6, 0.7), runs(1.0, 0.02), "60 % of it", False),  # perhaps less than a half
        (runs(2.22, 0.5), runs(1.0, 0.02), "yes", True),  # perhaps no more than all
        (runs(2.5, 0.5), runs(1.0, 0.02), "150 % of it", False),  # the replay is too strong
        (runs(1.9, 2.9), runs(1.0, 0.02), CANNOT, False),  # the interval holds 2, and much else
        (runs(2.0, 0.02), runs(1.99, 0.02), NOTHING, False),  # undisturbed runs are as slow
        (runs(1.98, 0.02, 5), runs(1.0, 0.02, 5), CANNOT, False),  # five rounds say nothing
    ],
)
def test_a_replay_is_judged_by_how_much_comes_back(replayed, undisturbed, expected, is_grade):
    rounds = pd.DataFrame({"baseline": undisturbed, "injected": replayed[::-1]})
    found = _came_back(rounds, 2.0, seed=1)
    assert found.answer == expected and is_shown(found.answer, found.low) == is_grade
    excess = (replayed.mean() - undisturbed.mean()) / (2 - undisturbed.mean())
    assert found.value == pytest.approx(excess) and found.low < excess < found.high


def test_a_remedy_far_from_none_is_named_though_too_few_rounds_confirm_it():
    row = {"verdict": TOO_FEW, "mean_ratio": 0.838, "mean_low": 0.827, "runs": 8, "needed": 508}
    rows = [row | {"mean_high": 0.849}, row | {"mean_high": 1.1}]
    for count, expected in ((2, "shown once"), (1, CANNOT)):
        tried = pd.DataFrame(rows[-count:], index=["malloc-huge", "jemalloc"][-count:])
        found = _remedy(SimpleNamespace(treatments=SimpleNamespace(tried=tried, helped=[])))
        assert found.answer == expected and ("malloc-huge" in found.sentence) == (count == 2)


@pytest.mark.parametrize("run_s", [0.0123, 0.3, 1.0, 7.7, 60.0])
def test_the_time_that_is_suggested_for_replays_is_enough_and_not_much_more(run_s):
    needed = plan_study(run_s, runs=0).seconds_for_replays()
    assert plan_study(run_s, max(needed, 9 * run_s)).replayed >= FEWEST_REPLAYED
    assert plan_study(run_s, max(needed - 1 - run_s, 9 * run_s)).replayed < FEWEST_REPLAYED


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


@pytest.mark.parametrize(("share", "expected"), [(1.0, "yes"), (0.0, "seen once")])
def test_a_counter_that_separates_counts_if_it_comes_back_in_other_runs(share, expected):
    random = np.random.default_rng(5)

    def campaign(share: float) -> pd.DataFrame:
        faults = np.where(random.random(40) < 0.3, 900, 100) + random.integers(0, 50, 40)
        seconds = 1 + share * faults / 1000 + random.normal(0, 0.02, 40)
        columns = {"seconds": seconds, "wall_seconds": seconds, "page_faults": faults}
        return pd.DataFrame({"run": range(40), "cell": "untraced", **columns})

    found = explain(campaign(1.0), permutations=200, seed=1)
    treatments = SimpleNamespace(explanation=found, baseline=range(40), factors=pd.DataFrame())
    traced = SimpleNamespace(runs=campaign(share), is_program=True)
    steps = SimpleNamespace(treatments=treatments, traced=traced, outcome=Outcome("seconds"))
    verdict = _cause(steps)
    assert verdict.answer == expected and "In 40 other runs it" in verdict.sentence
    traced.is_program = False  # the runs of a loop say nothing of the program's counter
    verdict = _cause(steps)
    assert verdict.answer == "yes" and "other runs" not in verdict.sentence
