"""The runs of stage 10 as others begin with them, and what is said of their worst."""

from nbhelpers.places import shipped
from nbhelpers.studies.baseline import Baseline

RECORDED = shipped() / "data" / "recorded" / "10-trace-collection"


def test_half_of_the_runs_are_traced_and_none_is_in_both_halves():
    baseline = Baseline(RECORDED, recorded_only=True)
    assert len(baseline.traced) == len(baseline.untraced) == len(baseline.runs) / 2
    assert not set(baseline.traced["run"]) & set(baseline.untraced["run"])
