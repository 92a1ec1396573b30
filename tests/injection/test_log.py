"""Summary and accuracy of a log made by hand, against numbers worked out by hand."""

import io

import pandas as pd

from nbhelpers.injection.log import OUTCOMES, noise_ns, summarise

US = 1000


ROWS = """\
irq    SCHED_FIFO     0 100   20    0  101  80 injected
irq    SCHED_FIFO  1000 100 1700 1700 1803 103 late
thread SCHED_OTHER 3000  50 3030 3030 3150  51 injected
thread SCHED_OTHER 4000  50 4200 4200 4201   1 dropped
thread SCHED_OTHER 5000  50 5010 5010 5030  20 cut
thread -           6000  50    0    0    0   0 not-reached
"""
NAMES = ["replay_start_ns", "replayed_ns", "start_ns", "taken_ns", "end_ns", "cpu_time_ns"]
LOG = pd.read_csv(
    io.StringIO(ROWS), sep=r"\s+", header=None, names=["kind", "policy", *NAMES, "outcome"]
)
LOG[NAMES] *= US
LOG["outcome"] = pd.Categorical(LOG["outcome"].str.replace("-", " "), OUTCOMES)
LOG = LOG.assign(exit_ns=0, preempted_ns=0, planned_duration_ns=LOG["replayed_ns"])


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


def test_a_log_without_any_event_has_a_summary():
    assert summarise(LOG.iloc[:0])["worst_lateness_us"] == 0
