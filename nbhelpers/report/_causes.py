"""The figure of the bench of known causes: how much each planted cause costs, and whether it was
named.
"""

import pandas as pd

from ._blank import NothingToDraw, or_blank
from .appearance import PAGE_IN, ROLES, style

_MARKS = {
    "the cause": ("baseline", "o", "the cause named first"),
    "its trail": ("traced", "D", "the culprit's trail named first"),
    "something else": ("injected", "X", "something else named first"),
    "nothing": ("slow", "^", "nothing found"),
}


@or_blank
def figure_causes(scores: pd.DataFrame, width_in: float = PAGE_IN):
    """Run time with each cause over run time without, 95 % intervals; the marker says what the
    attribution named.

    Parameters
    ----------
    scores
        Of `score_causes`.

    Returns
    -------
    matplotlib Figure.
    """
    import matplotlib.pyplot as plt

    if scores.empty:
        raise NothingToDraw("no cause was scored", fix="plant at least one: cause_runs(…)")
    scores = scores.sort_values("effect", ascending=False).reset_index(drop=True)
    with style():
        figure, axes = plt.subplots(figsize=(width_in, 1.0 + 0.24 * len(scores)))
        axes.axvline(1, color="black", linewidth=0.6)
        for named, (role, marker, label) in _MARKS.items():
            rows = scores[scores["named"] == named]
            if len(rows):
                gaps = [
                    (rows["effect"] - rows["low"]).clip(lower=0),
                    (rows["high"] - rows["effect"]).clip(lower=0),
                ]
                axes.errorbar(
                    rows["effect"],
                    rows.index,
                    xerr=gaps,
                    linestyle="none",
                    marker=marker,
                    markersize=5,
                    color=ROLES[role].colour,
                    capsize=2,
                    linewidth=0.9,
                    label=f"{label} ({len(rows)})",
                )
        axes.set_yticks(scores.index, scores["cause"])
        axes.set_ylim(len(scores) - 0.5, -0.5)
        named = axes.secondary_yaxis("right")
        named.set_yticks(scores.index, scores["first"].replace("", "–"), color="#555555")
        named.tick_params(length=0)
        named.spines["right"].set_visible(False)
        axes.set_xlabel("median run time, disturbed over undisturbed")
        figure.legend(loc="outside upper left", ncols=2)
    return figure
