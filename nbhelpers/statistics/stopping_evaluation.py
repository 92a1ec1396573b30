"""Stopping rules held against runs that were recorded: where each would have stopped, and how far
from the whole it would have been.

Owns these two tables; the rules themselves are in `stopping`. Pure: values in, tables out.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from ..errors import InputError
from .bootstrap import as_statistic, as_values, bootstrap_interval
from .stopping import RULES, Rule, evaluate_rule

REPLAY_COLUMNS = [
    "rule",
    "runs",
    "stopped",
    "value",
    "low",
    "high",
    "error_percent",
    "mean_error_percent",
    "reason",
]
COURSE_COLUMNS = ["runs", "value", "low", "high"]
_FIRST, _REPEATS = 10, 500  # runs of the first interval; resamples of each


def evaluate_rules(
    values: Sequence[float],
    statistic: str = "cv",
    rules: Mapping[str, Rule] = RULES,
    seconds: Sequence[float] | None = None,
    every: int = 1,
    seed: int = 0,
) -> pd.DataFrame:
    """What each stopping rule would have made of recorded runs.

    Parameters
    ----------
    values
        Outcomes in the order in which they were measured.
    statistic
        Of `STATISTICS`; what is wanted of the runs.
    rules
        Name -> rule.
    seconds
        Time that each run took with everything around it, s; None: the outcomes themselves.
    every
        The rules are asked after every so many runs.
    seed
        Of the intervals.

    Returns
    -------
    One row a rule, the one that stopped first first: rule, runs (when it stopped), stopped (False:
    the record ended first), value (of the statistic then) with its 95 % bootstrap interval low and
    high, error_percent (of the value, against that of all runs), mean_error_percent (the same of
    the mean), reason.

    Raises
    ------
    InputError
        Fewer than two runs, no such statistic, or `every` below 1.
    """
    values, function = as_values(values), as_statistic(statistic)
    _check(every)
    whole = float(function(values, axis=0)), float(values.mean())
    rows = []
    for name, rule in rules.items():
        stop = evaluate_rule(rule, values, seconds, min(every, values.size))
        count = max(stop.runs, 2)  # a single run has neither spread nor interval
        low, high = bootstrap_interval(values[:count], statistic, seed, repeats=_REPEATS)
        value, mean = float(function(values[:count], axis=0)), float(values[:count].mean())
        rows.append(
            {
                "rule": name,
                "runs": stop.runs,
                "stopped": stop.stopped,
                "value": value,
                "low": low,
                "high": high,
                "error_percent": 100 * (value / whole[0] - 1),
                "mean_error_percent": 100 * (mean / whole[1] - 1),
                "reason": stop.reason,
            }
        )
    return pd.DataFrame(rows, columns=REPLAY_COLUMNS).sort_values(
        ["stopped", "runs"], ascending=[False, True], kind="stable", ignore_index=True
    )


def stopping_sentence(
    stops: pd.DataFrame, runs: int, what: str = "coefficient of variation"
) -> str:
    """The table of `evaluate_rules` in a sentence; `runs` in the record, `what` the statistic is."""
    done = stops[stops["stopped"]]
    if done.empty:
        return f"None of {len(stops)} stopping rules stops within {runs} runs."
    first = done.iloc[0]
    return (
        f"{len(done)} of {len(stops)} stopping rules stop within {runs} runs, the first"
        f" ({first['rule']}) after {first['runs']}, where the {what} is"
        f" {first['error_percent']:+.0f} % off that of all."
    )


def running_statistic(
    values: Sequence[float], statistic: str = "cv", every: int = 1, seed: int = 0
) -> pd.DataFrame:
    """A statistic and its interval as the runs came in.

    Parameters
    ----------
    values, statistic, every, seed
        Of `evaluate_rules`.

    Returns
    -------
    One row a number of runs, from ten on: runs, value, low, high (95 % bootstrap interval).

    Raises
    ------
    InputError
        See `evaluate_rules`.
    """
    values, function = as_values(values), as_statistic(statistic)
    _check(every)
    counts = sorted({*range(min(_FIRST, values.size), values.size + 1, every), values.size})
    rows = [
        (
            count,
            float(function(values[:count], axis=0)),
            *bootstrap_interval(values[:count], statistic, seed, repeats=_REPEATS),
        )
        for count in counts
    ]
    return pd.DataFrame(rows, columns=COURSE_COLUMNS)


def _check(every: int) -> None:
    if every < 1:
        raise InputError(
            f"asked after every {every} runs", why="there would be no end of it", fix="1 or more"
        )
