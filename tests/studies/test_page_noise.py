"""Cells of the pages on noise, on tables whose answer is known: 00 (is the machine noisy?) and 10
(who takes the time?).
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.answers import CANNOT_TELL, NO, YES
from nbhelpers.tracing import noise_summary
from nbhelpers.tracing._table import empty_events
from tests.cells import run_cells
from tests.shown import Shown


def detours(*lost_share: float, steps: int = 200) -> pd.DataFrame:
    """A second of a loop on one CPU that loses these shares of its time, one part after another."""
    starts = np.arange(steps) * 10**9 // steps
    shares = np.repeat(lost_share, steps // len(lost_share))
    lengths = (shares * 1e9 / steps).astype("int64") + np.arange(steps) % 3
    table = pd.DataFrame({"cpu": 0, "start_ns": starts, "end_ns": starts + lengths})
    table["duration_ns"] = lengths
    table.attrs |= {"seconds": 1.0, "cpus": 1}
    return table


@pytest.mark.parametrize(
    ("table", "word"),
    [
        (detours(0.03), YES),
        (detours(0.002), NO),
        (detours(0.0, 0.0, 0.08, 0.0), CANNOT_TELL),
        (detours(0.01).head(0), CANNOT_TELL),
    ],
)
def test_a_machine_is_noisy_where_a_loop_is_shown_to_lose_more_than_one_percent(table, word):
    found = Shown()
    study = Shown(machine={"replaced": []})
    run_cells("00-machine", "noisy", detours=table, found=found, study=study)
    assert found.answer.answer == word and len(found.answer.sentence.split()) <= 25
    if len(table):
        lost = table["duration_ns"].sum() / 1e9
        assert found.answer.value == pytest.approx(100 * lost, rel=0.1)


def traced(runs: int, **per_run_us: tuple) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs of 1 s on one CPU, and an event of each source in each, as long as is said in turn."""
    rows = [
        {"run": run, "cpu": 0, "kind": "thread", "source": name}
        | {"start_ns": 0, "duration_ns": 1000 * lengths[run % len(lengths)]}
        for run in range(runs)
        for name, lengths in per_run_us.items()
    ]
    table = pd.DataFrame({"run": range(runs), "seconds": 1.0, "status": "ok"})
    table["region_seconds"] = 1.0
    return pd.DataFrame(rows) if rows else empty_events(), table


def who(runs: int, tracer: str = "osnoise", **per_run_us: tuple):
    events, table = traced(runs, **per_run_us)
    known = {"traced": table, "cpus": 1, "cpu_s": float(runs), "events": events}
    shares = {"cpu_share": events["duration_ns"] / runs}
    known |= {"noise": pd.DataFrame(shares), "tracer": Shown(source=tracer)}
    found = Shown()
    run_cells("10-trace-collection", "who", found=found, overhead=Shown(verdict=""), **known)
    return found.answer


def test_the_source_that_is_shown_to_take_more_is_named_with_its_share():
    found = who(20, kworker=(9000, 9100), timer=(1000, 1001), ksoftirqd=(10,))
    assert found.answer == "kworker"
    assert found.value == pytest.approx(0.905) and found.low < found.value < found.high
    assert "kworker 0.90%, timer 0.10%." in found.sentence


def test_sources_that_are_not_told_apart_are_both_named_or_nobody_is():
    both = who(20, kworker=(0, 9000), timer=(4000, 4100), rcu=(10,))
    assert both.answer == "kworker or timer"
    three = {name: (0, 9000 - 10 * i) for i, name in enumerate("abc")}
    assert who(20, **three).answer == CANNOT_TELL
    assert who(3, "detours", kworker=(9000,)).answer == CANNOT_TELL
    assert who(3).answer == CANNOT_TELL  # no event at all


def test_noise_by_source_on_the_page_is_that_of_the_library(monkeypatch):
    events, table = traced(7, kworker=(9000, 9100, 3), timer=(1000, 1001))
    events.attrs["cpus"] = [0, 1]
    monkeypatch.setattr("nbhelpers.tracing.read_traces", lambda folder, runs: events)
    names = {"folder": Path("nowhere"), "traced": table, "study": Shown()}
    page = run_cells("10-trace-collection", "noise", **names)["noise"]
    pd.testing.assert_frame_equal(page, noise_summary(events, table), check_like=True)
