"""Average noise against plain pandas and hand-made numbers."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.noise import average_noise

from .independent import event_rows, event_table, runs_table

rows = event_rows(
    60, st.integers(0, 2), st.sampled_from("abc"), 100, runs=st.integers(0, 3), shortest_ns=0
)


@settings(max_examples=100, deadline=None)
@given(rows, st.randoms(use_true_random=False))
def test_same_as_pandas_whatever_the_order(rows, random):
    seconds = {0: 0.3, 1: 1.7, 2: 0.9, 3: 2.0}
    events = event_table(rows)
    runs, keys = runs_table(list(seconds.values())), ["kind", "source"]
    average = average_noise(events, runs).set_index(keys).sort_index()
    per_run = events.groupby([*keys, "run"]).size().unstack(fill_value=0)
    per_run = per_run.reindex(columns=range(4), fill_value=0)
    expected = (per_run / pd.Series(seconds)).mean(axis=1)
    assert average["frequency_hz"].to_dict() == pytest.approx(expected.to_dict())
    durations = events.groupby(keys)["duration_ns"].mean()
    assert average["duration_ns"].to_dict() == pytest.approx(durations.to_dict())
    random.shuffle(rows)
    again = average_noise(event_table(rows), runs).set_index(keys).sort_index()
    pd.testing.assert_frame_equal(average, again, check_exact=True)


def test_categories_objects_and_text_give_the_same():
    rows = [(0, 0, "irq", "timer", 0, 10), (0, 0, "thread", "kworker", 9, 3)]
    events, runs = event_table([*rows, (1, 0, "irq", "timer", 0, 12)]), runs_table([1.0, 1.0])
    for dtype in ("category", object):
        same = average_noise(events.astype({"kind": dtype, "source": dtype}), runs)
        pd.testing.assert_frame_equal(average_noise(events, runs), same)


def test_unfinished_runs_are_no_data():
    events = event_table([(0, 0, "irq", "timer", 0, 10), (1, 0, "irq", "timer", 0, 1000)])
    runs = runs_table([1.0, 9.0]).assign(status=["ok", "timeout"])
    average = average_noise(events, runs)
    assert average[["frequency_hz", "duration_ns"]].values.tolist() == [[1.0, 10.0]]
    assert average.attrs["runs"] == 1


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda e, r: (e.drop(columns="source"), r), "lacks source"),
        (lambda e, r: (e, r.drop(columns="seconds")), "lacks seconds"),
        (lambda e, r: (e, r.assign(status="exit 3")), "no finished run"),
        (lambda e, r: (e, r.assign(run=0)), "occurs twice"),
        (lambda e, r: (e, r.assign(seconds=0.0)), "lasted 0.0 seconds"),
        (lambda e, r: (e.assign(run=77), r), "no event belongs to a finished run"),
        (lambda e, r: (e.assign(duration_ns=-1), r), "-1 lies outside"),
        (lambda e, r: (e.assign(duration_ns=1.5), r), "not a whole number: 1.5"),
        (lambda e, r: (e.assign(kind="smi"), r), "unknown kind 'smi'"),
        (lambda e, r: (e.assign(source=None), r), "without a source"),
    ],
)
def test_unusable_tables_are_named(change, message):
    events, runs = change(event_table([(0, 0, "irq", "timer", 0, 10)]), runs_table([1.0, 1.0]))
    with pytest.raises(InputError, match=message):
        average_noise(events, runs)
