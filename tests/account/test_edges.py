"""Ways in and out: of the recorded runs of the loop, and of gaps that are made with known costs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.account import edges as module
from nbhelpers.account import measure_edges, occupied_intervals
from nbhelpers.account.edges import Edges, edges_of_gaps
from nbhelpers.account.gaps import explained_gaps, gaps_with_events
from nbhelpers.account.loop import LoopRun
from nbhelpers.errors import InputError
from nbhelpers.machine import doctor

LOOP = Path(__file__).parents[2] / "data" / "recorded" / "37-worst-runs" / "loop"
SHORT_US, LONG_US = 6.0, 30.0


@pytest.fixture(scope="module")
def loops():
    return [LoopRun(run, LOOP) for run in range(6)]


def made_gaps(seed, runs=4, switch_in_us=12.0):
    """Gaps whose ways are known: interrupts 10 µs in and 0.5 out, 1.2 µs more for each µs."""
    random = np.random.default_rng(seed)
    count = 400 * runs
    others_us = random.uniform(SHORT_US, LONG_US, count - count // 5)
    first_us = np.append(np.full(count // 5, SHORT_US), others_us)
    first_us[-count // 20 :] = LONG_US
    switch = random.random(count) < 0.3
    into_us = np.where(switch, switch_in_us, 10.0) + 1.2 * (first_us - SHORT_US)
    return pd.DataFrame(
        {
            "run": random.permutation(np.resize(np.arange(runs), count)),
            "first_ns": first_us * 1e3,
            "net_ns": first_us * 1e3,
            "switch": switch,
            "begins_with_interrupt": True,
            "stolen_ns": 0.0,
            "in_ns": (into_us + random.normal(0, 1, count)) * 1e3,
            "between_ns": np.where(switch, 4e3, 0),
            "out_ns": np.where(switch, 2e3, 500),
            "start_ns": 0,
        }
    ).assign(end_ns=lambda gaps: gaps.filter(regex="^(in|between|out|net)_ns$").sum(axis=1))


def test_known_costs_are_found_within_their_intervals():
    found = edges_of_gaps(made_gaps(1))
    known = {"interrupt_in_us": 10.0, "switch_in_us": 12.0, "in_per_us": 1.2}
    assert found.measured and found.runs == 4 and found.gaps == 1600
    for name, value in known.items():
        low, high = found.intervals[name]
        assert low <= getattr(found, name) <= high
        assert getattr(found, name) == pytest.approx(value, rel=0.05)
    assert found.interrupt_out_us == pytest.approx(0.5) and found.switch_out_us == pytest.approx(2)
    assert found.short_us == SHORT_US and found.long_us == LONG_US


def test_the_way_in_grows_with_the_first_event_up_to_a_limit():
    ways = {"interrupt_in_us": 10, "switch_in_us": 12, "in_per_us": 1.5}
    edges = Edges(**ways, short_us=6, long_us=20, measured=True)
    first_ns = np.array([1000, 6000, 10_000, 20_000, 1_000_000])
    assert edges.way_in_ns(first_ns, np.zeros(5, bool)).tolist() == [10e3, 10e3, 16e3, 31e3, 31e3]
    assert edges.way_in_ns(first_ns[:1], np.array([True])).tolist() == [12e3]


def test_stops_of_the_hypervisor_and_its_time_are_not_taken_for_ways():
    gaps = made_gaps(2)
    stopped = gaps.assign(in_ns=gaps["in_ns"].where(gaps.index % 10 > 0, 5e6))
    taken = gaps.assign(stolen_ns=np.where(gaps.index % 10 > 0, 0.0, 4e6))
    kept = edges_of_gaps(gaps[gaps.index % 10 > 0], repeats=0)
    assert edges_of_gaps(stopped, repeats=0) == edges_of_gaps(taken, repeats=0) == kept


def test_few_gaps_give_typical_numbers_and_one_class_serves_both():
    gaps = made_gaps(3)
    assert edges_of_gaps(gaps.head(module.FEWEST - 1)) == edges_of_gaps(pd.DataFrame()) == Edges()
    assert not Edges().measured and "not measured" in Edges().sentence()
    only = edges_of_gaps(gaps[~gaps["switch"]])
    assert only.switch_in_us == only.interrupt_in_us and only.switch_out_us == only.interrupt_out_us


def test_a_gap_of_the_recorded_loop_is_its_ways_and_its_events(loops):
    gaps = gaps_with_events(loops[0])
    length_ns = gaps["end_ns"] - gaps["start_ns"]
    parts_ns = gaps[["in_ns", "net_ns", "between_ns", "out_ns"]].sum(axis=1)
    assert len(gaps) > 100 and (length_ns == parts_ns).all()
    one = gaps[(gaps["events"] == 1) & ~gaps["switch"]]
    assert (one["between_ns"] == 0).all() and (one["first_ns"] == one["net_ns"]).all()


def test_each_gap_holds_the_events_that_a_slow_search_finds(loops):
    loop = loops[1]
    gaps, events = gaps_with_events(loop), loop.while_watched(loop.events)
    for gap in gaps.sample(60, random_state=1).itertuples():
        middle_ns = (events["start_ns"] + events["end_ns"]) // 2
        of_cpu = events["cpu"] == gap.cpu
        within = events[of_cpu & middle_ns.between(gap.start_ns, gap.end_ns)]
        assert len(within) == gap.events and within["duration_ns"].sum() == gap.net_ns
        assert (within["kind"] == "thread").any() == gap.switch
        assert within["start_ns"].min() - gap.start_ns == gap.in_ns
        assert gap.end_ns - within["end_ns"].max() == gap.out_ns


def credited_ms(loop, edges):
    """What the loop saw in gaps with a record, what the trace credits of it, and what the intervals
    predict; each summed over all CPUs.
    """
    events, stolen = loop.while_watched(loop.events), loop.while_watched(loop.stolen)
    explained = explained_gaps(loop.detours, events, loop.stolen)
    of_events = pd.MultiIndex.from_frame(gaps_with_events(loop)[["cpu", "start_ns"]])
    recorded = pd.MultiIndex.from_frame(explained[["cpu", "start_ns"]]).isin(of_events)
    seen = explained[recorded | (explained["stolen_ns"] > 0)]
    occupied = occupied_intervals(events, stolen, edges)
    parts = seen["duration_ns"], occupied[["kernel_ns", "hypervisor_ns"]].sum(axis=1)
    return np.array([part.sum() for part in (*parts, occupied["end_ns"] - occupied["start_ns"])])


def test_the_recorded_loop_is_predicted_by_its_other_runs(loops):
    held = [gaps_with_events(loop) for loop in loops]
    sums = np.zeros(3)
    for at, loop in enumerate(loops):
        others = [gaps for number, gaps in enumerate(held) if number != at]
        sums += credited_ms(loop, edges_of_gaps(pd.concat(others), repeats=0))
    seen, recorded, predicted = sums
    assert recorded / seen < 0.8  # the trace alone credits so little
    assert abs(predicted / seen - 1) < 0.05


@pytest.mark.long
def test_recorded_runs_are_read():
    found = measure_edges(LOOP, 30, 0.5, recorded_only=True)
    assert found.measured and found.runs == 30
    low, high = found.intervals["interrupt_in_us"]
    assert 0 < low <= found.interrupt_in_us <= high
    assert f"{found.gaps} gaps in 30 runs" in found.sentence()


def test_nothing_is_measured_without_recorded_runs(tmp_path):
    with pytest.raises(InputError):
        measure_edges(tmp_path, 2, 0.1, recorded_only=True)


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.skipif(
    doctor().capabilities.tracer != "tracepoints", reason="tracepoints cannot be recorded here"
)
def test_a_fresh_measurement_explains_more_of_its_loops_than_the_trace_alone(tmp_path):
    found = measure_edges(tmp_path, runs=4, seconds=0.3)
    assert found.measured and found.gaps >= module.FEWEST
    assert 0 < found.interrupt_in_us < module.STOP_NS / 1e3
    seen, recorded, predicted = sum(credited_ms(LoopRun(run, tmp_path), found) for run in range(4))
    assert abs(predicted / seen - 1) < abs(recorded / seen - 1)
