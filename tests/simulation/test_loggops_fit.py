"""The fit gives back what made the times: the simulator with known parameters."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.simulation.loggops import CallCosts, LogGOPS, Piece, Piecewise, known_network
from nbhelpers.simulation.loggops_fit import fit_loggops

from .pingpongs import families, prtt

SIZES = [1, 8, 64, 256, 1024, 2048, 4096, 8192, 16384, 65536, 262144, 1048576]
KNOWN = {
    "g above o, O below G": LogGOPS(L=1900, o=230, g=500, G=0.079, O=0.02, S=4096),
    "o above g": LogGOPS(L=2500, o=1500, g=1000, G=6, O=0, S=65536),
    "no overhead by the byte, slow gap": LogGOPS(L=500, o=100, g=6000, G=0.11, O=0, S=2048),
    "odin": known_network("odin"),
    "always eager": LogGOPS(L=1300, o=150, g=1500, G=0.086, O=0.05, S=2**40),
}


@pytest.mark.parametrize("name", KNOWN)
def test_without_noise_all_parameters_come_back(name: str):
    network = KNOWN[name]
    fit = fit_loggops(families(network, SIZES, rounds=3), resamples=5)
    found = fit.network
    for parameter in ("L", "o", "G"):
        assert getattr(found, parameter) == pytest.approx(getattr(network, parameter), rel=1e-3)
    assert pytest.approx(network.O, abs=1e-3 * network.G) == found.O
    assert found.g == pytest.approx(max(network.g, network.o), rel=0.03), "hidden below o"
    eager = max(s for s in SIZES if s <= network.S)
    assert (eager if eager < SIZES[-1] else 2**40) == found.S


@pytest.mark.parametrize("name", KNOWN)
def test_with_noise_they_come_back_within_its_size(name: str):
    """5 % of one-sided noise in the mean, and an interruption of 50 µs in one time of 100."""
    network = KNOWN[name]
    fit = fit_loggops(families(network, SIZES, noise=0.05, seed=7), resamples=20)
    trips = [
        [prtt(one.with_(S=2**40), 1, 0, size) for size in SIZES] for one in (fit.network, network)
    ]
    np.testing.assert_allclose(*trips, rtol=0.05)
    assert fit.network.o == pytest.approx(network.o, rel=0.3, abs=50)
    assert pytest.approx(network.G, rel=0.05) == fit.network.G
    assert fit.network.S == fit_loggops(families(network, SIZES, 2), resamples=2).network.S
    low, high = fit.table.loc["G", ["low", "high"]]
    assert low <= fit.table.loc["G", "value"] <= high
    assert (fit.table["n"] == 8).all()


def test_pieces_give_back_what_each_size_takes():
    """Where another protocol begins, one line for all sizes is wrong by a third and more."""
    eager, large = Piece(1, 400, 80, 120, 150, 0.2, 0.1), Piece(16384, 9000, 80, 80, 9900, 0.05, 0)
    network = Piecewise((eager, large), S=8192)
    fit = fit_loggops(families(network, SIZES, rounds=2), resamples=2)
    one, pieces, true = (
        np.array([[prtt(net, n, 0, size) for size in SIZES] for n in (1, 10)])
        for net in (fit.network, fit.piecewise, network)
    )
    assert np.abs(one / true - 1).max() > 0.3
    np.testing.assert_allclose(pieces, true, rtol=1e-6)
    assert fit.piecewise.S == network.S


def test_copies_sums_and_cold_calls_come_back():
    """2 ns a byte to copy, 3 to add, 500 a communicator; after a walk of n µs a round trip of s
    bytes takes n s / 4 ns longer.
    """
    times = families(KNOWN["odin"], SIZES, rounds=2)
    assert fit_loggops(times, resamples=2).piecewise.calls == CallCosts()
    trips = times[times["family"] == "roundtrip"]
    nth, size = trips.groupby(["round", "bytes"]).cumcount(), trips["bytes"]
    local = pd.concat(
        trips.assign(family=name, ns=ns, delay_ns=1000 * nth)
        for name, ns in (
            ("copy", 2 * size),
            ("sum", 3 * size),
            ("made", 500),
            ("cold", trips["ns"] + nth * size / 4),
        )
    )
    fit = fit_loggops(pd.concat([times, local]), resamples=2)
    calls = fit.piecewise.calls
    assert (calls.copy, calls.add, calls.make) == (2, 3, 500)
    longer = [calls.cold_ns(ns, bytes) for ns, bytes in ((0, 64), (500, 1024), (10**9, 2**30))]
    assert longer == [0, 0.5 * 1024 / 4, 2 * SIZES[-1] / 4]


@pytest.mark.long
def test_intervals_hold_what_is_true_of_the_quantile():
    """Rounds from one law: the interval of G holds the value of many more rounds, mostly."""
    network, held = KNOWN["always eager"], 0
    many = fit_loggops(families(network, SIZES, 60, noise=0.1, seed=99), resamples=2).network.G
    for seed in range(10):
        times = families(network, SIZES, 10, noise=0.1, seed=seed)
        low, high = fit_loggops(times, resamples=60).table.loc["G", ["low", "high"]]
        held += low <= many <= high
    assert held >= 7
