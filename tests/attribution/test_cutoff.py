"""The cutoff on samples whose classes are known."""

import numpy as np
import pytest

from nbhelpers.attribution import find_cutoff


@pytest.mark.long
@pytest.mark.parametrize("runs", [200, 1000])
def test_a_five_percent_tail_is_labelled_five_percent(runs):
    shares = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        values = random.normal(1, 0.01, runs)
        values[: runs // 20] = 1.04 + random.exponential(0.05, runs // 20)
        shares.append(find_cutoff(values, seed).share_slow)
    assert np.median(shares) == pytest.approx(0.05, abs=0.006)
    assert max(shares) < 0.08


@pytest.mark.parametrize(
    "values, words", [([1.0] * 50, "same time"), ([1, 2, 3], "Only 3 runs"), ([], "Only 0 runs")]
)
def test_what_cannot_be_split_is_one_class(values, words):
    cutoff = find_cutoff(values)
    assert (cutoff.value, cutoff.kind, cutoff.share_slow) == (None, "one class", 0.0)
    assert words in cutoff.evidence
    assert not cutoff.slow([1.0, 99.0]).any()


def test_a_large_sample_is_thinned_but_counted_whole():
    random = np.random.default_rng(3)
    values = np.r_[random.normal(1, 0.01, 30_000), random.normal(1.1, 0.01, 10_000)]
    assert find_cutoff(values).share_slow == pytest.approx(0.25, abs=1e-3)


def test_higher_is_better_is_the_mirror_image():
    for seed in range(4):
        random = np.random.default_rng(seed)
        values = np.r_[random.normal(1, 0.01, 190), 1.1 + random.exponential(0.1, 10)]
        if seed % 2:
            values = random.normal(1, 0.01, 200) + 0.1 * (random.random(200) < 0.2)
        slow, low = find_cutoff(values, seed), find_cutoff(5 - values, seed, higher_is_better=True)
        assert low.value == pytest.approx(5 - slow.value, abs=0.01)
        assert low.share_slow == slow.share_slow and low.kind == slow.kind
        assert np.array_equal(low.slow(5 - values), slow.slow(values))


def test_twelve_runs_are_enough_to_look_for_two_classes_and_eleven_are_not():
    values = np.random.default_rng(2).normal(1, 0.01, 12)
    assert "Only 11 runs: at least 12 are needed" in find_cutoff(values[:11]).evidence
    assert "Only" not in find_cutoff(values).evidence


@pytest.mark.parametrize("sign", [1, -1])
def test_a_run_exactly_at_the_cutoff_is_not_slow(sign):
    random = np.random.default_rng(4)
    values = np.r_[random.normal(1, 0.01, 90), random.normal(1.3, 0.01, 10)]
    cutoff = find_cutoff(sign * values, 4, higher_is_better=sign < 0)
    beyond = cutoff.value + sign * 1e-9
    assert cutoff.slow(np.array([cutoff.value, beyond])).tolist() == [False, True]
