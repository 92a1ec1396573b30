"""Figures of the account show what its tables hold."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from nbhelpers.account.table import PARTS
from nbhelpers.empty import because
from nbhelpers.report import figure_account, figure_losses
from nbhelpers.report.accounts import PARTS as DRAWN


def test_each_part_of_the_account_is_drawn():
    assert tuple(DRAWN) == tuple(PARTS)


def test_the_bars_of_a_run_sum_to_its_time():
    random = np.random.default_rng(2)
    parts = pd.DataFrame(random.uniform(0, 50, (3, len(PARTS))), columns=list(PARTS))
    parts.loc[1, "unexplained"] = -7.0
    bars = parts.assign(label=["ordinary", "run 3", "run 9"], seconds=0.1)
    axes = figure_account(bars).axes[0]
    drawn = np.array([patch.get_width() for patch in axes.patches]).reshape(len(PARTS), 3)
    assert drawn.sum(axis=0) == pytest.approx(parts.sum(axis=1).to_numpy())
    assert min(patch.get_x() + patch.get_width() for patch in axes.patches) == pytest.approx(-7.0)
    assert [tick.get_text() for tick in axes.get_yticklabels()] == bars["label"].tolist()


def test_a_taken_interval_fills_the_lane_and_a_slow_phase_its_share():
    rows = [
        (0, 0, 10, 10, "kernel"),
        (0, 20, 40, 5, "slow_core"),
        (0, 20, 40, 10, "slow_memory"),
        (1, 0, 10, 10, "hypervisor"),
    ]
    losses = pd.DataFrame(rows, columns=["cpu", "start_ns", "end_ns", "lost_ns", "cause"])
    scale = 1_000_000
    losses[["start_ns", "end_ns", "lost_ns"]] *= scale
    first, second = figure_losses(losses).axes
    drawn = {to_hex(patch.get_facecolor()): patch for patch in first.patches}
    kernel = drawn[DRAWN["kernel"].colour.lower()]
    assert (kernel.get_height(), kernel.get_width()) == (1.0, 10.0)
    assert drawn[DRAWN["slow_core"].colour.lower()].get_height() == 0.25
    memory = drawn[DRAWN["slow_memory"].colour.lower()]
    assert (memory.get_y(), memory.get_height()) == (0.25, 0.5)
    assert len(second.patches) == 1


def test_without_an_account_the_figure_is_the_reason():
    empty = because(pd.DataFrame(columns=["label", "seconds", *PARTS]), "nobody sampled the speed")
    words = figure_account(empty).texts[0].get_text()
    assert "nobody sampled the speed" in words.replace("\n", " ")
