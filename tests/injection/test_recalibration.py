"""Overheads that still hold, and what becomes of those that do not."""

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from nbhelpers.injection import Injector, Overheads, make_plan
from nbhelpers.injection._machine_state import differences, machine_state
from nbhelpers.injection.costs import ExitCost
from nbhelpers.injection.recalibration import bias_of, refreshed
from nbhelpers.injection.rules import may_realtime
from nbhelpers.measurement import run_once
from nbhelpers.workloads import program

from ..trees import write_tree
from .helpers import make_config

module = sys.modules["nbhelpers.injection.recalibration"]
needs_realtime = pytest.mark.skipif(not may_realtime(50), reason="SCHED_FIFO is not permitted here")
CONFIG = make_config([(0, "irq", 1, 0.2), (0, "irq", 5, 3)])
POINTS = (ExitCost(100, 5, 4.8, 5.2, 60), ExitCost(3000, 9, 8.5, 9.5, 60))


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """No cache of another campaign, and no check by another test."""
    monkeypatch.setattr(module, "cache_path", lambda: tmp_path / "overheads.json")
    monkeypatch.setattr(module, "_last_check_s", float("-inf"))


def measured(age_s: float = 0, **values) -> Overheads:
    then = datetime.now(UTC) - timedelta(seconds=age_s)
    known = {"measured": True, "state": machine_state(), "measured_at": then.isoformat()}
    return Overheads(**({"cpu": 0, "exit_by_length": POINTS} | known | values))


def events(error_us: float, spread_us: float = 0.5, count: int = 40) -> pd.DataFrame:
    """What `replayed_costs` returns where exits cost so much more than POINTS say."""
    noise = np.random.default_rng(1).normal(0, spread_us, 2 * count)
    length_us = np.repeat([100.0, 3000.0], count)
    costs_us = np.repeat([5.0, 9.0], count) + error_us + noise
    return pd.DataFrame(
        {"length_us": length_us, "wake_us": 20.0, "over_us": 0.05, "beyond_us": costs_us}
    )


def test_a_check_that_finds_no_bias_is_not_repeated_at_once(alone, monkeypatch):
    asked = []
    monkeypatch.setattr(module, "replayed_costs", lambda *_: asked.append(1) or events(0.3))
    plan = make_plan(CONFIG, overheads=measured(age_s=700))
    assert refreshed(plan) == refreshed(plan) == (plan, "") and len(asked) == 1


def test_a_proven_bias_leads_to_new_overheads_and_the_same_events(alone, monkeypatch):
    new = measured(exit_us=9.0)
    monkeypatch.setattr(module, "replayed_costs", lambda *_: events(4.0))
    monkeypatch.setattr(module, "measure_overheads", lambda again: new)
    plan = make_plan(CONFIG, overheads=measured(age_s=700))
    found, note = refreshed(plan)
    assert found.overheads == new and found.events.equals(plan.events)
    assert "exit cost 5.0 → 9.0 µs" in note and "exit cost after 100 µs off by +4.0 µs" in note


def test_another_governor_leads_to_new_overheads_whatever_their_age(alone, monkeypatch):
    monkeypatch.setattr(module, "measure_overheads", lambda again: measured())
    before = machine_state() | {"frequency governor": "a-governor"}
    found, note = refreshed(make_plan(CONFIG, overheads=measured(state=before)))
    assert found.overheads.state == machine_state()
    assert f"frequency governor: a-governor → {machine_state()['frequency governor']}" in note


def test_what_cannot_be_measured_now_leaves_the_old_overheads(alone, monkeypatch):
    monkeypatch.setattr(module, "measure_overheads", lambda again: Overheads())
    plan = make_plan(CONFIG, overheads=measured(state={"boot": "another"}))
    assert refreshed(plan) == (plan, "")


@pytest.mark.parametrize(
    ("error_us", "spread_us", "wrong"),
    [(0.5, 0.5, 0), (3.5, 0.5, 2), (2.1, 0.3, 1), (2.1, 8, 0), (-4, 0.5, 2)],
)
def test_only_a_proven_bias_above_what_is_tolerated_counts(error_us, spread_us, wrong):
    assert bias_of(measured(), events(error_us, spread_us)).count("off by") == wrong


def test_differences_name_what_changed_and_never_an_identity(tmp_path):
    files = {
        "/sys/devices/system/cpu/online": "0-1",
        "/proc/sys/kernel/random/boot_id": "11111111-2222",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq": "800000",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq": "3900000",
    }
    before = machine_state(write_tree(tmp_path, files))
    assert before["frequency limits"] == "800000-3900000"
    folder = tmp_path / "sys/devices/system/cpu"
    (folder / "cpu0/cpufreq/scaling_max_freq").write_text("2000000\n")
    (folder / "online").write_text("0\n")
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("33333333-4444\n")
    found = differences(before, machine_state(tmp_path))
    assert "another boot" in found and "3333" not in found and "CPUs: 0 1 → 0" in found
    assert "frequency limits: 800000-3900000 → 800000-2000000" in found
    assert differences(before, before) == ""


@pytest.mark.alone
@needs_realtime
@pytest.mark.flaky(reruns=2)
def test_a_run_says_which_overheads_it_used_and_a_change_is_a_note():
    injector = Injector(CONFIG)
    try:
        first = run_once(program("sleep 0.02"), [injector])
        stale = replace(injector.overheads, state={}, measured_at="2020-01-01T00:00:00+00:00")
        injector.plan = replace(injector.plan, overheads=stale)
        second = run_once(program("sleep 0.02"), [injector])
    finally:
        injector.close()
    assert first["status"] == second["status"] == "ok"
    assert first["overheads_at"] and first["overheads_age_s"] >= 0
    assert second["overheads_at"] >= first["overheads_at"]
    assert any("2020-01-01" in note and "stay the same" in note for note in injector.notes)
