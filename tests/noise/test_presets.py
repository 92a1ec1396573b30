"""Signatures as objects: what follows from what, the published ones, and their random parts against
the distributions that they name.
"""

import numpy as np
import pytest
from scipy import stats

from nbhelpers.errors import InputError
from nbhelpers.noise.presets import (
    PRESETS,
    constant_share,
    increasing_share,
)
from nbhelpers.noise.signature import Signature

SECONDS = 40.0


def intervals_us(signature):
    return np.diff(signature.events(SECONDS, [0])["start_ns"]) / 1e3


@pytest.mark.parametrize(
    "given, found",
    [
        ({"frequency_hz": 10}, (10, 2500, 0.025)),
        ({"duration_us": 25}, (1000, 25, 0.025)),
        ({"frequency_hz": 1000, "duration_us": 50}, (1000, 50, 0.05)),
        ({"frequency_hz": 100, "share": 0.1}, (100, 1000, 0.1)),
        ({"frequency_hz": 100, "duration_us": 250, "share": 0.025}, (100, 250, 0.025)),
    ],
)
def test_what_is_not_given_follows(given, found):
    made = Signature(**given)
    assert (made.frequency_hz, made.duration_us, made.share) == pytest.approx(found)


@pytest.mark.parametrize(
    "given, message",
    [
        ({}, "0 of frequency"),
        ({"share": 0.1}, "1 of frequency"),
        ({"frequency_hz": 10, "duration_us": 10, "share": 0.1}, "3 of frequency"),
        ({"frequency_hz": 10, "share": 1.5}, "150% of each CPU"),
        ({"frequency_hz": 10, "ranks": []}, "ranks is"),
        ({"frequency_hz": 10, "ranks": [1, 1]}, "ranks is"),
        ({"frequency_hz": 10, "phase": "late"}, "unknown phase"),
    ],
)
def test_contradictions_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        Signature(**given)


def test_a_change_keeps_the_share_or_the_duration():
    one = Signature(10, 2500, distribution="poisson", seed=3)
    assert one.with_(frequency_hz=1000).duration_us == pytest.approx(25)
    assert one.with_(duration_us=250).frequency_hz == pytest.approx(100)
    more = one.with_(share=0.05)
    assert (more.frequency_hz, more.duration_us) == pytest.approx((20, 2500))
    both = one.with_(frequency_hz=1, duration_us=1)
    assert both.share == pytest.approx(1e-6) and both.distribution == "poisson" and both.seed == 3


def test_coscheduled_means_simultaneous_unless_a_phase_is_given():
    for options, together in [
        ({}, False),
        ({"coscheduled": True}, True),
        ({"phase": "aligned"}, True),
        ({"phase": "random", "coscheduled": True}, False),
        ({"phase": "aligned", "coscheduled": False}, False),
    ]:
        made = Signature(10, distribution="poisson", **options)
        assert made.simultaneous == together
        by_cpu = made.events(4.0, [0, 1]).groupby("cpu")["start_ns"].apply(list)
        assert (by_cpu[0] == by_cpu[1]) == together


def test_only_the_named_cpus_have_noise():
    made = Signature(100, ranks=[1, 3])
    assert set(made.events(0.1, [0, 1, 2, 3])["cpu"]) == {1, 3}
    assert made.config(0.1, [0, 1]).cpus == (1,)
    with pytest.raises(InputError, match="none of the CPUs 0, 2"):
        made.events(0.1, [0, 2])


def test_a_poisson_process_has_exponential_intervals_and_poisson_counts():
    made = Signature(500, 0.001, distribution="poisson", seed=8)
    assert stats.kstest(intervals_us(made), stats.expon(scale=2000).cdf).pvalue > 0.001
    starts = made.events(SECONDS, [0])["start_ns"].to_numpy()
    counts = np.bincount(starts // 100_000_000, minlength=400)
    expected = stats.poisson(50)
    # each cell of the chi-square test expects 5 counts or more
    edges = expected.ppf(np.linspace(0, 1, 11)[1:-1])
    cells = np.searchsorted(edges, counts)
    share = np.diff(np.concatenate([[0], expected.cdf(edges), [1]]))
    assert stats.chisquare(np.bincount(cells, minlength=10), 400 * share).pvalue > 0.001


def test_the_papers_randomisation_is_poisson_in_microseconds():
    """Section 3: "the arithmetic mean of a Poisson-distributed random variable"."""
    made = Signature(2000, 40, distribution="ferreira", durations="ferreira", seed=2)
    durations_us = made.events(SECONDS, [0])["duration_ns"] / 1e3
    for values, mean in ((intervals_us(made), 500), (durations_us, 40)):
        expected = stats.poisson(mean)
        assert values.mean() == pytest.approx(mean, abs=6 * np.sqrt(mean / len(values)))
        assert values.var() == pytest.approx(mean, rel=6 * np.sqrt(2 / len(values)))
        edges = expected.ppf(np.linspace(0, 1, 9)[1:-1])
        share = np.diff(np.concatenate([[0], expected.cdf(edges), [1]]))
        cells = np.bincount(np.searchsorted(edges, values), minlength=8)
        assert stats.chisquare(cells, len(values) * share).pvalue > 0.001


def test_the_families_of_figures_2_and_3():
    constant = constant_share()
    assert {one.share for one in constant.values()} == {0.025}
    for one in PRESETS.values():
        assert constant[one.label].duration_us == pytest.approx(one.duration_us)
    for duration_us in (1, 50):
        shares = [one.share for one in increasing_share(duration_us).values()]
        assert shares[-1] / shares[0] == pytest.approx(5)
