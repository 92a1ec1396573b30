"""Time order: found where it was planted, and shuffles that respect it."""

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from nbhelpers.statistics.order import positions, time_order


def test_exchangeable_runs_have_no_order():
    runs = (np.random.default_rng(seed).normal(1, 0.1, 150) for seed in range(60))
    assert sum(time_order(one, seed).found for seed, one in enumerate(runs)) <= 3


@pytest.mark.parametrize(
    "shape", [np.arange(200) < 15, np.linspace(0, 2, 200), (np.arange(200) // 25) % 2]
)
def test_a_warm_up_a_drift_and_phases_are_found(shape):
    assert time_order(np.random.default_rng(1).normal(1, 0.2, 200) + shape).found


WAVE = np.sin(2 * np.pi * np.arange(120) / 7.3)


@pytest.mark.parametrize("values", [WAVE, np.arange(120) % 8 == 0, (-1.0) ** np.arange(120)])
def test_a_period_is_seen(values):
    random = np.random.default_rng(4)
    assert time_order(values + random.normal(0, 0.3, 120)).found


def test_a_block_holds_a_period():
    assert time_order(1 + WAVE + np.random.default_rng(4).normal(0, 0.3, 120)).block >= 8


def test_a_change_is_dated():
    values = np.random.default_rng(2).normal(1, 0.1, 200) + 0.3 * (np.arange(200) >= 80)
    assert len(time_order(values).changes) == 1 and abs(time_order(values).changes[0] - 80) <= 2


def test_blocks_grow_with_dependence():
    def autoregression(rho):
        return lfilter([1], [1, -rho], np.random.default_rng(3).normal(size=400))

    blocks = [time_order(autoregression(rho)).block for rho in (0, 0.6, 0.9)]
    assert blocks[0] == 1 and blocks[0] < blocks[1] < blocks[2]


def test_positions_follow_the_start_times():
    runs = pd.DataFrame({"start_ns": [30, 10, 20], "run": [1, 2, 3], "other": [1, 1, 2]})
    assert positions(runs).tolist() == [1, 2, 0]
    assert positions(runs[["run", "other"]].iloc[[2, 0, 1]]).tolist() == [1, 2, 0]
    assert positions(runs[["other"]]).tolist() == [0, 1, 2]


def test_few_or_equal_runs_say_nothing():
    assert not time_order([1.0, 2.0]).found and not time_order(np.ones(50)).found
