"""The papers' numbers: do they add up the way the papers say?"""

import pandas as pd
import pytest

from nbhelpers.report.publications import published_table, published_table_names

CASE = ["platform", "benchmark", "model", "smt", "config"]
CONFIGS = ["Rm", "RmHK", "RmHK2", "TP", "TPHK", "TPHK2"]


def tables_3_to_5():
    tables = [published_table(f"persson2025-table{number}") for number in (3, 4, 5)]
    return pd.concat(tables, ignore_index=True)


def test_every_table_tells_where_it_is_from():
    names = published_table_names()
    assert [f"persson2025-table{number}" in names for number in range(1, 8)] == [True] * 7
    for name in names:
        attributes = published_table(name).attrs
        assert attributes["table"] == name[-1]
        assert attributes["paper"] and attributes["doi"] and attributes["caption"]


def test_table_1_increases_follow_from_its_times():
    table = published_table("persson2025-table1")
    increase = 100 * (table["tracing_on_seconds"] / table["tracing_off_seconds"] - 1)
    assert (increase - table["increase_percent"]).abs().max() <= 0.006


def test_noise_configs_of_a_case_imply_the_same_baseline():
    """seconds / (1 + increase) is the baseline, and the paper has one baseline for both noise
    configs: an error of typing shows.
    """
    cells = tables_3_to_5()
    baseline = cells["seconds"] / (1 + cells["increase_percent"] / 100)
    same = baseline.groupby([cells[key] for key in CASE])
    assert (same.max() / same.min() - 1).max() < 0.002


def test_table_7_averages_to_what_the_text_says():
    accuracy = published_table("persson2025-table7")["accuracy_percent"]
    assert len(accuracy) == 10
    assert accuracy.mean() == pytest.approx(8.57, abs=0.005)
    assert (accuracy <= 8).sum() == 7 and accuracy[accuracy > 8].between(15.5, 23).all()
