"""The questions of fairness asked of runs whose truth is known: the answer follows it, and says
where nothing can be seen.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbhelpers.studies.persson import crossing_table, fairness_sentences, length_cells, length_table
from nbhelpers.studies.persson.campaigns import WorstTrace
from nbhelpers.studies.persson.fairness_tables import (
    ADDED,
    BIAS,
    DIFFERENT,
    GAP_ADDED,
    LONGER_FIXED,
    LONGER_SCALED,
    SAME,
    UNSEEN,
    answer,
)

PROGRAMS = ("nbody", "stream", "minife")
PLANTED = [
    WorstTrace(program, model, "Rm", 1, 0, 2.0, {}, planted=True)
    for program in PROGRAMS
    for model in ("omp", "sycl")
]


def crossed(
    own: float, other: float, spread: float = 0.01, steal_per_s: float = 0.0, rounds: int = 8
) -> pd.DataFrame:
    """Runs of both models under both models' traces; a program is slowed by `own` under its own
    model's, by `other` under the other's.
    """
    random, rows = np.random.default_rng(3), []
    for number in range(rounds):
        for program in PROGRAMS:
            for model in ("omp", "sycl"):
                for trace in ("undisturbed", "planted-omp", "planted-sycl"):
                    ratio = (
                        1.0 if trace == "undisturbed" else own if trace.endswith(model) else other
                    )
                    steal = random.uniform(0, 0.1)
                    rows.append(
                        {
                            "program": program,
                            "model": model,
                            "config": "Rm",
                            "trace": trace,
                            "mode": "" if trace == "undisturbed" else "improved",
                            "round": number,
                            "seconds": (
                                ratio * random.normal(1, spread) * np.exp(steal_per_s * steal)
                            ),
                            "steal_s": steal,
                        }
                    )
    return pd.DataFrame(rows)


def lengths(shrinks: bool, spread: float = 0.01, rounds: int = 8) -> pd.DataFrame:
    """Noise of fixed length adds 0.2 s to a run of 1 s and to one of 2 s, or (`shrinks` False) a
    fifth of either; noise that lasts adds a fifth.
    """
    random, rows = np.random.default_rng(5), []
    for number in range(rounds):
        for program in PROGRAMS:
            for model in ("omp", "sycl"):
                for length, seconds in (("x1", 1.0), ("x2", 2.0)):
                    added = {
                        "undisturbed": 0.0,
                        "fixed": 0.2 if shrinks else 0.2 * seconds,
                        "scaled": 0.2 * seconds,
                    }
                    rows += [
                        {
                            "run": len(rows),
                            "program": program,
                            "model": model,
                            "length": length,
                            "noise_kind": kind,
                            "round": number,
                            "steal_s": 0.0,
                            "injected_ns": more * 1e9,
                            "seconds": (seconds + more) * random.normal(1, spread),
                        }
                        for kind, more in added.items()
                    ]
    return pd.DataFrame(rows)


def row(table: pd.DataFrame, comparison: str) -> pd.Series:
    return table.set_index("comparison").loc[comparison]


@pytest.mark.parametrize(
    ("own", "other", "spread", "said"),
    [(1.3, 1.3, 0.01, SAME), (1.5, 1.2, 0.01, DIFFERENT), (1.3, 1.3, 0.2, UNSEEN)],
)
def test_traces_are_fair_if_they_treat_both_models_alike(own, other, spread, said):
    found = row(crossing_table(crossed(own, other, spread), PLANTED), BIAS)
    assert (
        found.answer == said
        and found.low_percent < 100 * (own / other - 1) < found.high_percent
        and found.pairs == 24
    )


def test_the_effect_is_that_of_plain_pairs():
    runs = crossed(1.4, 1.3)
    wide = np.log(
        runs.pivot_table(index=["program", "round"], columns=["model", "trace"], values="seconds")
    )
    effects = (
        wide["omp", "planted-omp"]
        - wide["omp", "planted-sycl"]
        + wide["sycl", "planted-sycl"]
        - wide["sycl", "planted-omp"]
    ) / 2
    low, high = stats.t.interval(0.95, 23, loc=effects.mean(), scale=stats.sem(effects))
    found = row(crossing_table(runs, PLANTED), BIAS)
    assert np.allclose(
        [found.effect_percent, found.low_percent, found.high_percent],
        100 * np.expm1([effects.mean(), low, high]),
    )


def test_what_the_hypervisor_took_is_held_fixed():
    """Steal that slows only by chance more of one side: the adjusted effect comes nearer to the
    truth.
    """
    runs = crossed(1.3, 1.3, spread=0.002, steal_per_s=3.0)
    more = (runs["trace"] == "planted-omp") & (runs["model"] == "omp")
    runs.loc[more, "seconds"] *= np.exp(3.0 * 0.05)
    runs.loc[more, "steal_s"] += 0.05
    found = row(crossing_table(runs, PLANTED), "OpenMP: own trace against SYCL's")
    assert found.effect_percent > 8 and abs(found.adjusted_percent) < 1


@pytest.mark.parametrize(
    ("shrinks", "spread", "said"),
    [(True, 0.01, "**yes**"), (False, 0.01, "**no**"), (True, 0.25, "**cannot be seen here**")],
)
def test_the_length_of_the_noise(shrinks, spread, said):
    table = length_table(lengths(shrinks, spread))
    assert said in fairness_sentences(crossing_table(crossed(1.3, 1.3), PLANTED), table)[1]
    if spread < 0.1:
        assert (
            abs(row(table, LONGER_FIXED).effect_percent - (100 * (1.1 / 1.2 - 1) if shrinks else 0))
            < 1
        )
        assert row(table, LONGER_SCALED).answer == row(table, GAP_ADDED).answer == SAME and row(
            table, ADDED
        ).answer == (DIFFERENT if shrinks else SAME)
        cells = length_cells(lengths(shrinks)).set_index(["benchmark", "model", "length", "noise"])
        assert np.isclose(
            cells.loc[("N-body", "OMP", "x2", "scaled"), "noise_percent"], 100 / 6, rtol=0.02
        )


def test_without_sycl_or_without_planted_noise_nothing_is_said():
    alone = crossed(1.3, 1.3).query("model == 'omp'")
    table = crossing_table(alone, [trace for trace in PLANTED if trace.model == "omp"])
    assert set(table["answer"]) == {UNSEEN} and length_cells(None).empty
    assert all(
        "cannot be seen here" in sentence
        for sentence in fairness_sentences(table, length_table(None))
    )
    assert (
        row(length_table(lengths(True).query("model == 'omp'")), LONGER_FIXED).answer == DIFFERENT
    )


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (-0.02, 0.03, SAME),
        (0.01, 0.04, SAME),
        (0.01, 0.2, DIFFERENT),
        (-0.3, -0.06, DIFFERENT),
        (-0.2, 0.1, UNSEEN),
    ],
)
def test_the_rule_looks_at_the_interval_alone(low, high, said):
    assert answer(low, high) == said
