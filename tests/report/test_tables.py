"""Tables of a study: the published values stand beside ours, and ours have a count and an
interval.
"""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mstats, trim_mean

from nbhelpers.report import Provenance, accuracy_table, found_html, overhead_table
from nbhelpers.statistics import compare


def runs_of(mean: float, count: int = 50, seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(
        {"seconds": np.random.default_rng(seed).normal(mean, 0.01 * mean, count), "status": "ok"}
    )


def test_the_overhead_table_has_the_papers_three_programs_and_ours():
    table = overhead_table(compare(runs_of(0.40), runs_of(0.404, seed=1)), "nbody", 50)
    assert len(table) == 4 and table["benchmark"].iloc[0] == "Persson et al. 2025: N-body"
    ours = table.iloc[-1]
    assert (
        ours["increase_percent"] == pytest.approx(1, abs=0.6)
        and ours["low_percent"] < ours["increase_percent"] < ours["high_percent"]
    )
    assert table["increase_percent"].iloc[:3].tolist() == [0.67, 0.72, 0.25]
    before, after = (
        trim_mean(runs["seconds"], 0.1) for runs in (runs_of(0.40), runs_of(0.404, seed=1))
    )
    assert ours["trimmed_percent"] == pytest.approx(100 * (after / before - 1))
    assert ours["trimmed_low_percent"] < ours["trimmed_percent"] < ours["trimmed_high_percent"]


def test_the_accuracy_table_has_the_papers_ten_and_a_control():
    table = accuracy_table(0.5, runs_of(0.49), runs_of(0.40), "nbody")
    assert len(table) == 12 and table["error_percent"].iloc[:10].mean() == pytest.approx(
        8.57, abs=0.01
    )
    replayed, control = table.iloc[10], table.iloc[11]
    assert (
        replayed["error_percent"] == pytest.approx(2, abs=0.5)
        and replayed["low"] < 0.98 < replayed["high"]
    )
    assert control["error_percent"] == pytest.approx(20, abs=0.5), (
        "not disturbed, the program is far from the anomaly"
    )
    seconds = runs_of(0.49)["seconds"]
    assert replayed["median_ratio"] == pytest.approx(seconds.median() / 0.5)
    low, high = mstats.trimmed_mean_ci(seconds.to_numpy(), limits=(0.1, 0.1)) / 0.5
    assert replayed["trimmed_ratio_low"] == pytest.approx(low)
    assert replayed["trimmed_ratio_high"] == pytest.approx(high)


def test_provenance_shows_itself(tmp_path):
    (tmp_path / "provenance").mkdir()
    (tmp_path / "provenance/10-x.json").write_text(
        json.dumps({"commit": "abc", "parameters": {"runs": 3}})
    )
    assert "<strong>3 s</strong> &amp; &lt;m&gt;" in found_html(["It took **3 s** & <m>."])
    assert "abc" in Provenance(tmp_path / "provenance")._repr_html_()
    assert "<script>" not in found_html(["<script>"])
