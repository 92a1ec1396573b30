"""Losses of a run as noise: sums kept by 10 ms on every CPU, disjoint, the same every time; and the
gate.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.noise.lost_time import (
    COLUMNS,
    INTERVAL_NS,
    PAUSE_NS,
    SHORTEST_NS,
    loss_config,
    loss_delta,
    replayable_shares,
)

MS = 1_000_000
WINDOW_NS = 95 * MS  # the last interval is half of one


def table(rows):
    """Rows (cpu, start_ms, end_ms, lost_ms, cause)."""
    losses = pd.DataFrame(rows, columns=list(COLUMNS))
    for name in ("start_ns", "end_ns", "lost_ns"):
        losses[name] = (losses[name].astype(float) * MS).round().astype(np.int64)
    return losses


def by_interval(events, length="duration_ns"):
    """Time of events by CPU and 10 ms, computed ns range by ns range."""
    sums = {}
    for cpu, start, lost in zip(events["cpu"], events["start_ns"], events[length]):
        end = start + lost
        while start < end:
            edge = min((start // INTERVAL_NS + 1) * INTERVAL_NS, end)
            key = int(cpu), int(start // INTERVAL_NS)
            sums[key] = sums.get(key, 0) + int(edge - start)
            start = edge
    return sums


@st.composite
def losses(draw):
    rows, free_ns = [], 0
    for interval in range(WINDOW_NS // INTERVAL_NS + 1):
        start_ns, share = interval * INTERVAL_NS, draw(st.floats(0, 0.8))
        rows.append((0, start_ns, start_ns + INTERVAL_NS, int(INTERVAL_NS * share), "slower"))
    for _ in range(draw(st.integers(0, 12))):
        start_ns = free_ns + draw(st.integers(0, 8 * MS))
        free_ns = start_ns + draw(st.integers(1_000, 900_000))
        cause = draw(st.sampled_from(["kernel", "hypervisor"]))
        rows.append((1, start_ns, free_ns, free_ns - start_ns, cause))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def inside_ns(losses):
    """Loss within the window, by its own arithmetic."""
    length = losses["end_ns"] - losses["start_ns"]
    inside = (losses["end_ns"].clip(upper=WINDOW_NS) - losses["start_ns"]).clip(lower=0)
    return (losses["lost_ns"] * inside / length).sum()


@settings(deadline=None)
@given(losses())
def test_no_loss_is_dropped_and_no_event_overlaps_another(losses):
    expected_ns = inside_ns(losses)
    if expected_ns < 1000:
        return
    config = loss_config(losses, WINDOW_NS, [0, 1, 5])
    events = config.events()
    planned_ns = events.groupby("cpu")["duration_ns"].sum()
    beyond_ns = config.provenance["beyond_window_ns"]
    assert (planned_ns - expected_ns).abs().max() <= len(losses) + beyond_ns
    assert planned_ns.index.tolist() == [0, 1, 5] and planned_ns.nunique() == 1
    for _, part in events.groupby("cpu"):
        ends = (part["start_ns"] + part["duration_ns"]).to_numpy()
        assert (part["start_ns"].to_numpy()[1:] >= ends[:-1]).all()
    assert (events["policy"] == "SCHED_FIFO").all() and (events["kind"] != "thread").all()
    assert config.digest == loss_config(losses, WINDOW_NS, [0, 1, 5]).digest


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 0.85), min_size=10, max_size=10))
def test_a_slow_phase_loses_the_same_in_each_10_ms(shares):
    rows = [(1, 10 * i, 10 * i + 10, 10 * share, "slower") for i, share in enumerate(shares)]
    slow = table(rows)
    config = loss_config(slow, 100 * MS, [1])
    planned_ns = by_interval(config.events())
    assert planned_ns == {(1, i): lost for i, lost in enumerate(slow["lost_ns"])}
    events = config.events()
    assert (events["duration_ns"] >= SHORTEST_NS).all()
    pauses = events["start_ns"].diff() - events["duration_ns"].shift()
    in_turn = events["start_ns"] // INTERVAL_NS == (events["start_ns"] // INTERVAL_NS).shift()
    assert (pauses[in_turn] >= PAUSE_NS - 1).all()


def test_what_the_path_lost_stops_all_cpus_together():
    rows = [(i % 2, 8 * i, 8 * i + 8, 4, "slower") for i in range(10)]
    events = loss_config(table(rows), 80 * MS, [0, 1]).events()
    first, second = (events[events["cpu"] == cpu].drop(columns="cpu") for cpu in (0, 1))
    assert first.reset_index(drop=True).equals(second.reset_index(drop=True)) and len(first) > 8
    assert set(events["source"]) == {"slower"} and set(events["kind"]) == {"hardware"}


def test_what_was_taken_is_one_event_where_it_was_taken():
    rows = [
        (0, 3, 3.4, 0.4, "kernel"),
        (0, 12, 15, 3, "hypervisor"),
        (0, 20, 20.5, 0.3, "kernel"),  # two causes share an interval
        (0, 20, 20.5, 0.1, "kernel"),
    ]
    events = loss_config(table(rows), WINDOW_NS, [0]).events()
    columns = ["cpu", "start_ns", "duration_ns", "kind", "source"]
    assert events[columns].values.tolist() == [
        [0, 3_000_000, 400_000, "irq", "kernel"],
        [0, 12_000_000, 3_000_000, "hardware", "hypervisor"],
        [0, 20_000_000, 400_000, "irq", "kernel"],
    ]


def test_short_losses_wait_until_they_are_long_enough_for_a_burst():
    rows = [(0, 10 * i + 2, 10 * i + 2.02, 0.02, "kernel") for i in range(9)]
    events = loss_config(table(rows), WINDOW_NS, [0]).events()
    assert events["duration_ns"].tolist() == [80_000, 100_000]
    assert (events["start_ns"] // INTERVAL_NS).tolist() == [3, 7]
    alone = loss_config(table(rows[:1]), WINDOW_NS, [0]).events()
    assert alone["duration_ns"].tolist() == [20_000]


def test_a_burst_that_meets_an_event_is_added_to_it():
    rows = [(0, 0, 10, 4, "slower"), (0, 1.1, 3.1, 2, "kernel")]
    config = loss_config(table(rows), 10 * MS, [0])
    events = config.events()
    assert events["duration_ns"].sum() == 6 * MS and len(events) == 3
    assert by_interval(events) == {(0, 0): 6 * MS}


def test_what_is_left_out_is_stated():
    rows = [(0, 0, 10, 11, "slower"), (0, 90, 100, 4, "slower")]
    config = loss_config(table(rows), WINDOW_NS, [0])
    assert config.events()["duration_ns"].sum() == 12 * MS
    assert config.provenance["lost_ns"] == 12 * MS and config.provenance["left_out_ns"] == 3 * MS


def test_losses_that_make_no_sense_are_refused():
    slow = table([(0, 0, 10, 4, "slower")])
    with pytest.raises(InputError, match="nothing to inject"):
        loss_config(slow.iloc[:0], WINDOW_NS, [0])
    with pytest.raises(InputError, match="losses of 2 runs"):
        loss_config(pd.concat([slow, slow]).assign(run=[1, 2]), WINDOW_NS, [0])
    with pytest.raises(InputError, match="unknown cause 'moon'"):
        loss_config(slow.assign(cause="moon"), WINDOW_NS, [0])
    with pytest.raises(InputError, match="lacks lost_ns"):
        loss_config(slow.drop(columns="lost_ns"), WINDOW_NS, [0])


def test_the_gate_counts_what_the_path_lost():
    rows = [
        (0, 0, 6, 3, "slower"),
        (1, 6, 10, 2, "slower"),
        (1, 14, 16, 2, "hypervisor"),
    ]
    shares = replayable_shares(table(rows), 10 * MS, WINDOW_NS).set_index("cause")
    assert shares["lost_ms"].to_dict() == {"slower": 5, "hypervisor": 2, "unexplained": 3}
    assert shares["means"].to_dict() == {
        "slower": "bursts",
        "hypervisor": "events",
        "unexplained": "nothing",
    }
    assert shares["share"].sum() == pytest.approx(0.7)


def test_without_realtime_or_a_loss_nothing_can_be_replayed():
    rows = [(0, 0, 10, 5, "slower"), (1, 12, 12.02, 0.02, "kernel")]
    refused = replayable_shares(table(rows), 6 * MS, WINDOW_NS, realtime=False)
    assert refused["replayable_ms"].sum() == 0
    nothing = replayable_shares(table(rows[:0]), 6 * MS, WINDOW_NS)
    assert nothing["cause"].tolist() == ["unexplained"] and nothing["lost_ms"].tolist() == [6]


# Beyond ordinary runs
# --------------------------------------------------------------------------------------------------

RUNS = pd.DataFrame({"run": range(4), "region_seconds": [0.1, 0.1, 0.1, 0.2]})


def lost_rows(run, lengths_ms, lost_ms, cause):
    ends = np.cumsum(lengths_ms)
    starts = ends - lengths_ms
    lost = pd.DataFrame({"start_ns": starts, "end_ns": ends, "lost_ns": lost_ms})
    lost = (lost * MS).round().astype(np.int64)
    return lost.assign(run=run, cpu=0, cause=cause)


def test_what_every_run_loses_disappears_and_what_stands_out_stays():
    ticks = [lost_rows(run, [0.005] * 20 * (1 + (run == 3)), 0.005, "kernel") for run in range(4)]
    slow = [lost_rows(run, [10] * 10, 0.3, "slower") for run in range(3)]
    phase = lost_rows(3, [10] * 20, [0.3] * 10 + [5] * 5 + [0.3] * 5, "slower")
    long = lost_rows(3, [2.0], [2.0], "hypervisor")
    losses = pd.concat([*ticks, *slow, phase, long], ignore_index=True)
    delta = loss_delta(losses, RUNS, [0, 1, 2])
    assert set(delta["run"]) == {3}
    assert delta["cause"].value_counts().to_dict() == {"slower": 5, "hypervisor": 1}
    assert delta.loc[delta["cause"] == "slower", "lost_ns"].tolist() == [4_700_000] * 5
    assert delta.loc[delta["cause"] == "slower", "start_ns"].min() == 100 * MS
    assert losses["lost_ns"].iloc[0] == 5000, "the losses themselves do not change"


@given(
    st.lists(st.integers(1, 9_000_000), min_size=1, max_size=30),
    st.lists(st.integers(0, 9_000_000), min_size=1, max_size=30),
    st.sampled_from(["slower", "kernel"]),
)
def test_as_much_is_left_as_the_run_lost_more(of_run, of_ordinary, cause):
    run, ordinary = (
        lost_rows(number, [10] * len(lost), np.array(lost) / MS, cause)
        for number, lost in ((3, of_run), (0, of_ordinary))
    )
    delta = loss_delta(pd.concat([run, ordinary], ignore_index=True), RUNS, [0])
    more_ns = sum(of_run) - 2 * sum(of_ordinary)  # its region is twice as long
    left = delta.loc[delta["run"] == 3, "lost_ns"]
    assert left.sum() == pytest.approx(max(more_ns, 0), abs=len(of_run) + 1)
    assert (left <= run["lost_ns"].max()).all() and not (delta["run"] == 0).any()


def test_without_ordinary_runs_nothing_is_typical():
    losses = lost_rows(3, [10], [1], "slower")
    with pytest.raises(InputError, match="no ordinary run"):
        loss_delta(losses, RUNS, [])
    assert not len(loss_delta(losses.iloc[:0], RUNS, [0]))
    with pytest.raises(InputError, match="lacks run"):
        loss_delta(losses.drop(columns="run"), RUNS, [0])
