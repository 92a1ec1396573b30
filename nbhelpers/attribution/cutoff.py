"""The cutoff that labels slow runs: between two modes, at the start of a tail, or nowhere.

Owns the answer and the rule for a tail; the test for modes is in `_modes`. A sample that passes
neither is one class, and then there is no cutoff: that is a result. The plain way is the valley of
a kernel density, or else Tukey's fence. Of 200 samples with slow runs it labels nine tenths of
either class rightly in 171, this in 182; of 230 with one class it divides 110, this 8
(benchmarks/rivals.py cutoff).

A tail was a test before: Tukey's g-distribution fitted to the bulk, its excess against 200 samples.
Of 450 fresh samples with a tail it labelled 363 rightly, the rule 366; of 360 with one class it cut
33, the rule 39.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..statistics.intervals import finite
from ._modes import Modes, modes_of

FEWEST_VALUES = 12  # below this no split can be told from chance
SMALLEST_CLASS = 3  # slow runs; fewer are outliers, not a class
FAR = 5.5  # a tail begins at so many distances from the median to the worse quartile
MOST_VALUES = 5000  # beyond, evenly spaced order statistics stand for the sample


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
        where = "no cutoff"
        if self.value is not None:
            where = f"cutoff {self.value:.6g}, {self.share_slow:.1%} slow"
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
    valley between them), of kind "tail" if the worse end reaches far beyond the bulk, else "one
    class".

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
    neighbouring runs resemble each other, so do those of the samples. Of several valleys the
    deepest is cut; every mode beyond it counts as slow.

    Tail: at least three runs lie beyond the median by more than 5.5 times the distance from the
    median to the worse quartile, on the logarithms if all values are positive.

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> seconds = np.r_[random.normal(1, 0.1, 40), random.normal(2, 0.2, 20)]
    >>> find_cutoff(seconds)
    Cutoff(modes: cutoff 1.45634, 33.3% slow)
    """
    in_order = finite(values)
    if in_order.size < FEWEST_VALUES:
        return _one_class(
            f"Only {in_order.size} runs: at least {FEWEST_VALUES} are needed to tell two classes"
            " apart."
        )
    if np.ptp(in_order) == 0:
        return _one_class("All runs took exactly the same time.")
    modes = modes_of(thinned(in_order), np.random.default_rng(seed))
    if modes.value is not None:
        found = Cutoff(modes.value, "modes", 0.0, modes.sentence(), higher_is_better)
    else:
        found = _tail_or_one_class(in_order, modes, higher_is_better)
    return replace(found, share_slow=float(found.slow(in_order).mean()))


def _tail_or_one_class(values: np.ndarray, modes: Modes, higher_is_better: bool) -> Cutoff:
    """A cutoff before the runs that are far beyond the worse quartile, if they are enough."""
    sign = -1 if higher_is_better else 1
    costs = sign * (np.log(values) if values.min() > 0 else values)
    middle, quartile = np.percentile(costs, [50, 75])
    if middle == quartile:
        same = "More than a quarter of the runs took the same time."
        return _one_class(f"{modes.sentence()} {same}")
    slow = int((costs > middle + FAR * (quartile - middle)).sum())
    beyond = f"{slow} runs beyond the median by {FAR} times the way to the worse quartile"
    if slow < SMALLEST_CLASS:
        return _one_class(f"{modes.sentence()} No tail: {beyond}.")
    ordered = np.sort(sign * values)
    value = sign * float(ordered[-slow - 1] + ordered[-slow]) / 2
    return Cutoff(value, "tail", 0.0, f"A tail: {beyond}.", higher_is_better)


def thinned(values: np.ndarray) -> np.ndarray:
    """At most `MOST_VALUES` of the values, evenly spaced by rank; their order stays."""
    if values.size <= MOST_VALUES:
        return values
    ranks = np.linspace(0, values.size - 1, MOST_VALUES).round().astype(int)
    return values[np.sort(np.argsort(values, kind="stable")[ranks])]


def _one_class(evidence: str) -> Cutoff:
    return Cutoff(None, "one class", 0.0, evidence)
