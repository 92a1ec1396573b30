"""Summary and accuracy of a log made by hand, against numbers worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.injection import accuracy_of
from nbhelpers.injection.log import OUTCOMES, noise_ns, summarise

US = 1000


def make_log(rows):
    names = [
        "kind",
        "policy",
        "planned_start_ns",
        "planned_duration_ns",
        "start_ns",
        "taken_ns",
        "end_ns",
        "cpu_time_ns",
        "outcome",
    ]
    log = pd.DataFrame(rows, columns=names)
    log["outcome"] = pd.Categorical(log["outcome"], OUTCOMES)
    return log


LOG = make_log(
    [
        ("irq", "SCHED_FIFO", 0, 100 * US, 20 * US, 0, 101 * US, 80 * US, "injected"),
        (
            "irq",
            "SCHED_FIFO",
            1000 * US,
            100 * US,
            1700 * US,
            1700 * US,
            1803 * US,
            103 * US,
            "late",
        ),
        (
            "thread",
            "SCHED_OTHER",
            3000 * US,
            50 * US,
            3030 * US,
            3030 * US,
            3150 * US,
            51 * US,
            "injected",
        ),
        (
            "thread",
            "SCHED_OTHER",
            4000 * US,
            50 * US,
            4200 * US,
            4200 * US,
            4201 * US,
            1 * US,
            "dropped",
        ),
        (
            "thread",
            "SCHED_OTHER",
            5000 * US,
            50 * US,
            5010 * US,
            5010 * US,
            5030 * US,
            20 * US,
            "cut",
        ),
        ("thread", "", 6000 * US, 50 * US, 0, 0, 0, 0, "not reached"),
    ]
)


def test_noise_is_time_for_realtime_events_and_cpu_time_for_ordinary_ones():
    assert noise_ns(LOG).tolist() == [101 * US, 103 * US, 51 * US, 0, 20 * US, 0]


def test_summary():
    assert summarise(LOG) == {
        "injected_ns": 275 * US,
        "injected_planned_ns": 300 * US,
        "injected_cpu_ns": 255 * US,
        "injected_events": 3,
        "late_events": 1,
        "dropped_events": 1,
        "truncated_events": 0,
        "cut_events": 1,
        "not_reached_events": 1,
        "coalesced_events": 0,
        "below_floor_events": 0,
        "below_floor_ns": 0,
        "worst_lateness_us": 700.0,
    }


def test_accuracy():
    accuracy = accuracy_of(LOG)
    realtime = accuracy.events.loc["real-time"]
    assert (
        realtime["events"] == 2
        and realtime["start_bias_us"] == 360
        and realtime["duration_bias_us"] == 2
    )
    assert realtime["start_spread_us"] == pytest.approx(0.8 * 680) and realtime[
        "duration_p99_us"
    ] == pytest.approx(2.98)
    assert accuracy.events.loc["ordinary", "duration_bias_us"] == 1
    thread = accuracy.classes.loc["thread"]
    assert thread[list(OUTCOMES)].tolist() == [1, 1, 0, 1, 1, 0, 0, 0]
    assert thread["planned_ms"] == pytest.approx(0.1) and thread[
        "injected_over_planned"
    ] == pytest.approx(0.51)
    assert accuracy.classes.loc["irq", "injected_over_planned"] == pytest.approx(1.02)
    assert "0.255 of 0.300 ms" in repr(accuracy) and "<table" in accuracy._repr_html_()


def test_a_log_without_any_event_reached_has_no_accuracy_but_no_error_either():
    empty = accuracy_of(LOG[LOG["outcome"] == "not reached"])
    assert empty.events["events"].sum() == 0 and np.isnan(
        empty.events.loc["ordinary", "start_bias_us"]
    )
    assert summarise(LOG.iloc[:0])["worst_lateness_us"] == 0
