"""The runs of stage 10 as others begin with them, and what is said of their worst."""

import numpy as np
import pytest

from nbhelpers.noise import average_noise, delta_noise
from nbhelpers.places import shipped
from nbhelpers.studies.baseline import Baseline, delta_table, traced_runs
from nbhelpers.studies.sentences import delta_sentences

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


def test_the_delta_is_what_is_left_of_the_run(few):
    traced, events = traced_runs(few)
    delta = delta_noise(events, average_noise(events, traced), traced)
    table = delta_table(events, delta, traced)
    run = delta.attrs["run"]
    assert run == traced.loc[traced["seconds"].idxmax(), "run"]
    assert table["run_events"].sum() == (events["run"] == run).sum()
    assert table["delta_events"].sum() == len(delta)
    left = table["delta_cpu_share"].fillna(0)
    assert (left <= table["run_cpu_share"] + 1e-12).all()


def test_the_sentences_have_the_numbers_of_the_tables(few):
    traced, events = traced_runs(few)
    delta = delta_noise(events, average_noise(events, traced), traced)
    slowest, sums, totals = delta_sentences(delta, events, traced)
    assert f"Run **{delta.attrs['run']}** was the slowest" in slowest
    assert f"{traced['seconds'].max():.4f} s" in slowest
    assert f"{delta['duration_ns'].sum() / 1e6:.2f} ms in {len(delta)} events" in sums
    assert np.isclose(
        float(totals.split(": ")[1].split()[0]), delta["duration_ns"].sum() / 1e6, atol=0.01
    )


def test_a_run_that_was_chosen_is_not_called_the_slowest(few):
    traced, events = traced_runs(few)
    other = int(traced.loc[traced["seconds"].idxmin(), "run"])
    delta = delta_noise(events, average_noise(events, traced), traced, run=other)
    assert f"Run **{other}** was chosen" in delta_sentences(delta, events, traced)[0]
