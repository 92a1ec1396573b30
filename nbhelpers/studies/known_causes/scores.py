"""How well an attribution does where the truth is known: the cause named first, and nothing found
where there is nothing.

Owns the scores of the bench of known causes; pure, runs tables in, tables out.
"""

import fnmatch
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ...attribution import Explanation, explain
from ...errors import InputError
from ...measurement import consequences, finished, rates
from ...progress import each
from ...statistics import bootstrap_ratio
from .catalogue import UNDISTURBED, Cause, causes

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


def explained_cause(runs: pd.DataFrame, seed: int = 0, **options: object) -> Explanation:
    """The attribution of a runs table of a known cause, that is not told the truth.

    Parameters
    ----------
    runs
        Of `cause_campaign`, or any other runs table.
    seed, options
        Of `explain`.
    """
    return explain(rates(finished(runs)), seed=seed, consequences=consequences(), **options)


def score_causes(runs: Mapping[str, pd.DataFrame], seed: int = 0) -> pd.DataFrame:
    """What the attribution says of each known cause, and whether that is right.

    Parameters
    ----------
    runs
        Cause id -> runs table with the column `truth`.
    seed
        Of the attribution.

    Returns
    -------
    One row a cause: cause, what, runs, planted (disturbed runs), effect (median run time disturbed
    / not) with its 95 % bootstrap interval low and high, slow (runs that the cutoff calls slow),
    slow_planted (of these, disturbed), p_value, named ("the cause", "its trail", "something else",
    "nothing"), first (the leader of the first group), members (how many counters it has), rank (of
    the first group that names the cause, 0: none), right (the cause, or its trail where the machine
    has no counter of the cause), strict (a counter of the cause is in the first group, whatever the
    machine has; CPU time and memory of the culprit are none), leader (the one counter named first
    is such a counter), countable (the machine has such a counter at all).

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
    cause, table = _cause(name), finished(table)
    disturbed = _truth(table, name) == cause.id
    seconds = table["seconds"]
    low, high = bootstrap_ratio(seconds[disturbed], seconds[~disturbed], "median", seed)
    explanation = explained_cause(table, seed)
    slow = explanation.labels.to_numpy()
    countable = any(shows(column, cause.own) for column in table.columns)
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
    } | _named(cause, explanation, table.columns)


def _cause(name: str) -> Cause:
    if name not in causes():
        raise InputError(f"there is no cause '{name}'", fix=f"one of {', '.join(causes())}")
    return causes()[name]


def _truth(table: pd.DataFrame, name: str) -> pd.Series:
    if "truth" not in table or not {name, UNDISTURBED} == set(table["truth"]):
        raise InputError(
            "runs with and without the cause are needed, and a column `truth` that tells them"
            " apart",
            where=name,
        )
    return table["truth"]


def _named(cause: Cause, explanation: Explanation, columns: Sequence[str]) -> dict:
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
    itself, trail = (
        [any(shows(member, patterns) for member in group) for group in groups]
        for patterns in (cause.shown_by, cause.trail)
    )
    has_counter = any(shows(column, cause.shown_by) for column in columns)
    named = ITSELF if itself[0] else TRAIL if trail[0] else OTHER
    right = itself if has_counter else trail
    first = explanation.factors["factor"].iloc[0]
    return {
        "named": named,
        "first": first,
        "members": len(groups[0]),
        "rank": right.index(True) + 1 if any(right) else 0,
        "right": right[0],
        "strict": any(shows(member, cause.own) for member in groups[0]),
        "leader": shows(first, cause.own),
    }


def shows(column: str, patterns: Sequence[str]) -> bool:
    """Whether a column, or the counter that it is the rate of, is one of those named."""
    return any(
        fnmatch.fnmatchcase(str(column).removesuffix("_per_s"), pattern) for pattern in patterns
    )


def score_nothing(
    runs: Mapping[str, pd.DataFrame], shuffles: int = 2, seed: int = 0
) -> pd.DataFrame:
    """What the attribution says where there is nothing: of the undisturbed runs of each campaign
    alone, and of run times shuffled among all.

    Undisturbed runs may differ for a reason of the machine's own; shuffled run times have none,
    whatever is found in them is false.

    Parameters
    ----------
    runs
        Cause id -> runs table with the column `truth`.
    shuffles
        Shuffled tables of each campaign.
    seed
        Of the shuffles and of the attribution.

    Returns
    -------
    One row a table: campaign, kind ("undisturbed" or "shuffled"), runs, p_value, found, first.
    """
    rows = []
    for name, table in each(runs.items(), "looking where nothing was planted", "causes"):
        table = finished(table)
        rows.append(_nothing(name, "undisturbed", table[_truth(table, name) == UNDISTURBED], seed))
        for number in range(shuffles):
            random = np.random.default_rng([seed, number])
            rows.append(
                _nothing(
                    name,
                    "shuffled",
                    table.assign(seconds=random.permutation(table["seconds"].to_numpy())),
                    seed + number,
                )
            )
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


def score_sentences(scores: pd.DataFrame, nothing: pd.DataFrame) -> list[str]:
    """The scores in words."""
    wrong = scores[~scores["right"]]
    missed = "".join(
        f"; {row.cause}: {row.first or 'nothing was found'}" for row in wrong.itertuples()
    )
    by_trail = scores[scores["right"] & (scores["named"] == TRAIL)]["cause"]
    trail = (
        f" ({', '.join(by_trail)} by the culprit's CPU time or memory only: this machine has no"
        " counter of the cause)"
        if len(by_trail)
        else ""
    )
    without = scores[~scores["countable"] & ~scores["strict"]]["cause"]
    none = f"; of {' and '.join(without)} this machine has no such counter" if len(without) else ""
    found = nothing.groupby("kind")["found"].agg(["sum", "count"])
    return [
        (
            f"{int(scores['right'].sum())} of {len(scores)} planted causes were named"
            f" first{trail}{missed}."
        ),
        (
            f"Strictly, {int(scores['strict'].sum())} of {len(scores)}: with a counter of what"
            " happened to the victim, not of what the culprit did, in the first group; in"
            f" {int(scores['leader'].sum())} the one counter named first is such a counter{none}."
        ),
        " ".join(
            f"{'Among' if kind == 'undisturbed' else 'And among'} {int(row['count'])} tables of"
            f" {'undisturbed runs' if kind == 'undisturbed' else 'shuffled run times'} something"
            f" was found in {int(row['sum'])}."
            for kind, row in found[::-1].iterrows()
        ),
    ]
