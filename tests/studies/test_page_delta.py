"""Page 20 defines average noise and delta in its cells; the library's, which other pages and `why`
call, give the same.
"""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.noise import average_noise, delta_noise
from nbhelpers.outcomes import ordinary_runs
from nbhelpers.places import shipped
from nbhelpers.studies.baseline import Baseline, chosen_run

from ..cells import run_cells

RECORDED = shipped() / "data" / "recorded" / "10-trace-collection"
SOURCE = ["kind", "source"]


def as_the_page(events: pd.DataFrame, traced: pd.DataFrame, worst: int) -> dict:
    """What the page's cells make of traced runs."""
    lengths = traced.set_index("run")["seconds"]
    names = {"events": events.astype(dict.fromkeys(SOURCE, str)), "source": SOURCE}
    averaged = run_cells("20-delta-config", "average", lengths=lengths, **names)
    names |= {"average": averaged["average"], "lengths": lengths, "worst": worst}
    names |= {"looked_at": lengths.index, "seconds": lengths, "cells": averaged["cells"]}
    found = run_cells("20-delta-config", "delta", **names)
    names |= {name: found[name] for name in ("some", "mine", "of_source")}
    return found | run_cells("20-delta-config", "ours", **names)


def drawn_events(seed: int) -> pd.DataFrame:
    """Few lengths and starts, so that many events are equally close to the mean."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(20, 80))
    table = pd.DataFrame(
        {
            "run": rng.integers(0, 3, count),
            "cpu": rng.integers(0, 2, count),
            "kind": rng.choice(["irq", "thread"], count),
            "source": rng.choice(["a", "b"], count),
            "start_ns": rng.integers(0, 30, count) * 1000,
            "duration_ns": rng.integers(0, 5, count) * 1000,
            "pid": rng.integers(1, 4, count),
        }
    )
    return table.assign(end_ns=table["start_ns"] + table["duration_ns"])


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    kept = ["cpu", *SOURCE, "start_ns", "duration_ns", "end_ns", "pid"]
    table = table[kept].astype(dict.fromkeys(SOURCE, str))
    return table.sort_values(kept).reset_index(drop=True)


MORE_SEEDS = [pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 8)]


@pytest.mark.parametrize("seed", [0, 1, 2, *MORE_SEEDS])
def test_the_cells_and_the_library_agree_on_ties_too(seed):
    events = drawn_events(seed)
    traced = pd.DataFrame({"run": [0, 1, 2], "seconds": [0.5, 1.0, 0.8], "status": "ok"})
    page = as_the_page(events, traced, worst=1)
    average = average_noise(events, traced)
    theirs = page["average"].loc[[*map(tuple, average[SOURCE].to_numpy())]]
    assert np.allclose(theirs["frequency_hz"], average["frequency_hz"], rtol=1e-12)
    assert np.array_equal(theirs["duration_ns"], average["duration_ns"])
    delta = delta_noise(events, average, traced, run=1)
    pd.testing.assert_frame_equal(in_order(page["delta"]), in_order(delta), check_dtype=False)
    usual = average_noise(events, ordinary_runs(traced))
    beyond = delta_noise(events, usual, traced, run=1, method="time")
    pd.testing.assert_frame_equal(in_order(page["beyond"]), in_order(beyond), check_dtype=False)
    for name, method, of in (("published", "paper", average), ("ours", "time", usual)):
        theirs = {one: delta_noise(events, of, traced, one, method) for one in traced["run"]}
        theirs = {one: left.attrs["remaining_ns"] for one, left in theirs.items()}
        assert page[name].groupby("run")["duration_ns"].sum().to_dict() == theirs


def test_they_agree_on_recorded_traces():
    baseline = Baseline(RECORDED, recorded_only=True)
    few = baseline.traced.nlargest(5, "seconds").sort_values("run")
    baseline.__dict__["traced"] = few  # five traces are read in a second, two hundred are not
    worst = chosen_run(few)
    page = as_the_page(baseline.events, few, worst)
    delta = delta_noise(baseline.events, average_noise(baseline.events, few), few, run=worst)
    pd.testing.assert_frame_equal(in_order(page["delta"]), in_order(delta), check_dtype=False)


def test_a_run_that_was_not_traced_is_refused_with_those_that_were():
    runs = pd.DataFrame({"run": [0, 2, 4], "seconds": [1.0, 3.0, 2.0]})
    assert (chosen_run(runs), chosen_run(runs, 4)) == (2, 4)
    with pytest.raises(InputError) as refused:
        chosen_run(runs, 3)
    assert "not traced" in refused.value.what and "run=2" in refused.value.fix
    with pytest.raises(InputError):
        chosen_run(runs.iloc[:0])
