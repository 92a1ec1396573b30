"""One class of runs: a family of densities with a single peak, fitted to many binned samples.

Owns the null of the test for modes. The family is the asymmetric exponential power distribution
(Zhu and Zinde-Walsh, Journal of Econometrics 2009). On either side of its peak the density falls as
exp(-(distance / scale) ** power), with a scale and a power for each side. Among its members are the
normal and the uniform, a plateau with soft edges, one-sided exponentials and heavy tails.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gamma

POWERS = np.array([0.6, 1.0, 1.5, 2.0, 3.0, 6.0, 24.0])
# of the pooled samples, where the peak is looked for
PEAKS = np.r_[0, 0.02, 0.05, np.arange(0.1, 0.95, 0.05), 0.95, 0.98, 1]
SMALLEST_MOMENT = 1e-3  # a side without any run keeps a positive scale
SUBDIVISIONS = 8  # of a bin, for its probability


@dataclass(frozen=True)
class OneClass:
    """The best single class of each of S samples; arrays of S.

    Attributes
    ----------
    log_likelihood
        Log-likelihood of the counts, with bins as the unit of length.
    peak, powers, scales
        Parameters; powers and scales have a column for the left and one for the right side.
    """

    log_likelihood: np.ndarray
    peak: np.ndarray
    powers: np.ndarray
    scales: np.ndarray

    def probabilities(self, bins: int) -> np.ndarray:
        """The probability of each bin under the first sample's class."""
        steps = bins * SUBDIVISIONS
        places = (np.arange(steps) + 0.5) / SUBDIVISIONS - self.peak[0]
        side = (places >= 0).astype(int)
        falls = (np.abs(places) / self.scales[0, side]) ** self.powers[0, side]
        mass = np.exp(-falls).reshape(bins, SUBDIVISIONS).sum(axis=1)
        return mass / mass.sum()


def fit_one_class(counts: np.ndarray) -> OneClass:
    """Fit the family to binned samples by likelihood: the best of all peaks and pairs of powers.

    Parameters
    ----------
    counts
        Array of S samples × bins.
    """
    peaks = _peaks(counts)
    moments = _moments(counts, peaks)
    sides = (POWERS[:, None, None], POWERS[:, None])
    left, right = moments[0][:, :, None], moments[1][:, None]
    likelihood, scales = _likelihood(counts.sum(axis=1)[:, None, None, None], left, right, sides)
    flat = likelihood.reshape(len(counts), -1)
    best = flat.argmax(axis=1)
    rows = np.arange(len(counts))
    first, second, third = np.unravel_index(best, likelihood.shape[1:])
    chosen = [np.broadcast_to(scale, likelihood.shape) for scale in scales]
    return OneClass(
        flat[rows, best],
        peaks[third],
        np.stack([POWERS[first], POWERS[second]], axis=1),
        np.stack([scale[rows, first, second, third] for scale in chosen], axis=1),
    )


def _peaks(counts: np.ndarray) -> np.ndarray:
    """Places at which a peak is tried: quantiles of all samples together."""
    below = np.cumsum(counts.sum(axis=0))
    edges = np.r_[0, below] / below[-1]
    filled = np.flatnonzero(np.diff(edges) > 0)
    levels = np.clip(PEAKS, edges[filled[0]], edges[filled[-1] + 1])
    inside = slice(filled[0], filled[-1] + 2)
    return np.interp(levels, edges[inside], np.arange(edges.size)[inside])


def _moments(counts: np.ndarray, peaks: np.ndarray) -> np.ndarray:
    """Mean of distance ** power on either side: array of side × sample × power × peak."""
    places = np.arange(counts.shape[1]) + 0.5
    with np.errstate(divide="ignore"):
        distances = np.log(np.abs(places[:, None] - peaks))
    left = places[:, None] < peaks
    tables = np.exp(POWERS[:, None, None] * distances)
    both = np.stack([np.where(left, tables, 0), np.where(left, 0, tables)])
    shape = 2, len(POWERS), len(peaks), len(counts)
    sums = both.transpose(0, 1, 3, 2).reshape(-1, len(places)) @ counts.T
    means = sums.reshape(shape) / counts.sum(axis=1)
    return np.maximum(means.transpose(0, 3, 1, 2), SMALLEST_MOMENT)


def _likelihood(
    sizes: np.ndarray, left: np.ndarray, right: np.ndarray, powers: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Log-likelihood at the best scales, and these scales.

    The scales follow from the density's integral Z: scale ** (power + 1) = power * moment * Z /
    gamma(1 + 1 / power). Newton's method solves for log Z.
    """
    widths = [gamma(1 + 1 / power) for power in powers]
    shares = [1 / (power + 1) for power in powers]
    bases = [
        (power * moment / width) ** share
        for power, moment, width, share in zip(powers, (left, right), widths, shares)
    ]
    heights = [np.log(width * base) for width, base in zip(widths, bases)]
    log_total = np.zeros(np.broadcast_shapes(bases[0].shape, bases[1].shape)) + 3
    for _ in range(3):
        parts = [np.exp(height + share * log_total) for height, share in zip(heights, shares)]
        total = parts[0] + parts[1]
        slope = (parts[0] * shares[0] + parts[1] * shares[1]) / total - 1
        log_total -= (np.log(total) - log_total) / slope
    scales = bases[0] * np.exp(shares[0] * log_total), bases[1] * np.exp(shares[1] * log_total)
    total = widths[0] * scales[0] + widths[1] * scales[1]
    falls = left / scales[0] ** powers[0] + right / scales[1] ** powers[1]
    return -sizes * (np.log(total) + falls), scales
