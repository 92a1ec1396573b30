"""Natural and planted traces are told apart."""

import pandas as pd

from nbhelpers.studies.persson import first_traced, natural_rows, planted_rows, trace_note
from nbhelpers.studies.persson.campaigns import WorstTrace

TABLE = pd.DataFrame({"trace": ["#1", "#2", "planted-omp", "planted-sycl"], "ratio": range(4)})


def trace(run: int, planted: bool = False) -> WorstTrace:
    return WorstTrace("nbody", "omp", "Rm", 1, run, 0.4, {}, planted=planted)


def test_rows_of_natural_traces():
    assert natural_rows(TABLE)["ratio"].tolist() == [0, 1]


def test_rows_of_the_trace_planted_beside_a_model():
    assert planted_rows(TABLE, "sycl")["ratio"].tolist() == [3]


def test_where_none_was_planted_all_rows_count():
    assert planted_rows(natural_rows(TABLE), "omp")["ratio"].tolist() == [0, 1]


def test_the_first_trace_is_one_that_was_recorded_and_not_planted():
    fallback, planted, natural = trace(-1), trace(3, planted=True), trace(7)
    assert first_traced([fallback, planted, natural]) is natural
    assert first_traced([fallback, planted]) is None
    assert trace_note(natural) == "Run 7 of nbody."
    assert trace_note(None) == ""
