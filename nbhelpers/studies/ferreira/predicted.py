"""Simulated beside measured time of traced runs.

Owns the table of errors and the sentence that says how many programs are near.
"""

import numpy as np
import pandas as pd

from ...empty import because, why_empty
from ...statistics.claims import Evidence
from ...statistics.robust import FEWEST_TO_TRIM, trimmed_interval

_ERRORS = tuple(
    f"{name}{end}"
    for name in ("error", "error_trimmed", "error_less_waits")
    for end in ("", "_low", "_high")
)


def prediction_table(predicted: pd.DataFrame) -> pd.DataFrame:
    """Simulated beside measured time of each program.

    Returns
    -------
    DataFrame
        `program`, `ranks`, `rounds`, `measured_ms`, `simulated_ms`, `waited_ms` (medians), `error`
        (mean of the logarithms of simulated over measured, as a share) with its 95 % interval over
        rounds, the same as a trimmed mean (`error_trimmed`), and against the measured time less
        what the ranks waited for a CPU (`error_less_waits`). Waits of two ranks may overlap, so the
        last one is a bound: it takes out too much rather than too little.
    """
    columns = ["program", "ranks", "rounds", "measured_ms", "simulated_ms", "waited_ms"]
    if predicted.empty:
        empty = pd.DataFrame(columns=[*columns, *_ERRORS])
        return because(empty, why_empty(predicted))
    if "waited_ms" not in predicted:  # recorded before it was read
        predicted = predicted.assign(waited_ms=np.nan)
    rows = []
    for (program, ranks), group in predicted.groupby(["program", "ranks"], sort=False):
        medians = group[["measured_ms", "simulated_ms", "waited_ms"]].median()
        ratios = np.log(group["simulated_ms"] / group["measured_ms"])
        less = np.log(group["simulated_ms"] / (group["measured_ms"] - group["waited_ms"]))
        errors = [*_mean_error(ratios), *_trimmed_error(ratios), *_mean_error(less)]
        rows.append([program, ranks, len(group), *medians, *errors])
    return pd.DataFrame(rows, columns=[*columns, *_ERRORS])


def _mean_error(ratios: pd.Series) -> tuple[float, float, float]:
    """As a share, with Student's interval."""
    estimate = Evidence(ratios.to_numpy(float), np.arange(len(ratios))).estimate
    low, high = np.expm1(estimate.interval())
    return float(np.expm1(estimate.mean)), low, high


def _trimmed_error(ratios: pd.Series) -> tuple[float, float, float]:
    if len(ratios) < FEWEST_TO_TRIM:
        return np.nan, np.nan, np.nan
    value, low, high = np.expm1(trimmed_interval(ratios.to_numpy(float))[:3])
    return float(value), float(low), float(high)


def prediction_sentence(table: pd.DataFrame, goal: float = 0.05) -> str:
    """How near the simulated times are; the goal is a share of the measured time, and a program
    is within it if its whole interval is.
    """
    if table.empty:
        return f"Whether the simulation agrees cannot be told here: {why_empty(table)}."
    near, near_trimmed = (_within(table, name, goal) for name in ("error", "error_trimmed"))
    worst = table.loc[table["error"].abs().idxmax()]
    sentence = (
        f"{near.sum()} of {len(table)} programs are simulated within {goal:.0%} of their measured"
        f" time (whole interval of the mean); the farthest is {worst['program']}:"
        f" {worst['error']:+.1%} ({worst['error_low']:+.1%} to {worst['error_high']:+.1%},"
        f" n = {worst['rounds']} rounds)."
    )
    others = table.loc[(near != near_trimmed) & table["error_trimmed"].notna()]
    for row in others.to_dict("records"):
        sentence += (
            f" By the trimmed mean {row['program']} differs: {row['error_trimmed']:+.1%}"
            f" ({row['error_trimmed_low']:+.1%} to {row['error_trimmed_high']:+.1%})."
        )
    return sentence


def _within(table: pd.DataFrame, name: str, goal: float) -> pd.Series:
    return (table[f"{name}_low"] >= -goal) & (table[f"{name}_high"] <= goal)
