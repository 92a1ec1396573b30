"""What stopping rules ask of the runs so far: their dependence, and a mixture of normals."""

from dataclasses import dataclass

import numpy as np

STEPS = 100  # of expectation maximisation
NARROWEST = 1e-3  # of the sample's sd: a component on one value would have any likelihood


@dataclass(frozen=True, eq=False)
class Mixture:
    """Components in ascending order of their means."""

    means: np.ndarray
    sds: np.ndarray
    weights: np.ndarray

    def apart(self) -> float:
        """Largest distance of neighbouring means, in the larger of the two sds; 0 for one
        component.
        """
        return float(
            np.max(np.diff(self.means) / np.maximum(self.sds[1:], self.sds[:-1]), initial=0.0)
        )


def fit_mixture(values: np.ndarray, most: int) -> Mixture:
    """The mixture of 1 to `most` normal distributions with the smallest BIC (Schwarz 1978), by
    expectation maximisation from quantiles.
    """
    spread = values.std() or 1.0
    scaled = (values - values.mean()) / spread
    fits = [_expect_maximise(scaled, count) for count in range(1, most + 1)]
    scores = [
        (3 * count - 1) * np.log(values.size) - 2 * likelihood
        for count, (_, likelihood) in enumerate(fits, start=1)
    ]
    means, sds, weights = fits[int(np.argmin(scores))][0]
    order = np.argsort(means)
    return Mixture(means[order] * spread + values.mean(), sds[order] * spread, weights[order])


def _expect_maximise(values: np.ndarray, count: int) -> tuple[tuple, float]:
    means, sds, weights = _begin(values, count)
    likelihood = -np.inf
    for _ in range(STEPS):
        logs = np.log(weights) - np.log(sds) - 0.5 * ((values[:, None] - means) / sds) ** 2
        top = logs.max(axis=1, keepdims=True)
        parts = np.exp(logs - top)
        total = parts.sum(axis=1, keepdims=True)
        new = float((top + np.log(total)).sum()) - 0.5 * values.size * np.log(2 * np.pi)
        shares = parts / total
        held = shares.sum(axis=0) + 1e-9
        means, weights = shares.T @ values / held, held / held.sum()
        sds = np.sqrt(
            np.maximum((shares * (values[:, None] - means) ** 2).sum(axis=0) / held, NARROWEST)
        )
        if abs(new - likelihood) < 1e-6 * values.size:
            break
        likelihood = new
    return (means, sds, weights), new


def _begin(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Components at the widest gaps between neighbouring parts of the range: modes of unequal size
    are found, too.
    """
    edges = np.linspace(values.min(), values.max(), count + 1)
    parts = [values[(values >= low) & (values <= high)] for low, high in zip(edges, edges[1:])]
    means = np.array(
        [
            part.mean() if part.size else (low + high) / 2
            for part, low, high in zip(parts, edges, edges[1:])
        ]
    )
    return (
        means,
        np.full(count, max(values.std() / count, 1e-3)),
        np.array([max(part.size, 1) for part in parts]) / values.size,
    )


def lag_one(values: np.ndarray) -> float:
    """Autocorrelation of neighbours."""
    centred = values - values.mean()
    return float(centred[1:] @ centred[:-1] / (centred @ centred)) if centred.any() else 0.0


def block_length(values: np.ndarray) -> int:
    """Block of a block bootstrap of the mean: the best one of a first-order autoregression
    (Carlstein 1986).
    """
    rho = float(np.clip(lag_one(values), 0, 0.97))
    best = (2 * rho / (1 - rho**2)) ** (2 / 3) * values.size ** (1 / 3)
    return int(np.clip(np.ceil(best), 1, max(values.size // 3, 1)))
