"""The figure of an explanation: every run with the cutoff, and next to it the tree.

Owns the drawing of the tree; the words in its nodes are rewritten, because scikit-learn's say
"class" and "value".
"""

import re
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..attribution import Explanation
from ..facts import plain_number
from ..outcomes import Outcome
from ..palette import CLASSES, MARKERS, PAGE_IN, POINTS, STYLE
from ._blank import blank_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NODE_LETTERS = 15  # a line of a node
# a level of the tree with a name of three lines; legend and axis; a figure without a tree
LEVEL_IN, AROUND_IN, LOWEST_IN = 0.95, 1.0, 2.5
# of the two axes; constrained layout finds about the same, and takes a third of the drawing
LEFT_IN, BELOW_IN, ABOVE_IN, RIGHT_IN = 0.55, 0.4, 0.6, 0.05


def figure_attribution(explanation: Explanation, runs: pd.DataFrame) -> "Figure":
    """Draw every run by rank with the cutoff on the left, the tree that separates the slow runs on
    the right.

    Parameters
    ----------
    explanation
        What `explain(runs, …)` found.
    runs
        The same runs table.

    Returns
    -------
    matplotlib Figure. If nothing was found it says so where the tree would stand.
    """
    import matplotlib.pyplot as plt

    runs = runs[runs["status"] == "ok"] if "status" in runs else runs
    if runs.empty:
        return blank_figure(runs)
    with plt.style.context(STYLE):
        levels = explanation.tree.tree_.max_depth + 1 if explanation.tree else 0
        size = (PAGE_IN, max(LOWEST_IN, levels * LEVEL_IN + AROUND_IN))
        figure = plt.figure(figsize=size, layout="none")
        left, right = figure.subplots(1, 2, width_ratios=[1, 2.2])
        x, y = 1 / size[0], 1 / size[1]
        figure.subplots_adjust(LEFT_IN * x, BELOW_IN * y, 1 - RIGHT_IN * x, 1 - ABOVE_IN * y, 0.05)
        _draw_classes(left, explanation, runs[explanation.outcome].to_numpy(float))
        right.set_axis_off()
        if explanation.tree:
            _draw_tree(right, explanation, runs)
        else:
            words = textwrap.fill(explanation.summary.replace("; ", ";\n"), 62)
            right.text(0.5, 0.5, words, ha="center", va="center", transform=right.transAxes)
        right.set(xticks=[], yticks=[])  # hidden ones would be laid out all the same
    return figure


def _draw_classes(axes: Any, explanation: Explanation, values: np.ndarray) -> None:
    slow, ranks = explanation.labels.to_numpy(), values.argsort().argsort() + 1
    for name, chosen in {"fast": ~slow, "slow": slow}.items():
        look = {"s": 9, "color": CLASSES[name], "marker": MARKERS[name]}
        label = f"{name} (n = {int(chosen.sum())})"
        axes.scatter(values[chosen], ranks[chosen], label=label, edgecolor="none", **look)
    found = explanation.cutoff.value is not None
    if np.isfinite(explanation.threshold):
        quartile = "lower quartile" if explanation.higher_is_better else "upper quartile"
        axes.axvline(
            explanation.threshold,
            color="black",
            linestyle=(0, (3, 2)) if found else (0, (1, 2)),
            linewidth=0.9,
            label=f"{'cutoff' if found else quartile} {explanation.threshold:.4g}",
        )
    axes.set(xlabel=Outcome(explanation.outcome, explanation.unit).label, ylabel="runs, by rank")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2)


def _draw_tree(axes: Any, explanation: Explanation, runs: pd.DataFrame) -> None:
    from sklearn.tree import plot_tree

    columns = runs[explanation.features].astype(float)
    counts = _counts(explanation, columns.to_numpy(np.float32))
    boxes = plot_tree(explanation.tree, ax=axes, fontsize=8, impurity=False, node_ids=True)
    for box in boxes:
        text = box.get_text()
        if text.strip() in ("True", "False"):
            box.set(text="yes" if text.strip() == "True" else "no", fontsize=POINTS)
        elif text.startswith("node #"):
            _reword(box, explanation, int(text.split("\n")[0].removeprefix("node #")), counts)


def _counts(explanation: Explanation, values: np.ndarray) -> np.ndarray:
    """Fast and slow runs in each node."""
    paths = explanation.tree.decision_path(values)
    slow = explanation.labels.to_numpy()
    return np.column_stack(
        [np.asarray(paths[chosen].sum(axis=0)).ravel() for chosen in (~slow, slow)]
    )


def _reword(box: Any, explanation: Explanation, node: int, counts: np.ndarray) -> None:
    tree = explanation.tree.tree_
    fast, slow = counts[node]
    is_slow, is_leaf = bool(tree.value[node][0][1] > 0.5), tree.children_left[node] < 0
    name = "" if is_leaf else _wrapped(explanation.features[tree.feature[node]])
    asked = "" if is_leaf else f"{name}\n≤ {plain_number(tree.threshold[node])}?\n"
    colour = CLASSES["slow" if is_slow else "fast"]
    box.set(text=f"{asked}{fast} fast\n{slow} slow", fontsize=POINTS, linespacing=1.1)
    look = {"facecolor": colour if is_leaf else "white", "edgecolor": colour, "alpha": 1}
    look |= {"linestyle": (0, (3, 1)) if is_slow else "-", "linewidth": 1}
    box.get_bbox_patch().set(**look, boxstyle="round,pad=0.25")


def _wrapped(name: str) -> str:
    """A long counter name over several lines, broken after underscores."""
    parts = re.sub(r"_(?!s$)", "_ ", name)
    lines = textwrap.wrap(parts, NODE_LETTERS, break_long_words=False, break_on_hyphens=False)
    return "\n".join(line.replace(" ", "") for line in lines)
