"""A signature on simulated ranks: what a long computation loses, beside the config for the
injector.
"""

import numpy as np
import pytest

from nbhelpers.noise.presets import PRESETS
from nbhelpers.noise.signature import Signature
from nbhelpers.simulation import patterns, signature_on_ranks, simulate

SECONDS = 20
FAMILY = {one.label: one for one in PRESETS.values()} | {
    "poisson": Signature(100, 250, distribution="poisson", seed=1),
    "ferreira": Signature(100, 250, distribution="ferreira", durations="ferreira"),
    "exponential": Signature(1000, 25, distribution="poisson", durations="exponential"),
}


def lost_shares(noise, seconds=SECONDS):
    """Share of each rank's time that noise takes from one long computation."""
    calc = simulate(patterns.compute(noise.ranks, int(seconds * 1e9)), noise=noise)
    return 1 - seconds * 1e9 / np.asarray(calc.finish_ns)


@pytest.mark.parametrize("signature", [pytest.param(FAMILY[name], id=name) for name in FAMILY])
def test_simulator_and_config_take_the_share_that_was_asked_for(signature):
    """Within 0.1 percentage points of a periodic one; of a random one, of what its draw has."""
    simulated = lost_shares(signature_on_ranks(signature, 4, seed=2))
    config = signature.config(SECONDS, [0, 1]).summary()["share"]
    random = signature.distribution == "poisson"
    chance = 5 * signature.share * np.sqrt(2 / (signature.frequency_hz * SECONDS)) * random
    assert np.abs(simulated - signature.share).max() < 0.001 + chance
    assert np.abs(config - signature.share).max() < 0.001 + chance


def test_coscheduled_noise_strikes_all_ranks_at_once():
    for distribution in ("periodic", "poisson", "ferreira"):
        one = Signature(10, distribution=distribution, coscheduled=True)
        assert len(set(lost_shares(signature_on_ranks(one, 8, seed=3), 0.35))) == 1
        alone = signature_on_ranks(one.with_(coscheduled=None, phase="random"), 8, seed=3)
        assert len(set(lost_shares(alone, 0.35))) > 1


@pytest.mark.parametrize("distribution", ["periodic", "ferreira"])
def test_the_first_event_comes_at_the_phase_of_the_rank(distribution):
    one = Signature(10, distribution=distribution, phase={0: 0.0, 2: 30_000.5}, ranks=[0, 2])
    noise = signature_on_ranks(one, 3)
    before, after = (
        simulate(patterns.compute(3, ns), noise=noise).finish_ns for ns in (30_000_400, 30_000_600)
    )
    assert [int(value) for value in before] == [32_500_400, 30_000_400, 30_000_400]
    assert [int(value) for value in after] == [32_500_600, 30_000_600, 32_500_600]
    assert one.events(0.2, [0, 2]).groupby("cpu")["start_ns"].first().tolist() == [0, 30_000_500]
