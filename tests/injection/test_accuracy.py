"""Accuracy of logs made by hand against numbers worked out by hand, and against brute force."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbhelpers.errors import InputError
from nbhelpers.injection import accuracy_of, workload_accuracy
from nbhelpers.injection.accuracy import quantile_interval
from nbhelpers.injection.log import OUTCOMES, join_logs, shared_noise_ns, summarise

from .helpers import table_of

MS = 1_000_000


def log_of(rows):
    """A log of rows with the times in ms."""
    names = (
        "kind policy planned_start_ns planned_duration_ns replayed_ns taken_ns end_ns cpu_time_ns"
        " outcome carrier"
    )
    log = table_of(names, rows, MS)
    return log.assign(
        start_ns=log["taken_ns"],
        replay_start_ns=log["planned_start_ns"],
        outcome=pd.Categorical(log["outcome"], OUTCOMES),
        cpu=0,
        event=range(len(log)),
        intensity=np.nan,
        achieved=np.nan,
    )


CARRIED = log_of(
    [
        (
            "irq",
            "SCHED_FIFO",
            1,
            0.03,
            0.05,
            1,
            1.06,
            0.05,
            "injected",
            -1,
        ),  # carries 0.02 of the next: took 0.06 for 0.05
        ("irq", "", 1.5, 0.02, 0, 0, 0, 0, "coalesced", 0),
        ("irq", "", 9, 0.01, 0, 0, 0, 0, "below floor", -1),
        ("thread", "SCHED_OTHER", 12, 2, 2, 12, 18, 2.1, "injected", -1),
    ]
)


def test_what_a_carrier_took_is_shared_out_and_the_floors_part_is_stated():
    assert shared_noise_ns(CARRIED).tolist() == pytest.approx([36_000, 24_000, 0, 2_100_000])
    irq = accuracy_of(CARRIED).classes.loc["irq"]
    assert (
        irq["planned_ms"] == pytest.approx(0.05)
        and irq["injected_ms"] == pytest.approx(0.06)
        and irq["injected_over_planned"] == pytest.approx(1.2)
    )
    assert irq["floor_ms"] == pytest.approx(0.01) and irq["floor_share"] == pytest.approx(1 / 6)
    assert irq[["injected", "coalesced", "below floor"]].tolist() == [1, 1, 1]
    assert (
        summarise(CARRIED)["below_floor_ns"] == 10_000
        and summarise(CARRIED)["coalesced_events"] == 1
    )


def test_logs_put_together_keep_their_carriers():
    both = join_logs({4: CARRIED, 9: CARRIED})
    assert (
        both["carrier"].tolist() == [-1, 0, -1, -1, -1, 4, -1, -1]
        and both["run"].tolist() == [4] * 4 + [9] * 4
    )
    one, two = accuracy_of(CARRIED).classes, accuracy_of(both).classes
    assert two["planned_ms"].tolist() == pytest.approx((2 * one["planned_ms"]).tolist())
    assert two["injected_over_planned"].tolist() == pytest.approx(
        one["injected_over_planned"].tolist()
    )


def test_the_bins_hold_what_fell_into_them():
    bins = accuracy_of(CARRIED).bins.set_index(["kind", "bin_ms"])
    assert bins.loc[("thread", 10.0)].tolist() == pytest.approx([2, 2.1]) and bins.loc[
        ("irq", 0.0)
    ].tolist() == pytest.approx([0.05, 0.06])
    random = np.random.default_rng(1)
    starts, lengths = random.uniform(0, 90, 40), random.uniform(0.1, 30, 40)
    log = log_of(
        [
            (
                "irq",
                "SCHED_FIFO",
                start,
                length,
                length,
                start,
                start + 2 * length,
                length,
                "injected",
                -1,
            )
            for start, length in zip(starts, lengths)
        ]
    )
    bins = accuracy_of(log).bins
    for row in bins.itertuples():
        planned = sum(
            max(0, min(start + length, row.bin_ms + 10) - max(start, row.bin_ms))
            for start, length in zip(starts, lengths)
        )
        injected = sum(
            max(0, min(start + 2 * length, row.bin_ms + 10) - max(start, row.bin_ms))
            for start, length in zip(starts, lengths)
        )
        assert (row.planned_ms, row.injected_ms) == pytest.approx((planned, injected), abs=1e-5)
    assert accuracy_of(log).classes.loc["irq", "correlation"] == pytest.approx(
        np.corrcoef(bins["planned_ms"], bins["injected_ms"])[0, 1]
    )


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_the_interval_of_a_quantile_covers_the_truth_in_nineteen_of_twenty_cases(share):
    random = np.random.default_rng(2)
    intervals = [
        quantile_interval(pd.Series(random.exponential(10, 600)), share) for _ in range(400)
    ]
    assert (
        0.92 <= np.mean([low <= -10 * np.log(1 - share) <= high for low, high in intervals]) <= 0.99
    )


def test_each_error_has_its_interval():
    log = log_of(
        [
            ("irq", "SCHED_FIFO", 0, 1, 1, 0, 1 + error / 1000, 1, "injected", -1)
            for error in range(101)
        ]
    )
    row = accuracy_of(log).events.loc["real-time"]
    assert (
        row["duration_bias_us"] == 50
        and row["duration_bias_low_us"] < 50 < row["duration_bias_high_us"]
    )
    assert (
        row["duration_p99_us"] == 99
        and row["duration_p99_low_us"] <= 99 <= row["duration_p99_high_us"]
        and row["start_bias_us"] == 0
    )


def test_what_does_not_occupy_a_cpu_has_a_level_of_its_own():
    log = pd.concat(
        [CARRIED, log_of([("membw", "SCHED_OTHER", 20, 5, 5, 20, 25, 4, "injected", -1)] * 3)],
        ignore_index=True,
    )
    log.loc[4:, "intensity"], log.loc[4:, "achieved"] = 10.0, [8.0, 9.0, 11.0]
    accuracy = accuracy_of(log)
    assert list(accuracy.classes.index) == ["irq", "thread"] and accuracy.kinds.loc[
        "membw", "median"
    ] == pytest.approx(0.9)
    assert (
        summarise(log)["injected_ns"] == summarise(CARRIED)["injected_ns"]
        and summarise(log)["injected_planned_ns"] == summarise(CARRIED)["injected_planned_ns"]
    )


def test_the_level_of_the_workload():
    random = np.random.default_rng(3)
    anomaly = random.normal(0.5, 0.01, 60)
    good = random.normal(0.5, 0.01, 60)
    bad = random.normal(0.4, 0.01, 60)
    table = workload_accuracy(anomaly, good, bad)
    assert table.loc["replayed", "ratio"] == pytest.approx(
        good.mean() / anomaly.mean()
    ) and table.loc["undisturbed", "error"] == pytest.approx(1 - bad.mean() / anomaly.mean())
    assert (
        table.loc["replayed", "wasserstein_share"] <= table.loc["replayed", "wasserstein_chance"]
        and table.loc["undisturbed", "wasserstein_share"] > 0.15
    )
    assert table.loc["replayed", "wasserstein_share"] == pytest.approx(
        np.abs(np.sort(anomaly) - np.sort(good)).mean() / anomaly.mean()
    )
    assert table.loc["undisturbed", "ks"] == 1 and table.loc["replayed", "ks"] == pytest.approx(
        stats.ks_2samp(anomaly, good).statistic
    )
    assert table.loc["replayed", "ratio_low"] <= 1 <= table.loc["replayed", "ratio_high"]


def test_a_single_anomaly_is_a_constant():
    table = workload_accuracy(0.5, [0.5, 0.6], None)
    assert (
        list(table.index) == ["replayed"]
        and table.loc["replayed", "ratio"] == pytest.approx(1.1)
        and np.isnan(table.loc["replayed", "ks"])
    )
    assert table.loc["replayed", "wasserstein_share"] == pytest.approx(0.1)
    accuracy = accuracy_of(CARRIED, 0.5, [0.5, 0.6], [0.4, 0.4])
    assert (
        "1.100 of the anomaly's run time" in repr(accuracy)
        and "undisturbed" in accuracy._repr_html_()
    )
    for wrong in ([], [0.5, -1], float("nan")):
        with pytest.raises(InputError):
            workload_accuracy(wrong, [0.5, 0.6])
