"""What each explorer's view says is what an independent computation of the same data says; the
widget and the twin show the same views.
"""

import re

import numpy as np
import pandas as pd
import pytest

from nbhelpers.account.table import PARTS
from nbhelpers.errors import InputError
from nbhelpers.explorers import explore_config, explore_cutoff, explore_scale, explore_trace
from nbhelpers.explorers.account import _account
from nbhelpers.explorers.config import planned
from nbhelpers.explorers.scale import slowdowns
from nbhelpers.noise.signature import Signature
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
def traced():
    seconds = [0.080, 0.100, 0.085]
    return pd.DataFrame(
        {"run": [1, 2, 3], "seconds": seconds, "region_seconds": seconds, "status": "ok"}
    )


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


def test_the_trace_shows_the_slowest_and_the_median_run(events, traced):
    explorer = explore_trace(events, traced)
    view = explorer.view(part=(30.0, 60.0))
    inside = events[(events.start_ns < 60e6) & (events.end_ns > 30e6)]
    for source in ("kworker/1:0", "local_timer"):
        row = re.search(f"<th>{source}</th>(.*?)</tr>", view, re.S)[1]
        mine = inside[inside["source"] == source]
        by_hand = [mine.loc[mine["run"] == run, "duration_ns"] for run in (2, 3)]
        expected = [f"{n}" for one in by_hand for n in (len(one), round(one.sum() / 1e3))]
        assert re.findall(r"<td>(\d+)</td>", row) == expected
    assert "local_timer" not in explorer.view(part=(30.0, 60.0), kind="thread")
    assert "No event" in explorer.view(part=(92.0, 93.0), kind="thread")
    assert explorer.twin().count("data-view=") == 4
    with pytest.raises(InputError, match="1 traced run"):
        explore_trace(events[events.run == 1], traced)


def test_the_account_says_how_much_longer_a_run_took():
    random = np.random.default_rng(2)
    by_run = pd.DataFrame(random.integers(1, 9, (6, 8)), [4, 2, 5, 1, 3, 0], list(PARTS))
    view = _account(by_run.rename_axis("run"), by_run.iloc[2:].mean(), 5)
    longer = by_run.loc[5].sum() - by_run.iloc[2:].sum(axis=1).mean()
    assert f"Place 3 of 6: {by_run.loc[5].sum() / 1e3:.3f} s, {longer:.1f} ms longer" in view
    waiting = re.search(r"waiting</th>\s*<td>([\d.]+)", view)[1]
    assert float(waiting) == by_run.loc[5, "waiting"]


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
