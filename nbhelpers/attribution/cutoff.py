"""The cutoff that labels slow runs: between two modes, at the start of a right tail, or nowhere.

Owns the answer and the test for a tail; the one for modes is in `_modes`. A sample that passes
neither is one class, and then there is no cutoff: that is a result. The plain way is the valley of
a kernel density, or else Tukey's fence. Of 200 samples with slow runs it labels nine tenths of
either class rightly in 171, this in 179; of 230 with one class it divides 110, this 9
(benchmarks/rivals.py cutoff).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from ..statistics.intervals import finite
from ._modes import Modes, modes_of

FEWEST_VALUES = 12  # below this no split can be told from chance
SMALLEST_CLASS = 3  # slow runs; fewer are outliers, not a class
TAIL_LEVEL = 0.02  # of the bootstrap test against a bulk without a tail
TAIL_FALSE_SHARE = 0.1  # of the runs labelled slow at most this share may belong to the bulk
REPEATS = 200  # bootstrap samples of that test
MOST_VALUES = 5000  # beyond, evenly spaced order statistics stand for the sample


def _g_value(scores: np.ndarray, g: float) -> np.ndarray:
    return scores if g < 1e-6 else np.expm1(g * scores) / g


# The bulk's shape is read from these quantiles only, each weighted by its precision in a normal
# sample.
BULK = np.concatenate([[0.03, 0.06], np.arange(0.10, 0.86, 0.05)])
WEIGHTS = norm.pdf(norm.ppf(BULK)) ** 2 / (BULK * (1 - BULK))
WEIGHTS /= WEIGHTS.sum()
SKEWNESSES = np.linspace(0, 1, 41)
SHAPES = np.array([_g_value(norm.ppf(BULK), g) for g in SKEWNESSES])
SHAPE_MEANS = SHAPES @ WEIGHTS
SHAPES -= SHAPE_MEANS[:, None]
SHAPE_VARIANCES = SHAPES**2 @ WEIGHTS


@dataclass(frozen=True)
class Cutoff:
    """Where the slow runs begin.

    Attributes
    ----------
    value
        Runs with `values > value` are slow (`values < value` where higher is better), in the unit
        of the values; None means one class.
    kind
        "modes", "tail" or "one class"; "given" for a value that the user chose.
    share_slow
        Share of the runs beyond the cutoff, 0 for one class.
    evidence
        A sentence with the numbers that decided.
    higher_is_better
        The slow runs lie below the cutoff (throughput, frames a second).
    """

    value: float | None
    kind: str
    share_slow: float
    evidence: str
    higher_is_better: bool = False

    def __repr__(self) -> str:
        where = (
            "no cutoff"
            if self.value is None
            else f"cutoff {self.value:.6g}, {self.share_slow:.1%} slow"
        )
        return f"Cutoff({self.kind}: {where})"

    def slow(self, values: object) -> np.ndarray:
        """Which values lie beyond the cutoff, on the worse side (all False for one class)."""
        numbers = np.asarray(values, dtype=float)
        if self.value is None:
            return np.zeros(numbers.shape, bool)
        return numbers < self.value if self.higher_is_better else numbers > self.value


def find_cutoff(values: object, seed: int = 0, higher_is_better: bool = False) -> Cutoff:
    """Find the value that separates slow runs from the others, if there is one.

    Parameters
    ----------
    values
        Run times, array of n; missing values are refused.
    seed
        Seed of the bootstrap samples.
    higher_is_better
        The values are throughputs or the like; the slow runs are the low ones.

    Returns
    -------
    Cutoff of kind "modes" if the sample has two modes or more (the cutoff lies at the bottom of the
    valley between them), of kind "tail" if the worse end is heavier than that of the bulk, else
    "one class".

    Raises
    ------
    InputError
        A value is not a finite number.

    Notes
    -----
    Modes: mixtures of up to three normal distributions, on the logarithms if all values are
    positive, else on the values. They must have a valley, and fit better than one class by more
    than they do in samples of one class (a parametric bootstrap of the likelihood ratio). One class
    is any skewed, flat, sharp-edged or heavy-tailed density of an asymmetric exponential power
    distribution (Zhu and Zinde-Walsh 2009), so none of these is taken for two modes. If
    neighbouring runs resemble each other, so do those of the samples. Of several valleys the cutoff
    is the one whose filling costs most likelihood; every mode beyond it counts as slow.

    Tail: a shifted lognormal (Tukey's g-distribution) is fitted to quantiles of the bulk, which a
    tail of up to 15 % does not reach. The excess above it is compared with samples of that
    distribution. At most a tenth of the runs above the cutoff belong to the bulk (Benjamini and
    Hochberg 1995).

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> seconds = np.r_[random.normal(1, 0.1, 40), random.normal(2, 0.2, 20)]
    >>> find_cutoff(seconds)
    Cutoff(modes: cutoff 1.45634, 33.3% slow)
    """
    in_order = finite(values)
    ordered = np.sort(in_order)
    random = np.random.default_rng(seed)
    if ordered.size < FEWEST_VALUES:
        return _one_class(
            f"Only {ordered.size} runs: at least {FEWEST_VALUES} are needed to tell two classes"
            " apart."
        )
    if ordered[0] == ordered[-1]:
        return _one_class("All runs took exactly the same time.")
    modes = modes_of(thinned(in_order), random)
    if modes.value is not None:
        found = Cutoff(modes.value, "modes", 0.0, modes.sentence(), higher_is_better)
    else:
        found = _tail_or_one_class(ordered, modes, random, higher_is_better)
    return replace(found, share_slow=float(found.slow(ordered).mean()))


def _tail_or_one_class(
    ordered: np.ndarray, modes: Modes, random: np.random.Generator, higher_is_better: bool
) -> Cutoff:
    if iqr(ordered) == 0:
        return _one_class(f"{modes.sentence()} More than half of the runs took the same time.")
    sample = thinned(np.sort(-ordered) if higher_is_better else ordered)
    tail, why_not = find_tail(sample, random)
    found = tail or _one_class(f"{modes.sentence()} {why_not}")
    return _mirrored(found) if higher_is_better else found


def _mirrored(found: Cutoff) -> Cutoff:
    value = None if found.value is None else -found.value
    return replace(
        found,
        value=value,
        higher_is_better=True,
        evidence=found.evidence.replace("right tail", "left tail"),
    )


def thinned(values: np.ndarray) -> np.ndarray:
    """At most `MOST_VALUES` of the values, evenly spaced by rank; their order stays."""
    if values.size <= MOST_VALUES:
        return values
    ranks = np.linspace(0, values.size - 1, MOST_VALUES).round().astype(int)
    return values[np.sort(np.argsort(values, kind="stable")[ranks])]


def _one_class(evidence: str) -> Cutoff:
    return Cutoff(None, "one class", 0.0, evidence)


def iqr(values: np.ndarray) -> float:
    """Distance between the quartiles."""
    low, high = np.percentile(values, [25, 75])
    return float(high - low)


# Tail
# --------------------------------------------------------------------------------------------------


def find_tail(values: np.ndarray, random: np.random.Generator) -> tuple[Cutoff | None, str]:
    """The cutoff at the start of the right tail of sorted values, or None and why not."""
    scores, skewness = bulk_scores(values)
    p_value = _no_tail_p_value(_excess(scores), skewness, values.size, random)
    slow = _tail_size(scores)
    text = f"no tail: p = {p_value:.3f} ({REPEATS} samples of the bulk), {slow} runs above it"
    if p_value > TAIL_LEVEL or slow < SMALLEST_CLASS:
        few = " too few for a class" if 0 < slow < SMALLEST_CLASS else ""
        return None, f"No right tail ({text}{few})."
    value = (values[-slow] + values[-slow - 1]) / 2
    evidence = f"A right tail ({text}, from {scores[-slow]:.1f} sd of the bulk on)."
    return Cutoff(float(value), "tail", 0.0, evidence), ""


def bulk_scores(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Standard scores of sorted values under the g-distribution that fits the bulk best, and its g
    (0 = normal).
    """
    target = np.quantile(values, BULK)
    mean = WEIGHTS @ target
    slopes = (SHAPES * WEIGHTS) @ (target - mean) / SHAPE_VARIANCES
    misfits = ((target - mean - slopes[:, None] * SHAPES) ** 2) @ WEIGHTS
    best = int(np.argmin(misfits))
    g = float(SKEWNESSES[best])
    scale = slopes[best]
    middle = mean - slopes[best] * SHAPE_MEANS[best]
    if scale <= 0:
        return np.zeros(values.size), g
    return _g_score((values - middle) / scale, g), g


def _g_score(values: np.ndarray, g: float) -> np.ndarray:
    return values if g < 1e-6 else np.log1p(np.maximum(g * values, -1 + 1e-9)) / g


def _excess(scores: np.ndarray) -> float:
    """Mean length of scores above two."""
    return float(np.mean(np.maximum(scores - 2, 0)))


def _no_tail_p_value(
    excess: float, skewness: float, size: int, random: np.random.Generator
) -> float:
    samples = np.sort(_g_value(random.normal(size=(REPEATS, size)), skewness), axis=1)
    as_large = sum(_excess(bulk_scores(sample)[0]) >= excess for sample in samples)
    return (as_large + 1) / (REPEATS + 1)


def _tail_size(scores: np.ndarray) -> int:
    """Largest number of top runs of which the bulk would supply at most `TAIL_FALSE_SHARE`."""
    top = np.arange(1, scores.size // 2)
    expected = scores.size * norm.sf(scores[-top])
    enough = np.flatnonzero(expected <= TAIL_FALSE_SHARE * top)
    return int(top[enough[-1]]) if enough.size else 0
