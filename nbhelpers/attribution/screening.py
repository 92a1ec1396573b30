"""Which columns of a runs table may explain slow runs, and which can't, each with the reason.

Owns the line between causes and consequences of a longer run, and the groups of counters that move
together.
"""

import difflib
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from ..errors import InputError
from ..outcomes import DIRECTIONS, Outcome, outcome_of, reported
from ..statistics.order import standard_ranks

BOOKKEEPING = frozenset(
    [
        "run",
        "round",
        "epoch",
        "block",
        "repeat",
        "order",
        "index",
        "attempt",
        "seed",
        "pid",
        "exit_code",
        "start_ns",
        "t0_ns",
        "started_ns",
        "began_unix_s",
        "noise_start_ns",
        "region_slack_us",
        "timestamp",
        "threads",
        "verified",
    ]
)
CONSEQUENCES = frozenset(
    [
        "seconds",
        "region_seconds",
        "wall_seconds",
        "elapsed_seconds",
        "duration_ns",
        "end_ns",
        "ended_ns",
        "finish_ns",
        "user_s",
        "user_seconds",
        "utime",
        "task_clock",
        "task_clock_ns",
        "cpu_clock",
        "cpu_clock_ns",
        "cpu_ns",
        "cpu_s",
        "cpu_seconds",
        "cpu_share",
        "sum_exec_runtime_ns",
    ]
)
RATE = "_per_s"
MOST_MISSING = 0.2  # share of runs
IN_STEP = 0.98  # correlation with the run time from which a counter is the run time in other units
CLEAR = 4  # standard errors: a total that changes this clearly is not fixed work
FIXED_WORK = "fixed work over the run time: the rate falls because the run is longer"
REASONS = (
    "",
    "its total rises and its rate falls, as a longer run alone would have it",
    "a total that grows with the run time: {rate} is used",
    FIXED_WORK + ": {name} is used",
    FIXED_WORK,
    "a consequence: follows the run time itself",
)
REPORTED = "the program reports it: another outcome of the same run"
GROUP_CORRELATION = 0.7  # mean correlation within a group


Consequences = Mapping[str, bool | str] | Iterable[str] | None


def candidate_columns(
    runs: pd.DataFrame,
    outcome: str | None = None,
    exclude: Iterable[str] = (),
    consequences: Consequences = None,
    higher_is_better: bool | None = None,
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The columns that may explain the outcome, and why the others may not.

    Parameters
    ----------
    runs
        Runs table (one row a run).
    outcome
        Column of positive numbers; None: what the program is judged by.
    exclude
        Further columns to leave out.
    consequences
        What is known of columns: a name with True (a consequence of a longer run), a reason in
        words (the same, said differently) or False (none, even if `CONSEQUENCES` lists it); or just
        the names of further consequences.
    higher_is_better
        The outcome falls as the run gets longer; None: as the table says.

    Returns
    -------
    kept : DataFrame of floats, a row a run, missing values filled with the column's median.
    excluded : reason for each numeric column left out.

    Raises
    ------
    InputError
        `exclude` names a column that is not there.

    Notes
    -----
    Two rules need no list of names. A column that follows the run time itself (correlation 0.98 and
    proportional, or inversely so) is the run time in other units. And a longer run alone makes
    totals rise (of work that goes on all the time) or rates fall (of work that is fixed: Pearson's
    spurious correlation of ratios, 1897); so a counter that has both forms is searched in the one
    that goes less with the run time, and not at all if its total rises while its rate falls.
    """
    judged = outcome_of(runs, outcome)
    higher = judged.higher_is_better if higher_is_better is None else higher_is_better
    screen = Screen(runs, judged.name, tuple(exclude), consequences, higher)
    reasons = screen.reasons()
    return screen.columns.iloc[:, screen.kept()], {
        name: reasons[name] for name in screen.numeric if name in reasons
    }


class Screen:
    """The choice of columns, ready to be repeated for shuffled outcomes: what does not depend on
    the outcome is worked out once.

    Attributes
    ----------
    numeric : names of all columns of numbers.
    columns : those that may explain some outcome, missing values filled with the median.
    times : the outcome as a time, larger = longer.
    """

    def __init__(
        self,
        runs: pd.DataFrame,
        outcome: str,
        exclude: tuple[str, ...] = (),
        consequences: Consequences = None,
        higher_is_better: bool = False,
    ):
        _check_names(exclude, runs)
        numbers = _numbers(runs, outcome)
        self.numeric = list(numbers.columns)
        self.times = Outcome(direction=DIRECTIONS[higher_is_better]).costs(runs[outcome])
        known = dict.fromkeys(reported(runs), REPORTED) | as_known(consequences)
        self._never = {
            name: reason
            for name in numbers
            if (
                reason := excluded_by_name(name, exclude, known)
                or _by_gaps(numbers[name])
                or _by_spread(numbers[name].to_numpy())
            )
        }
        columns = numbers.drop(columns=list(self._never))
        self.columns = columns.fillna(columns.median())
        self._values = self.columns.to_numpy()
        self.ranks = standard_ranks(self._values)
        self._pair_up()
        positive = bool(self.times.size) and self.times.min() > 0
        self._is_log = (self._values > 0).all(axis=0) & positive
        self._relative = _relative(self._values, self._is_log)
        self._lengths = (self._relative**2).sum(axis=0)

    def _pair_up(self) -> None:
        """Which columns are the rate and the total of one counter, and which rates stand alone."""
        place = {str(name): number for number, name in enumerate(self.columns)}
        rates = [name for name in place if name.endswith(RATE)]
        pairs = [
            (place[rate], place[rate.removesuffix(RATE)])
            for rate in rates
            if rate.removesuffix(RATE) in place
        ]
        self._rate, self._total = np.array(pairs, int).reshape(-1, 2).T
        self._alone = np.array(
            [place[rate] for rate in rates if rate.removesuffix(RATE) not in place], int
        )
        self._alone_totals = standard_ranks(self._values[:, self._alone] * self.times[:, None])

    def reasons(self) -> dict[str, str]:
        """Why columns are left out."""
        found = {
            name: why.format(
                name=str(name).removesuffix(RATE), rate=str(name).removesuffix(RATE) + RATE
            )
            for name, code in zip(self.columns, self._verdicts(self.times))
            if (why := REASONS[code])
        }
        return self._never | found

    def kept(self, order: np.ndarray | None = None) -> np.ndarray:
        """Places of the columns to search, if the outcomes stood in this order (default: as they
        are).
        """
        return np.flatnonzero(
            self._verdicts(self.times if order is None else self.times[order]) == 0
        )

    def _verdicts(self, times: np.ndarray) -> np.ndarray:
        """For each column the number of its reason (0: kept).

        Strengths are rank correlations with the run time in standard errors: by ranks, because
        counts are small whole numbers (a count that is the same in nearly every run falls as a rate
        wherever the run took longer), and a single outlier must not hide that.
        """
        verdicts = np.zeros(self._values.shape[1], int)
        scale = np.sqrt(max(times.size - 1, 0)) / max(times.size, 1)
        ranks = standard_ranks(times) * scale
        strengths = ranks @ self.ranks
        of_rate, of_total = strengths[self._rate], strengths[self._total]
        both = (of_rate < 0) & (of_total > 0)
        by_rate = ~both & (np.abs(of_rate) <= np.abs(of_total))
        verdicts[self._total[by_rate]], verdicts[self._rate[~both & ~by_rate]] = 2, 3
        verdicts[self._rate[both]] = verdicts[self._total[both]] = 1
        falls, total_falls = strengths[self._alone] < -1, ranks @ self._alone_totals < -CLEAR
        verdicts[self._alone[falls & ~total_falls]] = 4
        verdicts[self._followers(times) & (verdicts == 0)] = 5
        return verdicts

    def _followers(self, times: np.ndarray) -> np.ndarray:
        """Which columns are the run time in other units: in step with it, and of about the same
        relative spread.
        """
        logs, plain = (
            _relative(times[:, None], (times[:, None] > 0) & logged)[:, 0]
            for logged in (True, False)
        )
        followers = np.zeros(self._values.shape[1], bool)
        for spread, chosen in ((logs, self._is_log), (plain, ~self._is_log)):
            length, shared = spread @ spread, np.abs(spread @ self._relative)
            with np.errstate(divide="ignore", invalid="ignore"):
                in_step = shared > IN_STEP * np.sqrt(length * self._lengths)
                followers |= chosen & in_step & (shared / length > 0.8) & (shared / length < 1.25)
        return followers


def as_known(consequences: Consequences) -> dict[str, bool | str]:
    """What is known of columns, by name."""
    if consequences is None:
        return {}
    return (
        dict(consequences)
        if isinstance(consequences, Mapping)
        else dict.fromkeys(consequences, True)
    )


def _numbers(runs: pd.DataFrame, outcome: str) -> pd.DataFrame:
    columns = runs.select_dtypes(include=["number", "bool"]).drop(
        columns=[outcome], errors="ignore"
    )
    values = {name: columns[name].to_numpy(dtype=float, na_value=np.nan) for name in columns}
    return pd.DataFrame(values, index=runs.index).replace([np.inf, -np.inf], np.nan)


def _check_names(exclude: Iterable[str], runs: pd.DataFrame) -> None:
    for name in exclude:
        if name not in runs.columns:
            near = difflib.get_close_matches(name, [str(column) for column in runs.columns], 1)
            raise InputError(
                f"no column {name!r} to exclude",
                fix=f"did you mean {near[0]!r}?" if near else None,
            )


def excluded_by_name(
    name: str, exclude: tuple[str, ...], known: dict[str, bool | str]
) -> str | None:
    """Why a column of this name is no cause, if its name says so."""
    name = str(name)
    stem = name.removesuffix(RATE)
    if {name, stem, stem + RATE} & set(exclude):
        return "left out on request"
    if name in BOOKKEEPING:
        return "bookkeeping"
    said = known.get(name, known.get(stem, stem in CONSEQUENCES))
    if isinstance(said, str):
        return f"a consequence: {said}"
    return "a consequence: grows with the run time by definition" if said else None


def _by_gaps(column: pd.Series) -> str | None:
    missing = column.isna().mean()
    return f"missing in {missing:.0%} of the runs" if missing > MOST_MISSING else None


def _by_spread(column: np.ndarray) -> str | None:
    values = column[np.isfinite(column)]
    return (
        None if values.size and np.ptp(values) > 1e-12 * np.abs(values).max() else "does not vary"
    )


def _relative(values: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """Columns as relative deviations from their middle: centred logarithms where `positive`, else
    over the mean size.
    """
    if not len(values):
        return values
    logs = np.log(np.where(positive, values, 1.0))
    plain = values / np.where(mean := np.abs(values).mean(axis=0), mean, 1)
    relative = np.where(positive, logs, plain)
    return relative - relative.mean(axis=0)


def correlated_groups(columns: pd.DataFrame) -> list[list[str]]:
    """Groups of columns that move together, each led by its most central member.

    Average linkage on 1 − abs(correlation), the larger of Pearson's (counters that are zero in most
    runs) and Spearman's (monotone but curved). Data of this kind cannot tell the members of a group
    apart.
    """
    names = list(columns.columns)
    return [
        [names[member] for member in members]
        for members in grouped(correlation_strength(columns.to_numpy()))
    ]


def correlation_strength(values: np.ndarray) -> np.ndarray:
    """How much alike columns are (k × k, 0 to 1): the larger of Pearson's and Spearman's
    correlation, without sign.
    """
    if values.shape[1] < 2:
        return np.ones((values.shape[1],) * 2)
    return np.maximum(_correlation(values), _correlation(standard_ranks(values)))


def grouped(alike: np.ndarray) -> list[np.ndarray]:
    """Groups of columns (places) of a matrix of correlation strengths, each led by its most central member, in
    the order of their first members.
    """
    if len(alike) < 2:
        return [np.arange(1)] * len(alike)
    distance = np.clip(1 - alike, 0, 1)
    np.fill_diagonal(distance, 0)
    labels = fcluster(
        linkage(squareform(distance, checks=False), "average"), 1 - GROUP_CORRELATION, "distance"
    )
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    groups = [
        members[np.argsort(-alike[np.ix_(members, members)].sum(axis=1).round(9), kind="stable")]
        for members in groups
    ]
    return sorted(groups, key=lambda members: members.min())


def _correlation(values: np.ndarray) -> np.ndarray:
    return np.abs(np.corrcoef(values, rowvar=False))
