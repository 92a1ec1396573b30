"""What each explorer's view says is what an independent computation of the same data says."""

import re

import numpy as np
import pandas as pd
import pytest

from nbhelpers.account.table import PARTS
from nbhelpers.errors import InputError
from nbhelpers.explorers import explore_config, explore_scale, explore_trace
from nbhelpers.explorers._drawing import ticks
from nbhelpers.explorers.account import AccountExplorer
from nbhelpers.noise.signature import Signature
from nbhelpers.page import outside_loads
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
    seconds = [0.080, 0.100, 0.085]
    return pd.DataFrame(
        {"run": [1, 2, 3], "seconds": seconds, "region_seconds": seconds, "status": "ok"}
    )


def test_the_trace_shows_the_slowest_and_the_median_run(events, runs):
    explorer = explore_trace(events, runs)
    assert explorer.runs == {2: 0.1, 3: 0.085}
    part = (30.0, 60.0)
    chosen = explorer.selected(explorer.start | {"part": part, "kind": "thread"})
    assert chosen[["run", "source"]].to_numpy().tolist() == [[2, "kworker/1:0"]]
    view = explorer.view({"part": part})
    by_hand = events[(events.run == 2) & (events.start_ns < 60e6) & (events.end_ns > 30e6)].groupby(
        "source", observed=True
    )["duration_ns"]
    for source, durations in by_hand:
        row = re.search(f"<th>{source}</th>(.*?)</tr>", view, re.S)[1]
        numbers = re.findall(r"<td>(\d+)</td>", row)
        assert numbers[:2] == [str(len(durations)), f"{durations.sum() / 1e3:.0f}"]
    assert "No event" in explorer.view({"part": (92.0, 93.0), "kind": "thread"})
    with pytest.raises(InputError, match="1 traced run"):
        explore_trace(events[events.run == 1], runs)


def test_a_view_is_cached_and_the_twin_has_all_its_states(events, runs):
    explorer = explore_trace(events, runs)
    assert explorer.view({"kind": "irq"}) is explorer.view({"kind": "irq"})
    twin = explorer.twin()
    states = explorer.chosen()
    assert twin.count("data-view=") == len(states) == 4
    assert all(explorer.view(state) in twin for state in states)
    assert outside_loads(twin) == []


def test_a_part_is_never_empty_and_ends_with_the_run(events, runs):
    explorer = explore_trace(events, runs)
    part, step = explorer.controls()[0], 100 / 400
    assert part.clean((100.0, 100.0)) == (100 - step, 100.0)
    assert part.clean((0.0, 0.0)) == (0.0, step)
    assert part.clean((60.0, 30.0)) == (30.0, 60.0)
    assert "<strong>99.75 to 100 ms</strong>" in explorer.view({"part": (100.0, 100.0)})


def test_a_label_says_itself_where_it_does_not_fit(events, runs):
    *controls, shown = explore_trace(events, runs).widget().children
    assert [one.tooltip for one in controls] == [one.description for one in controls]
    assert shown.value.startswith("<style>") and "<style>" not in explore_trace(events, runs).view()


def test_the_account_says_how_much_longer_a_run_took():
    random = np.random.default_rng(2)
    by_run = pd.DataFrame(random.integers(1, 9, (6, 8)) * 1e6, [4, 2, 5, 1, 3, 0], list(PARTS))
    explorer = AccountExplorer(by_run.rename_axis("run"), by_run.iloc[2:].mean())
    view = explorer.view({"run": 5})
    longer = (by_run.loc[5].sum() - by_run.iloc[2:].sum(axis=1).mean()) / 1e6
    assert f"Place 3 of 6: {by_run.loc[5].sum() / 1e9:.3f} s, {longer:.1f} ms longer" in view
    waiting = re.search(r"waiting for others</th>\s*<td>([\d.]+)", view)[1]
    assert float(waiting) == by_run.loc[5, "waiting"] / 1e6


def test_no_part_is_longer_by_minus_nothing():
    by_run = pd.DataFrame(np.full((3, 8), 5e6), [0, 1, 2], list(PARTS)).rename_axis("run")
    view = AccountExplorer(by_run, by_run.iloc[0] + 1e4).view()
    assert view.count("<td>0.0</td>") == 8 and "-0.0<" not in view


def test_the_config_costs_what_its_events_sum_to(events, runs):
    delta = events[events.run == 2].copy()
    delta.attrs |= {"seconds": 0.1, "run": 2}
    explorer = explore_config(delta)
    view = explorer.view()
    assert f": {delta['duration_ns'].sum() / 2e8:.3%} of the time of 2 CPUs" in view
    doubled = explorer.config(explorer.start | {"scale": 2.0}).events()
    assert doubled["duration_ns"].sum() == 2 * delta["duration_ns"].sum()
    longest = explorer.config(explorer.start | {"share": 2.0}).events()
    assert longest["duration_ns"].tolist() == [20_000_000]
    plan = explorer.plan(explorer.config(explorer.start), 10.0)
    assert (plan.injected["duration_ns"] >= 10_000).all()
    assert len(plan.injected) < len(delta)


def test_the_slow_down_at_scale_is_that_of_the_engine():
    values = explore_scale().slowdowns(100, 250, 16)
    step = patterns.loop(patterns.dissemination(16), 5, 1_000_000)
    noise = signature_on_ranks(Signature(100, 250), 16, 1)
    engine = simulate(step, noise=noise).makespan_ns / simulate(step).makespan_ns
    assert values[1] == pytest.approx(engine, rel=1e-9)
    view = explore_scale().view({"frequency_hz": 100, "duration_us": 250, "ranks": 16})
    assert f"{np.median(values):.4g} times ({values.min():.4g} to" in view


def test_ticks_are_round_and_lie_within():
    for low, high in ((0, 807.4), (0.40, 0.84), (1, 1.0003), (3, 3)):
        found = ticks(low, high)
        assert ((found >= low - 1e-9) & (found <= high + 1e-9)).all()
        assert len(found) <= 12
