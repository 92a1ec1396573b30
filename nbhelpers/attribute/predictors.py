"""Which columns of a runs table may explain slow runs, and which can't, each with the reason.

Owns the line between causes and consequences of a longer run, and the groups of counters that move together.
"""

import difflib
from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from ..errors import InputError

BOOKKEEPING = frozenset("""run round block repeat order index attempt seed pid exit_code start_ns t0_ns started_ns began_unix_s
    timestamp threads verified""".split())
CONSEQUENCES = frozenset("""seconds wall_seconds elapsed_seconds duration_ns end_ns ended_ns finish_ns user_s user_seconds
    utime task_clock task_clock_ns cpu_clock cpu_clock_ns cpu_ns cpu_s cpu_seconds cpu_share sum_exec_runtime_ns""".split())
RATE = "_per_s"
MOST_MISSING = 0.2      # share of runs
IN_STEP = 0.98          # correlation with the run time from which a counter is the run time in other units
CLEAR = 4             # standard errors: a total that changes this clearly is not fixed work
FIXED_WORK = "fixed work over the run time: the rate falls because the run is longer"
GROUP_CORRELATION = 0.7  # mean correlation within a group


def predictors(runs: pd.DataFrame, outcome: str = "seconds",
               exclude: Iterable[str] = ()) -> tuple[pd.DataFrame, dict[str, str]]:
    """The columns that may explain the outcome, and why the others may not.

    Parameters
    ----------
    runs : runs table (one row a run); `outcome` positive numbers.
    exclude : further columns to leave out.

    Returns
    -------
    kept : DataFrame of floats, a row a run, missing values filled with the column's median.
    excluded : reason for each numeric column left out.

    Raises
    ------
    InputError : `exclude` names a column that is not there.

    Notes
    -----
    Two rules need no list of names. A column that follows the run time itself (correlation 0.98 and proportional, or inversely
    so) is the run time in other units. And a longer run alone makes totals rise (of work that goes on all the time) or rates
    fall (of work that is fixed: Pearson's spurious correlation of ratios, 1897); so a counter that has both forms is searched in the
    one that goes less with the run time, and not at all if its total rises while its rate falls.
    """
    exclude = tuple(exclude)
    _check_names(exclude, runs)
    numeric = _numbers(runs, outcome)
    seconds = runs[outcome].to_numpy(float)
    excluded = {name: reason for name in numeric if (reason := _by_name(name, exclude) or _by_gaps(numeric[name]))}
    for rate in [name for name in numeric if name.endswith(RATE) and name not in excluded]:
        excluded |= _by_pair(rate, numeric, seconds)
    rest = numeric.columns.difference(list(excluded), sort=False)
    excluded |= {name: reason for name in rest if (reason := _by_values(numeric[name].to_numpy(), seconds))}
    kept = numeric.drop(columns=list(excluded))
    return kept.fillna(kept.median()), {name: excluded[name] for name in numeric if name in excluded}


def _numbers(runs: pd.DataFrame, outcome: str) -> pd.DataFrame:
    columns = runs.select_dtypes(include=["number", "bool"]).drop(columns=[outcome], errors="ignore")
    values = {name: columns[name].to_numpy(dtype=float, na_value=np.nan) for name in columns}
    return pd.DataFrame(values, index=runs.index).replace([np.inf, -np.inf], np.nan)


def _check_names(exclude: Iterable[str], runs: pd.DataFrame) -> None:
    for name in exclude:
        if name not in runs.columns:
            near = difflib.get_close_matches(name, [str(column) for column in runs.columns], 1)
            raise InputError(f"no column {name!r} to exclude", mend=f"did you mean {near[0]!r}?" if near else None)


def _by_name(name: str, exclude: tuple[str, ...]) -> str | None:
    stem = name.removesuffix(RATE)
    if {name, stem, stem + RATE} & set(exclude):
        return "left out on request"
    if name in BOOKKEEPING:
        return "bookkeeping"
    if stem in CONSEQUENCES:
        return "a consequence: grows with the run time by definition"
    return None


def _by_gaps(column: pd.Series) -> str | None:
    missing = column.isna().mean()
    return f"missing in {missing:.0%} of the runs" if missing > MOST_MISSING else None


def _by_values(column: np.ndarray, seconds: np.ndarray) -> str | None:
    present = np.isfinite(column)
    values = column[present]
    if not values.size or np.ptp(values) <= 1e-12 * np.abs(values).max():
        return "does not vary"
    if _follows(values, seconds[present]):
        return "a consequence: follows the run time itself"
    return None


def _by_pair(rate: str, numeric: pd.DataFrame, seconds: np.ndarray) -> dict[str, str]:
    """Which form of a counter is left out: the total, the rate, or both."""
    total = rate.removesuffix(RATE)
    if total not in numeric:
        return _by_rate_alone(rate, numeric[rate].to_numpy(), seconds)
    of_rate, of_total = _strength(numeric[rate].to_numpy(), seconds), _strength(numeric[total].to_numpy(), seconds)
    if of_rate < 0 < of_total:
        return dict.fromkeys((rate, total), "its total rises and its rate falls, as a longer run alone would have it")
    if abs(of_rate) <= abs(of_total):
        return {total: f"a total that grows with the run time: {rate} is used"}
    return {rate: f"{FIXED_WORK}: {total} is used"}


def _by_rate_alone(rate: str, values: np.ndarray, seconds: np.ndarray) -> dict[str, str]:
    falls, total_falls = _strength(values, seconds) < -1, _strength(values * seconds, seconds) < -CLEAR
    return {rate: FIXED_WORK} if falls and not total_falls else {}


def _strength(values: np.ndarray, seconds: np.ndarray) -> float:
    """Rank correlation with the run time in standard errors.

    By ranks, because counts are small whole numbers: a count that is the same in nearly every run falls as a rate wherever the
    run took longer, and a single outlier must not hide that.
    """
    present = np.isfinite(values)
    if present.sum() < 3 or np.ptp(values[present]) == 0:
        return 0.0
    ranks, times = rankdata(values[present]), rankdata(seconds[present])
    return float(np.corrcoef(ranks, times)[0, 1] * np.sqrt(present.sum() - 1)) if np.ptp(times) else 0.0


def _slope(values: np.ndarray, times: np.ndarray) -> tuple[float, float, float]:
    """Relative change of the values per relative change of the time, its standard error, and the correlation."""
    both = values.min() > 0 and times.min() > 0
    x, y = (np.log(times), np.log(values)) if both else (times / times.mean(), values / (np.abs(values).mean() or 1))
    x, y = x - x.mean(), y - y.mean()
    xx, xy, yy = x @ x, x @ y, y @ y
    if xx == 0:
        return 0.0, np.inf, 0.0
    slope = xy / xx
    error = np.sqrt(max(yy - slope * xy, 0) / max(x.size - 2, 1) / xx)
    return float(slope), float(error), float(xy / np.sqrt(xx * yy)) if yy > 0 else 0.0


def _follows(values: np.ndarray, times: np.ndarray) -> bool:
    slope, _, correlation = _slope(values, times)
    return abs(correlation) > IN_STEP and 0.8 < abs(slope) < 1.25


def correlated_groups(columns: pd.DataFrame) -> list[list[str]]:
    """Groups of columns that move together, each led by its most central member.

    Average linkage on 1 - |correlation|, the larger of Pearson's (counters that are zero in most runs) and Spearman's
    (monotone but curved). Data of this kind cannot tell the members of a group apart.
    """
    names = list(columns.columns)
    if len(names) < 2:
        return [[name] for name in names]
    alike = np.maximum(_correlation(columns.to_numpy()), _correlation(columns.rank().to_numpy()))
    distance = np.clip(1 - alike, 0, 1)
    np.fill_diagonal(distance, 0)
    labels = fcluster(linkage(squareform(distance, checks=False), "average"), 1 - GROUP_CORRELATION, "distance")
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    groups = [members[np.argsort(-alike[np.ix_(members, members)].sum(axis=1), kind="stable")] for members in groups]
    return [[names[member] for member in members] for members in sorted(groups, key=lambda members: members.min())]


def _correlation(values: np.ndarray) -> np.ndarray:
    return np.abs(np.corrcoef(values, rowvar=False))
