"""Which columns of a runs table may explain slow runs, and which can't, each with the reason.

Owns the reasons. What a longer run alone does to a counter is judged in `consequences`.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from ..errors import InputError
from ..outcomes import DIRECTIONS, Outcome, check_column, outcome_of, reported
from .categories import Category, category_of, numbered
from .consequences import Forms
from .known_counters import RATE, kind_of, known_names

MOST_MISSING = 0.2  # share of runs
FEWEST_DIFFERENT = 3  # runs that differ from the most frequent value
REPORTED = "the program reports it: another outcome of the same run"

Consequences = Mapping[str, bool | str] | None


def candidate_columns(
    runs: pd.DataFrame,
    outcome: str | None = None,
    exclude: Iterable[str] = (),
    consequences: Consequences = None,
    higher_is_better: bool | None = None,
    slow: np.ndarray | None = None,
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The columns of numbers that may explain the outcome, and why other columns may not.

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
        words (a consequence, too) or with False (none, even if data/knowledge/columns.yml lists
        it).
    higher_is_better
        The outcome falls as the run gets longer; None: as the table says.
    slow
        n booleans; None: the slowest quarter.

    Returns
    -------
    columns
        DataFrame of floats, a row a run; what is missing stays so.
    excluded
        Reason for each column that is excluded, of any type.

    Raises
    ------
    InputError
        `exclude` names a column that is not there, or two columns have one name.

    Notes
    -----
    Three rules need no list of names. First, a column that follows the run time itself (correlation
    0.98 and proportional, or inversely so) is the run time in other units. Second, a longer run
    alone makes totals of continuous work rise, or rates of fixed work fall (Pearson's spurious
    correlation of ratios, 1897). So a counter that has both forms is searched in the one less
    associated with the run time. Third, a total that grows as a power of the run time among the
    fast runs, and on the same line in the slow ones, is a consequence; one that leaves the line is
    not (`consequences.PowerLaw`).
    """
    judged = outcome_of(runs, outcome)
    higher = judged.higher_is_better if higher_is_better is None else higher_is_better
    screen = Screen(runs, judged.name, tuple(exclude), consequences, higher, slow)
    return screen.columns, screen.excluded()


class Screen:
    """The choice of columns.

    Attributes
    ----------
    columns
        Those of numbers that may explain the outcome; what is missing stays so.
    categories
        Those of names or places that may, and whether a column is missing ("NAME is missing").
    numeric
        Names of all columns of numbers that vary and have values.
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
        slow: np.ndarray | None = None,
    ):
        check_names(runs, exclude)
        self.times = Outcome(direction=DIRECTIONS[higher_is_better]).costs(runs[outcome])
        self._names = [name for name in runs.columns if name != outcome]
        known = dict.fromkeys(reported(runs), REPORTED) | dict(consequences or {})
        reasons = {name: excluded_by_name(name, exclude, known) for name in self._names}
        self._reasons = {name: reason for name, reason in reasons.items() if reason}
        numbers = _numbers(runs, [name for name in self._names if name not in self._reasons])
        gaps = _missing(numbers.isna())
        self._reasons |= _unusable(numbers)
        numbers = numbers.drop(columns=[name for name in numbers if name in self._reasons])
        self.numeric = list(numbers.columns)
        if slow is None:
            slow = self.times > np.percentile(self.times, 75) if self.times.size else np.zeros(0)
        self._reasons |= _of_forms(numbers, self.times, np.asarray(slow, bool))
        self.columns = numbers.drop(columns=[name for name in numbers if name in self._reasons])
        self.categories = gaps + self._categories(runs)

    def _categories(self, runs: pd.DataFrame) -> list[Category]:
        """Columns of texts that are categories, and those of whole numbers."""
        found = []
        for name in self._names:
            if name in self._reasons or name in self.numeric:
                continue
            category = category_of(runs[name])
            if isinstance(category, str):
                self._reasons[name] = category
            else:
                found.append(category)
        places = (numbered(name, self.columns[name].to_numpy()) for name in _places(self.columns))
        return found + [place for place in places if place]

    def excluded(self) -> dict[str, str]:
        """Why columns are excluded, in the order of the table."""
        return {name: self._reasons[name] for name in self._names if name in self._reasons}


def _missing(gaps: pd.DataFrame) -> list[Category]:
    """Whether a column is missing, as a category; of columns with the same gaps one stands."""
    both = (gaps.sum() >= FEWEST_DIFFERENT) & ((~gaps).sum() >= FEWEST_DIFFERENT)
    gaps = gaps.loc[:, both]
    found = {gaps[name].to_numpy().tobytes(): name for name in reversed(list(gaps))}
    return [
        Category(f"{name} is missing", ("present", "missing"), gaps[name].to_numpy(int))
        for name in reversed(found.values())
    ]


def _of_forms(numbers: pd.DataFrame, times: np.ndarray, slow: np.ndarray) -> dict[str, str]:
    """Why columns are consequences, judged in the runs that have them."""
    there, reasons = numbers.notna(), dict[str, str]()
    alike: dict[bytes, list[str]] = {}
    for name in numbers:
        alike.setdefault(there[name].to_numpy().tobytes(), []).append(name)
    for names in alike.values():
        rows = there[names[0]].to_numpy()
        reasons |= Forms(numbers.loc[rows, names], times[rows], slow[rows]).reasons()
    return reasons


def _places(columns: pd.DataFrame) -> list[str]:
    """Columns of whole numbers with few values."""
    values = columns.to_numpy()
    whole = (values == np.round(values)).all(axis=0) if len(values) else np.zeros(0, bool)
    few = [name for name, is_whole in zip(columns, whole) if is_whole]
    return [name for name in few if not kind_of(name)]


def _numbers(runs: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """The columns of numbers among these, as floats; what is not finite is missing."""
    columns = runs[names].select_dtypes(include=["number", "bool"])
    columns = columns.select_dtypes(exclude=["timedelta"])
    values = columns.to_numpy(dtype=float, na_value=np.nan)
    values = np.where(np.isfinite(values), values, np.nan)
    return pd.DataFrame(values, columns=columns.columns, index=runs.index)


def check_names(runs: pd.DataFrame, exclude: Iterable[str] = ()) -> None:
    """Refuse a table with two columns of one name, and an excluded column that is not there."""
    if not runs.columns.is_unique:
        twice = runs.columns[runs.columns.duplicated()][0]
        raise InputError(
            f"two columns have the name {twice!r}",
            why="which of them explains something could not be said",
            fix="keep the first of each: runs.loc[:, ~runs.columns.duplicated()]",
        )
    for name in exclude:
        check_column(runs, name)


def excluded_by_name(
    name: str, exclude: tuple[str, ...], known: dict[str, bool | str]
) -> str | None:
    """Why a column of this name is no cause, if its name says so."""
    name = str(name)
    stem = name.removesuffix(RATE)
    if {name, stem, stem + RATE} & set(exclude):
        return "excluded on request"
    if name in known_names("bookkeeping"):
        return "bookkeeping"
    consequence = known.get(name, known.get(stem, stem in known_names("run_time")))
    if isinstance(consequence, str):
        return f"a consequence: {consequence}"
    return "a consequence: grows with the run time by definition" if consequence else None


def _unusable(numbers: pd.DataFrame) -> dict[str, str]:
    """Why the values of columns explain nothing."""
    if numbers.empty:
        return dict.fromkeys(numbers, "there are no runs")
    reasons = {}
    for name, values in zip(numbers, numbers.to_numpy().T):
        gaps = np.isnan(values)
        column = np.sort(values[~gaps])
        if gaps.mean() > MOST_MISSING:
            reasons[name] = f"missing in {gaps.mean():.0%} of the runs"
        elif column[-1] - column[0] <= 1e-12 * max(abs(column[0]), abs(column[-1])):
            reasons[name] = "does not vary"
        elif (column != column[column.size // 2]).sum() < FEWEST_DIFFERENT:
            reasons[name] = f"differs from its usual value in fewer than {FEWEST_DIFFERENT} runs"
    return reasons
