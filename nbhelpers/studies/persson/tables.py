"""The tables of Persson et al. 2025 with our runs: pure functions of the runs of `label_runs`, each
row with its interval and count.

Column names and row labels are those of data/published, so that `save_table(…, published=…)` sets
the printed value next to ours.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ...statistics import bootstrap_ratio, same_epochs
from ...statistics.robust import increase_columns, robust_ratio
from ..design import BENCHMARKS, PRINTED_MODELS
from .campaigns import KEYS

_ENDS = ("", "_low", "_high")
_INCREASE = ["increase_percent", "low_percent", "high_percent"]
_ROBUST = [f"{name}{end}_percent" for name in ("median", "trimmed") for end in _ENDS]
INCREASES = [*_INCREASE, *_ROBUST]
FEWEST_TO_ADJUST = 5  # runs a cell; with fewer a straight line through the steal fits anything


# Increases: tables 1 and 3 to 6
# --------------------------------------------------------------------------------------------------


def increases(after: pd.DataFrame, before: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """How much run times increase from the runs `before` to those `after`, a row a group.

    Parameters
    ----------
    after, before
        Finished runs with `seconds`, `steal_s` and the columns of `by`; those of `before` may lack
        some, and then stand for all groups that agree in the rest. Of runs that were added later
        only epochs count that both have.
    by
        Columns that name a group; program, model and config are those that `before` is found by.

    Returns
    -------
    The columns of `by`; `increase_percent` (of the mean) with its 95 % bootstrap interval
    (`low_percent`, `high_percent`), the same of median and trimmed mean (`median_percent`, …,
    `trimmed_percent`, …), and with steal held fixed (`adjusted_percent`; missing for fewer than
    five runs a side, or where steal does not vary); of either side `seconds`, `sd_s`, `steal_s` and
    `runs`, the names ending in `_after` and `_before`.
    """
    shared = [name for name in by if name in KEYS]
    sides = dict(list(before.groupby(shared)))
    rows = []
    for key, runs in after.groupby(list(by), sort=False):
        group = dict(zip(by, key, strict=True))
        found = sides.get(tuple(group[name] for name in shared))
        if found is not None:
            rows.append(group | _increase(*same_epochs(runs, found)))
    numbers = [f"{name}_{side}" for side in ("after", "before") for name in _MOMENTS]
    kinds = dict.fromkeys(by, "str") | dict.fromkeys([*INCREASES, "adjusted_percent"], "float64")
    kinds |= dict.fromkeys(numbers, "float64")
    return pd.DataFrame(rows, columns=list(kinds)).astype(kinds)


_MOMENTS = ("seconds", "sd_s", "steal_s", "runs")


def _increase(after: pd.DataFrame, before: pd.DataFrame) -> dict[str, float]:
    ratio = after["seconds"].mean() / before["seconds"].mean()
    ends = (ratio, *bootstrap_ratio(after["seconds"], before["seconds"]))
    row = dict(zip(_INCREASE, (100 * (end - 1) for end in ends)))
    row |= increase_columns(robust_ratio([(after, before)]))
    row["adjusted_percent"] = _adjusted(after, before)
    for side, runs in (("after", after), ("before", before)):
        seconds = runs["seconds"]
        moments = (seconds.mean(), seconds.std(ddof=1), runs["steal_s"].mean(), len(runs))
        row |= {f"{name}_{side}": value for name, value in zip(_MOMENTS, moments)}
    return row


def _adjusted(after: pd.DataFrame, before: pd.DataFrame) -> float:
    import statsmodels.api as sm

    both = pd.concat([after.assign(noisy=1.0), before.assign(noisy=0.0)])
    if min(len(after), len(before)) < FEWEST_TO_ADJUST or both["steal_s"].nunique() < 2:
        return np.nan
    fit = sm.OLS(both["seconds"], sm.add_constant(both[["steal_s", "noisy"]])).fit()
    return float(100 * fit.params["noisy"] / before["seconds"].mean())


def printed(table: pd.DataFrame) -> pd.DataFrame:
    """A table with programs and models by their printed names, programs as `benchmark`."""
    names = {
        "program": table["program"].map(BENCHMARKS),
        "model": table["model"].map(PRINTED_MODELS),
    }
    return table.assign(**names).rename(columns={"program": "benchmark"})


def comparable_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a published table that ours can stand beside: for tables 3 to 5 those of the
    platform without SMT and its first trace, for table 7 those without SMT.

    Parameters
    ----------
    table
        A `published_table`.

    Returns
    -------
    The rows that ours can stand next to, without the columns that ours lack; what table 7 calls
    accuracy is an error, and is called so.
    """
    rows = pd.Series(True, index=table.index)
    if "platform" in table:
        rows &= (table["smt"] == "none") & (table["noise_config"].astype(str) == "1")
    elif "smt" in table:
        rows &= table["smt"] != "on"
    lacking = ["platform", "smt", "noise_config", "printed_minus"]
    comparable = table[rows].drop(columns=lacking, errors="ignore")
    comparable = comparable.rename(columns={"accuracy_percent": "error_percent"})
    comparable.attrs = dict(table.attrs)
    return comparable
