"""Losses less what every run loses."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.noise.loss_deltas import loss_delta

MS = 1_000_000
RUNS = pd.DataFrame({"run": range(4), "region_seconds": [0.1, 0.1, 0.1, 0.2]})


def rows(run, lengths_ms, lost_ms, cause):
    ends = np.cumsum(lengths_ms)
    starts = ends - lengths_ms
    table = pd.DataFrame({"start_ns": starts, "end_ns": ends, "lost_ns": lost_ms})
    table = (table * MS).round().astype(np.int64)
    return table.assign(run=run, cpu=0, cause=cause)


def test_what_every_run_loses_disappears_and_what_stands_out_stays():
    ticks = [rows(run, [0.005] * 20 * (1 + (run == 3)), 0.005, "kernel") for run in range(4)]
    slow = [rows(run, [10] * 10, 0.3, "slow_core") for run in range(3)]
    phase = rows(3, [10] * 20, [0.3] * 10 + [5] * 5 + [0.3] * 5, "slow_core")
    long = rows(3, [2.0], [2.0], "hypervisor")
    losses = pd.concat([*ticks, *slow, phase, long], ignore_index=True)
    delta = loss_delta(losses, RUNS, [0, 1, 2])
    assert set(delta["run"]) == {3}
    assert delta["cause"].value_counts().to_dict() == {"slow_core": 5, "hypervisor": 1}
    assert delta.loc[delta["cause"] == "slow_core", "lost_ns"].tolist() == [4_700_000] * 5
    assert delta.loc[delta["cause"] == "slow_core", "start_ns"].min() == 100 * MS
    assert losses["lost_ns"].iloc[0] == 5000, "the losses themselves do not change"


@given(
    st.lists(st.integers(1, 9_000_000), min_size=1, max_size=30),
    st.lists(st.integers(0, 9_000_000), min_size=1, max_size=30),
    st.sampled_from(["slow_core", "kernel"]),
)
def test_as_much_is_left_as_the_run_lost_more(of_run, of_ordinary, cause):
    run, ordinary = (
        rows(number, [10] * len(lost), np.array(lost) / MS, cause)
        for number, lost in ((3, of_run), (0, of_ordinary))
    )
    delta = loss_delta(pd.concat([run, ordinary], ignore_index=True), RUNS, [0])
    more_ns = sum(of_run) - 2 * sum(of_ordinary)  # its region is twice as long
    left = delta.loc[delta["run"] == 3, "lost_ns"]
    assert left.sum() == pytest.approx(max(more_ns, 0), abs=len(of_run) + 1)
    assert (left <= run["lost_ns"].max()).all() and not (delta["run"] == 0).any()


def test_without_ordinary_runs_nothing_is_typical():
    losses = rows(3, [10], [1], "slow_core")
    with pytest.raises(InputError, match="no ordinary run"):
        loss_delta(losses, RUNS, [])
    assert not len(loss_delta(losses.iloc[:0], RUNS, [0]))
    with pytest.raises(InputError, match="lacks run"):
        loss_delta(losses.drop(columns="run"), RUNS, [0])
