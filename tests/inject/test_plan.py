"""Plans: lanes, and the limits, against counting nanosecond by nanosecond."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.inject import Rules, make_plan
from nbhelpers.inject.plan import busiest_second_share, longest_full_stop_ns, realtime_spans

from .helpers import CPU_COUNT, make_config, mixed_config

MS = 10**6


def table(rows):
    return pd.DataFrame(rows, columns=["cpu", "start_ns", "duration_ns", "policy"])


def occupied(events, cpu, step_ns, until_ns):
    """One bool a step: does real-time noise cover it?"""
    busy = np.zeros(until_ns // step_ns + 1, bool)
    for event in events[(events["cpu"] == cpu) & (events["policy"] != "SCHED_OTHER")].itertuples():
        busy[event.start_ns // step_ns:(event.start_ns + event.duration_ns) // step_ns] = True
    return busy


def longest_run(busy):
    ends = np.flatnonzero(np.diff(np.concatenate([[0], busy.astype(int), [0]])))
    return int((ends[1::2] - ends[::2]).max()) if len(ends) else 0


@st.composite
def plans(draw):
    """Events of two CPUs on a grid of 10 ms, in order."""
    rows = []
    for cpu in (0, 1):
        start = 0
        for _ in range(draw(st.integers(0, 12))):
            start += 10 * draw(st.integers(0, 30))
            length = 10 * draw(st.integers(1, 60))
            rows.append((cpu, start * MS, length * MS, draw(st.sampled_from(["SCHED_FIFO", "SCHED_OTHER"]))))
            start += length
    return table(rows)


@settings(max_examples=200, deadline=None)
@given(plans())
def test_full_stop_and_busiest_second_agree_with_counting(events):
    until = 30_000 * MS
    grids = [occupied(events, cpu, 10 * MS, until) for cpu in (0, 1)]
    assert longest_full_stop_ns(events, 2) == longest_run(grids[0] & grids[1]) * 10 * MS
    spans = realtime_spans(events)
    assert max([*(int((ends - starts).max()) for starts, ends in spans.values()), 0]) == max(map(longest_run, grids)) * 10 * MS
    sums = [np.convolve(grid, np.ones(100), "full").max() / 100 for grid in grids]
    assert busiest_second_share(events) == pytest.approx(max(sums), abs=1e-9)


def test_pauses_that_nobody_can_use_are_none():
    events = table([(cpu, i * 10 * MS, 10 * MS - 50_000, "SCHED_FIFO") for cpu in (0, 1) for i in range(70)])
    assert longest_full_stop_ns(events, 2) == 700 * MS - 50_000
    assert longest_full_stop_ns(events, 3) == 0


def test_a_plan_that_stops_the_machine_is_refused_unless_meant():
    config = make_config([(cpu, "irq", 0, 600) for cpu in range(CPU_COUNT)])
    with pytest.raises(InputError, match="takes every CPU.*600 ms"):
        make_plan(config)
    assert len(make_plan(config, rules=Rules(allow_full_stop=True)).lanes) == CPU_COUNT
    make_plan(make_config([(cpu, "thread", 0, 600) for cpu in range(CPU_COUNT)]))  # ordinary noise stops nobody


def test_more_cpus_than_there_are_and_too_long_events_are_refused():
    with pytest.raises(InputError, match=f"for {CPU_COUNT + 1} CPUs, this machine has {CPU_COUNT}"):
        make_plan(mixed_config(0, 3, range(CPU_COUNT + 1)))
    with pytest.raises(InputError, match="not online"):
        make_plan(mixed_config(0, 3, [4095]), "origin")
    assert make_plan(mixed_config(0, 3, [4095]), "roam").lanes["cpu"].tolist() == [-1]
    with pytest.raises(InputError, match="event of 2.500 s"):
        make_plan(make_config([(0, "thread", 0, 2500)]))
    with pytest.raises(InputError, match="placement"):
        make_plan(mixed_config(0, 3, [0]), "somewhere")


def test_two_lanes_hold_every_event_once_and_in_order():
    config = mixed_config(1, 30)
    plan = make_plan(config, "origin", lanes=2)
    assert len(plan.lanes) == 2 * CPU_COUNT and plan.lanes["count"].sum() == len(plan.events) == len(config.events())
    for lane in plan.lanes.itertuples():
        own = plan.events.iloc[lane.first:lane.first + lane.count]
        assert set(own["cpu"]) == {lane.cpu} and own["start_ns"].is_monotonic_increasing
        assert own["policy"].eq("SCHED_OTHER").all() or own["policy"].ne("SCHED_OTHER").all()
    both = plan.events.merge(config.events(), on=["cpu", "event"])
    assert len(both) == len(plan.events) and (both["start_ns_x"] == both["start_ns_y"]).all()


def test_no_event_reaches_the_supervisors_priority():
    assert make_plan(make_config([(0, "thread", 0, 1, "SCHED_FIFO", 99)])).events["priority"].tolist() == [98]
