"""The questions of fairness asked of runs whose truth is known: the answer follows it, and says
where nothing can be seen.
"""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbhelpers.report import published_table
from nbhelpers.statistics.claims import INCONCLUSIVE, NONE, NOT_MEASURABLE, REPRODUCED, REVERSED
from nbhelpers.studies.findings import findings_table

from .helpers import fairness
from .simulated import MODELS, PROGRAMS, WORST

BIAS = "own trace against the other model's, OpenMP and SYCL together"
ADDED = "what the fixed length makes of twice as long"
GAP_ADDED = "what the fixed length makes of SYCL / OpenMP"


def crossed(own: float, other: float, spread: float = 0.01, rounds: int = 8) -> pd.DataFrame:
    """Runs of both models under both models' traces; a program is slowed by `own` under its own
    model's, by `other` under the other's.
    """
    random, traces = np.random.default_rng(3), ("undisturbed", "planted-omp", "planted-sycl")
    cells = product(range(rounds), PROGRAMS, MODELS, traces)
    runs = pd.DataFrame(cells, columns=["round", "program", "model", "trace"])
    calm = runs["trace"] == "undisturbed"
    ratios = np.where(runs["trace"] == "planted-" + runs["model"], own, other)
    steal = random.uniform(0, 0.1, len(runs))
    runs["seconds"] = np.where(calm, 1.0, ratios) * random.normal(1, spread, len(runs))
    return runs.assign(steal_s=steal, mode=np.where(calm, "", "improved"), config="Rm", epoch=0)


def lengths(shrinks: bool, spread: float = 0.01, rounds: int = 8) -> pd.DataFrame:
    """Noise of fixed length adds 0.2 s to a run of 1 s and to one of 2 s, or (`shrinks` False) a
    fifth of either; noise that lasts adds a fifth.
    """
    kinds = ("undisturbed", "fixed", "scaled")
    cells = product(range(rounds), PROGRAMS, MODELS, ("x1", "x2"), kinds)
    runs = pd.DataFrame(cells, columns=["round", "program", "model", "length", "noise_kind"])
    seconds = np.where(runs["length"] == "x1", 1.0, 2.0)
    fixed = (runs["noise_kind"] == "fixed") & shrinks
    added = np.where(fixed, 0.2, 0.2 * seconds) * (runs["noise_kind"] != "undisturbed")
    noise = np.random.default_rng(5).normal(1, spread, len(runs))
    runs = runs.assign(run=runs.index, steal_s=0.0, injected_ns=added * 1e9)
    return runs.assign(seconds=(seconds + added) * noise)


def row(table: pd.DataFrame, comparison: str) -> pd.Series:
    return table.set_index("comparison").loc[comparison]


def crossing(runs: pd.DataFrame, worst: pd.DataFrame = WORST) -> pd.DataFrame:
    return fairness(runs, worst)["crossing"]


def judged(runs: pd.DataFrame, of_lengths: pd.DataFrame | None = None) -> pd.DataFrame:
    worst = WORST[WORST["model"].isin(set(runs["model"]))]
    return findings_table(fairness(runs, worst, of_lengths)["findings"])


def verdict(table: pd.DataFrame, name: str) -> str:
    [claim] = published_table("persson2025-claims1").query("first == @name")["claim"]
    return table.set_index("finding").loc[claim, "verdict"]


@pytest.mark.parametrize(
    ("own", "other", "spread", "expected"),
    [
        (1.3, 1.3, 0.01, REPRODUCED),
        (1.5, 1.2, 0.01, REVERSED),
        (1.3, 1.3, 0.2, INCONCLUSIVE),
    ],
)
def test_traces_are_fair_if_they_treat_both_models_alike(own, other, spread, expected):
    runs = crossed(own, other, spread)
    found = row(crossing(runs), BIAS)
    assert verdict(judged(runs), BIAS) == expected
    assert found.low_percent < 100 * (own / other - 1) < found.high_percent
    assert (found.pairs, found.rounds) == (24, 8)


def test_the_effect_is_that_of_plain_pairs_and_a_round_is_one_unit():
    runs = crossed(1.4, 1.3)
    wide = np.log(runs.pivot_table("seconds", ["program", "round"], ["model", "trace"]))
    omp = wide["omp", "planted-omp"] - wide["omp", "planted-sycl"]
    sycl = wide["sycl", "planted-sycl"] - wide["sycl", "planted-omp"]
    effects = (omp + sycl) / 2
    rounds = effects.groupby("round").mean()
    low, high = stats.t.interval(0.95, 7, loc=effects.mean(), scale=stats.sem(rounds))
    found = row(crossing(runs), BIAS)
    shown = found[["effect_percent", "low_percent", "high_percent"]].astype(float)
    assert np.allclose(shown, 100 * np.expm1([effects.mean(), low, high]))


@pytest.mark.parametrize(
    ("shrinks", "spread", "expected"),
    [(True, 0.01, REPRODUCED), (False, 0.01, NONE), (True, 0.25, INCONCLUSIVE)],
)
def test_the_length_of_the_noise(shrinks, spread, expected):
    runs, of_lengths = crossed(1.3, 1.3), lengths(shrinks, spread)
    found = judged(runs, of_lengths)
    assert verdict(found, ADDED) == expected
    if spread < 0.1:
        table = fairness(runs, WORST, of_lengths)["answers"]
        fixed = row(table, "twice as long, noise of fixed length").effect_percent
        assert abs(fixed - (100 * (1.1 / 1.2 - 1) if shrinks else 0)) < 1
        assert abs(row(table, "twice as long, noise as long as the run").effect_percent) < 1
        assert verdict(found, GAP_ADDED) == NONE


def test_without_sycl_or_without_planted_noise_nothing_is_said():
    alone = crossed(1.3, 1.3).query("model == 'omp'")
    table = crossing(alone, WORST.query("model == 'omp'"))
    assert table["effect_percent"].isna().all() and (table["why"] != "").all()
    found = judged(alone)
    assert set(found["verdict"]) == {NOT_MEASURABLE} and (found["why"] != "").all()
    of_omp = lengths(True).query("model == 'omp'")
    assert verdict(judged(alone, of_omp), ADDED) == REPRODUCED
