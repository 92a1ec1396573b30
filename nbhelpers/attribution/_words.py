"""An explanation in words and as a page's HTML. Owns nothing else."""

import html
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..facts import plain_number

if TYPE_CHECKING:
    from .explanation import Explanation

MOST_NAMED = 6  # members of a group named in the summary


def summary_of(result: "Explanation", permutations: int) -> str:
    """Which runs are slow, what separates them, how sure that is, and whether the order matters."""
    odds = _odds(result)
    slow = _slow_runs(result)
    order = ""
    if result.order and (result.order.found or result.order.is_sorted):
        order = f" {result.order.evidence}"
    if not permutations:
        return f"{slow}. Without a null, nothing is claimed ({odds}).{order}"
    odds = f"p = {result.p_value:.3f}{', ' if odds else ''}{odds}"
    if result.order and result.order.found:
        odds += f"; compared with {result.surrogates}, as the order matters"
    if not result.found:
        said = f"{slow}. Nothing among these {result.searched} separates them ({odds})."
        # right in 19 of 43 sealed tables of a known cause (extras/known_causes/bench/CARD.md)
        for one in result.guess.itertuples():
            strongest = f"{one.factor}, {one.correlation:+.2f}"
            said += f" The largest rank correlation is that of {strongest}: a guess."
        return f"{said}{order}"
    return f"{slow}. {_factors(result.factors)} ({odds}).{order}"


def _odds(result: "Explanation") -> str:
    """The tree's accuracy, if there is a tree."""
    if np.isnan(result.accuracy):
        return ""
    low, high = result.accuracy_interval
    return (
        f"accuracy on unseen runs {result.accuracy:.2f}, 95 % interval {low:.2f} to {high:.2f};"
        " guessing: 0.50"
    )


def _slow_runs(result: "Explanation") -> str:
    slow, count = int(result.labels.sum()), len(result.labels)
    side = "below" if result.higher_is_better else "above"
    unit = f" {result.unit}" if result.unit and result.outcome != "seconds" else ""
    named = "" if result.outcome == "seconds" else f" of {result.outcome}"
    runs = f"{slow} of {count} runs {side} {result.threshold:.4g}{unit}{named}"
    if result.cutoff.value is None:
        return f"There is no class of slow runs; looked at the slowest quarter instead ({runs})"
    return f"Slow are {runs}"


def _factors(factors: pd.DataFrame) -> str:
    first = factors.iloc[0]
    if first["kind"] == "category":
        return f"They are associated with {first['factor']}: slow {first['direction']}"
    sides = first["slow_median"], first["fast_median"]
    medians = " against ".join(plain_number(value, first["factor"]) for value in sides)
    text = (
        f"They are associated with {first['factor']}, {first['direction']} in slow runs (median"
        f" {medians}), rank correlation {first['correlation']:+.2f}{_group(first['members'])}"
    )
    if first["drifts"]:
        text += "; it drifts through the campaign, and anything else that drifts would fit as well"
    return text


def _group(members: tuple[str, ...]) -> str:
    others = list(members[1:])
    if not others:
        return ""
    named = ", ".join(others[:MOST_NAMED])
    if len(others) > MOST_NAMED:
        named += f" and {len(others) - MOST_NAMED} more"
    count = f" (these {len(members)} counters move together)" if len(members) > 2 else ""
    return f"; these runs can't tell it apart from {named}{count}"


def as_html(result: "Explanation") -> str:
    """The summary and the first factors."""
    parts = [f"<p>{html.escape(result.summary)}</p>"]
    if len(result.factors):
        shown = result.factors.head(8).assign(members=result.factors["members"].map(", ".join))
        parts.append(shown.to_html(float_format=plain_number, border=0))
    return "\n".join(parts)
