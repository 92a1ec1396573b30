"""Noise signatures: what follows from what, counts and shares against frequency and duration, and
random parts against the distributions that they name.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from nbhelpers.errors import InputError
from nbhelpers.noise.signature import Signature

from ..combined import made_noise

SECONDS = 40.0


def starts_by_cpu(events):
    return events.groupby("cpu")["start_ns"].apply(list)


@pytest.mark.parametrize(
    "given, found",
    [
        ({"frequency_hz": 10}, (10, 2500, 0.025)),
        ({"duration_us": 25}, (1000, 25, 0.025)),
        ({"frequency_hz": 1000, "duration_us": 50}, (1000, 50, 0.05)),
        ({"frequency_hz": 100, "share": 0.1}, (100, 1000, 0.1)),
        ({"duration_us": 250, "share": 0.025}, (100, 250, 0.025)),
        ({"frequency_hz": 100, "duration_us": 250, "share": 0.025}, (100, 250, 0.025)),
    ],
)
def test_what_is_not_given_follows(given, found):
    made = Signature(**given)
    assert (made.frequency_hz, made.duration_us, made.share) == pytest.approx(found)


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
        by_cpu = starts_by_cpu(made.events(4.0, [0, 1]))
        assert (by_cpu[0] == by_cpu[1]) == made.simultaneous == together


def test_only_the_named_cpus_have_noise():
    made = Signature(100, ranks=[1, 3])
    assert set(made.events(0.1, [0, 1, 2, 3])["cpu"]) == {1, 3}
    assert made.config(0.1, [0, 1]).cpus == (1,)
    with pytest.raises(InputError, match="none of the CPUs 0, 2"):
        made.events(0.1, [0, 2])


def test_seeds_and_cpus_are_independent():
    drawn = {"distribution": "poisson", "phase": "random"}
    one = made_noise(50, 100, 1.0, [1], seed=3, **drawn)["start_ns"].tolist()
    two = starts_by_cpu(made_noise(50, 100, 1.0, [0, 1], seed=3, **drawn))
    assert one == two[1] and not set(two[0]) & set(two[1])
    assert one != made_noise(50, 100, 1.0, [1], seed=5, **drawn)["start_ns"].tolist()


def test_policies_and_the_end_of_the_window():
    events = made_noise(1, 900_000, 1.0, [0], kind="irq")
    assert events[["start_ns", "end_ns", "policy", "priority"]].values.tolist() == [
        [500_000_000, 1_000_000_000, "SCHED_FIFO", 50]
    ]
    assert made_noise(1, 1, 1.0, [0], policy="SCHED_FIFO", priority=7)["priority"].tolist() == [7]
    assert made_noise(1, 1, 1.0, [0], policy="SCHED_FIFO")["priority"].tolist() == [1]


words = {
    "distribution": st.sampled_from(["periodic", "poisson", "ferreira"]),
    "durations": st.sampled_from(["fixed", "exponential", "ferreira"]),
    "coscheduled": st.sampled_from([None, True, False]),
    "seed": st.integers(0, 2**40),
    "phase": st.sampled_from(["aligned", "random", {0: 0.0, 3: 1234.5}]),
}


@settings(max_examples=150, deadline=None)
@given(
    st.floats(0.5, 20_000),
    st.floats(0.001, 0.9),
    st.floats(0.001, 0.3),
    st.fixed_dictionaries(words),
)
def test_whatever_the_signature_events_of_a_cpu_never_overlap_and_lie_in_the_window(
    frequency_hz, share, seconds, words
):
    signature = Signature(frequency_hz, share=share, **words)
    events = signature.events(seconds, [3, 0])
    assert (events["duration_ns"] > 0).all() and (events["start_ns"] >= 0).all()
    assert (events["end_ns"] - events["start_ns"] == events["duration_ns"]).all()
    assert (events["end_ns"] <= round(seconds * 1e9)).all()
    for _, own in events.groupby("cpu"):
        assert (own["start_ns"].to_numpy()[1:] >= own["end_ns"].to_numpy()[:-1]).all()
    assert events.equals(signature.events(seconds, [0, 3]))


@settings(max_examples=60, deadline=None)
@given(st.floats(50, 5000), st.floats(0.005, 0.2), st.fixed_dictionaries(words))
def test_rate_and_share_are_those_asked_for(frequency_hz, share, words):
    """Within six standard errors of the noisiest choice: a Poisson process of exponentially
    distributed events.
    """
    seconds = 20_000 / frequency_hz
    events = Signature(frequency_hz, share=share, **words).events(seconds, [0, 3])
    none = 20_000 * np.exp(-share * 1e6 / frequency_hz)  # a Poisson of a few us may be 0
    for _, own in events.groupby("cpu"):
        assert abs(len(own) - 20_000) < 6 * np.sqrt(20_000) + none
        taken = own["duration_ns"].sum() / (share * seconds * 1e9)
        assert abs(taken - 1) < 6 * np.sqrt(2 / 20_000) + 0.001


def intervals_us(signature):
    return np.diff(signature.events(SECONDS, [0])["start_ns"]) / 1e3


def chi_square_p(values, expected, cells):
    """Of counts in cells that are about equally likely."""
    edges = expected.ppf(np.linspace(0, 1, cells + 1)[1:-1])
    share = np.diff(np.concatenate([[0], expected.cdf(edges), [1]]))
    found = np.bincount(np.searchsorted(edges, values), minlength=cells)
    return stats.chisquare(found, len(values) * share).pvalue


def test_a_poisson_process_has_exponential_intervals_and_poisson_counts():
    made = Signature(500, 0.001, distribution="poisson", seed=8)
    assert stats.kstest(intervals_us(made), stats.expon(scale=2000).cdf).pvalue > 0.001
    starts = made.events(SECONDS, [0])["start_ns"].to_numpy()
    counts = np.bincount(starts // 100_000_000, minlength=400)
    assert chi_square_p(counts, stats.poisson(50), 10) > 0.001


def test_the_papers_randomisation_is_poisson_in_microseconds():
    """Section 3: "the arithmetic mean of a Poisson-distributed random variable"."""
    made = Signature(2000, 40, distribution="ferreira", durations="ferreira", seed=2)
    durations_us = made.events(SECONDS, [0])["duration_ns"] / 1e3
    for values, mean in ((intervals_us(made), 500), (durations_us, 40)):
        assert values.mean() == pytest.approx(mean, abs=6 * np.sqrt(mean / len(values)))
        assert values.var() == pytest.approx(mean, rel=6 * np.sqrt(2 / len(values)))
        assert chi_square_p(values, stats.poisson(mean), 8) > 0.001


def test_exponential_durations_have_the_deviation_of_their_mean():
    lengths_us = made_noise(200, 400, 100.0, [0], durations="exponential")["duration_ns"] / 1e3
    assert lengths_us.std() == pytest.approx(400, rel=0.05)


@pytest.mark.parametrize("distribution", ["periodic", "poisson", "ferreira"])
def test_coscheduled_cpus_share_one_draw_and_others_do_not(distribution):
    def drawn(**options):
        kinds = {"distribution": distribution, "durations": "exponential"}
        events = made_noise(50, 100, 2.0, [0, 1], **kinds, **options)
        return [own[["start_ns", "duration_ns"]].to_numpy() for _, own in events.groupby("cpu")]

    together, alone = drawn(), drawn(coscheduled=False)
    assert np.array_equal(*together)
    assert not np.array_equal(alone[0][:50, 1], alone[1][:50, 1])
    first, second = drawn(phase="random", coscheduled=True)
    assert set(first[5:-5, 1]) & set(second[:, 1]) and not set(first[:, 0]) & set(second[:, 0])


def test_a_phase_can_be_given_for_each_cpu():
    phase = {0: 0, 2: 30_000.5}
    for distribution in ("periodic", "ferreira"):
        events = made_noise(10, 100, 1.0, [0, 2], distribution=distribution, phase=phase)
        assert events.groupby("cpu")["start_ns"].first().tolist() == [0, 30_000_500]
        assert events.groupby("cpu").size().between(9, 11).all()
    phase = {0: 0, 2: 1_000_000}
    first, second = starts_by_cpu(
        made_noise(10, 1, 5.0, [0, 2], distribution="poisson", phase=phase)
    )
    assert sorted((start + 10**9) % (5 * 10**9) for start in first) == second


@pytest.mark.parametrize(
    "change, message",
    [
        ({"frequency_hz": 0}, "frequency_hz is 0"),
        ({"frequency_hz": 1e-300}, "frequency_hz is 1e-300"),
        ({"duration_us": float("nan")}, "duration_us is nan"),
        ({"duration_us": 100_000}, "100% of each CPU"),
        ({"frequency_hz": None, "duration_us": None}, "0 of frequency"),
        ({"frequency_hz": None, "duration_us": None, "share": 0.1}, "1 of frequency"),
        ({"share": 0.1}, "3 of frequency"),
        ({"duration_us": None, "share": 1.5}, "150% of each CPU"),
        ({"duration_us": None, "share": -1}, "share is -1"),
        ({"seconds": -1}, "seconds is -1"),
        ({"seconds": None}, "seconds is None"),
        ({"frequency_hz": 1e9, "duration_us": 1e-6}, "events"),
        ({"cpus": []}, "cpus is"),
        ({"cpus": 2}, "cpus is 2"),
        ({"cpus": [0, 0]}, "cpus is"),
        ({"ranks": []}, "ranks is"),
        ({"ranks": [1, 1]}, "ranks is"),
        ({"kind": "smi"}, "unknown kind"),
        ({"distribution": "normal"}, "unknown distribution"),
        ({"durations": "normal"}, "unknown durations"),
        ({"phase": "none"}, "unknown phase"),
        ({"phase": {1: 5}}, "CPU 0 has no phase"),
        ({"phase": {0: -5}}, "CPU 0 has the phase -5"),
        ({"kind": "irq", "policy": "SCHED_OTHER"}, "does not go with irq"),
    ],
)
def test_impossible_signatures_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        made_noise(**{"frequency_hz": 10, "duration_us": 10, "seconds": 1.0, "cpus": [0], **change})
