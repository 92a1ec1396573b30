"""The runs of stage 10 as others begin with them, and what is said of their worst."""

import pytest

from nbhelpers.places import shipped
from nbhelpers.studies.baseline import Baseline

RECORDED = shipped() / "data" / "recorded" / "10-trace-collection"


@pytest.fixture(scope="module")
def few():
    """The slowest recorded run and nine others, with their events."""
    baseline = Baseline(RECORDED, recorded_only=True)
    traced = baseline.traced.nlargest(10, "seconds").sort_values("run")
    baseline.__dict__["traced"] = traced  # ten traces are read in a second, two hundred are not
    return baseline


def test_half_of_the_runs_are_traced_and_none_is_in_both_halves():
    baseline = Baseline(RECORDED, recorded_only=True)
    assert len(baseline.traced) == len(baseline.untraced) == len(baseline.runs) / 2
    assert not set(baseline.traced["run"]) & set(baseline.untraced["run"])
