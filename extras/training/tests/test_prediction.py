"""Predicted step times against a clock that walks through work and noise, and by arithmetic."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noisebook_training.prediction import ks_distance, predicted_steps, price_by_source
from scipy import stats

events = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=12)


def walked(work_ns: list[int], noise: list[tuple[int, int]]) -> list[int]:
    """Steps, nanosecond by nanosecond: one of work where there is no noise."""
    taken = {at for start, length in noise for at in range(start, start + length)}
    now, steps = 0, []
    for work in work_ns:
        begin = now
        while work:
            work -= now not in taken
            now += 1
        steps.append(now - begin)
    return steps


@settings(max_examples=200)
@given(st.integers(1, 12), st.integers(1, 6), events)
def test_a_step_takes_as_long_as_a_walk_through_the_noise(work, steps, noise):
    table = pd.DataFrame(noise, columns=["start_ns", "duration_ns"])
    ours = predicted_steps(np.array([work / 1e9]), table, steps, 1)[0] * 1e9
    assert ours == pytest.approx(walked([work] * steps, noise), abs=1e-3)


def test_quiet_steps_are_drawn_from_the_measured():
    quiet = np.array([0.001, 0.002, 0.004])
    nothing = pd.DataFrame({"start_ns": [], "duration_ns": []})
    ours = predicted_steps(quiet, nothing, 500, 4, seed=3)
    assert ours.shape == (4, 500)
    assert sorted(set(ours.round(9).ravel())) == quiet.tolist()


@settings(max_examples=50)
@given(st.integers(0, 2**31), st.integers(1, 40), st.integers(1, 40))
def test_the_distance_is_scipys(seed, one, other):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 9, one), rng.integers(0, 9, other)
    assert ks_distance(a, b) == pytest.approx(stats.ks_2samp(a, b).statistic)


def test_sources_are_priced_by_what_they_take():
    noise = pd.DataFrame(
        {
            "start_ns": [0, 40e6, 80e6, 10e6],
            "duration_ns": [1e6, 1e6, 1e6, 9e6],
            "source": ["tick", "tick", "tick", "daemon"],
        }
    )
    table = price_by_source(np.array([0.01]), noise, 10, 1).set_index("source")
    assert table["events"].to_dict() == {"daemon": 1, "tick": 3}
    assert table["mean_ms"].to_dict() == pytest.approx({"daemon": 0.9, "tick": 0.3})
    assert table["lost_share"].to_dict() == pytest.approx({"daemon": 9 / 112, "tick": 3 / 112})
