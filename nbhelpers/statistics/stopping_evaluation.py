"""Stopping rules evaluated on recorded runs: where each would have stopped, and how far its result
would have been from that of all runs.

Owns these two tables; the rules are in `stopping`. Pure: values in, tables out.
"""

from collections.abc import Mapping

import pandas as pd

from ..errors import InputError
from .intervals import Values, as_statistic, as_values, bootstrap_interval
from .stopping import RULES, Rule, evaluate_rule

EVALUATION_COLUMNS = [
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
RUNNING_COLUMNS = ["runs", "value", "low", "high"]
_FIRST_RUNS = 10  # of the first interval
_REPEATS = 500  # resamples of each interval


def evaluate_rules(
    values: Values,
    statistic: str = "cv",
    rules: Mapping[str, Rule] = RULES,
    seconds: Values | None = None,
    every: int = 1,
    seed: int = 0,
) -> pd.DataFrame:
    """Where each stopping rule would have stopped in recorded runs.

    Parameters
    ----------
    values
        Outcomes in the order in which they were measured.
    statistic
        A name of `STATISTICS`, that the runs are measured for.
    rules
        Name -> rule.
    seconds
        Time that each run took with everything around it, s; None: the outcomes themselves.
    every
        The rules are applied after every so many runs.
    seed
        Of the intervals.

    Returns
    -------
    DataFrame, a row a rule, the one that stopped first first. Columns: rule; runs, when it stopped;
    stopped, False if the record ended first; value of the statistic then, with its 95 % bootstrap
    interval low and high; error_percent of the value against that of all runs; mean_error_percent,
    the same of the mean; reason.

    Raises
    ------
    InputError
        Fewer than two runs, no such statistic, or `every` below 1.
    """
    sample, function = as_values(values), as_statistic(statistic)
    _check(every)
    all_value, all_mean = float(function(sample, axis=0)), float(sample.mean())
    rows = []
    for name, rule in rules.items():
        stop = evaluate_rule(rule, sample, seconds, min(every, sample.size))
        seen = sample[: max(stop.runs, 2)]  # a single run has neither spread nor interval
        low, high = bootstrap_interval(seen, statistic, seed, repeats=_REPEATS)
        value = float(function(seen, axis=0))
        rows.append(
            {
                "rule": name,
                "runs": stop.runs,
                "stopped": stop.stopped,
                "value": value,
                "low": low,
                "high": high,
                "error_percent": 100 * (value / all_value - 1),
                "mean_error_percent": 100 * (float(seen.mean()) / all_mean - 1),
                "reason": stop.reason,
            }
        )
    return pd.DataFrame(rows, columns=EVALUATION_COLUMNS).sort_values(
        ["stopped", "runs"], ascending=[False, True], kind="stable", ignore_index=True
    )


def stopping_sentence(
    stops: pd.DataFrame, runs: int, what: str = "coefficient of variation"
) -> str:
    """The table of `evaluate_rules` in a sentence.

    Parameters
    ----------
    stops
        Of `evaluate_rules`.
    runs
        In the record.
    what
        Name of the statistic.
    """
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
    values: Values, statistic: str = "cv", every: int = 1, seed: int = 0
) -> pd.DataFrame:
    """A statistic and its interval after more and more runs.

    Parameters
    ----------
    values, statistic, every, seed
        As in `evaluate_rules`.

    Returns
    -------
    DataFrame, a row a number of runs, from ten on; columns runs, value, low, high (95 % bootstrap
    interval).

    Raises
    ------
    InputError
        As `evaluate_rules`.
    """
    sample, function = as_values(values), as_statistic(statistic)
    _check(every)
    first = min(_FIRST_RUNS, sample.size)
    rows = []
    for count in sorted({*range(first, sample.size + 1, every), sample.size}):
        seen = sample[:count]
        low, high = bootstrap_interval(seen, statistic, seed, repeats=_REPEATS)
        rows.append((count, float(function(seen, axis=0)), low, high))
    return pd.DataFrame(rows, columns=RUNNING_COLUMNS)


def _check(every: int) -> None:
    if every < 1:
        raise InputError(
            f"rules applied after every {every} runs", why="that would never end", fix="1 or more"
        )
