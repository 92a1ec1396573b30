"""The occupied table: made events whose intervals are known, properties, and a recorded run."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbhelpers.account import occupied_intervals
from nbhelpers.account.edges import Edges
from nbhelpers.account.loop import LoopRun

LOOP = Path(__file__).parents[2] / "data" / "recorded" / "37-worst-runs" / "loop"
WAYS = {"interrupt_in_us": 10, "switch_in_us": 12, "in_per_us": 1, "short_us": 5, "long_us": 20}
EDGES = Edges(**WAYS, interrupt_out_us=1, switch_out_us=2, measured=True)
REGION_NS = 1_000_000
LOADED = ["kind", "start_ns", "end_ns", "duration_ns", "interrupted"]
TIMES = ["start_ns", "end_ns", "kernel_ns", "hypervisor_ns", "edges_ns", "events"]
NOTHING = pd.DataFrame(columns=["run", "cpu", "start_ns", "end_ns", "duration_ns"], dtype=np.int64)


def events_of(*rows, run=1, cpu=0):
    return pd.DataFrame(rows, columns=LOADED).assign(run=run, cpu=cpu)


def taken(start_ns, length_ns, run=1, cpu=0):
    row = {"run": run, "cpu": cpu, "start_ns": start_ns, "end_ns": start_ns + length_ns}
    return pd.DataFrame([row | {"duration_ns": length_ns}])


def times(table):
    return [tuple(row) for row in table[TIMES].itertuples(index=False)]


def test_one_interrupt_is_extended_by_its_way_in_and_out():
    events = events_of(("irq", 100_000, 108_000, 8000, "workload"))
    table = occupied_intervals(events, NOTHING, EDGES)
    # 10 µs and 3 µs more, since the event is 3 µs longer than a short one
    assert times(table) == [(87_000, 109_000, 8000, 0, 14_000, 1)]
    assert list(table["interruption"]) == ["interrupts"]


def test_events_without_room_between_them_have_one_way_in_and_out():
    interrupt = ("irq", 100_000, 105_000, 5000, "workload")
    softirq = ("softirq", 106_000, 110_000, 4000, "workload")
    thread = ("thread", 114_000, 214_000, 90_000, "workload")
    nested = ("irq", 150_000, 160_000, 10_000, "other")
    table = occupied_intervals(events_of(interrupt, softirq, thread, nested), NOTHING, EDGES)
    assert times(table) == [(88_000, 216_000, 109_000, 0, 19_000, 4)]
    assert list(table["interruption"]) == ["switch"]


def test_the_program_ran_between_events_that_leave_room_for_it():
    first = ("irq", 100_000, 105_000, 5000, "workload")
    near = events_of(first, ("irq", 115_999, 120_000, 4001, "workload"))
    assert len(occupied_intervals(near, NOTHING, EDGES)) == 1
    apart = events_of(first, ("irq", 116_000, 120_000, 4000, "workload"))
    assert times(occupied_intervals(apart, NOTHING, EDGES)) == [
        (90_000, 106_000, 5000, 0, 11_000, 1),
        (106_000, 121_000, 4000, 0, 11_000, 1),
    ]


def test_what_interrupted_no_program_is_in_no_interval():
    idle = ("irq", 100_000, 105_000, 5000, "idle")
    other = ("irq", 300_000, 305_000, 5000, "other")
    assert not len(occupied_intervals(events_of(idle, other), NOTHING, EDGES))


def test_time_of_the_hypervisor_is_the_way_in_of_the_event_that_ends_it():
    events = events_of(("irq", 500_000, 505_000, 5000, "workload"))
    late = occupied_intervals(events, taken(300_000, 200_000), EDGES)
    assert times(late) == [(300_000, 506_000, 5000, 200_000, 1000, 1)]
    assert list(late["interruption"]) == ["hypervisor"]
    alone = occupied_intervals(events.head(0), taken(300_000, 200_000), EDGES)
    assert times(alone) == [(300_000, 500_000, 0, 200_000, 0, 0)]


def test_time_of_the_hypervisor_that_is_placed_over_an_event_lies_before_it():
    events = events_of(("irq", 500_000, 505_000, 5000, "workload"))
    table = occupied_intervals(events, taken(450_000, 100_000), EDGES)
    assert times(table) == [(445_000, 551_000, 5000, 100_000, 1000, 1)]


def test_runs_and_cpus_are_apart_and_end_with_the_region():
    at_end = ("thread", 900_000, 1_000_000, 100_000, "workload")
    events = pd.concat([events_of(at_end, run=run, cpu=cpu) for run in (1, 2) for cpu in (0, 1)])
    runs = pd.DataFrame({"run": [1, 2], "seconds": 0.001, "region_seconds": 0.001})
    table = occupied_intervals(events, NOTHING, EDGES, runs)
    assert list(zip(table["run"], table["cpu"])) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert (table["end_ns"] == REGION_NS).all() and (table["edges_ns"] == 12_000).all()


def test_nothing_recorded_gives_no_interval_but_all_columns():
    table = occupied_intervals(events_of(), NOTHING, EDGES)
    assert not len(table) and {"run", "cpu", "interruption", *TIMES} == set(table.columns)


PIECE = st.tuples(
    st.integers(0, 60_000),
    st.integers(1, 90_000),
    st.sampled_from(["irq", "softirq", "thread"]),
    st.sampled_from(["workload", "workload", "other", "idle"]),
)
GAP = st.tuples(st.integers(0, 900_000), st.integers(1, 99_000))


@st.composite
def made_cpu(draw):
    """Interrupts and threads of a CPU, one after the other, and gaps of the hypervisor anywhere."""
    rows, at_ns = [], 0
    for pause_ns, length_ns, kind, who in draw(st.lists(PIECE, max_size=12)):
        start_ns = min(at_ns + pause_ns, REGION_NS - 1)
        at_ns = min(start_ns + length_ns, REGION_NS)
        rows.append((kind, start_ns, at_ns, at_ns - start_ns, who))
    stolen = [taken(*gap) for gap in draw(st.lists(GAP, max_size=4))]
    return events_of(*rows), pd.concat([NOTHING, *stolen], ignore_index=True)


@given(made_cpu())
def test_parts_sum_to_the_length_and_intervals_are_disjoint_and_inside(made):
    events, stolen = made
    runs = pd.DataFrame({"run": [1], "seconds": 0.001, "region_seconds": 0.001})
    table = occupied_intervals(events, stolen, EDGES, runs)
    parts = table[["kernel_ns", "hypervisor_ns", "edges_ns"]]
    assert (parts.sum(axis=1) == table["end_ns"] - table["start_ns"]).all()
    assert (parts >= 0).all(axis=None) and (table["end_ns"] > table["start_ns"]).all()
    assert (table["start_ns"].to_numpy()[1:] >= table["end_ns"].to_numpy()[:-1]).all()
    assert (table["start_ns"] >= 0).all() and (table["end_ns"] <= REGION_NS).all()
    hits = events[events["interrupted"] == "workload"]
    for event in hits.itertuples():  # each event lies in one interval
        covers = (table["start_ns"] <= event.start_ns) & (table["end_ns"] >= event.end_ns)
        assert covers.sum() == 1
    assert table["kernel_ns"].sum() >= hits["duration_ns"].sum()


@pytest.mark.parametrize("run", [0, 7])
def test_intervals_of_a_recorded_loop_hold_its_events_and_lie_where_the_loop_was_away(run):
    loop = LoopRun(run, LOOP)
    events, stolen = loop.while_watched(loop.events), loop.while_watched(loop.stolen)
    edges = Edges(interrupt_in_us=20, switch_in_us=17, in_per_us=1.2, short_us=15, long_us=39)
    table = occupied_intervals(events, stolen, edges)
    kernel_ns = events.loc[events["interrupted"] != "idle", "duration_ns"].sum()
    assert table["kernel_ns"].sum() == pytest.approx(kernel_ns, rel=0.01)
    plain = table[table["interruption"] != "hypervisor"]
    away_ns = sum(seen_ns(loop.detours, interval) for interval in plain.itertuples())
    assert away_ns > 0.85 * (plain["end_ns"] - plain["start_ns"]).sum()


def seen_ns(detours, interval):
    """How much of an interval the loop was away."""
    gaps = detours[detours["cpu"] == interval.cpu]
    last_ns = np.minimum(gaps["end_ns"], interval.end_ns)
    return int((last_ns - gaps["start_ns"].clip(lower=interval.start_ns)).clip(lower=0).sum())
