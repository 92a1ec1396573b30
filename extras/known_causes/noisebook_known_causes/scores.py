"""How well an attribution does where the truth is known: the cause named first, and nothing found
where there is nothing.

Owns the scores of the bench of known causes; pure, runs tables in, tables out.
"""

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from nbhelpers.attribution import Explanation, explain
from nbhelpers.errors import InputError
from nbhelpers.measurement import consequences, finished, rates
from nbhelpers.progress import each
from nbhelpers.statistics import bootstrap_ratio

from .catalogue import UNDISTURBED, Cause, known_cause
from .tables import blinded

ITSELF, TRAIL, OTHER, NOTHING = "the cause", "its trail", "something else", "nothing"
SCORE_COLUMNS = [
    "cause",
    "what",
    "runs",
    "planted",
    "effect",
    "low",
    "high",
    "slow",
    "slow_planted",
    "p_value",
    "named",
    "first",
    "members",
    "rank",
    "right",
    "strict",
    "leader",
    "countable",
]
FALSE_COLUMNS = ["campaign", "kind", "runs", "p_value", "found", "first"]


def explained_cause(runs: pd.DataFrame, seed: int = 0, **options: Any) -> Explanation:
    """The attribution of runs with a known cause; it sees neither the truth nor the columns that
    give the injector away.

    Parameters
    ----------
    runs
        Runs table of `cause_campaign`, or any other runs table.
    seed, options
        Passed to `explain`.

    Returns
    -------
    Explanation
    """
    seen = rates(blinded(finished(runs)))
    return explain(seen, seed=seed, consequences=consequences(), **options)


def score_causes(runs: Mapping[str, pd.DataFrame], seed: int = 0) -> pd.DataFrame:
    """What the attribution says of each known cause, and whether that is right.

    Parameters
    ----------
    runs
        Cause id -> runs table with the column `truth`.
    seed
        Seed of the attribution.

    Returns
    -------
    DataFrame, a row a cause. Columns: cause; what; runs; planted (disturbed runs); effect (median
    run time of disturbed over undisturbed runs) with its 95 % bootstrap interval low and high; slow
    (runs beyond the cutoff); slow_planted (of these, disturbed); p_value; named ("the cause", "its
    trail", "something else", "nothing"); first (leader of the first group); members (counters in
    it); rank (of the first group that names the cause, 0: none); right (the cause, or its trail if
    the machine has no counter of the cause); strict (the first group has a counter of what happened
    to the victim, not of the culprit); leader (the first counter is such a counter); countable (the
    machine has such a counter).

    Raises
    ------
    InputError
        No such cause, or runs without a truth.
    """
    rows = [
        _score(name, table, seed)
        for name, table in each(runs.items(), "explaining known causes", "causes")
    ]
    return pd.DataFrame(rows, columns=SCORE_COLUMNS)


def _score(name: str, table: pd.DataFrame, seed: int) -> dict:
    cause = known_cause(name)
    table = finished(table)
    disturbed = _truth(table, cause) != UNDISTURBED
    seconds = table["seconds"]
    low, high = bootstrap_ratio(seconds[disturbed], seconds[~disturbed], "median", seed)
    explanation = explained_cause(table, seed)
    slow = explanation.labels.to_numpy()
    countable = any_shows(blinded(table).columns, cause.on_victim)
    return {
        "cause": cause.id,
        "what": cause.what,
        "runs": len(table),
        "planted": int(disturbed.sum()),
        "effect": seconds[disturbed].median() / seconds[~disturbed].median(),
        "low": low,
        "high": high,
        "slow": int(slow.sum()),
        "slow_planted": int((slow & disturbed.to_numpy()).sum()),
        "p_value": explanation.p_value,
        "countable": countable,
    } | _named(cause, explanation, blinded(table).columns)


def _truth(table: pd.DataFrame, cause: Cause) -> pd.Series:
    if "truth" not in table or {*cause.truths, UNDISTURBED} != set(table["truth"]):
        raise InputError(
            "runs with and without the cause are needed, and the column `truth`",
            where=cause.id,
        )
    return table["truth"]


def _named(cause: Cause, explanation: Explanation, columns: Iterable[str]) -> dict:
    """What the ranked factors say of a cause."""
    if not explanation.found:
        return {
            "named": NOTHING,
            "first": "",
            "members": 0,
            "rank": 0,
            "right": False,
            "strict": False,
            "leader": False,
        }
    groups = [list(members) for members in explanation.factors["members"]]
    itself = [any_shows(group, cause.shown_by) for group in groups]
    trail = [any_shows(group, cause.trail) for group in groups]
    right = itself if any_shows(columns, cause.shown_by) else trail
    first = explanation.factors["factor"].iloc[0]
    return {
        "named": ITSELF if itself[0] else TRAIL if trail[0] else OTHER,
        "first": first,
        "members": len(groups[0]),
        "rank": right.index(True) + 1 if any(right) else 0,
        "right": right[0],
        "strict": any_shows(groups[0], cause.on_victim),
        "leader": shows(first, cause.on_victim),
    }


def shows(column: str, patterns: Iterable[str]) -> bool:
    """Whether a column, or the counter that it is the rate of, matches one of the patterns."""
    counter = str(column).removesuffix("_per_s")
    return any(fnmatch.fnmatchcase(counter, pattern) for pattern in patterns)


def any_shows(columns: Iterable[str], patterns: Iterable[str]) -> bool:
    """Whether one of the columns matches one of the patterns."""
    return any(shows(column, patterns) for column in columns)


def score_nothing(
    runs: Mapping[str, pd.DataFrame], shuffles: int = 2, seed: int = 0
) -> pd.DataFrame:
    """What the attribution finds in runs without a planted cause.

    Each campaign gives its undisturbed runs alone, and all runs with shuffled run times.
    Undisturbed runs may differ for a reason of the machine. Shuffled run times have no reason:
    whatever is found in them is false.

    Parameters
    ----------
    runs
        Cause id -> runs table with the column `truth`.
    shuffles
        Shuffled tables of each campaign.
    seed
        Seed of the shuffles and of the attribution.

    Returns
    -------
    DataFrame, a row a table; columns campaign, kind ("undisturbed" or "shuffled"), runs, p_value,
    found, first (leader of the first group).
    """
    rows = []
    for name, table in each(runs.items(), "explaining runs without a planted cause", "causes"):
        table = finished(table)
        undisturbed = table[_truth(table, known_cause(name)) == UNDISTURBED]
        rows.append(_nothing(name, "undisturbed", undisturbed, seed))
        for number in range(shuffles):
            random = np.random.default_rng([seed, number])
            shuffled = table.assign(seconds=random.permutation(table["seconds"].to_numpy()))
            rows.append(_nothing(name, "shuffled", shuffled, seed + number))
    return pd.DataFrame(rows, columns=FALSE_COLUMNS)


def _nothing(name: str, kind: str, table: pd.DataFrame, seed: int) -> dict:
    explanation = explained_cause(table, seed)
    first = explanation.factors["factor"].iloc[0] if explanation.found else ""
    return {
        "campaign": name,
        "kind": kind,
        "runs": len(table),
        "p_value": explanation.p_value,
        "found": explanation.found,
        "first": first,
    }
