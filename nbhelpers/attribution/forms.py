"""Totals, rates, and what a longer run alone does to them: in which form a counter is searched.

Owns the reasons why a form is not searched; the power law behind some of them is in `consequences`.
"""

import numpy as np
import pandas as pd

from ..statistics.order import standard_ranks
from .consequences import PROPORTION, TIGHT, PowerLaw
from .known_counters import RATE, known_counter

IN_STEP = 0.98  # correlation with the run time from which a counter is the run time in other units
CLEAR = 4  # standard errors: a total that changes this clearly is not fixed work
RISES = 2  # standard errors from which a total is asked why it rises
FIXED_WORK = "fixed work over the run time: the rate falls because the run is longer"
(
    USABLE,
    BOTH,
    RATE_USED,
    TOTAL_USED,
    FIXED,
    IN_OTHER_UNITS,
    ON_THE_LINE,
    OFF_THE_LINE,
) = range(8)
REASONS = {
    BOTH: (
        "its total rises and its rate falls, as a longer run alone would have it: as the run time"
        " to the power {power:.2f} ({within:.2f} ± {error:.2f} among the fast runs)"
    ),
    RATE_USED: "a total that grows with the run time: {rate} is used",
    TOTAL_USED: FIXED_WORK + ": {name} is used",
    FIXED: FIXED_WORK,
    IN_OTHER_UNITS: "a consequence: follows the run time itself",
    ON_THE_LINE: (
        "a consequence: grows as the run time to the power {power:.2f} ({within:.2f} ±"
        " {error:.2f} among the fast runs)"
    ),
    OFF_THE_LINE: "{name} is used: in slow runs it leaves the line of the fast ones",
}


class Forms:
    """Of counters that have a total and a rate, which one is searched; and which neither."""

    def __init__(self, columns: pd.DataFrame, times: np.ndarray, slow: np.ndarray):
        self.names = [str(name) for name in columns]
        self.columns, self.values, self.times, self.slow = columns, columns.to_numpy(), times, slow
        self.codes = np.zeros(self.values.shape[1], int)
        place = {name: number for number, name in enumerate(self.names)}
        rates = [name for name in self.names if name.endswith(RATE)]
        both = [name for name in rates if name.removesuffix(RATE) in place]
        self.rate = np.array([place[name] for name in both], int)
        self.total = np.array([place[name.removesuffix(RATE)] for name in both], int)
        self.alone = np.array([place[name] for name in rates if name not in set(both)], int)
        self.power: dict[int, tuple[float, float, float]] = {}
        if times.size:
            self._judge()

    def reasons(self) -> dict[str, str]:
        """By column."""
        found = {}
        for name, number in zip(self.columns, np.arange(len(self.names)), strict=True):
            if self.codes[number] == USABLE:
                continue
            stem = str(name).removesuffix(RATE)
            power, within, error = self.power.get(int(number), (np.nan,) * 3)
            words = REASONS[self.codes[number]]
            found[name] = words.format(
                name=stem, rate=stem + RATE, power=power, within=within, error=error
            )
        return found

    def _judge(self) -> None:
        """Strengths are rank correlations with the run time in standard errors.

        By ranks, because counts are small whole numbers, and a single outlier must not hide what
        the others say. A count that is the same in nearly every run falls as a rate wherever the
        run took longer.
        """
        size = self.times.size
        self.scaled = standard_ranks(self.times) * np.sqrt(max(size - 1, 0)) / size
        self.strengths = self.scaled @ standard_ranks(self.values)
        self._judge_pairs()
        self._judge_rates()
        self._judge_totals()
        follow = _followers(self.values, self.times) & np.isin(self.codes, (USABLE, ON_THE_LINE))
        self.codes[follow] = IN_OTHER_UNITS

    def _judge_pairs(self) -> None:
        of_rate, of_total = self.strengths[self.rate], self.strengths[self.total]
        longer, beside = self._line(self.values[:, self.total], self.rate, self.total)
        small = (
            np.array([self.power.get(place, (np.inf,))[0] for place in self.total]) <= PROPORTION
        )
        both = (of_rate < 0) & (of_total > 0)
        by_rate = ~both & (np.abs(of_rate) <= np.abs(of_total))
        rises = (of_total > RISES) & ~(longer & (of_rate > RISES)) & beside
        self.codes[self.total[by_rate]] = RATE_USED
        self.codes[self.rate[~both & ~by_rate]] = TOTAL_USED
        for places in (self.rate, self.total):
            self.codes[places[both]] = BOTH
            self.codes[places[by_rate & longer & (of_rate > RISES)]] = ON_THE_LINE
        leaves = rises & (both | (by_rate & small))
        self.codes[self.total[leaves]] = USABLE
        self.codes[self.rate[leaves]] = OFF_THE_LINE

    def _judge_rates(self) -> None:
        """Rates whose totals are not in the table."""
        totals = self.values[:, self.alone] * self.times[:, None]
        of_rate, of_total = self.strengths[self.alone], self.scaled @ standard_ranks(totals)
        self.codes[self.alone[(of_rate < -1) & ~(of_total < -CLEAR)]] = FIXED
        longer, _ = self._line(totals, self.alone)
        self.codes[self.alone[(of_rate > RISES) & longer]] = ON_THE_LINE

    def _judge_totals(self) -> None:
        """Totals whose rates are not in the table, as far as they can be told from levels."""
        alone = np.setdiff1d(np.arange(len(self.names)), [*self.rate, *self.total, *self.alone])
        values = self.values[:, alone]
        asked = (self.strengths[alone] > RISES) & (values.min(axis=0) >= 0)
        asked &= np.array([not _is_level(self.names[place]) for place in alone], bool)
        alone, values = alone[asked], values[:, asked]
        if not alone.size or self.times.min() <= 0:
            return
        longer, _ = self._line(values, alone)
        counts = (values == np.round(values)).all(axis=0)
        law = np.array([self.power[place] for place in alone])
        tight = (self._correlation > TIGHT) & (law[:, 0] > 1 / PROPORTION)
        self.codes[alone[longer & (counts | tight)]] = ON_THE_LINE

    def _line(self, totals: np.ndarray, *places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which totals a longer run alone explains, and which leave the line."""
        none = np.zeros(totals.shape[1], bool)
        spread = self.slow.any() and not self.slow.all() and self.times.min() > 0
        if not spread or not totals.size:
            return none, none
        rising = self.scaled @ standard_ranks(totals) > RISES
        law = PowerLaw(totals, self.times, self.slow, rising)
        self._correlation = law.correlation
        for columns in places:
            powers = zip(law.across, law.within, law.within_error)
            self.power |= dict(zip(columns.tolist(), powers))
        return law.consequences(), law.jumps() & (totals.min(axis=0) >= 0)


def _is_level(name: str) -> bool:
    counter = known_counter(name)
    return counter is not None and counter.is_level


def _followers(values: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Which columns are the run time in other units: in step with it, and of about the same
    relative spread.
    """
    positive = (values > 0).all(axis=0) & (times.min() > 0)
    relative = _relative(values, positive)
    lengths, column = (relative**2).sum(axis=0), times[:, None]
    logs = _relative(column, column > 0)[:, 0]
    linear = _relative(column, np.zeros(column.shape, bool))[:, 0]
    followers = np.zeros(values.shape[1], bool)
    for spread, chosen in ((logs, positive), (linear, ~positive)):
        length, shared = spread @ spread, np.abs(spread @ relative)
        with np.errstate(divide="ignore", invalid="ignore"):
            in_step = shared > IN_STEP * np.sqrt(length * lengths)
            followers |= chosen & in_step & (shared / length > 0.8) & (shared / length < 1.25)
    return followers


def _relative(values: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """Columns as relative deviations from their middle: centred logarithms where `positive`, else
    over the mean size.
    """
    if not len(values):
        return values
    logs = np.log(np.where(positive, values, 1.0))
    means = np.abs(values).mean(axis=0)
    linear = values / np.where(means, means, 1)
    relative = np.where(positive, logs, linear)
    return relative - relative.mean(axis=0)
