"""Who took the time: what slow runs lost by name, beside what the others lost.

Owns a join: of the run times with the time that each name took (of a trace) and with counters. No
model; each p-value is by permutation of the runs, for the largest of all candidates of its kind.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import mannwhitneyu

from ..account.owners import COMPUTED, SAME_CALLS
from ..account.path import PROGRAM
from ..statistics.order import chance_above
from .consequences import correlations
from .cutoff import find_cutoff
from .known_counters import known_names

FEWEST = 8  # runs
EXPLAINS = 0.2  # share of the excess from which on a name comes before all counters
CHANCE = 0.05
ALIKE = 0.1  # of a counter: so small a difference explains nothing
SURE = 0.01  # that a class which was found elsewhere is slower, too
STEADY = 0.1  # of what the times vary: so little variation does not come from the time
LONGEST_PERIOD = 10  # of slow runs that come back by number
NOT_OF_TRACE = ("counter", "output")
_REPEATS = 2000
_FAR, _LONGER = 6.0, 1.1  # of an outlier: from the median in robust deviations, and over it
_OF_RECORDERS = ("speed_", "wait_marks", "trace_")  # columns that say how much was recorded
# (part, owner) of the account in words; {} are the milliseconds and the owner
_WORDS = {
    "taken": "lost {} to {}",
    "runnable": "waited {} for a CPU that {} had",
    "waiting": "waited {} for {}",
    "stopped": "were stopped for {} by a {}",
    "quota": "were kept from running for {} by the quota of their control group",
    "disk": "waited {} for the {}",
    "asleep": "slept {} on a timer of their own",
    "hypervisor": "lost {} to the hypervisor",
    "computing": "computed {} longer{}: more work, or a slower CPU",
    "slower": "took {} longer for the same calls: a slower CPU or memory, or more in a call",
    "work": "made more calls of their own functions, which took {}",
}


@dataclass(frozen=True)
class SlowRuns:
    """Which runs are slow.

    Attributes
    ----------
    slow
        A boolean for each run.
    is_class
        False: no class of slow runs was found, and these are the slowest quarter.
    pattern
        When they come, such as "every 4th run"; empty: nothing plain.
    more
        By how much the slow runs exceed the others, as a share.
    """

    slow: pd.Series
    is_class: bool
    pattern: str
    more: float

    def sentence(self) -> str:
        """How many are slow, by how much, and when."""
        when = f", {self.pattern}" if self.pattern else ""
        share = f"{100 * self.more:+.0f} %"
        if self.is_class:
            return f"{self.slow.sum()} of {len(self.slow)} runs are slow ({share}{when})."
        return f"No class of slow runs; the slowest {self.slow.sum()} of {len(self.slow)}: {share}."


def slow_runs(
    costs: pd.Series, seed: int = 0, also: Sequence[pd.Series] = (), sure: float = SURE
) -> SlowRuns:
    """Which of some runs are slow, and when they come.

    Parameters
    ----------
    costs
        What each run cost (seconds), in the order of the runs.
    seed
        Seed of the null of the classes.
    also
        What may tell classes apart where other load hides them in the costs: user time, bytes
        read, lines printed, other output. Such a class counts if it costs more (one-sided rank
        test).
    sure
        Largest p of that test, and of "every n-th run", of all n and first runs that are tried.

    Returns
    -------
    SlowRuns : those beyond the cutoff of `find_cutoff`; where it finds none, those more than 6
    robust standard deviations and a tenth above the median, or beyond a gap that is half of the
    whole range. Every n-th run, where these cost more. Of several such classes the one that
    explains most of the variance of the costs; the slowest quarter where there is none.

    Examples
    --------
    >>> slow_runs(pd.Series([1.0, 1.01, 1.02, 1.9] * 6)).sentence()
    '6 of 24 runs are slow (+88 %, every 4th run).'
    """
    found = [_classed(values, seed) for values in (costs, *also)]
    found.append(_every_nth(costs, sure))
    parted = [slow for slow in found if slow.any() and not slow.all()]
    classes = [slow for slow in parted if _costs_more(costs, slow, sure)]
    slow = max(classes, key=lambda slow: _between(costs, slow), default=None)
    if slow is None:
        return slowest_quarter(costs)
    return SlowRuns(slow, True, _pattern(slow.to_numpy()), _more(costs, slow))


def slowest_quarter(costs: pd.Series) -> SlowRuns:
    """The slowest quarter of some runs that have no classes; if it is every 4th run, it is one."""
    slow = costs > costs.quantile(0.75)
    pattern = _pattern(slow.to_numpy())
    pattern = pattern if pattern.startswith("every") else ""
    return SlowRuns(slow, bool(pattern), pattern, _more(costs, slow) if slow.any() else 0.0)


def _more(costs: pd.Series, slow: pd.Series) -> float:
    return float(costs[slow].median() / costs[~slow].median() - 1)


def _classed(values: pd.Series, seed: int) -> pd.Series:
    """Which values are of the upper class; none where there are no classes."""
    middle = values.median()
    deviation = 1.4826 * (values - middle).abs().median()
    high = pd.Series(find_cutoff(values, seed).slow(values), values.index)
    if not high.any():
        high = values > min(_beyond_gap(values), max(middle + _FAR * deviation, _LONGER * middle))
    return high


def _every_nth(costs: pd.Series, sure: float) -> pd.Series:
    """Every n-th run, where these cost more, beyond the chance of all that is tried; else none."""
    number, p_values = np.arange(len(costs)), {}
    for period in range(2, min(LONGEST_PERIOD, len(costs) // 4) + 1):
        for first in range(period):
            chosen = number % period == first
            test = mannwhitneyu(costs[chosen], costs[~chosen], alternative="greater")
            p_values[period, first] = test.pvalue * period
    period, first = min(p_values, key=p_values.__getitem__, default=(1, 0))
    shown = bool(p_values) and p_values[period, first] * LONGEST_PERIOD < sure
    return pd.Series(shown & (number % period == first), costs.index)


def _costs_more(costs: pd.Series, slow: pd.Series, sure: float) -> bool:
    """Whether the runs of a class cost more than the others, beyond chance; all of them: yes."""
    inside, outside = costs[slow], costs[~slow]
    if inside.min() > outside.max():  # a single one, too
        return True
    return bool(mannwhitneyu(inside, outside, alternative="greater").pvalue < sure)


def _between(costs: pd.Series, slow: pd.Series) -> float:
    """The share of the costs' variance that lies between a class and the others."""
    return float(costs.groupby(slow).transform("mean").var() / costs.var())


def _beyond_gap(costs: pd.Series) -> float:
    """The value below the widest gap; infinity where it is less than half of the whole range.

    Beyond it must lie at most half of the runs, a tenth longer.
    """
    ordered = np.sort(costs.to_numpy(float))
    gaps = np.diff(ordered)
    at = int(gaps.argmax()) if len(gaps) else 0
    wide = len(gaps) >= FEWEST - 1 and gaps[at] > 0.5 * (ordered[-1] - ordered[0])
    far = wide and at + 1 >= len(ordered) / 2 and ordered[at + 1] > _LONGER * ordered[at]
    return float(ordered[at]) if far else float("inf")


def _pattern(slow: np.ndarray) -> str:
    at = np.flatnonzero(slow)
    steps = np.unique(np.diff(at))
    if len(at) >= 4 and len(steps) == 1 and steps[0] > 1:
        ends = {2: "nd", 3: "rd"}
        return f"every {steps[0]}{ends.get(int(steps[0]), 'th')} run"
    if len(at) >= 4 and len(steps) == 1 and len(at) < len(slow):
        if at[0] == 0:
            return "the first ones"
        if at[-1] == len(slow) - 1:
            return "the last ones"
    return ""


def who_took_it(
    costs: pd.Series,
    lost_ms: pd.DataFrame,
    counters: pd.DataFrame | None = None,
    slow: pd.Series | None = None,
    seed: int = 0,
    explains: float = EXPLAINS,
) -> pd.DataFrame:
    """What separates slow runs from the others, by name.

    Parameters
    ----------
    costs
        Seconds of each run, by its number.
    lost_ms
        What each name had of each run, in ms: a row a run, columns (part, owner) as of
        `nbhelpers.account.owners.owners_of_path`; or `output_of` the runs.
    counters
        Counters of the runs, a column each, without what only follows from a longer run.
    slow
        Which runs are slow; None: `slow_runs`.
    seed
        Seed of the permutations.
    explains
        Share of the excess from which on a name explains something.

    Returns
    -------
    One row a candidate, the best first: `part` ("counter" for one), `name`, `slow_low` and
    `slow_high` (its range in the slow runs), `others_high` (its largest value in the others),
    `more` (difference of the means), `explained_share` (`more` over the excess of the slow runs;
    NaN for a counter), `above` (chance that a slow run has more than another), `spearman` (with the
    costs) and `p_value`. That of a counter is of the largest distance of `above` from ½, when the
    slow runs are chosen at random; that of a name of the largest correlation of its ms with the
    costs, when these are permuted, among the names that vary enough to explain so much (the others
    have none). First come names that explain so much of the excess, by what they explain.

    Examples
    --------
    >>> costs = pd.Series([1.0, 1.0, 1.1, 1.4] * 3)
    >>> lost = pd.DataFrame({("taken", "backupd"): [1.0, 2.0, 3.0, 400.0] * 3})
    >>> found = who_took_it(costs, lost).iloc[0]
    >>> found["name"], float(found.explained_share.round(2))
    ('backupd', 1.09)
    """
    chosen = slow_runs(costs, seed).slow if slow is None else slow
    slow_ = chosen.reindex(costs.index).to_numpy(bool)
    values = lost_ms.reindex(costs.index).fillna(0.0)
    if counters is not None:
        numbers = counters.reindex(costs.index).select_dtypes("number").dropna(axis=1)
        numbers = numbers.loc[:, numbers.nunique() > 1]
        values = pd.concat([values, pd.concat({"counter": numbers}, axis=1)], axis=1)
    if values.empty or slow_.all() or not slow_.any():
        return pd.DataFrame(columns=["part", "name"])
    excess_ms = 1e3 * (costs[slow_].mean() - costs[~slow_].mean())
    table = _contrasted(values, slow_)
    of_trace = ~table["part"].isin(NOT_OF_TRACE)
    table["explained_share"] = (table["more"] / excess_ms).where(of_trace)
    ranks = values.rank()
    table["above"] = chance_above(ranks.to_numpy(), slow_)
    table["spearman"] = ranks.corrwith(costs.rank()).fillna(0).to_numpy()
    table["p_value"] = np.nan
    chance = np.random.default_rng(seed)
    varies = values.std().to_numpy() >= explains * 1e3 * costs.std()
    named = of_trace.to_numpy() & varies
    if named.any():
        ms = values.loc[:, named].to_numpy()
        table.loc[named, "p_value"] = _p_values(lambda c: correlations(ms, c), costs, chance)
    if (~of_trace).any():
        ranked = ranks.loc[:, ~of_trace.to_numpy()].to_numpy()
        apart = _p_values(lambda slow: np.abs(chance_above(ranked, slow) - 0.5), slow_, chance)
        table.loc[~of_trace, "p_value"] = apart
    return best_first(table, explains)


def _contrasted(values: pd.DataFrame, slow: np.ndarray) -> pd.DataFrame:
    """The values of the slow runs beside those of the others: a row a column."""
    table = pd.DataFrame(list(values.columns), columns=["part", "name"])
    inside, outside = values[slow], values[~slow]
    table["slow_low"], table["slow_high"] = inside.min().to_numpy(), inside.max().to_numpy()
    table["others_high"] = outside.max().to_numpy()
    table["more"] = (inside.mean() - outside.mean()).to_numpy()
    return table


def _p_values(
    each: Callable[[np.ndarray], np.ndarray], of_runs: npt.ArrayLike, chance: np.random.Generator
) -> np.ndarray:
    """How often the largest of all columns is as large by chance, for each of them."""
    of_runs = np.asarray(of_runs)
    draws = np.array([each(chance.permutation(of_runs)).max() for _ in range(_REPEATS)])
    return (1 + (draws >= each(of_runs)[:, None] - 1e-12).sum(axis=1)) / (1 + _REPEATS)


def best_first(table: pd.DataFrame, explains: float) -> pd.DataFrame:
    """First what explains so much of the excess, by how much; then what separates best."""
    first = table["explained_share"].fillna(0) >= explains
    seen = (table["above"] - 0.5).abs().to_numpy()
    order = np.lexsort((-seen, -table["explained_share"].where(first, 0).to_numpy(), ~first))
    return table.iloc[order].reset_index(drop=True)


def counters_of(
    runs: pd.DataFrame, slow: pd.Series, consequences: Collection[str], alike: float = ALIKE
) -> pd.DataFrame:
    """Counters of runs that may say more than that a run was longer.

    Parameters
    ----------
    runs
        Runs table with totals and rates (`nbhelpers.measurement.rates`), by number of the run.
    slow
        Which runs are slow.
    consequences
        Columns that merely follow from a longer run.
    alike
        So small a difference explains nothing, as a share.

    Returns
    -------
    Numeric columns whose median in the slow runs is so far from that of the others, or more; a
    total only where the slow runs have more of it per second, too, or less in both, or where it is
    steady within both classes while the times are not: one that grows with the time, and one that
    is the same in all runs, says nothing.
    """
    own = [name for name in runs if str(name).startswith(_OF_RECORDERS)]
    said = known_names("bookkeeping") | known_names("design") | known_names("run_time")
    left_out = {*(said - {"user_s"}), *consequences, *own, "output_lines"}
    numbers = runs.select_dtypes("number").drop(columns=list(left_out), errors="ignore")
    totals = [name for name in numbers if f"{name}_per_s" in numbers]
    differ = numbers[slow.to_numpy()].mean() - numbers[~slow.to_numpy()].mean()
    agree = {name for name in totals if differ[name] * differ[f"{name}_per_s"] > 0}
    if "region_seconds" in runs:
        little = STEADY * _within_classes(runs["region_seconds"], slow)
        agree |= {name for name in totals if _within_classes(numbers[name], slow) < little}
    rates = [f"{name}_per_s" for name in totals]
    kept = numbers.drop(columns=[*rates, *(set(totals) - agree)])
    theirs, usual = kept[slow.to_numpy()].median(), kept[~slow.to_numpy()].median()
    return kept.loc[:, ~(theirs - usual).abs().lt(alike * usual.abs())]


def _within_classes(values: pd.Series, slow: pd.Series) -> float:
    """How far values are from the mean of their class, as a share of it."""
    classes = values.groupby(slow.to_numpy())
    return float((values / classes.transform("mean") - 1).std())


def output_of(runs: pd.DataFrame) -> pd.DataFrame:
    """What the runs printed, as far as it differs: ("output", "lines"); ("output", "text"), 1 where
    the text but for its numbers is not the usual one; of neither, ("output", "bytes").
    """
    found: dict[tuple[str, str], pd.Series] = {}
    if "output_lines" in runs and runs["output_lines"].nunique() > 1:
        found["output", "lines"] = runs["output_lines"].astype(float)
    if "output_digest" in runs:
        shares = runs["output_digest"].value_counts(normalize=True)
        if len(shares) > 1 and shares.iloc[0] >= 0.5:
            found["output", "text"] = (runs["output_digest"] != shares.index[0]).astype(float)
    if not found and "output_bytes" in runs and runs["output_bytes"].nunique() > 1:
        found["output", "bytes"] = runs["output_bytes"].astype(float)
    return pd.DataFrame(found, index=runs.index)


def in_words(row: pd.Series) -> str:
    """What a row of `who_took_it` says of the slow runs."""
    low, high, most = (_number(row[name]) for name in ("slow_low", "slow_high", "others_high"))
    if row["part"] == "counter":
        return f"Their {row['name']} is {low} to {high}; in the others it is {most} at most."
    if row["part"] == "output":
        size = f" ({_size(row)})" if row["name"] in ("lines", "bytes") else ""
        return f"They print other output{size}."
    owner = f"`{row['name']}`"
    if row["part"] in COMPUTED:
        if is_new(row):
            return f"They computed {_number(row['more'])} ms in {owner}, which no other run starts."
        within = "" if row["name"] in (PROGRAM, SAME_CALLS) else f" in {owner}"
        what = _WORDS[row["part"]].format(f"{_number(row['more'])} ms", within)
        return f"They {what}."
    what = _WORDS[row["part"]].format(f"{low} to {high} ms", owner)
    share = f" ({100 * min(row['explained_share'], 1):.0f} % of what they took longer)"
    return f"They {what}{share}; no other run more than {most} ms."


def is_new(row: pd.Series) -> bool:
    """Whether a row is of a process of the program's own that only slow runs have."""
    return bool(row["part"] == "computing" and row["name"] != PROGRAM and row["others_high"] == 0)


def _size(row: pd.Series) -> str:
    """The lines or bytes of the slow runs and of the others."""
    low, high, most = (f"{row[name]:,.0f}" for name in ("slow_low", "slow_high", "others_high"))
    theirs = low if low == high else f"{low} to {high}"
    return f"{theirs} {row['name']}, ordinary {most}"


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"
