"""The test for modes: what it fits, samples with one class, samples with two."""

import numpy as np
import pytest
from scipy import stats

from nbhelpers.attribution import find_cutoff
from nbhelpers.attribution._mixtures import deepest_valleys, fit_mixtures, valley_to_cut
from nbhelpers.attribution._modes import modes_of
from nbhelpers.attribution._one_class import fit_one_class


def binned(values, low, high, bins=128):
    counts, _ = np.histogram(values, bins, (low, high))
    return counts[None].astype(float), (high - low) / bins


@pytest.mark.parametrize(
    "family",
    [stats.norm(), stats.laplace(), stats.uniform(), stats.expon(), stats.logistic(), stats.t(4)],
    ids=["normal", "Laplace", "uniform", "exponential", "logistic", "Student"],
)
def test_the_one_class_fits_as_well_as_the_true_density(family):
    values = family.rvs(400, random_state=np.random.default_rng(1))
    margin = 0.1 * np.ptp(values)
    counts, step = binned(values, values.min() - margin, values.max() + margin)
    fitted = fit_one_class(counts)
    truth = family.logpdf(values).sum() + values.size * np.log(step)
    assert -6 < fitted.log_likelihood[0] - truth < 8
    shares = fitted.probabilities(128)
    assert shares.sum() == pytest.approx(1)
    filled = counts[0] > 0
    likelihood = counts[0, filled] @ np.log(shares[filled])
    assert likelihood == pytest.approx(fitted.log_likelihood[0], abs=8)


def test_the_mixture_fits_as_well_as_scikit_learns():
    from sklearn.mixture import GaussianMixture

    random = np.random.default_rng(2)
    values = np.r_[random.normal(0, 1, 150), random.normal(6, 2, 80)]
    counts, step = binned(values, -6, 14)
    ours = fit_mixtures(counts, 5, 2)
    theirs = GaussianMixture(2, n_init=5, random_state=0).fit(values[:, None])
    likelihood = theirs.score(values[:, None]) * values.size + values.size * np.log(step)
    assert ours.score[0] == pytest.approx(likelihood - 5 / 2 * np.log(values.size), abs=2)


def test_the_valley_between_the_heavier_groups_is_cut():
    places = np.arange(128) + 0.5
    density = sum(
        share * np.exp(-(((places - at) / 4) ** 2) / 2)
        for share, at in ((0.5, 20), (0.1, 45), (0.4, 100))
    )
    [at], _ = deepest_valleys(density[None], 300 * density[None] / density.sum(), 5)
    first, last = valley_to_cut(density, at)
    assert 45 < first <= last < 96


def one_class_samples(count):
    """Names of structures with one class, and how to draw them."""
    yield "normal", lambda random: random.normal(1, 0.05, count)
    yield "lognormal", lambda random: random.lognormal(0, 0.8, count)
    yield "gamma", lambda random: random.gamma(4, 1, count)
    yield "Weibull", lambda random: random.weibull(3, count)
    yield "exponential", lambda random: 1 + random.exponential(1, count)
    yield "uniform", lambda random: random.uniform(1, 2, count)
    yield "plateau", lambda random: 50 + random.uniform(-3, 3, count) + random.normal(size=count)
    yield "drift", lambda random: 50 + np.linspace(0, 3, count) + random.normal(size=count)
    yield "around 0", lambda random: random.normal(0, 1, count)
    yield "rounded", lambda random: np.round(random.normal(0.4, 0.01, count), 2)
    yield "counts", lambda random: random.poisson(3, count).astype(float)
    yield "autoregression", lambda random: autoregression(random, count, 0.95)
    yield "random walk", lambda random: 100 + np.cumsum(random.normal(size=count))


def autoregression(random, count, rho):
    from scipy.signal import lfilter

    return 50 + lfilter([1], [1, -rho], random.normal(size=count + 300))[300:]


def claims(draw, samples, first_seed):
    kinds = [
        find_cutoff(draw(np.random.default_rng(first_seed + sample)), sample).kind
        for sample in range(samples)
    ]
    return kinds.count("modes")


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", [60, 300])
def test_false_modes_of_each_structure_are_rare(count):
    samples = 100
    for name, draw in one_class_samples(count):
        found = claims(draw, samples, 7000)
        assert stats.beta.ppf(0.05, found or 1e-9, samples - found + 1) <= 0.03, (name, found)


def two_modes(runs, ratio, cv, share):
    def draw(random):
        slow = random.permutation(np.arange(runs) < round(share * runs))
        scale = np.where(slow, ratio, 1.0)
        return np.abs(scale * (1 + cv * random.normal(size=runs))), slow

    return draw


CLEAR = {
    "×5.7, half": two_modes(48, 5.7, 0.3, 0.5),
    "×5.7, two thirds": two_modes(48, 5.7, 0.3, 2 / 3),
    "×1.3": two_modes(40, 1.3, 0.04, 0.3),
}


def wrong_shares(draw, samples):
    """Share of wrongly labelled runs in each sample whose modes were found."""
    shares = []
    for seed in range(300, 300 + samples):
        values, slow = draw(np.random.default_rng(seed))
        found = find_cutoff(values, seed)
        if found.kind == "modes":
            shares.append(np.mean(found.slow(values) != slow))
    return shares


@pytest.mark.long
def test_clear_modes_are_found_and_cut_between():
    shares = [share for draw in CLEAR.values() for share in wrong_shares(draw, 6)]
    assert len(shares) >= 16 and np.median(shares) <= 0.03


def test_outcomes_around_zero_are_judged_on_their_own_scale():
    random = np.random.default_rng(4)
    values = np.r_[random.normal(0, 0.1, 50), random.normal(0.9, 0.1, 20)]
    found = modes_of(values, random)
    assert not found.logarithmic and 0.3 < found.value < 0.7


def test_two_far_runs_do_not_hide_the_modes():
    values, slow = two_modes(60, 1.5, 0.05, 0.3)(np.random.default_rng(5))
    found = find_cutoff(np.r_[values, 20.0, 300.0])
    assert found.kind == "modes" and np.array_equal(found.slow(values), slow)


def test_a_wandering_outcome_is_said_to_wander():
    values = autoregression(np.random.default_rng(11), 200, 0.97)
    found = modes_of(values, np.random.default_rng(0))
    assert found.value is None
    assert not np.isfinite(found.gain) or found.dependent


def test_most_runs_equal_and_a_second_mode():
    random = np.random.default_rng(6)
    values = np.r_[np.full(80, 1.0), random.normal(1.5, 0.05, 20)]
    found = find_cutoff(values)
    assert found.kind == "modes" and found.share_slow == pytest.approx(0.2)
    assert "same time" in find_cutoff(np.r_[np.full(80, 1.0), [2.0]]).evidence


def test_the_slowest_of_three_modes_is_slow():
    random = np.random.default_rng(7)
    modes = ((1, 0.02, 90), (1.1, 0.02, 60), (2, 0.05, 50))
    values = np.concatenate([random.normal(*mode) for mode in modes])
    found = find_cutoff(values)
    assert found.kind == "modes" and found.share_slow == pytest.approx(0.25)
