"""Plans: lanes, placement, and the floor rule, against counting and the rule by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.injection import Overheads, Rules, make_plan
from nbhelpers.injection._coalesce import DROPPED, coalesce
from nbhelpers.injection._limits import busiest_second_share, longest_span_ns
from nbhelpers.noise import NoiseConfig

from .helpers import CPU_COUNT, make_config, mixed_config

MS = 10**6
AS_IT_IS = Rules(exit_cost_us=0, shortest_us=0)


def table(rows):
    return pd.DataFrame(rows, columns=["cpu", "start_ns", "duration_ns", "policy"])


def occupied(events, cpu, step_ns, until_ns):
    """One bool a step: does real-time noise cover it?"""
    busy = np.zeros(until_ns // step_ns + 1, bool)
    for event in events[(events["cpu"] == cpu) & (events["policy"] != "SCHED_OTHER")].itertuples():
        busy[event.start_ns // step_ns : (event.start_ns + event.duration_ns) // step_ns] = True
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
            rows.append(
                (cpu, start * MS, length * MS, draw(st.sampled_from(["SCHED_FIFO", "SCHED_OTHER"])))
            )
            start += length
    return table(rows)


@settings(max_examples=200, deadline=None)
@given(plans())
def test_longest_span_and_busiest_second_agree_with_counting(events):
    until = 30_000 * MS
    grids = [occupied(events, cpu, 10 * MS, until) for cpu in (0, 1)]
    assert longest_span_ns(events) == max(map(longest_run, grids)) * 10 * MS
    sums = [np.convolve(grid, np.ones(100), "full").max() / 100 for grid in grids]
    assert busiest_second_share(events) == pytest.approx(max(sums), abs=1e-9)


def test_a_plan_that_stops_the_machine_is_refused_unless_meant():
    config = make_config([(cpu, "irq", 0, 600) for cpu in range(CPU_COUNT)])
    with pytest.raises(InputError, match="takes every CPU.* 600.000000 ms at a stretch"):
        make_plan(config)
    assert len(make_plan(config, rules=Rules(allow_full_stop=True)).lanes) == CPU_COUNT
    ordinary = make_config([(cpu, "thread", 0, 600) for cpu in range(CPU_COUNT)])
    assert len(make_plan(ordinary).lanes) == CPU_COUNT  # stops nobody


def test_more_cpus_than_there_are_and_too_long_events_are_refused():
    with pytest.raises(InputError, match=f"for {CPU_COUNT + 1} CPUs, this machine has {CPU_COUNT}"):
        make_plan(mixed_config(0, 3, range(CPU_COUNT + 1)))
    with pytest.raises(InputError, match="not online"):
        make_plan(mixed_config(0, 3, [4095]), "origin")
    assert set(make_plan(mixed_config(0, 3, [4095]), "roam").lanes["cpu"]) == {-1}
    with pytest.raises(InputError, match="event of 2.500 s"):
        make_plan(make_config([(0, "thread", 0, 2500)]))
    with pytest.raises(InputError, match="placement"):
        make_plan(mixed_config(0, 3, [0]), "somewhere")
    for wrong in ({"give_up_ms": -1}, {"coalesce_ms": float("nan")}):
        with pytest.raises(InputError):
            Rules(**wrong)


def test_lanes_hold_every_event_once_and_in_order():
    rows = [
        (cpu, kind, 10 * i + j, 0.5, *policy)
        for cpu in range(CPU_COUNT)
        for i in range(20)
        for j, (kind, *policy) in enumerate(
            [("irq", "SCHED_FIFO", 50), ("thread", "SCHED_OTHER", 0), ("thread", "SCHED_FIFO", 30)]
        )
    ]
    config = make_config(rows)
    plan = make_plan(config, "origin", rules=AS_IT_IS)
    assert len(plan.lanes) == 2 * CPU_COUNT
    assert plan.lanes["count"].sum() == len(plan.events) == len(config.events())
    for lane in plan.lanes.itertuples():
        own = plan.events.iloc[lane.first : lane.first + lane.count]
        assert set(own["cpu"]) == {lane.cpu} and own["start_ns"].is_monotonic_increasing
        assert own["policy"].eq("SCHED_OTHER").all() or own["policy"].ne("SCHED_OTHER").all()
    both = plan.events.merge(config.events(), on=["cpu", "event"])
    assert len(both) == len(plan.events) and (both["start_ns_x"] == both["start_ns_y"]).all()
    assert plan.events["into"].tolist() == list(range(len(plan.events)))


def test_interrupts_stand_above_every_thread():
    rows = [
        (0, "softirq", 0, 1, "SCHED_FIFO", 49),
        (0, "thread", 2, 1, "SCHED_FIFO", 99),
        (0, "thread", 4, 1, "SCHED_RR", 10),
        (0, "irq", 6, 1, "SCHED_FIFO", 50),
        (0, "thread", 8, 1, "SCHED_OTHER", -20),
    ]
    plan = make_plan(make_config(rows), rules=AS_IT_IS)
    assert plan.events["priority"].tolist() == [49, 48, 10, 50, -20]
    alone = make_plan(make_config(rows[1:2]), rules=AS_IT_IS)
    assert alone.events["priority"].tolist() == [98]  # 99 is the supervisor's


# ---- placement -----------------------------------------------------------------------------------


def named(rows):
    """Rows (cpu, kind, source); a plan needs nothing else of them here."""
    table = pd.DataFrame(rows, columns=["cpu", "kind", "source"])
    return table.assign(run=0, start_ns=np.arange(len(table)) * MS, duration_ns=MS // 2)


def placed(rows, placement, **options):
    """CPU of its lane for each event, in the order of the rows."""
    plan = make_plan(NoiseConfig.from_events(named(rows)), placement, rules=AS_IT_IS, **options)
    where = np.repeat(plan.lanes["cpu"].to_numpy(), plan.lanes["count"])
    return [int(where[place]) for place in plan.events["start_ns"].argsort()]


def test_faithful_keeps_on_a_cpu_what_the_kernel_keeps_there():
    rows = [
        (0, "irq", "local_timer"),
        (0, "thread", "kworker/0:1"),
        (0, "thread", "kworker/0:2H"),
        (0, "thread", "kworker/u4:1"),
        (0, "thread", "ksoftirqd/0"),
        (0, "thread", "bash"),
        (0, "thread", "kworker/1:0"),
        (0, "thread", "ZMQbg/IO/0"),
        (0, "hardware", "gap"),
        (0, "thread", "kworker/01"),
    ]
    assert placed(rows, "faithful") == [0, 0, 0, -1, 0, -1, -1, -1, 0, -1]
    assert placed(rows, "origin") == [0] * 10 and placed(rows, "roam") == [-1] * 10


def test_a_mapping_moves_noise_and_says_what_it_lacks():
    rows = [(3, "irq", "a"), (3, "thread", "b")]
    assert placed(rows, {3: 0}) == [0, 0]
    with pytest.raises(InputError, match="noise of CPU 3"):
        placed(rows, {0: 0})
    with pytest.raises(InputError, match="4095, which is not online"):
        placed(rows, {3: 4095})


@pytest.mark.skipif(CPU_COUNT < 2, reason="one CPU: there is nothing to exclude")
def test_excluded_cpus_get_no_noise():
    rows = [(0, "irq", "a"), (0, "thread", "b")]
    with pytest.raises(InputError, match="CPU 0, which is excluded"):
        placed(rows, "origin", exclude_cpus=[0])
    assert placed(rows, {0: 1}, exclude_cpus=[0]) == [1, 1]
    plan = make_plan(make_config([(0, "irq", 0, 1)]), exclude_cpus=[0], rules=AS_IT_IS)
    assert plan.roam and 0 not in plan.roam
    with pytest.raises(
        InputError, match=f"{CPU_COUNT} CPUs, this machine has {CPU_COUNT - 1} for it"
    ):
        make_plan(mixed_config(0, 3), exclude_cpus=[0], rules=AS_IT_IS)
    with pytest.raises(InputError, match="two CPUs on one"):
        make_plan(mixed_config(0, 3, [0, 1]), {0: 1, 1: 1}, rules=AS_IT_IS)


# ---- the floor rule ------------------------------------------------------------------------------


def by_hand(starts, lengths, shortest, window):
    """The rule event by event, in plain Python: sums by place of the event that carries them, and
    what is dropped.
    """
    sums, places, left = {}, {}, []
    for place, (start, length) in enumerate(zip(starts, lengths)):
        if length >= shortest:
            sums[place], places[place] = length, (start, start + length)

    def give(place, hosts):
        far = {
            host: max(starts[place] - hosts[host][1], hosts[host][0] - starts[place], 0)
            for host in hosts
        }
        host = min(far, key=far.get, default=None)
        if host is None or far[host] > window:
            return False
        sums[host] += lengths[place]
        return True

    left = [
        place
        for place, length in enumerate(lengths)
        if length < shortest and not give(place, places)
    ]
    groups, rest = {}, []
    while left:
        for count in range(1, len(left) + 1):
            members = left[:count]
            total = sum(lengths[place] for place in members)
            spread = starts[members[-1]] + lengths[members[-1]] - starts[members[0]]
            if spread > window or total >= shortest:
                break
        if total >= shortest and spread <= window:
            middles = ((starts[place] + lengths[place] / 2) * lengths[place] for place in members)
            centre = sum(middles) / total
            sums[members[0]], groups[members[0]] = total, (centre - total / 2, centre + total / 2)
            left = left[count:]
        else:
            rest.append(left.pop(0))
    return sums, [place for place in rest if not give(place, groups)]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12)), max_size=40),
    st.integers(2, 12),
    st.integers(0, 60),
)
def test_the_floor_rule_agrees_with_itself_by_hand(steps, shortest, window):
    pauses, lengths = np.array(steps, dtype=np.int64).reshape(-1, 2).T * 10
    starts = np.cumsum(pauses + lengths) - lengths
    carried = coalesce(starts, lengths, shortest * 10, window * 10)
    own = carried.into == np.arange(len(starts))
    sums, dropped = by_hand(starts.tolist(), lengths.tolist(), shortest * 10, window * 10)
    assert {int(place): int(carried.duration_ns[place]) for place in np.flatnonzero(own)} == sums
    assert np.flatnonzero(carried.into == -1).tolist() == dropped
    assert carried.duration_ns[own].sum() + lengths[carried.into == -1].sum() == lengths.sum()
    moved = carried.start_ns[own] - starts[own]
    assert (np.abs(moved) <= window * 10).all() and (carried.start_ns >= 0).all()


def test_short_events_are_carried_by_their_class_then_by_others_and_the_summary_tells():
    rows = [
        (0, "irq", 1, 0.200),
        (0, "irq", 2, 0.005),
        (0, "softirq", 3, 0.004),  # the first carries all
        (0, "irq", 50, 0.012),
        (0, "irq", 51, 0.012),
        (0, "irq", 52, 0.012),  # three together
        (0, "thread", 90, 0.001),
        (0, "thread", 95, 3),
        (0, "softirq", 500, 0.002),  # finds nobody
    ]
    overheads = Overheads(shortest_us=30, shortest_ordinary_us=10)
    plan = make_plan(make_config(rows), rules=Rules(exit_cost_us=5), overheads=overheads)
    injected = plan.injected.sort_values("start_ns")
    assert injected["duration_ns"].tolist() == [209_000, 36_000, 3_001_000]
    assert injected["start_ns"].tolist() == [1_000_000, 50_988_000, 95_000_000]
    table = plan.events.sort_values("recorded_start_ns")
    carriers = np.append(plan.events["recorded_start_ns"], -MS)[table["into"]] // MS
    assert carriers.tolist() == [1, 1, 1, 50, 50, 50, 95, 95, -1]
    left = table[table["into"] == DROPPED]
    assert left[["kind", "recorded_duration_ns"]].to_numpy().tolist() == [["softirq", 2000]]
    assert injected["duration_ns"].sum() + 2000 == table["recorded_duration_ns"].sum()


def test_the_floor_is_that_of_the_kind_of_core_that_an_event_goes_to():
    slow = Overheads(shortest_us=60, shortest_ordinary_us=20, cpus=(1,))
    overheads = Overheads(shortest_us=30, shortest_ordinary_us=10, others=(slow,))
    config = make_config(
        [(cpu, kind, at, 0.045) for at, kind in ((0, "irq"), (1000, "thread")) for cpu in (0, 1)]
    )

    def dropped(placement):
        plan = make_plan(config, placement, rules=Rules(exit_cost_us=5), overheads=overheads)
        table = plan.events[plan.events["into"] == DROPPED]
        return sorted(zip(table["cpu"], table["kind"].astype(str)))

    assert dropped("origin") == [(1, "irq")]
    assert dropped({0: 1, 1: 0}) == [(0, "irq")]
    assert dropped("roam") == [(0, "irq"), (1, "irq")], "it may go to the slower kind"


def test_noise_that_does_more_than_occupy_a_cpu_is_never_carried_and_has_processes_of_its_own():
    rows = make_config([(0, "thread", i, 0.002) for i in range(40)]).events()
    both = [rows.assign(intensity=np.nan), rows.assign(kind="memory_stream", intensity=1e6)]
    config = NoiseConfig.from_events(pd.concat(both))
    plan = make_plan(config, rules=Rules(exit_cost_us=5), overheads=Overheads())
    memory = plan.events[plan.events["kind"] == "memory_stream"]
    assert (memory["into"] == memory.index).all() and (memory["duration_ns"] == 2000).all()
    threads = plan.events[plan.events["kind"] == "thread"]
    assert 0 < (threads["into"] == threads.index).sum() < 40 and len(plan.lanes) == 2


def test_a_plan_with_carried_events_holds_each_event_once():
    config = mixed_config(3, 200)
    plan = make_plan(config, "origin", rules=Rules(exit_cost_us=0, shortest_us=100))
    events, names = plan.events, ["cpu", "event"]
    assert sorted(events[names].values.tolist()) == sorted(config.events()[names].values.tolist())
    own = (events["into"] == events.index).to_numpy()
    count = len(plan.injected)
    assert own[:count].all() and not own[count:].any() and 0 < count < len(events)
    assert own[events["into"][events["into"] >= 0]].all()
    for first, count in zip(plan.lanes["first"], plan.lanes["count"]):
        lane = events.iloc[first : first + count]
        ends = (lane["start_ns"] + lane["duration_ns"]).to_numpy()
        assert (lane["start_ns"].to_numpy()[1:] >= ends[:-1]).all()
