"""Mitigations are judged together: placebos are not said to help, what was planted is, and nothing
helps that was not shown twice.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from nbhelpers.mitigation import trials
from nbhelpers.mitigation.report import tried_table
from nbhelpers.mitigation.trials import judge_trials, open_verdict

TRIED = ("aslr-off", "jemalloc", "mimalloc", "tcmalloc")


def runs(mean: float, spread: float, rounds: int, random, slow: float = 0.0) -> pd.DataFrame:
    """Run times of one side; a share of the runs is slow by a half."""
    seconds = mean * np.exp(random.normal(0, spread, rounds) + 0.4 * (random.random(rounds) < slow))
    return pd.DataFrame({"seconds": seconds, "round": range(rounds)})


def page(random, planted: float = 1.0, rounds: int = 16, slow: float = 0.0) -> tuple[set, list]:
    """Verdicts of a page of four mitigations, the first of them with a planted effect; and those
    that are confirmed.
    """

    def pair(name: str):
        mean = planted if name == TRIED[0] else 1.0
        return runs(1.0, 0.05, rounds, random, slow), runs(mean, 0.05, rounds, random, slow)

    judged = judge_trials({name: pair(name) for name in TRIED})
    again = judge_trials(
        {name: pair(name) for name in TRIED if judged[name].verdict == trials.SEEMS}
    )
    confirmed = [name for name, trial in again.items() if trial.verdict == trials.SEEMS]
    return {trial.verdict for trial in judged.values()}, confirmed


@pytest.mark.parametrize("slow", [pytest.param(0.0, marks=pytest.mark.long), 0.2])
def test_of_200_placebos_none_is_confirmed_to_help(slow):
    """50 pages of 4; at most so many pages may seem to help as chance allows at 5 %."""
    random = np.random.default_rng(20 + int(10 * slow))
    pages = [page(random, slow=slow) for _ in range(50)]
    seeming = sum(bool(verdicts & {trials.SEEMS, trials.MIXED}) for verdicts, _ in pages)
    assert seeming <= binom.ppf(0.99, len(pages), 0.05)
    assert [confirmed for _, confirmed in pages if confirmed] == []


@pytest.mark.parametrize(
    "planted, rounds", [(0.9, 24), pytest.param(0.8, 16, marks=pytest.mark.long)]
)
def test_a_planted_effect_is_confirmed(planted, rounds):
    random = np.random.default_rng(30)
    pages = [page(random, planted, rounds) for _ in range(30)]
    assert sum(confirmed == [TRIED[0]] for _, confirmed in pages) >= 27


@pytest.mark.parametrize(
    "verdict, mean, spread",
    [
        *((trials.SEEMS, 0.8, 0.1), (trials.SEEMS, 1.0, 0.01)),
        *((trials.HARMS, 1.25, 0.1), (trials.MIXED, 1.25, 0.01)),
    ],
)
def test_a_verdict_needs_a_direction(verdict, mean, spread):
    random = np.random.default_rng(3)
    pair = runs(1.0, 0.1, 60, random), runs(mean, spread, 60, random)
    trial = judge_trials({"aslr-off": pair})["aslr-off"]
    assert trial.verdict == verdict


def test_equal_runs_have_no_effect_or_too_few_rounds_and_the_rounds_that_would_do():
    random = np.random.default_rng(4)
    pairs = {
        name: (runs(1.0, 0.02, rounds, random), runs(1.0, 0.02, rounds, random))
        for name, rounds in (("aslr-off", 80), ("jemalloc", 12))
    }
    table = tried_table(judge_trials(pairs), {"aslr-off": "memory-layout"})
    assert table["verdict"].to_dict() == {"aslr-off": trials.NO_EFFECT, "jemalloc": trials.TOO_FEW}
    assert np.isnan(table.loc["aslr-off", "needed"]) and table.loc["jemalloc", "needed"] > 12
    assert table.loc["aslr-off", "factor"] == "memory-layout"
    assert "would do" in open_verdict(table)
    assert open_verdict(table[:1]).startswith("None of 1 mitigation tried helps")


def test_what_helps_must_help_again():
    random = np.random.default_rng(5)
    first = judge_trials({"aslr-off": (runs(1, 0.1, 60, random), runs(0.8, 0.1, 60, random))})

    def verdict(mean: float, spread: float, rounds: int) -> str:
        pair = runs(1, spread, rounds, random), runs(mean, spread, rounds, random)
        return tried_table(first, {}, judge_trials({"aslr-off": pair})).loc["aslr-off", "verdict"]

    assert tried_table(first, {}).loc["aslr-off", "verdict"] == trials.SEEMS
    assert verdict(0.8, 0.1, 30) == trials.HELPS
    assert verdict(1.0, 0.02, 60) == verdict(1.2, 0.02, 30) == trials.NOT_AGAIN
    assert verdict(0.97, 0.1, 12) == trials.SEEMS  # too few rounds neither confirm nor refute it
