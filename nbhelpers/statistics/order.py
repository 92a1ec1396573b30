"""Time order as a factor: do neighbouring runs resemble each other, does the campaign drift, where
does it change?

Owns the test of exchangeability. What it finds decides which surrogates a search is compared with;
without them a counter that drifts together with the run times would be taken for their cause.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import InputError
from .intervals import Values

LEVEL = 0.01  # of the test of time order
SUSPECTED = 0.1  # p-value from which surrogates keep the order, even if it is not shown to matter
CHANGE_LEVEL = 0.01  # of each change point
SHUFFLES = 499
FEWEST_RUNS = 12  # fewer say nothing of their order
SHORTEST_SEGMENT = 3
WAVES = 6  # that a campaign holds at least, if it has a period
WAVE_SHARE = 0.3  # of the variance of the ranks
ORDER_COLUMNS = ("began_unix_s", "start_ns", "t0_ns", "run")


@dataclass(frozen=True)
class TimeOrder:
    """What the order of the runs has to do with the outcome.

    Attributes
    ----------
    found
        The order matters (p at most 0.01).
    p_value
        Of the hypothesis that the runs are exchangeable.
    autocorrelation
        Of neighbouring runs, by ranks.
    trend
        Rank correlation of the outcome with the position.
    changes
        Positions at which a new level begins (0 = first run).
    kind
        "none", "warm-up", "slow-down", "drift", "periodic" or "phases".
    period
        In runs, of kind "periodic"; else 0.
    block
        Runs that belong together: a shuffle moves blocks of this length (1: single runs).
    evidence
        The result in words.
    """

    found: bool
    p_value: float
    autocorrelation: float
    trend: float
    changes: tuple[int, ...]
    kind: str
    block: int
    evidence: str
    period: float = 0.0

    def __repr__(self) -> str:
        return (
            f"TimeOrder({self.kind}: p = {self.p_value:.3f}, autocorrelation"
            f" {self.autocorrelation:.2f}, blocks of {self.block})"
        )


def time_order(values: Values, seed: int = 0, higher_is_better: bool = False) -> TimeOrder:
    """Test whether the order of the runs matters, and how.

    Parameters
    ----------
    values
        Outcome of n runs in the order in which they were measured.
    seed
        Of the shuffles.
    higher_is_better
        Decides what is a warm-up (a bad beginning) and what a slow-down (a bad end).

    Notes
    -----
    Four tests on ranks, all against shuffled orders; the smallest p-value is multiplied by four.
    Resemblance of neighbours, or its opposite: Bartels's rank version of von Neumann's ratio
    (1982). Change of level at an unknown place: the largest weighted CUSUM (Pettitt 1979). A
    period: the largest ordinate of the periodogram (Fisher 1929). Any other pattern that
    repeats: the largest autocorrelation. Change points by binary segmentation. The block is twice
    the integrated autocorrelation time, summed up to the first lag within the noise of white data,
    and at least a period.
    """
    outcomes = np.asarray(values, dtype=float)
    if outcomes.size < FEWEST_RUNS or np.ptp(outcomes) == 0:
        why = "Too few runs, or too equal, to say anything of their order."
        return TimeOrder(False, 1.0, 0.0, 0.0, (), "none", 1, why)
    ranks = standard_ranks(outcomes)
    random = np.random.default_rng(seed)
    p_values = _order_p_values(ranks, random)
    p_value = min(1.0, len(p_values) * min(p_values.values()))
    near = float(_neighbours(ranks))
    trend = float(ranks @ standard_ranks(np.arange(outcomes.size)) / outcomes.size)
    found = p_value <= LEVEL
    changes = tuple(_changes(ranks, 0, random)) if found else ()
    kind = _kind(-ranks if higher_is_better else ranks, changes, trend) if found else "none"
    period = _period(ranks) if found else 0.0
    if kind == "phases" and period:
        kind = "periodic"
    block = _block(ranks, period) if found else 1
    seen_by = min(p_values, key=p_values.__getitem__)
    words = _in_words(kind, seen_by, p_value, near, trend, changes, outcomes.size, period)
    return TimeOrder(found, p_value, near, trend, changes, kind, block, words, period)


def standard_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks with mean 0 and standard deviation 1 (0 throughout if all are equal), of a vector or of
    each column.
    """
    if not len(values):
        return np.asarray(values, dtype=float)
    from scipy.stats import rankdata

    ranks = rankdata(values, axis=0)
    ranks = ranks - ranks.mean(axis=0)
    return ranks / np.maximum(ranks.std(axis=0), 1e-12)


def positions(runs: pd.DataFrame, order: str | None = None) -> np.ndarray:
    """The order in which the runs were measured: row numbers, first run first.

    Parameters
    ----------
    order
        Column to sort by; None: the first of began_unix_s, start_ns, t0_ns, run that has a
        different number in each row, else the rows as they stand.

    Raises
    ------
    InputError
        No such column.
    """
    if order is not None and order not in runs.columns:
        raise InputError(
            f"no column {order!r} to order the runs by",
            fix=f"the table has: {', '.join(map(str, runs.columns))}",
        )
    usable = [
        name
        for name in ([order] if order else ORDER_COLUMNS)
        if name in runs.columns and (order or _numbers_all(runs[name]))
    ]
    return np.argsort(runs[usable[0]].to_numpy(), kind="stable") if usable else np.arange(len(runs))


def _numbers_all(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and column.notna().all() and column.is_unique


def _neighbours(ranks: np.ndarray) -> np.ndarray:
    """Correlation of neighbours along the last axis of standard ranks."""
    return (ranks[..., 1:] * ranks[..., :-1]).mean(axis=-1)


def _cusum(ranks: np.ndarray) -> np.ndarray:
    """Standardised difference of level before and after each possible change, on the last axis."""
    size = ranks.shape[-1]
    before = np.arange(SHORTEST_SEGMENT, size - SHORTEST_SEGMENT + 1)
    sums = np.cumsum(ranks, axis=-1)[..., before - 1]
    return np.abs(sums) / np.sqrt(before * (size - before) / size)


def _order_p_values(ranks: np.ndarray, random: np.random.Generator) -> dict[str, float]:
    """p-value of each test of the order, by shuffles."""
    both = np.vstack([ranks, random.permuted(np.tile(ranks, (SHUFFLES, 1)), axis=1)])
    power = _power(both)
    statistics = {
        "neighbours": np.abs(_neighbours(both)),
        "level": _cusum(both).max(axis=1),
        "period": power[:, 1 : ranks.size + 1].max(axis=1),
        "repetition": _repetition(power, ranks.size),
    }
    return {
        name: float((seen[1:] >= seen[0] - 1e-9).sum() + 1) / (SHUFFLES + 1)
        for name, seen in statistics.items()
    }


def _power(ranks: np.ndarray) -> np.ndarray:
    """Periodogram of rows, at twice as many frequencies as they have."""
    return np.abs(np.fft.rfft(ranks, 2 * ranks.shape[-1], axis=-1)) ** 2


def _repetition(power: np.ndarray, size: int) -> np.ndarray:
    """Largest autocorrelation of each row at a lag of two to a half of its length."""
    products = np.fft.irfft(power, axis=-1)[:, 2 : size // 2 + 1]
    terms = size - np.arange(2, size // 2 + 1)
    return (np.abs(products) / np.sqrt(terms)).max(axis=1)


def _period(ranks: np.ndarray) -> float:
    """Runs of the strongest wave; 0 if it is seen seldom, or makes up little of the variance."""
    power = _power(ranks)
    strongest = 1 + int(np.argmax(power[1:]))
    period, share = 2 * ranks.size / strongest, 2 * power[strongest] / ranks.size**2
    return period if period <= ranks.size / WAVES and share >= WAVE_SHARE else 0.0


def _changes(ranks: np.ndarray, first: int, random: np.random.Generator) -> list[int]:
    """Change points by binary segmentation, each tested against shuffles of its segment."""
    if ranks.size < 4 * SHORTEST_SEGMENT:
        return []
    ranks = ranks - ranks.mean()
    height = _cusum(ranks)
    shuffled = random.permuted(np.tile(ranks, (SHUFFLES, 1)), axis=1)
    if (np.sum(_cusum(shuffled).max(axis=1) >= height.max()) + 1) / (SHUFFLES + 1) > CHANGE_LEVEL:
        return []
    cut = int(np.argmax(height)) + SHORTEST_SEGMENT
    return [
        *_changes(ranks[:cut], first, random),
        first + cut,
        *_changes(ranks[cut:], first + cut, random),
    ]


def _kind(badness: np.ndarray, changes: tuple[int, ...], trend: float) -> str:
    """Warm-up: the first stretch is the worst and short; slow-down: the last is the worst and the
    level rose.
    """
    if 1 <= len(changes) <= 2:
        levels = [part.mean() for part in np.split(badness, changes)]
        short = changes[0] <= badness.size / 3
        if short and levels[0] > badness[changes[0] :].mean() + 0.5:
            return "warm-up"
        worst = levels[-1] == max(levels)
        if worst and levels[-1] > badness[: changes[-1]].mean() + 0.5:
            return "slow-down"
    return "drift" if abs(trend) > 0.5 else "phases"


def _block(ranks: np.ndarray, period: float) -> int:
    size = ranks.size
    correlation = np.fft.irfft(_power(ranks))[:size] / size
    noise = np.flatnonzero(correlation < 1.96 / np.sqrt(size))
    last = int(noise[0]) if noise.size else size
    time = 2 * (1 + 2 * correlation[1:last].sum())
    return int(np.clip(np.ceil(max(time, period)), 2, size // 2))


def _in_words(
    kind: str,
    seen_by: str,
    p_value: float,
    near: float,
    trend: float,
    changes: tuple[int, ...],
    size: int,
    period: float,
) -> str:
    numbers = (
        f"p = {p_value:.3f}, autocorrelation {near:.2f}, rank correlation with the position"
        f" {trend:+.2f}"
    )
    if kind == "none":
        return f"The order of the runs does not matter ({numbers})."
    where = (
        f"; the level changes at run {', '.join(str(change + 1) for change in changes[:6])}"
        if changes
        else ""
    )
    what = {
        "warm-up": "The first runs are the slow ones (a warm-up",
        "slow-down": "The last runs are the slow ones (a slow-down",
        "drift": "The runs drift (",
        "phases": f"{_phases(seen_by, near)} (",
        "periodic": f"Slow runs come back about every {period:.3g} runs (",
    }[kind]
    return f"{what}{'' if what.endswith('(') else '; '}{numbers}{where}; {size} runs)."


def _phases(seen_by: str, near: float) -> str:
    """An order that is neither a drift nor a period, by the test that saw it best."""
    if seen_by in ("period", "repetition"):
        return "Slow runs come back in a pattern"
    return "Slow runs come in phases" if near > 0 else "Slow and fast runs alternate"
