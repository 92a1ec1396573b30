"""Noise signatures: counts, spacing and shares against what frequency and duration say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbhelpers.errors import InputError
from nbhelpers.noise import NoiseConfig
from nbhelpers.noise.presets import PRESETS

from ..combined import made_noise


@pytest.mark.parametrize(
    "frequency_hz, duration_us, count", [(1000, 25, 2000), (100, 250, 200), (10, 2500, 20)]
)
def test_the_published_signatures_take_two_and_a_half_percent(frequency_hz, duration_us, count):
    events = made_noise(frequency_hz, duration_us, seconds=2.0, cpus=[0, 2])
    assert events.groupby("cpu").size().to_dict() == {0: count, 2: count}
    assert (np.diff(events.loc[events["cpu"] == 2, "start_ns"]) == 1e9 / frequency_hz).all()
    config = NoiseConfig.from_events(events)
    assert config.window_ns == 2_000_000_000
    assert config.summary()["share"].tolist() == pytest.approx([0.025, 0.025])
    assert config.summary()["longest_block_ms"].tolist() == [duration_us / 1000] * 2


def test_aligned_strikes_all_cpus_at_once_and_random_does_not():
    starts = {
        phase: (
            made_noise(50, 100, 1.0, [0, 1], phase=phase).groupby("cpu")["start_ns"].apply(list)
        )
        for phase in ("aligned", "random")
    }
    assert starts["aligned"][0] == starts["aligned"][1]
    assert not set(starts["random"][0]) & set(starts["random"][1])
    assert all(49 <= len(found) <= 51 for found in starts["random"])
    poisson = (
        made_noise(50, 100, 1.0, [0, 1], distribution="poisson")
        .groupby("cpu")["start_ns"]
        .apply(list)
    )
    assert poisson[0] == poisson[1]


def test_poisson_has_the_variance_of_its_mean_and_never_overlaps():
    events = made_noise(200, 1000, 50.0, [0], distribution="poisson", phase="random", seed=4)
    counts = np.bincount(events["start_ns"] // 1_000_000_000, minlength=50)
    assert abs(counts.mean() - 200) < 5 * np.sqrt(200 / 50)
    assert 60 < counts.var() < 300  # of 50 values with variance 200, less what queueing smooths
    assert (events["start_ns"].to_numpy()[1:] >= events["end_ns"].to_numpy()[:-1]).all()


def test_seeds_and_cpus_are_independent():
    one = made_noise(50, 100, 1.0, [1], distribution="poisson", phase="random", seed=3)
    two = made_noise(50, 100, 1.0, [0, 1], distribution="poisson", phase="random", seed=3)
    assert one["start_ns"].tolist() == two.loc[two["cpu"] == 1, "start_ns"].tolist()
    assert (
        one["start_ns"].tolist()
        != made_noise(50, 100, 1.0, [1], distribution="poisson", phase="random", seed=5)[
            "start_ns"
        ].tolist()
    )


def test_policies_and_the_end_of_the_window():
    events = made_noise(1, 900_000, 1.0, [0], kind="irq")
    assert events[["start_ns", "end_ns", "policy", "priority"]].values.tolist() == [
        [500_000_000, 1_000_000_000, "SCHED_FIFO", 50]
    ]
    assert made_noise(1, 1, 1.0, [0], policy="SCHED_FIFO", priority=7)["priority"].tolist() == [7]
    assert made_noise(1, 1, 1.0, [0], policy="SCHED_FIFO")["priority"].tolist() == [1]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"frequency_hz": 0}, "frequency_hz is 0"),
        ({"duration_us": float("nan")}, "duration_us is nan"),
        ({"seconds": -1}, "seconds is -1"),
        ({"duration_us": 100_000}, "100% of each CPU"),
        ({"cpus": []}, "cpus is"),
        ({"cpus": 2}, "cpus is 2"),
        ({"cpus": [0, 0]}, "cpus is"),
        ({"kind": "smi"}, "unknown kind"),
        ({"distribution": "normal"}, "unknown distribution"),
        ({"phase": "none"}, "unknown phase"),
        ({"kind": "irq", "policy": "SCHED_OTHER"}, "does not go with irq"),
        ({"policy": "SCHED_FIFO", "priority": 100}, "priority 100"),
    ],
)
def test_impossible_signatures_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        made_noise(**{"frequency_hz": 10, "duration_us": 10, "seconds": 1.0, "cpus": [0], **change})


@pytest.mark.parametrize(
    "given",
    [
        {"frequency_hz": 100, "duration_us": 250},
        {"frequency_hz": 100, "share": 0.025},
        {"duration_us": 250, "share": 0.025},
    ],
)
def test_any_two_of_frequency_duration_and_share(given):
    events = made_noise(
        **{"frequency_hz": None, "duration_us": None, **given}, seconds=1.0, cpus=[0]
    )
    assert (
        len(events) == 100
        and events["duration_ns"].unique().tolist() == [250_000]
        and events["source"][0] == "100 Hz x 250 us"
    )


def test_the_named_signatures_take_two_and_a_half_percent_of_a_cpu():
    assert sorted((one.frequency_hz, one.duration_us) for one in PRESETS.values()) == [
        (10, 2500),
        (100, 250),
        (1000, 25),
    ]
    for one in PRESETS.values():
        taken = one.events(1.0, [0, 5]).groupby("cpu")["duration_ns"].sum()
        assert (taken - 25_000_000).abs().max() <= one.duration_us * 1e3  # one is cut at the end


words = {
    "distribution": st.sampled_from(["periodic", "poisson", "ferreira"]),
    "durations": st.sampled_from(["fixed", "exponential", "ferreira"]),
    "coscheduled": st.sampled_from([None, True, False]),
    "seed": st.integers(0, 2**40),
}
phases = st.sampled_from(["aligned", "random", {0: 0.0, 3: 1234.5}])


@settings(max_examples=150, deadline=None)
@given(
    st.floats(0.5, 20_000),
    st.floats(0.001, 0.9),
    st.floats(0.001, 0.3),
    phases,
    st.fixed_dictionaries(words),
)
def test_whatever_the_signature_events_of_a_cpu_never_overlap_and_lie_in_the_window(
    frequency_hz, share, seconds, phase, words
):
    events = made_noise(
        frequency_hz, None, share=share, seconds=seconds, cpus=[3, 0], phase=phase, **words
    )
    assert (events["duration_ns"] > 0).all() and (
        events["end_ns"] - events["start_ns"] == events["duration_ns"]
    ).all()
    assert events["start_ns"].min() >= 0 if len(events) else True
    assert events["end_ns"].max() <= round(seconds * 1e9) if len(events) else True
    for _, own in events.groupby("cpu"):
        assert (own["start_ns"].to_numpy()[1:] >= own["end_ns"].to_numpy()[:-1]).all()
    again = made_noise(
        frequency_hz, None, share=share, seconds=seconds, cpus=[0, 3], phase=phase, **words
    )
    assert events.equals(again)


@settings(max_examples=60, deadline=None)
@given(st.floats(50, 5000), st.floats(0.005, 0.2), phases, st.fixed_dictionaries(words))
def test_rate_and_share_are_those_asked_for(frequency_hz, share, phase, words):
    """Within six standard errors of the noisiest choice: a Poisson process of exponentially
    distributed events.
    """
    seconds = 20_000 / frequency_hz
    events = made_noise(
        frequency_hz, None, share=share, seconds=seconds, cpus=[0, 3], phase=phase, **words
    )
    for _, own in events.groupby("cpu"):
        assert abs(len(own) - 20_000) < 6 * np.sqrt(20_000) + 20_000 * np.exp(
            -share * 1e6 / frequency_hz
        )  # a Poisson of a few us may be 0
        assert (
            abs(own["duration_ns"].sum() / (share * seconds * 1e9) - 1)
            < 6 * np.sqrt(2 / 20_000) + 0.001
        )


def intervals_us(distribution, **options):
    return (
        np.diff(
            made_noise(200, 1, 100.0, [0], distribution=distribution, seed=5, **options)["start_ns"]
        )
        / 1e3
    )


def test_intervals_and_durations_have_the_variance_of_their_distribution():
    assert intervals_us("poisson").std() == pytest.approx(5000, rel=0.05)
    assert (
        intervals_us("ferreira").std() == pytest.approx(np.sqrt(5000), rel=0.05)
        and intervals_us("periodic").std() == 0
    )
    lengths = {
        name: made_noise(200, 400, 100.0, [0], durations=name)["duration_ns"] / 1e3
        for name in ("fixed", "exponential", "ferreira")
    }
    assert lengths["fixed"].std() == 0 and lengths["exponential"].std() == pytest.approx(
        400, rel=0.05
    )
    assert (
        lengths["ferreira"].std() == pytest.approx(20, rel=0.05)
        and (lengths["ferreira"] % 1 == 0).all()
    )


@pytest.mark.parametrize("distribution", ["periodic", "poisson", "ferreira"])
def test_coscheduled_cpus_share_one_draw_and_others_do_not(distribution):
    def drawn(**options):
        events = made_noise(
            50, 100, 2.0, [0, 1], distribution=distribution, durations="exponential", **options
        )
        return [own[["start_ns", "duration_ns"]].to_numpy() for _, own in events.groupby("cpu")]

    together, alone = drawn(), drawn(coscheduled=False)
    assert np.array_equal(*together)
    assert not np.array_equal(alone[0][:50, 1], alone[1][:50, 1])
    shifted = drawn(phase="random", coscheduled=True)
    assert set(shifted[0][5:-5, 1]) & set(shifted[1][:, 1]) and not set(shifted[0][:, 0]) & set(
        shifted[1][:, 0]
    )


def test_a_phase_can_be_given_for_each_cpu():
    for distribution in ("periodic", "ferreira"):
        events = made_noise(
            10, 100, 1.0, [0, 2], distribution=distribution, phase={0: 0, 2: 30_000.5}
        )
        first = events.groupby("cpu")["start_ns"].first()
        assert (
            first.tolist() == [0, 30_000_500]
            and (events.groupby("cpu").size().between(9, 11)).all()
        )
    poisson = (
        made_noise(10, 1, 5.0, [0, 2], distribution="poisson", phase={0: 0, 2: 1_000_000})
        .groupby("cpu")["start_ns"]
        .apply(list)
    )
    assert sorted((start + 10**9) % (5 * 10**9) for start in poisson[0]) == poisson[2]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"share": 0.1}, "3 of frequency"),
        ({"frequency_hz": None, "duration_us": None}, "0 of frequency"),
        ({"duration_us": None, "share": 1.0}, "100% of each CPU"),
        ({"duration_us": None, "share": -1}, "share is -1"),
        ({"durations": "normal"}, "unknown durations"),
        ({"phase": {1: 5}}, "CPU 0 has no phase"),
        ({"phase": {0: -5}}, "CPU 0 has the phase -5"),
        ({"frequency_hz": 1e9, "duration_us": 1e-6}, "events"),
        ({"seconds": None}, "seconds is None"),
        ({"frequency_hz": 1e-300}, "frequency_hz is 1e-300"),
    ],
)
def test_impossible_combinations_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        made_noise(**{"frequency_hz": 10, "duration_us": 10, "seconds": 1.0, "cpus": [0], **change})
