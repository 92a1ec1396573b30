"""Noise signatures: counts, spacing and shares against what frequency and duration say."""

import numpy as np
import pytest

from nbhelpers.errors import InputError
from nbhelpers.noise import NoiseConfig, signature_noise


@pytest.mark.parametrize("frequency_hz, duration_us, count", [(1000, 25, 2000), (100, 250, 200), (10, 2500, 20)])
def test_the_published_signatures_take_two_and_a_half_percent(frequency_hz, duration_us, count):
    events = signature_noise(frequency_hz, duration_us, seconds=2.0, cpus=[0, 2])
    assert events.groupby("cpu").size().to_dict() == {0: count, 2: count}
    assert (np.diff(events.loc[events["cpu"] == 2, "start_ns"]) == 1e9 / frequency_hz).all()
    config = NoiseConfig.from_events(events)
    assert config.window_ns == 2_000_000_000
    assert config.summary()["share"].tolist() == pytest.approx([0.025, 0.025])
    assert config.summary()["longest_block_ms"].tolist() == [duration_us / 1000] * 2


def test_aligned_strikes_all_cpus_at_once_and_random_does_not():
    starts = {phase: signature_noise(50, 100, 1.0, [0, 1], phase=phase).groupby("cpu")["start_ns"].apply(list)
              for phase in ("aligned", "random")}
    assert starts["aligned"][0] == starts["aligned"][1]
    assert not set(starts["random"][0]) & set(starts["random"][1])
    assert all(49 <= len(found) <= 51 for found in starts["random"])
    poisson = signature_noise(50, 100, 1.0, [0, 1], distribution="poisson").groupby("cpu")["start_ns"].apply(list)
    assert poisson[0] == poisson[1]


def test_poisson_has_the_variance_of_its_mean_and_never_overlaps():
    events = signature_noise(200, 1000, 50.0, [0], distribution="poisson", phase="random", seed=4)
    counts = np.bincount(events["start_ns"] // 1_000_000_000, minlength=50)
    assert abs(counts.mean() - 200) < 5 * np.sqrt(200 / 50)
    assert 60 < counts.var() < 300  # of 50 values with variance 200, less what queueing smooths
    assert (events["start_ns"].to_numpy()[1:] >= events["end_ns"].to_numpy()[:-1]).all()


def test_seeds_and_cpus_are_independent():
    one = signature_noise(50, 100, 1.0, [1], distribution="poisson", phase="random", seed=3)
    two = signature_noise(50, 100, 1.0, [0, 1], distribution="poisson", phase="random", seed=3)
    assert one["start_ns"].tolist() == two.loc[two["cpu"] == 1, "start_ns"].tolist()
    assert one["start_ns"].tolist() != signature_noise(50, 100, 1.0, [1], distribution="poisson", phase="random", seed=5)["start_ns"].tolist()


def test_policies_and_the_end_of_the_window():
    events = signature_noise(1, 900_000, 1.0, [0], kind="irq")
    assert events[["start_ns", "end_ns", "policy", "priority"]].values.tolist() == [[500_000_000, 1_000_000_000, "SCHED_FIFO", 50]]
    assert signature_noise(1, 1, 1.0, [0], policy="SCHED_FIFO", priority=7)["priority"].tolist() == [7]
    assert signature_noise(1, 1, 1.0, [0], policy="SCHED_FIFO")["priority"].tolist() == [1]


@pytest.mark.parametrize("change, message", [
    ({"frequency_hz": 0}, "frequency_hz is 0"), ({"duration_us": float("nan")}, "duration_us is nan"), ({"seconds": -1}, "seconds is -1"),
    ({"duration_us": 100_000}, "100% of each CPU"), ({"cpus": []}, "cpus is"), ({"cpus": 2}, "cpus is 2"), ({"cpus": [0, 0]}, "cpus is"),
    ({"kind": "smi"}, "unknown kind"), ({"distribution": "normal"}, "unknown distribution"), ({"phase": "none"}, "unknown phase"),
    ({"kind": "irq", "policy": "SCHED_OTHER"}, "does not go with irq"), ({"policy": "SCHED_FIFO", "priority": 100}, "priority 100"),
])
def test_impossible_signatures_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        signature_noise(**{"frequency_hz": 10, "duration_us": 10, "seconds": 1.0, "cpus": [0], **change})
