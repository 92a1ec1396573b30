"""Ping-pong families between two real ranks, and the fit to them."""

import pytest

from nbhelpers.errors import InputError, NoisebookError
from nbhelpers.mpi.pingpong import COLUMNS, measure_pingpong, read_pingpong
from nbhelpers.simulation.loggops_fit import fit_loggops

from . import needs_mpi

SIZES = [1, 64, 512, 16384, 65536]


@pytest.fixture(scope="module")
def times():
    return measure_pingpong(SIZES, rounds=3)


@needs_mpi
def test_every_repetition_is_kept(times):
    assert tuple(times) == COLUMNS
    counts = times.groupby(["family", "bytes"]).size().unstack()
    assert counts.loc[["roundtrip", "burst", "delayed"]].eq(3 * 3).all(axis=None)
    assert counts.loc["late"].eq(3 * 3).all(), "three of each round"
    assert counts.loc["cold"].eq(3 * 8).all(), "one after each of eight walks"
    assert counts.columns.tolist() == SIZES
    assert (times["ns"] > 0).all() and (times["send_ns"] <= times["ns"]).all()
    delayed = times[times["family"] == "delayed"]
    assert (delayed["ns"] > delayed["delay_ns"] * 9).all(), "nine pauses between ten messages"


@needs_mpi
def test_the_order_of_a_round_is_drawn(times):
    orders = {
        tuple(cells[["family", "bytes"]].itertuples(index=False))
        for _, cells in times.groupby("round")
    }
    assert len(orders) == 3


@needs_mpi
def test_real_times_give_a_network(times):
    fit = fit_loggops(times, resamples=20)
    network = fit.network
    assert 0 < 2 * network.o + network.L < 1e6 and 0 < network.G < 1000
    calls = fit.piecewise.calls
    assert 0 < calls.copy < 10 and 0 < calls.add < 10 and 1000 < calls.make < 1e8
    assert calls.sizes == tuple(SIZES) and 0 < calls.cold_ns(1e9, SIZES[-1]) < 1e7
    assert SIZES[0] <= network.S
    assert (fit.table["low"] <= fit.table["high"]).all()


@needs_mpi
def test_what_goes_wrong_is_said_and_nothing_is_left(nothing_left):
    with pytest.raises(NoisebookError, match="two ranks"):
        measure_pingpong([-1], rounds=1)
    with pytest.raises(NoisebookError, match="not done after"):
        measure_pingpong(rounds=100_000, timeout_s=0.5)


def test_a_table_cut_short_is_refused(tmp_path):
    path = tmp_path / "times"
    path.write_text(" ".join(COLUMNS) + "\nroundtrip 1 1 0 0 500 20\nburst 1 10 0 0 90\n")
    with pytest.raises(InputError, match="cut short"):
        read_pingpong(path)
    with pytest.raises(InputError, match="ping-pong: No such file"):
        read_pingpong(tmp_path / "nothing")
