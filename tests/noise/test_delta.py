"""The delta against literal loops: the text of section 4.2."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.noise import average_noise, delta_noise

from .independent import event_rows, event_table, runs_table, text_delta

LENGTHS = [1.0, 1.5, 0.7]
three = st.integers(0, 2)
rows = event_rows(40, three, None, 12, ["irq", "thread"], three, shortest_ns=0)
rows = rows.map(lambda found: [*found, (1, 0, "irq", "a", 3, 5)])  # the longest run has an event
KEYS = ["cpu", "start_ns", "source", "kind", "duration_ns"]


def averages(kind: str, source: str, frequency_hz: float, duration_ns: float) -> pd.DataFrame:
    """An average noise of one source."""
    columns = ["kind", "source", "frequency_hz", "duration_ns"]
    return pd.DataFrame([(kind, source, frequency_hz, duration_ns)], columns=columns)


def comparable(events) -> list[tuple]:
    table = events if isinstance(events, pd.DataFrame) else pd.DataFrame(events, columns=[*KEYS])
    return sorted(table[KEYS].itertuples(index=False, name=None))


@settings(max_examples=100, deadline=None)
@given(rows)
def test_paper_is_the_text_of_section_4_2(rows):
    events, runs = event_table(rows), runs_table(LENGTHS)
    average = average_noise(events, runs)
    by_source = {
        (a.kind, a.source): (a.frequency_hz, int(np.floor(a.duration_ns + 0.5)))
        for a in average.itertuples()
    }
    worst = events[events["run"] == 1].to_dict("records")
    expected = comparable(text_delta(worst, by_source, 1.5))
    assert comparable(delta_noise(events, average, runs)) == expected


@settings(max_examples=100, deadline=None)
@given(rows, st.randoms(use_true_random=False))
def test_accounts_close_nothing_grows_and_order_does_not_matter(rows, random):
    events, runs = event_table(rows), runs_table(LENGTHS)
    average = average_noise(events, runs)
    own = events[events["run"] == 1]
    delta = delta_noise(events, average, runs)
    assert delta.attrs["removed_ns"] + delta.attrs["remaining_ns"] == own["duration_ns"].sum()
    assert delta.attrs["removed_events"] + delta.attrs["remaining_events"] == len(own)
    assert delta.attrs["remaining_events"] == len(delta)
    assert delta.attrs["remaining_ns"] == delta["duration_ns"].sum()
    assert (delta["end_ns"] - delta["start_ns"] == delta["duration_ns"]).all()
    numbered = events.assign(pid=range(len(events)))
    before = numbered.set_index("pid")["duration_ns"]
    after = delta_noise(numbered, average, runs)
    assert (after["duration_ns"].to_numpy() <= before[after["pid"]].to_numpy()).all()
    random.shuffle(rows)
    again = event_table(rows)
    assert comparable(delta_noise(again, average_noise(again, runs), runs)) == comparable(delta)


def test_expected_number_is_rounded_half_upwards_and_the_end_moves_with_the_duration():
    times = ((10, 30), (100, 29), (200, 60))
    events = event_table([(0, 0, "irq", "t", *time) for time in times])
    events["end_ns"] += 5  # five ns of nested noise
    delta = delta_noise(events, averages("irq", "t", 3, 20), runs_table([0.5]))  # 1.5 expected: 2
    assert delta[["start_ns", "duration_ns", "end_ns"]].values.tolist() == [
        [10, 10, 25],
        [100, 9, 114],
        [200, 60, 265],
    ]
    assert delta.attrs["run"] == 0 and delta.attrs["seconds"] == 0.5
    assert delta.attrs["tracer"] == "by hand"


def test_which_run():
    events = event_table([(run, 0, "irq", "t", 0, run + 1) for run in range(4)])
    runs = runs_table([1.0, 2.0, 2.0, 9.0]).assign(status=["ok", "ok", "ok", "exit 1"])
    none = average_noise(events, runs).iloc[:0]
    # the longest that finished, of equals the lowest
    assert delta_noise(events, none, runs).attrs["run"] == 1
    assert delta_noise(events, none, runs, run=2)["duration_ns"].tolist() == [3]
    with pytest.raises(InputError, match="run 3 is not a finished run"):
        delta_noise(events, none, runs, run=3)
    with pytest.raises(InputError, match="run 1 has no noise events"):
        delta_noise(events[events["run"] != 1], none, runs)


def test_by_time_an_ordinary_run_leaves_nothing_and_a_new_source_stays_whole():
    lengths = {0: [90, 10], 1: [60, 40], 2: [20, 80]}
    rows = [
        (run, "irq", "a", 10 * n, ns) for run, both in lengths.items() for n, ns in enumerate(both)
    ]
    table = pd.DataFrame(rows, columns=["run", "kind", "source", "start_ns", "duration_ns"])
    hog = pd.DataFrame([(1, "thread", "hog", 500, 70)], columns=table.columns)
    events = pd.concat([table, hog], ignore_index=True).assign(cpu=0, pid=0)
    runs = runs_table([1.0, 2.0, 1.0])
    average = average_noise(table.assign(cpu=0), runs_table([1.0, 1.0, 1.0]))
    left = [delta_noise(events, average, runs.assign(seconds=1.0), run, "time") for run in range(3)]
    assert [one["duration_ns"].sum() for one in left] == [0, 70, 0]
    assert left[1]["source"].tolist() == ["hog"]
    published = delta_noise(events, average, runs.assign(seconds=1.0), 0)
    assert published["duration_ns"].sum() == 40, "the longer event keeps what it had beyond"


def test_unusable_averages_are_named():
    events, runs = event_table([(0, 0, "irq", "x", 0, 10)]), runs_table([1.0])
    average = average_noise(events, runs)
    for bad, message in (
        (pd.concat([average, average]), "occurs twice"),
        (average.assign(frequency_hz=np.nan), "not a number"),
        (average.drop(columns="kind"), "lacks kind"),
    ):
        with pytest.raises(InputError, match=message):
            delta_noise(events, bad, runs)
