"""Before against after: ratios of the statistics that matter, each with an interval, and one sentence.

Owns the comparison of two sets of runs; the resampling is in `bootstrap`.
"""

import html
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import InputError
from .bootstrap import STATISTICS, as_values, bootstrap_interval, bootstrap_ratio


FEWEST_FOR_CV = 10  # of fewer runs some resamples do not vary at all, and the ratio of variations has no bound


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two sets of runs compared.

    Attributes
    ----------
    table : DataFrame, index statistic (mean, median, sd, cv, p95, max), columns before, after, ratio (after / before), low, high
        (95 % bootstrap interval of the ratio).
    verdict : the result in words.
    outcome : what was compared.
    """

    table: pd.DataFrame
    verdict: str
    outcome: str = "seconds"

    def __repr__(self) -> str:
        mean = self.table.loc["mean"]
        return f"Comparison({self.outcome}: mean ratio {mean.ratio:.4f}, 95 % interval {mean.low:.4f} to {mean.high:.4f})"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.verdict)}</p>" + self.table.to_html(float_format=lambda value: f"{value:.4g}", border=0)


def compare(before: object, after: object, outcome: str = "seconds", seed: int = 0) -> Comparison:
    """Compare the runs before and after a change.

    Parameters
    ----------
    before, after : runs tables (rows whose `status` is not "ok" are passed over) or arrays of at least two values each.
    outcome : column to compare, where a table is given.

    Returns
    -------
    Comparison : ratios are after / before.

    Raises
    ------
    InputError : no such column, fewer than two values, a value that is not finite.

    Notes
    -----
    Percentile bootstrap, both sides resampled. The interval of the maximum is too narrow (no resample exceeds the largest
    value seen). If all runs of one side were measured before all of the other, drift of the machine counts as gain or loss,
    and the verdict says so.
    """
    old, new = _values(before, outcome), _values(after, outcome)
    rows = {name: _row(old, new, name, seed) for name in STATISTICS}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["before", "after", "ratio", "low", "high"])
    table.index.name = "statistic"
    about_cv = [_sentence("cv", table, old, new)] if min(old.size, new.size) >= FEWEST_FOR_CV else []
    verdict = " ".join([_sentence("mean", table, old, new), *about_cv, _caveat(before, after)]).strip()
    return Comparison(table, verdict, outcome)


def summarise(runs: pd.DataFrame, by: str = "cell", outcome: str = "seconds", seed: int = 0) -> pd.DataFrame:
    """The statistics of each cell of a campaign, the mean and the coefficient of variation with 95 % bootstrap intervals.

    Parameters
    ----------
    runs : runs table; rows whose `status` is not "ok" are passed over.
    by : column that names the cells.

    Returns
    -------
    DataFrame, index the cells in the order they first occur, columns runs, mean, mean_low, mean_high, median, sd, cv, cv_low,
        cv_high, p95, max, in the unit of the outcome.

    Raises
    ------
    InputError : no such column, a cell with fewer than two runs.
    """
    if by not in runs.columns:
        raise InputError(f"no column {by!r} to group by", mend=f"the table has: {', '.join(map(str, runs.columns))}")
    rows = {name: _summary(_values(cell, outcome), seed) for name, cell in runs.groupby(by, sort=False, observed=True)}
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index.name = by
    return table


def _summary(values: np.ndarray, seed: int) -> dict[str, float]:
    row = {"runs": values.size}
    for name, statistic in STATISTICS.items():
        row[name] = float(statistic(values))
        if name in ("mean", "cv"):
            row[f"{name}_low"], row[f"{name}_high"] = bootstrap_interval(values, name, seed)
    return row


def _values(runs: object, outcome: str) -> np.ndarray:
    if not isinstance(runs, pd.DataFrame):
        return as_values(runs)
    if outcome not in runs.columns:
        raise InputError(f"no column {outcome!r} to compare", mend=f"the table has: {', '.join(map(str, runs.columns))}")
    if "status" in runs.columns:
        runs = runs[runs["status"] == "ok"]
    return as_values(runs[outcome])


def _row(old: np.ndarray, new: np.ndarray, name: str, seed: int) -> list[float]:
    before, after = float(STATISTICS[name](old)), float(STATISTICS[name](new))
    ratio = after / before if before else float("nan")
    return [before, after, ratio, *bootstrap_ratio(new, old, name, seed)]


def _sentence(name: str, table: pd.DataFrame, old: np.ndarray, new: np.ndarray) -> str:
    row = table.loc[name]
    label = {"mean": "mean", "cv": "coefficient of variation"}[name]
    counts = f" ({old.size} against {new.size} runs)" if name == "mean" else ""
    if not np.isfinite([row.ratio, row.low, row.high]).all():
        return f"No ratio of the {label} can be formed{counts}."
    interval = f"{_change(row.low)} to {_change(row.high)}"
    if row.low <= 1 <= row.high:
        return f"No difference of the {label} is shown: {_change(row.ratio)}, 95 % interval {interval}{counts}."
    word = "lower" if row.ratio < 1 else "higher"
    return f"The {label} is {abs(row.ratio - 1):.1%} {word}, 95 % interval {interval}{counts}."


def _change(ratio: float) -> str:
    return f"{ratio - 1:+.1%}"


def _caveat(before: object, after: object) -> str:
    tables = isinstance(before, pd.DataFrame) and isinstance(after, pd.DataFrame)
    if not tables or "start_ns" not in before or "start_ns" not in after:
        return ""
    old, new = before["start_ns"], after["start_ns"]
    if old.max() < new.min() or new.max() < old.min():
        return "The two were measured one after the other, so drift of the machine is part of the difference."
    return ""
