"""From events to lists that can be replayed, against a nanosecond-by-nanosecond simulation and a
literal published merge.
"""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.noise import NoiseConfig, delta_noise

from .independent import INTERRUPTS, event_rows, event_table, occupied, published_merge

MERGES = ("improved", "pessimistic", "compat")
one_cpu = event_rows(30)


def lists(config: NoiseConfig) -> list[tuple]:
    return config.events()[["start_ns", "duration_ns", "policy", "kind", "source"]].values.tolist()


@settings(max_examples=100, deadline=None)
@given(one_cpu)
def test_improved_occupies_the_cpu_as_a_cpu_does(rows):
    """Interrupts first, then threads in turn; and every ns that one takes, the other waits."""
    events = event_table(rows)
    config = NoiseConfig.from_events(events)
    found = [
        (ns, "thread" if event.kind == "thread" else "interrupt")
        for event in config.events().itertuples()
        for ns in range(event.start_ns, event.start_ns + event.duration_ns)
    ]
    assert found == occupied(events)


@settings(max_examples=150, deadline=None)
@given(
    event_rows(30, st.integers(0, 2)), st.sampled_from(MERGES), st.randoms(use_true_random=False)
)
def test_noise_is_conserved_nothing_overlaps_and_order_does_not_matter(rows, merge, random):
    events = event_table(rows)
    config = NoiseConfig.from_events(events, merge=merge)
    table = config.events()
    classes = ["cpu"] if merge != "improved" else ["cpu", "interrupt"]
    before, after = (
        one.assign(interrupt=one["kind"].isin(INTERRUPTS)).groupby(classes)["duration_ns"].sum()
        for one in (events, table)
    )
    assert before.to_dict() == after.to_dict()
    for _, own in table.groupby("cpu"):
        ends = (own["start_ns"] + own["duration_ns"]).to_numpy()
        assert (own["start_ns"].to_numpy()[1:] >= ends[:-1]).all()
        assert own["event"].tolist() == list(range(len(own)))
    if merge == "improved":
        by_name = [
            one[one["kind"] == "thread"].groupby(["cpu", "source"])["duration_ns"].sum().to_dict()
            for one in (events, table)
        ]
        assert by_name[0] == by_name[1]
    random.shuffle(rows)
    again = NoiseConfig.from_events(event_table(rows), merge=merge)
    assert again == config and again.digest == config.digest


@settings(max_examples=150, deadline=None)
@given(one_cpu, st.integers(61, 90))
def test_compat_is_the_published_merge_with_its_sentinel(rows, window_ns):
    events = event_table(rows)
    config = NoiseConfig.from_events(events, merge="compat", window_ns=window_ns)
    published = [
        (e.start_ns, e.duration_ns, 0 if e.kind == "thread" else -1) for e in events.itertuples()
    ]
    found = [[e.start_ns, e.duration_ns, -e.priority] for e in config.events().itertuples()]
    expected = published_merge(published, window_ns)
    assert found == (expected[:-1] if expected[-1][1] == 0 else expected)


def test_a_thread_is_cut_by_each_interrupt_and_its_pieces_add_up():
    events = event_table(
        [
            (0, 0, "thread", "kworker", 100, 50),
            (0, 0, "irq", "timer", 120, 10),
            (0, 0, "softirq", "RCU", 125, 5),
            (0, 0, "nmi", "", 160, 1),
            (0, 0, "irq", "timer", 400, 10),
        ]
    )
    assert lists(NoiseConfig.from_events(events, window_ns=1000)) == [
        [100, 20, "SCHED_OTHER", "thread", "kworker"],
        [120, 15, "SCHED_FIFO", "irq", "timer"],
        [135, 25, "SCHED_OTHER", "thread", "kworker"],
        [160, 1, "SCHED_FIFO", "nmi", ""],
        [161, 5, "SCHED_OTHER", "thread", "kworker"],
        [400, 10, "SCHED_FIFO", "irq", "timer"],
    ]


def test_pessimistic_makes_a_real_time_block_of_touching_noise():
    events = event_table(
        [
            (0, 0, "thread", "kworker", 100, 50),
            (0, 0, "softirq", "RCU", 150, 10),
            (0, 0, "thread", "sshd", 161, 5),
        ]
    )
    config = NoiseConfig.from_events(events, merge="pessimistic")
    assert lists(config) == [
        [100, 60, "SCHED_FIFO", "thread", "kworker"],
        [161, 5, "SCHED_OTHER", "thread", "sshd"],
    ]
    assert config.events()["priority"].tolist() == [49, 0]


def test_threads_keep_the_policy_that_the_trace_tells():
    events = event_table(
        [
            (0, 0, "thread", "hog", 0, 10, "SCHED_FIFO", 80),
            (0, 0, "thread", "niced", 20, 10, "SCHED_OTHER", -5),
            (0, 0, "thread", "rr", 40, 10, "SCHED_RR", 3),
            (0, 0, "thread", "migration/0", 60, 10, "SCHED_DEADLINE", 0),
            (0, 0, "irq", "timer", 80, 10, "SCHED_OTHER", 0),
            (0, 0, "thread", "who", 100, 10, "", 0),
        ]
    )
    told = [("SCHED_FIFO", 80), ("SCHED_OTHER", -5), ("SCHED_RR", 3)]
    told += [("SCHED_FIFO", 99), ("SCHED_FIFO", 50), ("SCHED_OTHER", 0)]
    published = [("SCHED_OTHER", 0)] * 4 + [("SCHED_FIFO", 1), ("SCHED_OTHER", 0)]
    for merge, expected in (("improved", told), ("pessimistic", told), ("compat", published)):
        table = NoiseConfig.from_events(events, merge=merge, window_ns=200).events()
        assert list(zip(table["policy"], table["priority"])) == expected


def test_the_window_is_the_runs_and_what_begins_later_is_left_out_and_counted():
    events = event_table(
        [
            (0, 0, "thread", "a", 0, 800),
            (0, 0, "thread", "b", 900, 300),
            (0, 3, "irq", "c", 1200, 7),
        ],
        seconds=1e-6,
    )
    config = NoiseConfig.from_events(events, provenance={"note": "by hand", "runs": np.int64(3)})
    assert config.window_ns == 1000 and config.cpus == (0, 3)
    assert config.events()["duration_ns"].tolist() == [800, 300]
    assert config.provenance == {
        "merge": "improved",
        "beyond_window_ns": 7,
        "note": "by hand",
        "runs": 3,
        "seconds": 1e-6,
        "tracer": "by hand",
    }
    assert config.summary()["share"].tolist() == [0.9]  # 800 and the 100 that lie inside


def test_a_delta_tells_where_it_comes_from():
    events = event_table([(4, 0, "irq", "t", 10, 30), (5, 0, "irq", "t", 10, 30)])
    runs = pd.DataFrame({"run": [4, 5], "seconds": [1e-6, 2e-6]})
    nothing = pd.DataFrame({"kind": [], "source": [], "frequency_hz": [], "duration_ns": []})
    config = NoiseConfig.from_events(delta_noise(events, nothing, runs))
    assert config.window_ns == 2000 and config.provenance["run"] == 5
    assert config.provenance["method"] == "paper"


@pytest.mark.parametrize(
    "rows, arguments, message",
    [
        ([(0, 0, "irq", "t", 0, 1)], {"merge": "best"}, "unknown merge 'best'"),
        ([(0, 0, "irq", "t", 0, 1), (1, 0, "irq", "t", 0, 1)], {}, "events of 2 runs"),
        ([(0, 0, "irq", "t", 0, 0)], {}, "nothing to inject"),
        ([(0, 0, "irq", "t", 5, 1)], {"window_ns": 5}, "begins after the window"),
        ([(0, 0, "irq", "t", 5, 1)], {"window_ns": 0}, "the window is 0"),
        ([(0, 100_000, "irq", "t", 5, 1)], {}, "no CPU 100000"),
        ([(0, 0, "irq", "t", 5, 1)], {"provenance": {"x": float("nan")}}, "JSON"),
        ([(0, 0, "irq", "t", 5, 1)], {"provenance": {"x": object()}}, "JSON"),
        ([(0, 0, "smi", "t", 5, 1)], {}, "unknown kind 'smi'"),
        ([(0, 0, "irq", "t", -5, 1)], {}, "-5 lies outside"),
        ([(0, -1, "irq", "t", 5, 1)], {}, "-1 lies outside"),
        ([(0, 0, "thread", "t", 5, 1, "SCHED_FIFO", 0)], {}, "priority 0 is none"),
        ([(0, 0, "thread", "t", 5, 1, "SCHED_OTHER", 20)], {}, "priority 20 is none"),
        ([(0, 0, "thread", "t", 5, 1, "FIFO", 1)], {}, "unknown policy 'FIFO'"),
        ([(0, 0, "thread", "t", at, 2**61) for at in (0, 1)], {}, "more than 2\\^62"),
    ],
)
def test_what_cannot_be_replayed_is_refused(rows, arguments, message):
    with pytest.raises(InputError, match=message):
        NoiseConfig.from_events(event_table(rows), **arguments)


def test_a_source_that_is_not_text_is_written_as_one(tmp_path):
    events = event_table([(0, 0, "thread", "a", 5, 1)])
    events["source"] = pd.Series(["bad\udc80name"], dtype=object)
    config = NoiseConfig.from_events(events)
    written = json.loads(config.write(tmp_path / "c.json").read_text())
    assert written["cpus"]["0"][0][5] == "bad\\udc80name"


@pytest.mark.parametrize(
    ("threads", "expected"),
    [
        ("recorded", [("SCHED_OTHER", 5), ("SCHED_FIFO", 50), ("SCHED_FIFO", 7)]),
        ("raised", [("SCHED_OTHER", -20), ("SCHED_FIFO", 50), ("SCHED_FIFO", 7)]),
        ("slices", [("SCHED_FIFO", 1), ("SCHED_FIFO", 50), ("SCHED_FIFO", 7)]),
    ],
)
def test_ordinary_threads_get_the_cpu_in_one_of_three_ways(threads, expected):
    events = pd.DataFrame(
        {
            "run": 0,
            "cpu": 0,
            "kind": ["thread", "irq", "thread"],
            "source": ["daemon", "timer", "real-time daemon"],
            "start_ns": [0, 1000, 2000],
            "duration_ns": 100,
            "policy": ["SCHED_OTHER", "", "SCHED_FIFO"],
            "priority": [5, 0, 7],
        }
    )
    made = NoiseConfig.from_events(events, threads=threads).events()
    assert list(zip(made["policy"], made["priority"])) == expected
