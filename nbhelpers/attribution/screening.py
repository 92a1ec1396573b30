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
        Further columns to exclude.
    consequences
        What is known of columns: a name with True (a consequence of a longer run), with a reason in
        words (a consequence, too) or with False (none, even if `CONSEQUENCES` lists it). Or just
        the names of further consequences.
    higher_is_better
        The outcome falls as the run gets longer; None: as the table says.

    Returns
    -------
    columns
        DataFrame of floats, a row a run; missing values are filled with the column's median.
    excluded
        Reason for each numeric column that is excluded.

    Raises
    ------
    InputError
        `exclude` names a column that is not there.

    Notes
    -----
    Two rules need no list of names. First, a column that follows the run time itself (correlation
    0.98 and proportional, or inversely so) is the run time in other units. Second, a longer run
    alone makes totals of continuous work rise, or rates of fixed work fall (Pearson's spurious
    correlation of ratios, 1897). So a counter that has both forms is searched in the one less
    associated with the run time; and not at all if its total rises while its rate falls.
    """
    judged = outcome_of(runs, outcome)
    higher = judged.higher_is_better if higher_is_better is None else higher_is_better
    screen = Screen(runs, judged.name, tuple(exclude), consequences, higher)
    return screen.columns.iloc[:, screen.usable()], screen.excluded()


class Screen:
    """The choice of columns, ready to be repeated for shuffled outcomes.

    What does not depend on the outcome is computed at the beginning.

    Attributes
    ----------
    numeric
        Names of all columns of numbers.
    columns
        Those that may explain some outcome; missing values are filled with the median.
    times
        The outcome as a time: larger is longer.
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
        self._never: dict[str, str] = {}
        for name in numbers:
            reason = excluded_by_name(name, exclude, known) or _unusable(numbers[name])
            if reason:
                self._never[name] = reason
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

    def excluded(self) -> dict[str, str]:
        """Why columns are excluded, in the order of the table."""
        reasons = dict(self._never)
        for name, code in zip(self.columns, self._verdicts(self.times), strict=True):
            total = str(name).removesuffix(RATE)
            if REASONS[code]:
                reasons[name] = REASONS[code].format(name=total, rate=total + RATE)
        return {name: reasons[name] for name in self.numeric if name in reasons}

    def usable(self, order: np.ndarray | None = None) -> np.ndarray:
        """Places of the columns to search, if the outcomes stood in this order (default: as they
        are).
        """
        return np.flatnonzero(
            self._verdicts(self.times if order is None else self.times[order]) == 0
        )

    def _verdicts(self, times: np.ndarray) -> np.ndarray:
        """For each column the number of its reason (0: usable).

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
        verdicts[self._total[by_rate]] = 2
        verdicts[self._rate[~both & ~by_rate]] = 3
        verdicts[self._rate[both]] = 1
        verdicts[self._total[both]] = 1
        falls = strengths[self._alone] < -1
        total_falls = ranks @ self._alone_totals < -CLEAR
        verdicts[self._alone[falls & ~total_falls]] = 4
        verdicts[self._followers(times) & (verdicts == 0)] = 5
        return verdicts

    def _followers(self, times: np.ndarray) -> np.ndarray:
        """Which columns are the run time in other units: in step with it, and of about the same
        relative spread.
        """
        column = times[:, None]
        logs = _relative(column, column > 0)[:, 0]
        linear = _relative(column, np.zeros(column.shape, bool))[:, 0]
        followers = np.zeros(self._values.shape[1], bool)
        for spread, chosen in ((logs, self._is_log), (linear, ~self._is_log)):
            length, shared = spread @ spread, np.abs(spread @ self._relative)
            with np.errstate(divide="ignore", invalid="ignore"):
                in_step = shared > IN_STEP * np.sqrt(length * self._lengths)
                followers |= chosen & in_step & (shared / length > 0.8) & (shared / length < 1.25)
        return followers


def as_known(consequences: Consequences) -> dict[str, bool | str]:
    """What is known of columns, by name."""
    if consequences is None:
        return {}
    if isinstance(consequences, Mapping):
        return dict(consequences)
    return dict.fromkeys(consequences, True)


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
        return "excluded on request"
    if name in BOOKKEEPING:
        return "bookkeeping"
    consequence = known.get(name, known.get(stem, stem in CONSEQUENCES))
    if isinstance(consequence, str):
        return f"a consequence: {consequence}"
    return "a consequence: grows with the run time by definition" if consequence else None


def _unusable(column: pd.Series) -> str | None:
    """Why the values of a column explain nothing."""
    missing = column.isna().mean()
    if missing > MOST_MISSING:
        return f"missing in {missing:.0%} of the runs"
    values = column.to_numpy()
    values = values[np.isfinite(values)]
    varies = values.size and np.ptp(values) > 1e-12 * np.abs(values).max()
    return None if varies else "does not vary"


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


def correlated_groups(columns: pd.DataFrame) -> list[list[str]]:
    """Groups of columns that move together, each led by its most central member.

    Average linkage on 1 − abs(correlation), the larger of Pearson's (counters that are zero in most
    runs) and Spearman's (monotone but curved). Data of this kind cannot tell the members of a group
    apart.
    """
    names = list(columns.columns)
    groups = correlation_groups(correlation_strength(columns.to_numpy()))
    return [[names[member] for member in members] for members in groups]


def correlation_strength(values: np.ndarray) -> np.ndarray:
    """The larger of Pearson's and Spearman's correlation, without sign (k × k, 0 to 1)."""
    if values.shape[1] < 2:
        return np.ones((values.shape[1],) * 2)
    return np.maximum(_correlation(values), _correlation(standard_ranks(values)))


def correlation_groups(strength: np.ndarray) -> list[np.ndarray]:
    """Groups of columns (places), each led by its most central member.

    Parameters
    ----------
    strength
        Of `correlation_strength`.

    Returns
    -------
    Arrays of places, in the order of their first members.
    """
    if len(strength) < 2:
        return [np.arange(1)] * len(strength)
    distance = np.clip(1 - strength, 0, 1)
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average")
    labels = fcluster(tree, 1 - GROUP_CORRELATION, "distance")
    groups = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        central = strength[np.ix_(members, members)].sum(axis=1).round(9)
        groups.append(members[np.argsort(-central, kind="stable")])
    return sorted(groups, key=lambda members: members.min())


def _correlation(values: np.ndarray) -> np.ndarray:
    return np.abs(np.corrcoef(values, rowvar=False))
