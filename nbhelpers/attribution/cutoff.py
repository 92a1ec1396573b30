"""The cutoff that labels slow runs: between two modes, at the start of a right tail, or nowhere.

Owns the two tests (modes, tail). A sample that passes neither is one class, and then there is no
cutoff: that is a result.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.stats import norm

from ..errors import InputError

FEWEST_VALUES = 12  # below this no split can be told from chance
SMALLEST_CLASS = 3  # slow runs; fewer are outliers, not a class
MODE_SHARE = 0.05  # a mode holds at least this share of the runs, and five runs
VALLEY_DEPTH = 0.7  # density in the valley over the lower peak: a shallower one is a shoulder
MODES_LEVEL = 0.02  # of the bootstrap test against one mode
TAIL_LEVEL = 0.02  # of the bootstrap test against a bulk without a tail
TAIL_FALSE_SHARE = 0.1  # of the runs labelled slow at most this share may belong to the bulk
REPEATS = 200  # bootstrap samples of either test
MOST_VALUES = 5000  # beyond, evenly spaced order statistics stand for the sample
GRID = 1024


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
    numbers
        The same numbers, by name.
    higher_is_better
        The slow runs lie below the cutoff (throughput, frames a second).
    """

    value: float | None
    kind: str
    share_slow: float
    evidence: str
    numbers: dict = field(default_factory=dict, compare=False)
    higher_is_better: bool = False

    def __repr__(self) -> str:
        where = (
            "no cutoff"
            if self.value is None
            else f"cutoff {self.value:.6g}, {self.share_slow:.1%} slow"
        )
        return f"Cutoff({self.kind}: {where})"

    def _repr_html_(self) -> str:
        return f"<p><b>{repr(self)[7:-1]}.</b> {self.evidence}</p>"

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
        Of the bootstrap samples.
    higher_is_better
        The values are throughputs or the like; the slow runs are the low ones.

    Returns
    -------
    Cutoff of kind "modes" if the sample has two modes (the cutoff is the deepest point of the
    valley), of kind "tail" if the worse end is heavier than that of the bulk, else "one class".

    Raises
    ------
    InputError
        A value is not a finite number.

    Notes
    -----
    Modes: Silverman's test (Using kernel density estimates to investigate multimodality, 1981). The
    smallest kernel width that leaves one mode is compared with samples drawn from that density.
    Only modes with a share of the runs count. The test assumes no shape, so a skewed sample is not
    taken for two modes.

    Tail: a shifted lognormal (Tukey's g-distribution) is fitted to quantiles of the bulk, which a
    tail of up to 15 % does not reach. The excess above it is compared with samples of that
    distribution. At most a tenth of the runs above the cutoff belong to the bulk (Benjamini and
    Hochberg 1995).
    """
    ordered = finite_sorted(values)
    if higher_is_better:
        return _mirrored(find_cutoff(-ordered, seed))
    random = np.random.default_rng(seed)
    if ordered.size < FEWEST_VALUES:
        return _one_class(
            f"Only {ordered.size} runs: at least {FEWEST_VALUES} are needed to tell two classes"
            " apart."
        )
    if iqr(ordered) == 0:
        return _one_class("More than half of the runs took exactly the same time.")
    sample = thinned(ordered)
    modes, why_not_modes = find_modes(sample, random)
    tail, why_not_tail = (None, "") if modes else find_tail(sample, random)
    found = modes or tail or _one_class(f"{why_not_modes} {why_not_tail}")
    return replace(found, share_slow=float(found.slow(ordered).mean()))


def _mirrored(found: Cutoff) -> Cutoff:
    value = None if found.value is None else -found.value
    return replace(
        found,
        value=value,
        higher_is_better=True,
        evidence=found.evidence.replace("right tail", "left tail"),
    )


def finite_sorted(values: object) -> np.ndarray:
    """The values in ascending order; one that is not finite is an error."""
    array = np.asarray(values, dtype=float).ravel()
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise InputError(
            "a run time is missing or infinite",
            where=f"position {bad[0]}",
            fix="use only the runs whose status is 'ok'",
        )
    return np.sort(array)


def thinned(values: np.ndarray) -> np.ndarray:
    """At most `MOST_VALUES` of the sorted values, evenly spaced."""
    if values.size <= MOST_VALUES:
        return values
    return values[np.linspace(0, values.size - 1, MOST_VALUES).round().astype(int)]


def _one_class(evidence: str) -> Cutoff:
    return Cutoff(None, "one class", 0.0, evidence)


def iqr(values: np.ndarray) -> float:
    """Distance between the quartiles."""
    low, high = np.percentile(values, [25, 75])
    return float(high - low)


# Modes
# --------------------------------------------------------------------------------------------------


def find_modes(values: np.ndarray, random: np.random.Generator) -> tuple[Cutoff | None, str]:
    """The cutoff between two modes of sorted values, or None and why not."""
    grid = _Grid.over(values)
    counts = grid.counts(values)
    smallest = max(5, round(MODE_SHARE * values.size))
    critical = _critical_width(counts, smallest, max(2.0, 0.75 * _resolution(values) / grid.step))
    if critical is None:
        return None, "The density has one mode at any kernel width."
    p_value = _one_mode_p_value(counts, critical, smallest, random)
    valley, depth = _deepest_valley(
        gaussian_filter1d(counts, critical / 2, mode="constant"), counts, smallest
    )
    numbers = {"p_value": p_value, "valley_depth": depth, "critical_width": critical * grid.step}
    text = (
        f"one mode: p = {p_value:.3f} (Silverman's test, {REPEATS} samples), valley at {depth:.0%}"
        " of the lower peak"
    )
    if p_value > MODES_LEVEL or depth > VALLEY_DEPTH:
        return None, f"No two modes ({text})."
    return Cutoff(float(grid.value(valley)), "modes", 0.0, f"Two modes ({text}).", numbers), ""


@dataclass(frozen=True)
class _Grid:
    """Equal bins over the values; far outliers fall into the end bins, where they can't stretch the
    grid.
    """

    low: float
    step: float

    @classmethod
    def over(cls, values: np.ndarray) -> "_Grid":
        p5, p95 = np.percentile(values, [5, 95])
        low, high = max(values[0], p5 - 3 * (p95 - p5)), min(values[-1], p95 + 3 * (p95 - p5))
        margin = 0.25 * (high - low)
        return cls(low - margin, (high - low + 2 * margin) / GRID)

    def counts(self, values: np.ndarray) -> np.ndarray:
        bins = np.clip((values - self.low) / self.step, GRID // 8, GRID - GRID // 8).astype(int)
        return np.bincount(bins, minlength=GRID).astype(float)

    def value(self, position: float) -> float:
        return self.low + (position + 0.5) * self.step


def _resolution(values: np.ndarray) -> float:
    """Distance between neighbouring values of a rounded sample, 0 if it isn't rounded: rounding is
    not a mode.
    """
    distinct = np.unique(values)
    return float(np.median(np.diff(distinct))) if distinct.size < values.size / 2 else 0.0


def _critical_width(counts: np.ndarray, smallest: int, narrowest: float) -> float | None:
    """Smallest kernel width (in bins) with one mode; None if the narrowest sensible one already has
    one.
    """
    low, high = narrowest, max(GRID / 4, narrowest)
    if not _has_valley(counts, low, smallest):
        return None
    for _ in range(12):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if _has_valley(counts, middle, smallest) else (low, middle)
    return float(high)


def _has_valley(counts: np.ndarray, width: float, smallest: int) -> bool:
    density = gaussian_filter1d(counts, width, mode="constant")
    return len(_valleys(density, counts, smallest)) > 0


def _valleys(density: np.ndarray, counts: np.ndarray, smallest: int) -> np.ndarray:
    """Local minima (middles of flat stretches) with a mode of at least `smallest` runs on either
    side.
    """
    density = np.where(density < 1e-9 * density.max(), 0, density)
    edges = np.flatnonzero(np.diff(density))
    slopes = np.sign(np.diff(density)[edges])
    turns = np.flatnonzero((slopes[:-1] < 0) & (slopes[1:] > 0))
    middles = (edges[turns] + 1 + edges[turns + 1]) // 2
    below = np.cumsum(counts)[middles]
    return middles[(below >= smallest) & (counts.sum() - below >= smallest)]


def _one_mode_p_value(
    counts: np.ndarray, critical: float, smallest: int, random: np.random.Generator
) -> float:
    """Share of samples from the critical density that need a wider kernel to have one mode."""
    size = int(counts.sum())
    positions = np.repeat(np.arange(GRID), counts.astype(int)).astype(float)
    mean, spread = positions.mean(), positions.std()
    # the variance of the sample stays, as in Silverman's paper
    shrink = spread / np.hypot(spread, critical)
    drawn = random.choice(positions, (REPEATS, size)) + random.normal(0, critical, (REPEATS, size))
    bins = np.clip(mean + shrink * (drawn - mean), 0, GRID - 1).astype(int)
    samples = (np.bincount(row, minlength=GRID).astype(float) for row in bins)
    wider = sum(_has_valley(sample, critical, smallest) for sample in samples)
    return (wider + 1) / (REPEATS + 1)


def _deepest_valley(density: np.ndarray, counts: np.ndarray, smallest: int) -> tuple[int, float]:
    """Position and depth (density over that of the lower peak next to it) of the deepest valley."""
    valleys = _valleys(density, counts, smallest)
    depths = [density[at] / min(density[:at].max(), density[at:].max()) for at in valleys]
    best = int(np.argmin(depths))
    return int(valleys[best]), float(depths[best])


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
    numbers = {"p_value": p_value, "skewness": skewness, "bulk_sd_at_cutoff": float(scores[-slow])}
    evidence = f"A right tail ({text}, from {scores[-slow]:.1f} sd of the bulk on)."
    return Cutoff(float(value), "tail", 0.0, evidence, numbers), ""


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
