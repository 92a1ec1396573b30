"""The simulations of the stage on scale: which sizes they have, and that each is simulated once."""

import pytest

from nbhelpers.report import published_table
from nbhelpers.studies.scale import (
    Simulations,
    Sizes,
    beckman_table,
    correlation_sentence,
    regular_sentence,
)


def sizes(ranks: int = 64) -> Sizes:
    programs = dict.fromkeys(("code_ranks", "pop_ranks", "program_ranks"), 8)
    return Sizes(ranks, 2, large_ranks=32, large_seeds=2, **programs)


@pytest.fixture
def simulations(tmp_path):
    return Simulations(
        tmp_path,
        sizes(),
        share=0.05,
        pop_share=0.05,
        calls=4,
    )


def test_steps_are_every_second_power_of_two_and_the_largest():
    assert sizes(64).steps() == [2, 8, 32, 64]
    assert sizes(64).steps_to(16) == [2, 8, 16]
    assert sizes(2**20).steps()[-2:] == [2**17, 2**20]


def test_a_table_is_simulated_once_and_cached(simulations):
    assert simulations.regular is simulations.regular
    assert (simulations.folder / "regular.csv").exists()
    assert not (simulations.folder / "regular-large.csv").exists(), "no more than 32,768 ranks"
    assert set(simulations.regular["ranks"]) == {2, 8, 32, 64}


def test_simulated_times_are_those_of_the_closed_forms(simulations):
    forms = simulations.closed_forms
    assert (forms["cases"] > 0).all()
    assert (forms["largest_difference_ns"] == 0).all()
    assert (forms["least_difference_ns"] == 0).all()


def test_the_sentence_on_regular_noise_has_the_largest_number_of_ranks(simulations):
    regular = simulations.regular
    alone = regular[(regular["ranks"] == 64) & ~regular["cosched"]].iloc[0]
    assert f"on 64 ranks **{alone['median']:.1f}** times" in regular_sentence(regular)


def test_beckmans_noises_stand_beside_the_published_ones(simulations):
    table = beckman_table(simulations.beckman, published_table("beckman2006-text1"))
    assert set(table["ranks"]) == {32}
    assert {"published", "reference"} <= set(table.columns)
    assert table["noise"].isin(simulations.beckman["noise"]).all()


def test_the_sentence_on_overhead_has_the_correlation_and_its_case():
    results = {"overhead-rank": {"median": -0.724, "case": "9 systems, p = 0.03, 64 ranks"}}
    assert correlation_sentence(results) == (
        "The rank correlation of overhead and slow-down is -0.72 (9 systems, p = 0.03, 64 ranks)."
    )
