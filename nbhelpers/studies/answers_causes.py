"""Answers of the pages on causes: which counters are associated with slow runs, whether a cause is
named, and what helps.

Owns their words; what is found, named and shown to help is decided by the attribution, by the
scores and by the verdicts of mitigations.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..answers import LONGEST, Answer
from ..mitigation.trials import HARMS, HELPS, NO_EFFECT, NOT_AGAIN
from .answers_words import open_answer, some_groups

if TYPE_CHECKING:
    from ..attribution import Explanation

_SETTLED = {NO_EFFECT, HARMS, NOT_AGAIN}  # verdicts of what is shown not to help


def counters_answer(search: "Explanation", runs: pd.DataFrame) -> Answer:
    """Which counters are associated with the slow runs: the first group.

    Parameters
    ----------
    search
        The explanation of some runs.
    runs
        The table that was explained.
    """
    count = len(search.labels)
    known: dict[str, Any] = {"figure": "natural", "n": count, "n_of": "runs"}
    if np.isnan(search.p_value):
        return open_answer(f"{count} runs are too few to search.", **known)
    if not search.found:
        sentence = f"No counter separates the slow runs (p = {search.p_value:.3f}, n = {count})."
        return Answer("none", sentence, **known)
    first = search.factors.iloc[0]
    low, high = search.accuracy_interval
    known |= {"quantity": "slow and fast runs told apart by counters (guessing: 50 %)"}
    known |= {"value": 100 * search.accuracy, "low": 100 * low, "high": 100 * high, "unit": "%"}
    known |= _values_of(first["factor"], search.labels, runs)
    return Answer(
        _group_name(first),
        f"{int(search.labels.sum())} of {count} runs are slow; {first['factor']} is"
        f" {first['direction']} in them (p = {search.p_value:.3f}).",
        **known,
    )


def _group_name(first: pd.Series) -> str:
    """The leader of a group of counters, and how many move with it."""
    others = 0 if first["kind"] == "interaction" else len(first["members"]) - 1
    more = f" and {others} more" if others else ""
    return f"{first['factor'][: LONGEST - len(more)]}{more}"


def _values_of(factor: str, labels: pd.Series, runs: pd.DataFrame) -> dict[str, Any]:
    """A counter in slow and in other runs; nothing, where it is no column of numbers."""
    if factor not in runs or not pd.api.types.is_numeric_dtype(runs[factor]):
        return {}
    slow = labels.reindex(runs.index).fillna(False).astype(bool)
    groups = {"slow runs": runs.loc[slow, factor], "other runs": runs.loc[~slow, factor]}
    return {"groups": some_groups(groups), "axis": factor}


def named_answer(scores: pd.DataFrame, nothing: pd.DataFrame) -> Answer:
    """How many of the planted causes the attribution names first.

    Parameters
    ----------
    scores
        Of `score_causes`.
    nothing
        Of `score_nothing`.
    """
    known: dict[str, Any] = {"figure": "effects"}
    if scores.empty:
        return open_answer("No cause was planted.", **known)
    right, count = int(scores["right"].sum()), len(scores)
    low, high = jeffreys(right, count)
    known |= {"quantity": "planted causes named first", "unit": "%", "value": 100 * right / count}
    known |= {"low": 100 * low, "high": 100 * high, "n": count, "n_of": "causes"}
    effects = 100 * (scores["effect"] - 1)
    groups = {"named": effects[scores["right"]], "not named": effects[~scores["right"]]}
    known |= {"groups": some_groups(groups), "axis": "run time (% longer)"}
    shuffled = nothing[nothing["kind"] == "shuffled"]
    missed = ", ".join(scores.loc[~scores["right"], "cause"]) or "none"
    return Answer(
        f"{right} of {count}",
        f"{right} of {count} planted causes are named first, not: {missed}; something was named in"
        f" {int(shuffled['found'].sum())} of {len(shuffled)} shuffled tables.",
        **known,
    )


def jeffreys(right: int, count: int) -> tuple[float, float]:
    """Jeffreys' 95 % interval of a share, which by convention reaches 0 or 1 where the share does.

    Examples
    --------
    >>> low, high = jeffreys(9, 10)
    >>> round(low, 3), round(high, 3)
    (0.619, 0.989)
    """
    from scipy.special import betaincinv

    low, high = betaincinv(right + 0.5, count - right + 0.5, [0.025, 0.975])
    return (float(low) if right else 0.0), (float(high) if right < count else 1.0)


def helps_answer(tried: pd.DataFrame, runs: pd.DataFrame, cause: str) -> Answer:
    """Which mitigation helps most against a known cause, by the verdicts.

    Parameters
    ----------
    tried
        Of `trial_table`, the best first.
    runs
        Of `trial_runs`: with and without each mitigation.
    cause
        What was planted.
    """
    known: dict[str, Any] = {"figure": "tried", "axis": "run time (s)"}
    helping = tried[tried["verdict"] == HELPS]
    if tried.empty:
        return open_answer(f"No mitigation against {cause} could be tried.", **known)
    best = (helping if len(helping) else tried).iloc[0]
    known |= _change(best)
    cells = {"untreated": "baseline", best["mitigation"]: best["mitigation"]}
    times = {name: runs.loc[runs["cell"] == cell, "seconds"] for name, cell in cells.items()}
    known |= {"groups": some_groups(times)}
    shown = f"{len(helping)} of {len(tried)} mitigations tried against {cause} help, shown twice."
    if helping.empty:
        settled = set(tried["verdict"]) <= _SETTLED
        return Answer("none", shown, **known) if settled else open_answer(shown, **known)
    percent = f"{known['value']:+.0f} %".replace("-", "−")
    return Answer(f"{best['mitigation']}, {percent}", shown, **known)


def _change(row: pd.Series) -> dict[str, Any]:
    """The change of the mean run time by one mitigation."""
    ends = [100 * (float(row[name]) - 1) for name in ("mean_ratio", "mean_low", "mean_high")]
    known = {"value": ends[0], "low": ends[1], "high": ends[2], "unit": "%"}
    quantity = f"run time with {row['mitigation']}"
    return {"quantity": quantity, **known, "n": int(row["runs"]), "n_of": "rounds"}
