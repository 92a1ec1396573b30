"""An explanation in words and as a page's HTML. Owns nothing else."""

import html
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .factors import RIVAL

if TYPE_CHECKING:
    from .explanation import Explanation

MOST_NAMED = 6  # members of a group named in the summary


def summary_of(result: "Explanation", permutations: int) -> str:
    """Which runs are slow, what separates them, how sure that is, and whether the order matters."""
    odds = _odds(result)
    slow = _slow_runs(result)
    order = f" {result.order.evidence}" if result.order and result.order.found else ""
    if not permutations:
        return f"{slow}. Without a null, nothing is claimed ({odds}).{order}"
    odds = f"p = {result.p_value:.3f}{', ' if odds else ''}{odds}"
    if result.order and result.order.found:
        odds += f"; compared with {result.surrogates}, as the order matters"
    if not result.found:
        return f"{slow}. Nothing among these {result.searched} separates them ({odds}).{order}"
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
    if np.isnan(result.threshold):
        return f"Looked at {slow} of {count} runs ({result.cutoff.kind})"
    unit = f" {result.unit}" if result.unit and result.outcome != "seconds" else ""
    named = "" if result.outcome == "seconds" else f" of {result.outcome}"
    runs = f"{slow} of {count} runs {side} {result.threshold:.4g}{unit}{named}"
    if result.cutoff.value is None:
        return f"There is no class of slow runs; looked at the slowest quarter instead ({runs})"
    if result.cutoff.kind in ("left tail", "right tail", "warm-up", "slow-down"):
        return (
            f"Looked at {slow} of {count} runs ({result.cutoff.kind}, cut at"
            f" {result.threshold:.4g})"
        )
    searched = " (where a counter separates best)" if result.cutoff.kind == "searched" else ""
    return f"Slow are {runs}{searched}"


def _factors(factors: pd.DataFrame) -> str:
    first = factors.iloc[0]
    share = ""
    if first["variance_share"] > 0:
        share = f", {first['variance_share']:.0%} of the variance"
    if first["kind"] == "category":
        return f"They are associated with {first['factor']}: slow {first['direction']}{share}"
    if first["kind"] == "interaction":
        return f"They are associated with {_together(first)}{share}"
    text = (
        f"They are associated with {first['factor']}, {first['direction']} in slow runs (median"
        f" {first['slow_median']:.4g} against {first['fast_median']:.4g}), first split in"
        f" {first['root_share']:.0%} of the bootstrapped trees{share}"
    )
    text += _group(first["members"]) + _rivals(factors)
    if first["drifts"]:
        text += "; it drifts through the campaign, and anything else that drifts would fit as well"
    return text


def _together(first: pd.Series) -> str:
    if len(first["members"]) == 1:
        return f"{first['factor']}, {first['direction']} of its range"
    return f"{' and '.join(first['members'])} together, {first['direction']}; with neither alone"


def _group(members: tuple[str, ...]) -> str:
    others = list(members[1:])
    if not others:
        return ""
    named = ", ".join(others[:MOST_NAMED])
    if len(others) > MOST_NAMED:
        named += f" and {len(others) - MOST_NAMED} more"
    count = f" (these {len(members)} counters move together)" if len(members) > 2 else ""
    return f"; these runs can't tell it apart from {named}{count}"


def _rivals(factors: pd.DataFrame) -> str:
    rivals = factors.iloc[1:][factors["root_share"].iloc[1:] >= RIVAL]
    if rivals.empty:
        return ""
    named = ", ".join(f"{rival.factor} ({rival.root_share:.0%})" for rival in rivals.itertuples())
    return f"; other trees begin with {named}, so which comes first is not settled"


def as_html(result: "Explanation") -> str:
    """The summary, the first factors, the columns that were not searched."""
    parts = [f"<p>{html.escape(result.summary)}</p>"]
    if len(result.factors):
        shown = result.factors.head(8).assign(members=result.factors["members"].map(", ".join))
        parts.append(shown.to_html(float_format=lambda value: f"{value:.3g}", border=0))
    rows = "".join(
        f"<li><code>{html.escape(str(name))}</code>: {html.escape(why)}</li>"
        for name, why in result.excluded.items()
    )
    parts.append(
        f"<details><summary>{len(result.excluded)} columns were not"
        f" searched</summary><ul>{rows}</ul></details>"
    )
    return "\n".join(parts)
