"""Mixtures of normal distributions, fitted to many binned samples at once, and their valleys.

Owns the alternative of the test for modes. A sample is a row of counts; bins are the unit of length
and bin i reaches from i to i + 1.
"""

from dataclasses import dataclass

import numpy as np

ROUNDS = 25  # of expectation and maximisation; the start is the best division into intervals
PRIOR_SD = 0.35  # of the sample's standard deviation: keeps a component from closing in on one run
PRIOR_RUNS = 2  # weight of that prior
LEAST_VARIANCE = 0.3  # in square bins
BOTTOM = 0.1  # of a valley: its lowest tenth
TINY = 1e-300


@dataclass(frozen=True)
class Mixtures:
    """The best mixture of each of S samples.

    Attributes
    ----------
    score
        Log-likelihood less half the logarithm of the runs for each parameter (Schwarz 1978).
    density
        Array of S × bins.
    """

    score: np.ndarray
    density: np.ndarray


def fit_mixtures(counts: np.ndarray, smallest: float, most: int) -> Mixtures:
    """Two components of equal spread, or two to `most` of their own: by Schwarz's criterion.

    Parameters
    ----------
    counts
        Array of S samples × bins.
    smallest
        Runs in a mode, at least.
    most
        Components.
    """
    places = np.arange(counts.shape[1]) + 0.5
    sizes = counts.sum(axis=1)
    means = counts @ places / sizes
    prior = PRIOR_SD**2 * (counts @ places**2 / sizes - means**2)
    starts = _divisions(counts, smallest, most)
    best = _fitted(counts, starts[0], prior, tied=True)
    for start in starts:
        other = _fitted(counts, start, prior, tied=False)
        wins = other.score > best.score
        best = Mixtures(
            np.where(wins, other.score, best.score),
            np.where(wins[:, None], other.density, best.density),
        )
    return best


Components = tuple[np.ndarray, np.ndarray, np.ndarray]  # shares, means, variances: S × components


def _divisions(counts: np.ndarray, smallest: float, most: int) -> list[Components]:
    """Divisions into 2 to `most` intervals of bins, each the best refinement of the one before.

    An interval counts as a normal distribution; the best edge gains most likelihood.
    """
    places = np.arange(counts.shape[1]) + 0.5
    powers = np.stack([counts, counts * places, counts * places**2])
    sums = np.concatenate([np.zeros((3, len(counts), 1)), np.cumsum(powers, axis=2)], axis=2)
    edges = np.repeat([[0, counts.shape[1]]], len(counts), axis=0)
    divisions = []
    for count in range(2, most + 1):
        edges = _with_best_edge(sums, edges, smallest if count == 2 else max(3, smallest / 2))
        inside = np.diff(np.take_along_axis(sums, edges[None], axis=2), axis=2)
        runs, means, variances = _in_interval(inside)
        runs = np.maximum(runs, 0.5)
        divisions.append((runs / runs.sum(axis=1, keepdims=True), means, variances + 1))
    return divisions


def _in_interval(sums: np.ndarray) -> Components:
    """Runs, mean and variance from sums of 1, x and x²."""
    runs = sums[0]
    some = np.maximum(runs, 1e-9)
    means = sums[1] / some
    return runs, means, np.maximum(sums[2] / some - means**2, 0)


def _with_best_edge(sums: np.ndarray, edges: np.ndarray, smallest: float) -> np.ndarray:
    """The edges and one more, with at least `smallest` runs on both of its sides."""
    total = sums[0, :, -1:]
    last = sums.shape[2] - 1
    places = np.arange(1, last)
    interval = (places[:, None] >= edges[:, None, :-1]).sum(axis=2) - 1
    low = np.take_along_axis(edges, interval, axis=1)
    high = np.take_along_axis(edges, interval + 1, axis=1)
    start = np.take_along_axis(sums, low[None], axis=2)
    end = np.take_along_axis(sums, high[None], axis=2)
    here = sums[:, :, 1:last]

    def cost(part: np.ndarray) -> np.ndarray:
        runs, _, variances = _in_interval(part)
        return runs * (np.log(variances + 1) / 2 - np.log(np.maximum(runs, 1e-9) / total))

    gain = cost(end - start) - cost(here - start) - cost(end - here)
    few = np.minimum((here - start)[0], (end - here)[0]) < smallest
    best = np.where(few, -np.inf, gain).argmax(axis=1)
    return np.sort(np.concatenate([edges, places[best][:, None]], axis=1), axis=1)


def _fitted(counts: np.ndarray, start: Components, prior: np.ndarray, tied: bool) -> Mixtures:
    """Expectation and maximisation; `tied`: all components have the same variance."""
    shares, means, variances = start
    sizes = counts.sum(axis=1)
    places = np.arange(counts.shape[1]) + 0.5
    basis = np.stack([np.ones_like(places), places, places**2])
    for _ in range(ROUNDS):
        parts = _densities(shares, means, variances, basis)
        sums = (parts * (counts / (parts.sum(axis=1) + TINY))[:, None]) @ basis.T
        runs = sums[:, :, 0] + 1e-9
        shares, means = runs / sizes[:, None], sums[:, :, 1] / runs
        squares = sums[:, :, 2] - runs * means**2
        if tied:
            squares = np.repeat(squares.sum(axis=1)[:, None], runs.shape[1], axis=1)
            runs = np.repeat(sizes[:, None], runs.shape[1], axis=1)
        variances = (squares + PRIOR_RUNS * prior[:, None]) / (runs + PRIOR_RUNS)
        variances = np.maximum(variances, LEAST_VARIANCE)
    density = _densities(shares, means, variances, basis).sum(axis=1) + TINY
    parameters = 2 * shares.shape[1] if tied else 3 * shares.shape[1] - 1
    likelihood = (counts * np.log(density)).sum(axis=1)
    return Mixtures(likelihood - parameters * np.log(sizes) / 2, density)


def _densities(
    shares: np.ndarray, means: np.ndarray, variances: np.ndarray, basis: np.ndarray
) -> np.ndarray:
    """Density of each component in each bin, times its share."""
    constant = np.log(np.maximum(shares, TINY)) - np.log(2 * np.pi * variances) / 2
    constant -= means**2 / variances / 2
    return np.exp(np.stack([constant, means / variances, -0.5 / variances], axis=2) @ basis)


def deepest_valleys(
    density: np.ndarray, counts: np.ndarray, smallest: float
) -> tuple[np.ndarray, np.ndarray]:
    """Bin of each sample's deepest valley, and its density over that of the lower peak beside it.

    A valley has at least `smallest` runs on both sides; without any the ratio is 1.
    """
    peaks_before = np.maximum.accumulate(density, axis=1)
    peaks_after = np.maximum.accumulate(density[:, ::-1], axis=1)[:, ::-1]
    depth = density / np.minimum(peaks_before, peaks_after)
    below = np.cumsum(counts, axis=1) - counts / 2
    enough = np.minimum(below, counts.sum(axis=1, keepdims=True) - below) >= smallest
    depth = np.where(enough, depth, 1.0)
    at = depth.argmin(axis=1)
    return at, np.take_along_axis(depth, at[:, None], axis=1)[:, 0]


def valley_to_cut(density: np.ndarray, at: int) -> tuple[int, int]:
    """First and last bin of the bottom of the valley at this bin of one sample's density: there it
    has hardly risen towards the lower peak.
    """
    lower = min(density[:at].max(), density[at:].max())
    above = density > density[at] + BOTTOM * (lower - density[at])
    first = at - int(above[:at][::-1].argmax())
    last = at + int(above[at:].argmax()) - 1
    return first, last
