"""Rearrangements keep what they promise: values, spectrum, blocks, beats."""

import numpy as np
import pytest
from scipy.signal import lfilter

from nbhelpers.statistics.surrogates import (
    beats,
    block_orders,
    level_windows,
    phase_orders,
    without_beats,
    without_level,
)


def autoregression(size, rho, seed=0):
    return lfilter([1], [1, -rho], np.random.default_rng(seed).normal(size=size))


def neighbours(rows):
    rows = rows - rows.mean(axis=-1, keepdims=True)
    return (rows[..., 1:] * rows[..., :-1]).sum(axis=-1) / (rows**2).sum(axis=-1)


@pytest.mark.parametrize("block", [1, 7])
def test_a_shuffle_is_a_rearrangement_that_keeps_neighbours(block):
    for order in block_orders(100, block, 20, np.random.default_rng(0)):
        assert sorted(order) == list(range(100))
        if block > 1:
            step = np.abs(np.diff(order))
            assert np.isin(step, (1, 99)).mean() > 0.8


def test_random_phases_keep_the_values_and_the_autocorrelation():
    values = autoregression(200, 0.8)
    orders = phase_orders(values, 50, np.random.default_rng(1))
    assert (np.sort(orders, axis=1) == np.arange(200)).all()
    assert neighbours(values[orders]).mean() == pytest.approx(neighbours(values), abs=0.05)
    plain = block_orders(200, 1, 50, np.random.default_rng(1))
    assert abs(neighbours(values[plain]).mean()) < 0.05
    # and nothing else: one rearrangement is unlike the next
    assert np.abs(np.corrcoef(values[orders])[np.triu_indices(50, 1)]).max() < 0.9


def test_pulses_keep_their_beat():
    labels = (np.arange(120) % 8 == 0).astype(float)
    moved = labels[phase_orders(labels, 20, np.random.default_rng(1))]
    places = [np.flatnonzero(row) for row in moved]
    assert all((np.diff(place) == 8).all() for place in places)
    assert len({place[0] for place in places}) > 3


def test_a_beat_that_does_not_divide_the_campaign_is_found_and_taken_out():
    random = np.random.default_rng(2)
    values = np.sin(2 * np.pi * np.arange(120) / 7 + 1) + random.normal(0, 0.5, 120)
    frequencies = beats(values)
    assert np.abs(frequencies - 1 / 7).min() < 0.002
    left = without_beats(values - values.mean(), frequencies)
    assert left.std() == pytest.approx(0.5, abs=0.1) and not beats(left).size


def test_the_level_of_a_window_begins_anew_where_it_changes():
    step = (np.arange(120) >= 67).astype(float)
    windows = level_windows(120, (67,))
    assert np.unique(windows).size == windows[-1] + 1 and (np.diff(windows) >= 0).all()
    assert without_level(step, windows) == pytest.approx(np.zeros(120))
    assert without_level(np.column_stack([step, 2 * step]), windows) == pytest.approx(0)
