"""Whether an association that was found in some runs comes back in fresh ones.

Owns the evidence: an e-value, whose mean is 1 where there is no association. Those of fresh
campaigns are multiplied, so that anybody can go on (Vovk and Wang 2021, "E-values"). A plain p of
at most 0.05 in the first fresh campaign is the rival; the figures of both are in
extras/known_causes/bench/CARD.md.
"""

import numpy as np
import pandas as pd

from ..outcomes import Outcome
from ..statistics.order import positions
from .categories import Category, category_of, level_names, numbered, worst_levels
from .null import Rearranged, rearranged

ENOUGH = 20.0  # an e-value so large is as rare as a p-value of 0.05 without an association
_BETS = np.arange(1.0, 6.0)  # standard errors; the evidence is the mean of bets on each


def comes_back(
    counter: pd.Series, outcome: pd.Series, direction: float, count: int = 999, seed: int = 0
) -> float:
    """The evidence of fresh runs for an association by ranks, which was found in other runs.

    Parameters
    ----------
    counter, outcome
        Numbers of the fresh runs, in the order of measuring.
    direction
        Sign of the association that was found; the contrary is no evidence.
    count
        Rearrangements of the outcome, which keep what the order of the runs has to do with it
        (`null.rearranged`).
    seed
        Seed of the rearrangements.

    Returns
    -------
    float : e-value of at most `count` + 1; 1 where the counter or the outcome is the same in all
    runs. Without an association it reaches 20 in at most 5 of 100 campaigns, and so does the
    product of those of several campaigns (Ville's inequality).

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> faults = pd.Series(random.random(30))
    >>> comes_back(faults, faults + random.normal(0, 0.1, 30), 1) > 20
    True
    >>> comes_back(faults, pd.Series(random.random(30)), 1) < 20
    True
    """
    known = pd.DataFrame({"counter": counter, "outcome": outcome}).dropna()
    if known.nunique().min() < 2:
        return 1.0
    kinds = rearranged(known[["counter"]], known["outcome"], count, seed)
    return min(_against(kind, np.sign(direction)) for kind in kinds)


def _against(kind: Rearranged, sign: float) -> float:
    """What the bets won on the outcomes as they are, over what they win on rearranged ones."""
    outcomes = np.vstack([kind.outcome, kind.surrogates])
    errors = sign * (outcomes @ kind.columns["counter"].to_numpy()) / np.sqrt(outcomes.shape[1])
    won = np.exp(np.outer(errors, _BETS) - _BETS**2 / 2).mean(axis=1)
    return float(won[0] / won.mean())


def fresh_evidence(runs: pd.DataFrame, outcome: Outcome, name: str, direction: float) -> float:
    """The evidence of fresh runs for a counter that was found in other runs; see `comes_back`.

    Parameters
    ----------
    runs
        Finished runs with totals and rates, which nobody has searched for this.
    outcome
        What they are judged by.
    name
        The counter. One that these runs do not have is no evidence (1).
    direction
        Sign of its correlation with the outcome.
    """
    table = runs.iloc[positions(runs)]
    if name not in table.select_dtypes("number"):
        return 1.0
    return comes_back(table[name], table[outcome.name], direction)


def fresh_category_evidence(
    runs: pd.DataFrame, outcome: Outcome, name: str, found_in: pd.DataFrame
) -> float:
    """The evidence of fresh runs for a category; see `comes_back`. Whether a run is at one of the
    levels that were worse is what a counter's number is.

    Parameters
    ----------
    runs, outcome, name
        As for `fresh_evidence`.
    found_in
        The finished runs in which the category was found: they say which levels are worse.
    """
    sign = -1 if outcome.higher_is_better else 1
    column = found_in[name]
    is_number = pd.api.types.is_numeric_dtype(column)
    category = numbered(name, column.to_numpy()) if is_number else category_of(column)
    table = runs.iloc[positions(runs)]
    if name not in table or not isinstance(category, Category):
        return 1.0
    worst = worst_levels(category, sign * found_in[outcome.name].to_numpy())
    at_worst = level_names(table[name]).isin(worst).astype(float)
    return comes_back(at_worst, table[outcome.name], sign)


def again_in_words(evidence: float) -> str:
    """What an e-value says of an association.

    Examples
    --------
    >>> again_in_words(150), again_in_words(0.7)
    ('it comes back (e = 150).', 'it does not come back beyond chance (e = 0.7, asked: 20).')
    """
    if evidence >= ENOUGH:
        return f"it comes back (e = {evidence:.3g})."
    return f"it does not come back beyond chance (e = {evidence:.2g}, asked: {ENOUGH:.0f})."
