"""Does a counter rise because the run is longer, or is the run longer because it rises?

Owns that judgement, the form (total or rate) in which a counter is searched, and the reason why
one is not. It is made within the fast runs: how a count goes with the run time there is what a
longer run alone does to it. A slow run on the same line is nothing new; one beside it is.
Without it, where every total and rate is searched, 42 of 43 undisturbed tables are "explained".
"""

import numpy as np
import pandas as pd
from scipy.special import ndtri

from ..statistics.order import standard_ranks
from .known_counters import RATE, kind_of

LINE, JUMP, UNKNOWN = 1, -1, 0
EVIDENCE = 1.0  # log odds from which one of the two is called shown, where one total rises
MOST_EVIDENCE = 3.0  # where many rise, each of which could be taken for a cause by chance
LARGEST_POWER = 1.5  # a count that rises faster than this power of the run time does more
PROPORTION = 1.3  # what cannot be told counts as a consequence up to this power
TIGHT = 0.7  # correlation with the run time that a consequence has, where no rate is known
IN_STEP = 0.98  # correlation with the run time from which a counter is the run time in other units
CLEAR = 4  # standard errors: a total that changes this clearly is not fixed work
RISES = 2  # standard errors from which a total is asked why it rises
FEWEST_COUNTED = 6  # runs with a count, and without, from which its beginning is looked for
CHANCE = 0.01  # that the largest of that many samples is beyond, in any of the columns
QUANTILES = (np.arange(200) + 0.5) / 200  # of the run times, for the typical other run
# what became of a column: the reason why it is not searched
USABLE = ""
FIXED = "fixed work over the run time: the rate falls because the run is longer"
BOTH = (
    "its total rises and its rate falls, as a longer run alone would have it: as the run time"
    " to the power {power:.2f} ({within:.2f} ± {error:.2f} among the fast runs)"
)
RATE_USED = "a total that grows with the run time: {rate} is used"
TOTAL_USED = FIXED + ": {name} is used"
IN_OTHER_UNITS = "a consequence: follows the run time itself"
ON_THE_LINE = (
    "a consequence: grows as the run time to the power {power:.2f} ({within:.2f} ±"
    " {error:.2f} among the fast runs)"
)
OFF_THE_LINE = "{name} is used: in slow runs it leaves the line of the fast ones"
FALLS = (
    "a consequence: constant work over the run time to the power {power:.2f} ({within:.2f} ±"
    " {error:.2f} among the fast runs)"
)
ROUNDED = "a consequence: in each run a multiple of the run time, rounded"
FROM_A_LIMIT = "a consequence: counts what the run is longer than a limit that slow runs pass"
EXTREME = "a consequence, as far as can be told: the largest of more samples is as much larger"


class Forms:
    """Which of a counter's total and rate is searched, and which counters are left out."""

    def __init__(self, columns: pd.DataFrame, times: np.ndarray, slow: np.ndarray):
        self.names = [str(name) for name in columns]
        self.columns, self.values, self.times, self.slow = columns, columns.to_numpy(), times, slow
        self.why = np.full(self.values.shape[1], USABLE, object)
        self._jumps = np.zeros(self.why.size, bool)
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
        """The reason of each column that cannot be used."""
        found = {}
        for name, number in zip(self.columns, np.arange(len(self.names)), strict=True):
            if self.why[number] == USABLE:
                continue
            stem = str(name).removesuffix(RATE)
            power, within, error = self.power.get(int(number), (np.nan,) * 3)
            found[name] = self.why[number].format(
                name=stem, rate=stem + RATE, power=power, within=within, error=error
            )
        return found

    def _judge(self) -> None:
        """Strengths are rank correlations with the run time in standard errors.

        Ranks are used because counts are small whole numbers, and a single outlier must not hide
        what the others say. A count that is the same in nearly every run falls as a rate wherever
        the run took longer.
        """
        size = self.times.size
        self.scaled = standard_ranks(self.times) * np.sqrt(max(size - 1, 0)) / size
        self.strengths = self.scaled @ standard_ranks(self.values)
        self._judge_pairs()
        self._judge_rates()
        self._judge_rest()
        self._judge_counts()
        self._judge_extremes()
        follow = _followers(self.values, self.times) & np.isin(self.why, (USABLE, ON_THE_LINE))
        self.why[follow & ~self._jumps] = IN_OTHER_UNITS

    def _judge_pairs(self) -> None:
        of_rate, of_total = self.strengths[self.rate], self.strengths[self.total]
        longer, beside = self._line(self.values[:, self.total], self.rate, self.total)
        small = (
            np.array([self.power.get(place, (np.inf,))[0] for place in self.total]) <= PROPORTION
        )
        both = (of_rate < 0) & (of_total > 0)
        by_rate = ~both & (np.abs(of_rate) <= np.abs(of_total))
        rises = (of_total > RISES) & ~(longer & (of_rate > RISES)) & beside
        self.why[self.total[by_rate]] = RATE_USED
        self.why[self.rate[~both & ~by_rate]] = TOTAL_USED
        for places in (self.rate, self.total):
            self.why[places[both]] = BOTH
            self.why[places[by_rate & longer & (of_rate > RISES)]] = ON_THE_LINE
        leaves = rises & (both | (by_rate & small))
        self.why[self.total[leaves]] = USABLE
        self.why[self.rate[leaves]] = OFF_THE_LINE

    def _judge_rates(self) -> None:
        """Rates whose totals are not in the table."""
        totals = self.values[:, self.alone] * self.times[:, None]
        of_rate, of_total = self.strengths[self.alone], self.scaled @ standard_ranks(totals)
        self.why[self.alone[(of_rate < -1) & ~(of_total < -CLEAR)]] = FIXED
        longer, _ = self._line(totals, self.alone)
        self.why[self.alone[(of_rate > RISES) & longer]] = ON_THE_LINE

    def _judge_rest(self) -> None:
        """Totals whose rates are not in the table, as far as they can be told from levels; and
        rates of any name: of these the reciprocal is judged, the time for a piece of the work.
        """
        alone = np.setdiff1d(np.arange(len(self.names)), [*self.rate, *self.total, *self.alone])
        values, strengths = self.values[:, alone], self.strengths[alone]
        falls = (strengths < -RISES) & (values.min(axis=0) > 0)
        asked = falls | (strengths > RISES) & (values.min(axis=0) >= 0)
        asked &= np.array([kind_of(self.names[place]) in (None, "total") for place in alone], bool)
        alone, values, falls = alone[asked], values[:, asked], falls[asked]
        if not alone.size or self.times.min() <= 0 or self.slow.all() or not self.slow.any():
            return
        values = np.where(falls, 1 / np.where(falls, values, 1), values)
        longer, self._jumps[alone] = self._line(values, alone)
        counts = (values == np.round(values)).all(axis=0) & ~falls
        law = np.array([self.power[place] for place in alone])
        tight = (self._correlation > TIGHT) & (law[:, 0] > 1 / PROPORTION)
        self.why[alone[longer & (counts | tight)]] = ON_THE_LINE
        self.why[alone[longer & tight & falls]] = FALLS

    def _judge_counts(self) -> None:
        """Whole numbers that the run time alone gives, with the rates of them."""
        if self.times.min() <= 0:
            return
        places = np.setdiff1d(np.arange(len(self.names)), [*self.rate, *self.alone])
        places = places[self.scaled @ standard_ranks(self.values[:, places]) > RISES]
        rates = dict(zip(self.total.tolist(), self.rate.tolist()))
        for place in places.tolist():
            code = _of_time(self.values[:, place], self.times)
            if code != USABLE:
                self.why[[place, rates.get(place, place)]] = code

    def _judge_extremes(self) -> None:
        """The largest of as many samples as a run is long, whatever is sampled: a run of t seconds
        has a larger one than a run of u with a chance of t / (t + u) (Lehmann 1953).
        """
        places = np.flatnonzero((self.values != np.round(self.values)).any(axis=0))  # no counts
        places = np.setdiff1d(places, [*self.rate, *self.total, *self.alone])
        asked = [kind_of(self.names[place]) in (None, "total") for place in places]
        places = places[np.array(asked, bool)]
        if not places.size or self.times.min() <= 0:
            return
        size, others = self.times.size, np.quantile(self.times, QUANTILES)
        larger = (self.times[:, None] / (self.times[:, None] + others)).mean(axis=1)
        classes = standard_ranks(self.slow.astype(float)) * np.sqrt(max(size - 1, 0)) / size
        rows, enough = np.vstack([self.scaled, classes]), -ndtri(CHANCE / places.size)
        seen = np.abs(rows @ standard_ranks(self.values[:, places]))
        follows = np.sqrt(12) * (rows @ larger)[:, None]
        # neither beyond chance with what follows from the length, nor within it without
        open_ = ((seen - follows).max(axis=0) <= enough) & ((seen + follows).max(axis=0) > enough)
        open_ &= (seen.max(axis=0) > RISES) & (self.why[places] == USABLE)
        self.why[places[open_]] = EXTREME

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


def _of_time(counts: np.ndarray, times: np.ndarray) -> str:
    """ROUNDED or FROM_A_LIMIT, if these counts are no more than that; else USABLE."""
    if counts.min() < 0 or (counts != np.round(counts)).any():
        return USABLE
    if counts.min() >= 1:
        bounds = [(counts + up) / times for up in (0, 1, -0.5, 0.5, -1)]
        exact = [bounds[low].max() <= bounds[high].min() for low, high in ((0, 1), (2, 3), (4, 0))]
        return ROUNDED if any(exact) else USABLE
    some = counts > 0
    if min(some.sum(), (~some).sum()) < FEWEST_COUNTED or np.ptp(counts[some]) == 0:
        return USABLE
    # the line of times over counts lies between the two regressions: here the lower beginning
    line = np.polyfit(times[some], counts[some], 1)
    left = counts[some] - np.polyval(line, times[some])
    begins, none = -line[1] / line[0] if line[0] > 0 else -np.inf, times[~some]
    tight = 1 - left.var() / counts[some].var() > TIGHT
    far = abs(times[some].mean() - begins) / times[some].std()
    error = left.std() / max(line[0], 1e-300) * far / np.sqrt(some.sum())
    least = max(none.mean() + RISES * error, np.quantile(none, 0.9))
    return FROM_A_LIMIT if tight and begins > least else USABLE


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


class PowerLaw:
    """How each total goes with the run time: among the fast runs, and on to the slow ones.

    Parameters
    ----------
    totals
        n × k, not negative.
    times
        n run times, positive.
    slow
        n booleans, of which some are True and some False.
    rising
        k booleans: which of the totals are associated with a longer run.

    Attributes
    ----------
    within, within_error
        Power of the run time by which the total grows among the fast runs, and its standard error.
    across, across_error
        Power that would take the total from the fast to the slow runs.
    correlation
        With the run time over all runs, of relative deviations.

    Notes
    -----
    Two accounts are compared by their likelihood: one line through both classes (the power within
    the fast runs is the one across the classes), and a jump (within the fast runs the total does
    not depend on the run time).
    """

    def __init__(self, totals: np.ndarray, times: np.ndarray, slow: np.ndarray, rising: np.ndarray):
        self._evidence = min(MOST_EVIDENCE, EVIDENCE + np.log(max(int(rising.sum()), 1)))
        fast, logs = ~slow, np.log(times)
        # of what never happens in fast runs the ratio is large, but finite
        floor = 1e-6 * np.abs(totals).mean(axis=0) + 1e-300
        means = np.maximum(totals[fast].mean(axis=0), floor)
        relative = totals / means - 1
        self.within, self.within_error = _slopes(relative[fast], logs[fast])
        longer = logs[slow].mean() - logs[fast].mean()
        ratios = np.maximum(totals[slow].mean(axis=0) / means, 1e-6)
        noise = _squared_error(relative[slow]) / ratios**2 + _squared_error(relative[fast])
        self.across = np.log(ratios) / longer
        self.across_error = np.sqrt(noise) / longer
        self.correlation = correlations(relative, logs)

    def verdicts(self) -> np.ndarray:
        """LINE, JUMP or UNKNOWN, for each total."""
        own = np.maximum(self.within_error**2, 1e-12)
        both = own + self.across_error**2
        # a power below 0 speaks for no rise at all, and no more than that
        within = np.maximum(self.within, 0)
        odds = (within**2 / own - (within - self.across) ** 2 / both) / 2
        shown = np.abs(odds) > self._evidence
        return np.where(shown, np.where(odds > 0, LINE, JUMP), UNKNOWN)

    def consequences(self) -> np.ndarray:
        """Which totals are no more than a longer run would have."""
        verdicts, rises = self.verdicts(), self.across > 0
        on_line = (verdicts == LINE) & (self.across <= LARGEST_POWER)
        in_doubt = (verdicts == UNKNOWN) & (self.across <= PROPORTION)
        return rises & (on_line | in_doubt)

    def jumps(self) -> np.ndarray:
        """Which totals are off the line in the slow runs."""
        return self.verdicts() == JUMP


def _slopes(relative: np.ndarray, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least-squares slope of each column, and its standard error."""
    centred, values = logs - logs.mean(), relative - relative.mean(axis=0)
    length = max(float(centred @ centred), 1e-300)
    slopes = centred @ values / length
    left = values - centred[:, None] * slopes
    return slopes, np.sqrt((left**2).sum(axis=0) / max(len(logs) - 2, 1) / length)


def _squared_error(relative: np.ndarray) -> np.ndarray:
    """Squared standard error of the mean of each column."""
    return relative.var(axis=0, ddof=1 if len(relative) > 1 else 0) / len(relative)


def correlations(columns: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Pearson's r of each column with n numbers; 0 for one that does not vary."""
    centred, values = numbers - numbers.mean(), columns - columns.mean(axis=0)
    lengths = np.sqrt((centred @ centred) * (values**2).sum(axis=0))
    return centred @ values / np.maximum(lengths, 1e-300)
