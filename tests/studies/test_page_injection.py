"""Cells of page 30 on runs and logs whose answer is known."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbhelpers.answers import CANNOT_TELL, NO, YES
from nbhelpers.injection.log import OUTCOMES, noise_ns
from nbhelpers.report import published_table
from nbhelpers.studies.known import NOTHING
from tests.cells import run_cells
from tests.shown import Shown

STAGE = "30-injection"


def seconds(mean: float, spread: float = 0.001, runs: int = 20) -> np.ndarray:
    """Run times whose mean is exactly this."""
    return mean + spread * np.linspace(-1, 1, runs)


def answered(
    anomaly: float, replayed: np.ndarray, undisturbed: np.ndarray, later: float = 0.0
) -> dict:
    """`later`: what all runs beside the replay took longer than those of the anomaly's hour."""
    parts = {"injected": replayed, "baseline": undisturbed}
    tables = [
        pd.DataFrame({"cell": cell, "round": range(len(part)), "seconds": part})
        for cell, part in parts.items()
    ]
    ok = pd.concat(tables, ignore_index=True)
    known = {name: ok[ok["cell"] == name] for name in parts}
    theirs = published_table("persson2025-table7")
    known |= {"ok": ok, "anomaly": anomaly, "theirs": theirs, "seed": 2, "costs": ""}
    sums = ("planned_ms", "injected_ms", "floor_ms")
    page15 = Shown(handed_on=lambda name: Path("not made"))
    known |= {"by_kind": pd.DataFrame(1.0, ["irq"], sums), "found": Shown()}
    known |= {"study": Shown(of=lambda stage: page15), "ordinary_s": undisturbed.mean() - later}
    return run_cells(STAGE, "answer", **known)


@pytest.mark.parametrize(
    ("replayed", "undisturbed", "word"),
    [
        (seconds(0.495), seconds(0.4), YES),
        (seconds(0.45), seconds(0.4), "50 % of it"),
        (seconds(0.55), seconds(0.4), "150 % of it"),
        (seconds(0.4, spread=0.01), seconds(0.4), NO),
        (seconds(0.45, spread=0.4), seconds(0.4), CANNOT_TELL),
        (seconds(0.495), seconds(0.49), NOTHING),
        (seconds(0.5, runs=1), seconds(0.4, runs=1), CANNOT_TELL),
    ],
)
def test_a_replay_is_judged_by_the_share_of_the_excess_that_comes_back(replayed, undisturbed, word):
    found = answered(0.5, replayed, undisturbed)["found"].answer
    assert found.answer == word and len(found.sentence.split()) <= 25
    if len(replayed) > 1:
        share = (replayed.mean() - undisturbed.mean()) / (0.5 - undisturbed.mean())
        assert found.value == pytest.approx(100 * share, abs=1e-6)
        assert found.n == len(replayed) and found.low <= found.value <= found.high
    assert found.published == "8.57 % mean error (Persson et al. 2025, Table 7)"


def test_the_share_that_came_back_and_its_interval():
    page = answered(0.5, seconds(0.45, 0.02)[::-1], seconds(0.4, 0.01))
    assert page["came_back"] == pytest.approx(50)
    assert 35 < page["low"] < 50 < page["high"] < 65
    page = answered(0.5, seconds(0.47), seconds(0.42), later=0.02)
    assert page["came_back"] == pytest.approx(50)


LOG = pd.DataFrame(
    {
        "run": 0,
        "cpu": 0,
        "kind": ["irq", "thread", "thread", "softirq"],
        "policy": ["SCHED_FIFO", "SCHED_OTHER", "SCHED_OTHER", ""],
        "outcome": pd.Categorical(["injected", "late", "cut", "below floor"], OUTCOMES),
        "planned_duration_ns": [50_000, 100_000, 100_000, 900],
        "replay_start_ns": [1_000_000, 2_000_000, 3_000_000, 0],
        "replayed_ns": [50_000, 100_000, 100_000, 0],
        "start_ns": [1_002_000, 2_700_000, 3_000_000, 0],
        "taken_ns": [1_000_000, 2_700_000, 3_000_000, 0],
        "end_ns": [1_050_000, 2_850_000, 3_020_000, 0],
        "exit_ns": [1000, 0, 0, 0],
        "preempted_ns": 0,
        "cpu_time_ns": [49_000, 103_000, 20_000, 0],
    }
)


def test_the_errors_of_a_log_are_those_worked_out_by_hand(monkeypatch):
    monkeypatch.setattr("nbhelpers.injection.read_logs", lambda folder, runs: LOG.copy())
    known = {"folder": Path(), "injected": LOG, "study": Shown()}
    page = run_cells(STAGE, "accuracy", **known)
    done = page["done"]
    assert done["took_ns"].tolist() == noise_ns(done).tolist() == [51_000, 103_000]
    errors = page["quantiles"]
    assert errors.loc[("real-time", "duration"), "median_us"] == pytest.approx(1)
    assert errors.loc[("ordinary", "start"), "p99_size_us"] == pytest.approx(700)
    by_kind = page["by_kind"]
    assert by_kind.loc["thread", "injected_over_planned"] == pytest.approx(1.03)
    assert by_kind.loc["softirq", "floor_ms"] == pytest.approx(0.0009)
    nothing = LOG[LOG["outcome"] == "below floor"]
    monkeypatch.setattr("nbhelpers.injection.read_logs", lambda folder, runs: nothing.copy())
    assert run_cells(STAGE, "accuracy", **known)["quantiles"].empty


def test_a_replay_of_which_every_event_was_too_short_is_drawn_as_planned():
    columns = ("planned_start_ns", "planned_duration_ns", "end_ns", "taken_ns", "took_ns", "class")
    log = pd.DataFrame(0, range(2), ["run", "cpu", *columns]).assign(cpu=[0, 1], kind="irq")
    both = run_cells(STAGE, "drawn", log=log, study=Shown())["both"]
    assert sorted(both["lane"]) == ["CPU 0 planned", "CPU 1 planned"]
