"""The rows of the figure of a worst trace, on the recorded campaign: what is taken and what is left
are together the run.
"""

from pathlib import Path

import pytest

from nbhelpers.measurement import recorded_runs
from nbhelpers.studies.persson.campaigns import (
    TRACED,
    label_runs,
    trace_lanes,
    traced_cell,
    worst_traces,
)
from nbhelpers.tracing import read_traces

RECORDED = Path(__file__).resolve().parents[2] / "data" / "recorded" / "40-mitigations" / "baseline"


@pytest.fixture(scope="module")
def worst():
    runs = label_runs(recorded_runs(RECORDED))
    one = runs[(runs["program"] == "nbody") | (runs["trace"] == "untraced")]
    traced = one[one["trace"] == TRACED]
    ranked = traced.sort_values("seconds", ascending=False)
    return one, worst_traces(RECORDED / "traces", ranked)[0]


def test_what_is_taken_and_what_is_left_are_the_run(worst):
    runs, trace = worst
    lanes = trace_lanes(RECORDED, runs, trace)
    events = read_traces(RECORDED / "traces", traced_cell(runs, trace))
    own = events[events["run"] == trace.run]
    sums = lanes.groupby("lane", sort=False)["duration_ns"].sum()
    assert sums.iloc[0] == own["duration_ns"].sum() == sums.iloc[1] + sums.iloc[2]
    assert len(sums) == 4 and sums.iloc[3] > sums.iloc[2] > 0
    for part in ("worst", "left"):
        assert lanes.loc[lanes[part], "lane"].nunique() == 1
