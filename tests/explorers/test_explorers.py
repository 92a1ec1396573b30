"""What each explorer's view says is what an independent computation of the same data says; the
widget and the twin show the same views.
"""

import re

import numpy as np
import pandas as pd
import pytest

from nbhelpers.explorers import explore_config, explore_cutoff, explore_runs, explore_scale
from nbhelpers.explorers.config import planned
from nbhelpers.explorers.scale import slowdowns
from nbhelpers.noise.signature import Signature
from nbhelpers.page import write_page
from nbhelpers.simulation import patterns, signature_on_ranks, simulate


@pytest.fixture
def events():
    """Three runs: 40 timer interrupts each, and run 2 has a thread of 20 ms on CPU 1."""
    random = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "run": np.repeat([1, 2, 3], 40),
            "cpu": np.tile([0, 1], 60),
            "kind": "irq",
            "source": "local_timer",
            "start_ns": np.tile(np.arange(40) * 2_000_000, 3),
            "duration_ns": random.integers(2_000, 9_000, 120),
            "policy": "SCHED_FIFO",
            "priority": 50,
            "interrupted": "workload",
        }
    )
    thread = table.iloc[[0]].assign(
        run=2, cpu=1, kind="thread", source="kworker/1:0", start_ns=30_500_000,
        duration_ns=20_000_000, policy="SCHED_OTHER", priority=0,
    )  # fmt: skip
    table = pd.concat([table, thread], ignore_index=True)
    table["end_ns"] = table["start_ns"] + table["duration_ns"]
    for name in ("kind", "source", "policy", "interrupted"):
        table[name] = table[name].astype("category")
    return table


@pytest.fixture
def runs():
    random = np.random.default_rng(3)
    faults = random.poisson(50, 60) + 300 * random.permutation(np.arange(60) % 3 == 0)
    seconds = 0.1 + 1e-4 * faults + 1e-3 * random.standard_normal(60)
    return pd.DataFrame(
        {"run": range(60), "minor_faults": faults, "status": "ok", "seconds": seconds}
    )


def slow(text):
    return int(re.search(r"(\d+) of 60 runs are slow", text)[1])


def test_the_view_follows_the_slider(runs):
    slider, shown = explore_cutoff(runs, start=0.12).widget().children
    assert slow(shown.value) == (runs["seconds"] > 0.12).sum() == 20
    assert "minor_faults" in shown.value and "Page faults" in shown.value
    assert "<img" in shown.value and "cutoff <strong>0.12 s</strong>" in shown.value
    slider.index = 0
    assert slow(shown.value) == (runs["seconds"] > slider.value).sum() > 50


def test_the_twin_shows_one_view_of_several(runs):
    views = explore_cutoff(runs, start=0.12).twin().split("<div data-view=")[1:]
    hidden = [view.split(">")[0].endswith('none"') for view in views]
    assert len(views) == 8 and hidden.count(False) == 1
    assert slow(views[hidden.index(False)]) == 20
    counts = [slow(view) for view in views]
    assert counts == sorted(counts, reverse=True) and counts[-1] < 10


def test_a_stage_shows_the_twin_and_a_person_the_slider(runs, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    explore_cutoff(runs)._ipython_display_()
    monkeypatch.setenv("NOISEBOOK_STATIC", "1")
    explore_cutoff(runs)._ipython_display_()
    assert [type(item).__name__ for item in shown] == ["VBox", "HTML"]


@pytest.fixture
def linked(runs):
    """60 runs of which every third is slow: `backupd` had its CPU; time lines of runs 1 and 2."""
    seconds = runs.set_index("run")["seconds"]
    backupd = 1e3 * (seconds - seconds.min())
    owned = pd.DataFrame({("runnable", "backupd"): backupd, ("computing", "the program"): 100.0})
    had = pd.DataFrame({"run": [1, 1, 1, 2], "cpu": 0, "start_ns": [0, 40, 50, 0]})
    had = had.assign(end_ns=[40, 50, 90, 80], name=["work", "backupd", "work", "work"])
    had[["start_ns", "end_ns"]] *= 1_000_000
    runs = runs.assign(wall_seconds=runs["seconds"])
    return explore_runs(runs, owned, had.assign(is_program=had["name"] == "work"))


def test_a_run_is_shown_beside_the_ordinary_ones(linked, runs):
    spec = linked.chart.to_dict()
    tables = [pd.DataFrame(rows) for rows in spec["datasets"].values()]
    account = next(table for table in tables if "owner" in table).set_index(["run", "owner"])["ms"]
    seconds = runs.set_index("run")["seconds"]
    slowest = int(seconds.idxmax())
    usual = seconds[seconds.between(*seconds.quantile([0.25, 0.75]))].mean()
    longer = account[slowest, "CPU had by backupd"]
    assert longer == pytest.approx(1e3 * (seconds.max() - usual), abs=1e-3)
    assert (slowest, "computing") not in account
    lines = next(table for table in tables if "from_ms" in table)
    assert lines.query("run == 1")["who"].tolist() == ["the program", "backupd", "the program"]
    counters = next(table for table in tables if "counter" in table)
    assert counters.query("run == @slowest")["counter"].iloc[0] == "minor_faults"


def test_a_click_on_a_dot_shows_its_run(linked, runs, tmp_path, opened):
    """On a page whose policy forbids `eval` and everything from elsewhere."""
    path = write_page(tmp_path / "view.html", "runs", linked._repr_html_())
    page, said = opened.new_page(viewport={"width": 1280, "height": 800}), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    dots = page.locator("g.mark-symbol.role-mark path")
    chosen, line = page.locator(".linked-view select"), page.locator("[aria-label*='who: backupd']")
    dots.first.wait_for()
    assert dots.count() == len(runs)
    assert chosen.input_value() == str(runs["seconds"].idxmax()) and not line.count()
    dots.nth(1).click(force=True)
    line.wait_for()
    assert chosen.input_value() == "1"
    chosen.select_option("2")
    line.wait_for(state="detached")
    assert not said
    page.close()


def test_the_config_costs_what_its_events_sum_to(events):
    delta = events[events.run == 2].copy()
    delta.attrs |= {"seconds": 0.1, "run": 2}
    view = explore_config(delta).view()
    assert f": {delta['duration_ns'].sum() / 2e8:.3%} of the time of 2 CPUs" in view
    doubled = planned(delta, "improved", 100, 2.0, 0)[0].events()
    assert doubled["duration_ns"].sum() == 2 * delta["duration_ns"].sum()
    longest = planned(delta, "improved", 2, 1.0, 0)[0].events()
    assert longest["duration_ns"].tolist() == [20_000_000]
    injected = planned(delta, "improved", 100, 1.0, 10.0)[1].injected
    assert (injected["duration_ns"] >= 10_000).all() and len(injected) < len(delta)


def test_the_slow_down_at_scale_is_that_of_the_engine():
    values = slowdowns(100, 250, 16)
    step = patterns.loop(patterns.dissemination(16), 5, 1_000_000)
    noise = signature_on_ranks(Signature(100, 250), 16, 1)
    engine = simulate(step, noise=noise).makespan_ns / simulate(step).makespan_ns
    assert values[1] == pytest.approx(engine, rel=1e-9)
    view = explore_scale().view(frequency=100, duration=250, ranks=16)
    assert f"{np.median(values):.4g} times ({values.min():.4g} to" in view
