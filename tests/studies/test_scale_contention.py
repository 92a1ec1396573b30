"""Shared links beside the packet simulator's cases: flows as the cases say, and sums by hand."""

import numpy as np
import pytest

from nbhelpers.errors import InputError
from nbhelpers.report import published_table
from nbhelpers.studies.scale.contention import contention_table, flows_of, incast_sentence

NAME = "olteanu2022-flows1"
SIZE_NS = 1_999_999 * 8 / 100 * 4150 / 4086


@pytest.fixture(scope="module")
def cases():
    return published_table(NAME).query("nodes <= 128")


@pytest.fixture(scope="module")
def table(cases):
    return contention_table(cases, seeds=2).set_index("case")


def test_the_latency_is_that_of_one_message(table):
    assert table.loc["one", ["plain_us", "shared_us"]].tolist() == pytest.approx([177.8, 177.8])


def test_incasts_take_the_last_link_as_often_as_there_are_senders(table):
    latency_us = 177.8 - SIZE_NS / 1e3
    incasts = table[table.index.str.startswith("incast")]
    assert len(incasts) == 8
    by_hand = incasts["flows"] * SIZE_NS / 1e3 + latency_us
    np.testing.assert_allclose(incasts["shared_us"], by_hand, rtol=1e-6)
    np.testing.assert_allclose(incasts["plain_us"], 177.8, rtol=1e-6)
    assert table.loc["oversubscribed", "shared_us"] == pytest.approx(4 * 162.5 + latency_us, 1e-3)


def test_a_permutation_on_all_ways_is_as_one_message(table):
    for nodes in (16, 128):
        row = table.loc[f"permutation-{nodes}"]
        assert row["low_us"] == row["high_us"] == pytest.approx(177.8, abs=0.01)
        assert table.loc[f"permutation-{nodes}-hash", "shared_us"] > 1.5 * row["shared_us"]


def test_the_published_numbers_stand_beside(table, cases):
    published = cases.set_index("case")
    np.testing.assert_allclose(table["published_us"], published["middle_us"])
    inside = published["high_us"] <= published["bound_us"]
    assert inside[published["bound_us"].notna()].all(), "its own validation passes"


def test_the_sentence_has_the_largest_incast(table):
    sentence = incast_sentence(table.reset_index())
    assert "127 nodes 118 times too early" in sentence and "8 incasts" in sentence


def test_each_case_has_as_many_messages_as_flows(cases):
    for case in cases.itertuples():
        schedule = flows_of(case)
        assert (schedule.kind == 1).sum() == case.flows and schedule.ranks == case.nodes
        assert (schedule.column("size") == case.bytes).all()


def test_unknown_cases_are_refused(cases):
    with pytest.raises(InputError, match="one"):
        contention_table(cases[cases["case"] != "one"])
    with pytest.raises(InputError, match="no pattern"):
        contention_table(cases.assign(pattern="chaos"))
