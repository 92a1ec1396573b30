"""Messages with drawn L and G: the engine against the draws, one message at a time."""

import numpy as np
import pytest
from scipy.stats import kstest

from nbhelpers.errors import InputError
from nbhelpers.simulation import LogGOPS, patterns, simulate
from nbhelpers.simulation.noise import Noise, periodic
from nbhelpers.simulation.schedule import Schedule
from nbhelpers.simulation.spread import MessageSpread
from nbhelpers.simulation.topology import FatTree
from nbhelpers.simulation.traffic import messages

NETWORK = LogGOPS(L=1000, o=100, g=50, G=0.5, S=2**40)
LATENCIES = np.array([900.0, 1000.5, 7000.25, 123_456.789])
GAPS = np.array([0.1, 0.5, 3.25])


def pairs(count: int, size: int) -> Schedule:
    """`count` messages between ranks that have nothing else to do."""
    return messages(2 * count, np.arange(count), np.arange(count, 2 * count), size)


def test_each_message_has_its_own_latency_and_gap():
    """Alone on its way, a message is taken after o + L + o + (s − 1) G, all of its own."""
    n, size, spread = 300, 2001, MessageSpread(LATENCIES, GAPS, seed=5)
    found = simulate(pairs(n, size), NETWORK, spread=spread).finish_ns[n:]
    L, G = spread.draws(np.arange(n))
    np.testing.assert_allclose(found, 200 + L + (size - 1) * G, atol=0.001)
    assert len(set(zip(L, G))) == 12, "L and G are drawn apart from each other"


def test_the_senders_gap_is_that_of_the_message_before():
    spread = MessageSpread(G=GAPS, seed=1)
    schedule = Schedule.from_arrays(
        [20, 20], [1] * 20 + [2] * 20, [1] * 20 + [0] * 20, 10_001, tag=[*range(20)] * 2
    )
    result = simulate(schedule, NETWORK, spread=spread, critical_path=True)
    begin = result.record.begin[:20] / 1000
    np.testing.assert_allclose(np.diff(begin), 50 + 10_000 * spread.draws(np.arange(20))[1][:-1])


def test_only_latencies_or_only_gaps():
    schedule = pairs(50, 1001)
    late = simulate(schedule, NETWORK, spread=MessageSpread(L=LATENCIES)).finish_ns[50:]
    assert set(np.round(late - 700, 3)) == set(LATENCIES)
    slow = simulate(schedule, NETWORK, spread=MessageSpread(G=GAPS)).finish_ns[50:]
    assert set(np.round((slow - 1200) / 1000, 6)) == set(GAPS)
    plain = simulate(schedule, NETWORK)
    nothing = simulate(schedule, NETWORK, spread=MessageSpread())
    assert nothing.finish_ns.tolist() == plain.finish_ns.tolist()


def test_draws_follow_the_values_and_the_seed():
    values = np.sort(np.random.default_rng(3).gamma(2, 1000, 4000))
    spread = MessageSpread(L=values, seed=11)
    drawn = spread.draws(np.arange(20_000))[0]
    assert kstest(drawn, values).pvalue > 0.001
    assert (spread.draws(np.arange(20_000))[0] == drawn).all()
    assert (spread.seeded(12).draws(np.arange(20_000))[0] != drawn).mean() > 0.99
    late, far = drawn[:-1], drawn[1:]
    assert abs(np.corrcoef(late, far)[0, 1]) < 0.03, "neighbours have nothing in common"


def test_a_draw_does_not_depend_on_when_a_message_is_sent():
    """With noise all is later and in another order: each message still takes as long."""
    n, spread = 40, MessageSpread(LATENCIES, seed=2)
    schedule = pairs(n, 1)
    noise = Noise.on_ranks(periodic(5000, 40), 2 * n, seed=3)
    result = simulate(schedule, NETWORK, noise, spread=spread, critical_path=True)
    sends = np.arange(n)
    flight = (result.record.arrival[sends] - result.record.end[sends]) / 1000
    np.testing.assert_allclose(flight, spread.draws(sends)[0], atol=0.001)


def test_the_critical_path_knows_what_was_drawn():
    spread = MessageSpread(LATENCIES, GAPS, seed=4)
    schedule = patterns.loop(patterns.dissemination(16, 500), 3, compute_ns=1000)
    for network in (NETWORK, FatTree(network=NETWORK, nodes_per_leaf=4)):
        result = simulate(schedule, network, spread=spread, critical_path=True)
        path = result.path()
        assert path["end_ns"].iloc[-1] == pytest.approx(result.makespan_ns)
        assert path["noise_ns"].abs().max() < 0.01, "without noise nothing is noise"


@pytest.mark.parametrize(
    "values", [dict(L=[-1.0]), dict(G=[np.nan]), dict(L=[1e13]), dict(seed=-1)]
)
def test_wrong_values_are_refused(values: dict):
    with pytest.raises(InputError):
        MessageSpread(**values)
