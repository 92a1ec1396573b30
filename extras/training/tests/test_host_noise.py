"""The training loop under injected noise: what is compared, and a small real campaign."""

import noisebook_training as stragglers
import numpy as np
import pandas as pd
import pytest
from noisebook_training.host_noise import PAPER, SOURCES, loop_configs

from nbhelpers.noise.config import NoiseConfig


def made_steps(config: NoiseConfig, case: str, runs: int = 6, steps: int = 200) -> pd.DataFrame:
    """Steps of 4 ms that lose what the noise takes, walked in floating point."""
    rng = np.random.default_rng(1)
    noise = config.events().sort_values("start_ns")[["start_ns", "duration_ns"]].to_numpy()
    rows = []
    for run in range(runs):
        cell, now, left = ("baseline", "injected")[run % 2], 0.0, list(map(list, noise))
        for _ in range(steps):
            begin, work = now, 4e6 * rng.uniform(0.95, 1.05)
            while cell == "injected" and left and left[0][0] < now + work:
                start, length = left.pop(0)
                work -= max(0, start - now)
                now = max(now, start) + length
            now += work
            rows.append((case, cell, run, (now - begin) / 1e6))
    return pd.DataFrame(rows, columns=["case", "cell", "run", "step_ms"])


def test_configs_have_the_sources_and_shares_that_they_name():
    configs = loop_configs(300, 0)
    events = configs[SOURCES].events()
    share = events.groupby("source")["duration_ns"].sum() / configs[SOURCES].window_ns
    assert share["timer"] == pytest.approx(0.01, rel=0.1)
    assert share["worker"] == pytest.approx(0.02, rel=0.4)
    assert share["daemon"] == pytest.approx(0.02, rel=0.6)
    paper = configs[PAPER].events()["duration_ns"].sum() / configs[PAPER].window_ns
    assert paper == pytest.approx(0.025, rel=0.1)


def test_a_loop_that_loses_what_the_noise_takes_is_predicted():
    configs = loop_configs(200, 0)
    steps = pd.concat([made_steps(config, case) for case, config in configs.items()])
    table = stragglers.distances(steps, configs)
    assert (table["ks"] < 0.05).all() and (table["ks"] < table["ks_quiet"]).all()
    assert (table["ks_low"] <= table["ks"]).all()
    assert table["predicted_mean_ms"].to_numpy() == pytest.approx(table["mean_ms"], rel=0.01)
    assert set(stragglers.prices(steps, configs)["source"]) == {"timer", "worker", "daemon"}
    sides = stragglers.predicted_and_measured(steps, configs)
    assert list(sides) == [PAPER, SOURCES]


@pytest.mark.long
def test_a_small_real_campaign_is_compared(tmp_path):
    steps, configs = stragglers.measured_steps(tmp_path, 40, 2)
    assert steps.groupby(["case", "cell"]).size().tolist() == [80] * 4
    again, _ = stragglers.measured_steps(tmp_path, 40, 2, recorded_only=True)
    pd.testing.assert_frame_equal(again, steps)
    assert (stragglers.distances(steps, configs)["ks"] <= 1).all()
