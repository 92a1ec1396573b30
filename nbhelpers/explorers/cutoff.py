"""An attribution whose cutoff can be dragged: distribution, tree, factors and what is known of the
first follow it.

Owns the view of one cutoff.
"""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..attribution import Explanation, explain
from ..errors import InputError
from ..mitigation.knowledge import factor_of
from ..outcomes import outcome_of
from . import _drawing as draw
from ._base import Explorer
from ._controls import Control, Slider

SHARES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9)  # of the runs below the cutoff, in the twin
MOST_FACTORS = 5
STEPS = 200
LETTERS = 16  # a line of a node
TREE_LEFT, LEVEL = 330, 92  # px
BELOW = 12  # px, of yes and no below the middle of a line
_COLUMNS = ["factor", "direction", "slow_median", "fast_median", "separation"]


@dataclass(frozen=True, eq=False)
class CutoffExplorer(Explorer):
    """An attribution to look around in.

    Attributes
    ----------
    runs
        Runs table.
    outcome, exclude, seed
        As of `explain`.
    begin
        The cutoff to begin with.
    """

    runs: pd.DataFrame = field(repr=False)
    outcome: str
    exclude: tuple[str, ...]
    seed: int
    begin: float

    def controls(self) -> tuple[Control, ...]:
        """The cutoff."""
        return self._controls

    @cached_property
    def _controls(self) -> tuple[Control, ...]:
        low, high = self._range()
        step = (high - low) / STEPS
        low = self.begin - np.floor((self.begin - low) / step) * step  # a slider stands on steps
        unit = outcome_of(self.runs, self.outcome).unit
        return (Slider("cutoff", "cutoff", self.begin, float(low), high, step, unit),)

    def explanation(self, cutoff: float) -> Explanation:
        """The attribution at a cutoff, without a null: for looking around, nothing is claimed."""
        return explain(
            self.runs, self.outcome, float(cutoff), self.exclude, self.seed, permutations=0
        )

    def draw(self, state: dict[str, Any]) -> str:
        """The picture, the first factors, what is known of the first of them."""
        found = self.explanation(state["cutoff"])
        slow = f"{int(found.labels.sum())} of {len(found.labels)} runs are slow."
        if found.factors.empty:
            return f"<p>{slow} {html.escape(found.summary)}</p>"
        table = found.factors[_COLUMNS].head(MOST_FACTORS)
        rows = table.to_html(float_format=lambda value: f"{value:.4g}", border=0)
        return (
            f"<p>{slow} Balanced accuracy on unseen runs: {found.accuracy:.2f} (0.5 is"
            f" guessing).</p>{_picture(found, self._values.to_numpy())}{rows}{_known(found)}"
        )

    def chosen(self) -> list[dict[str, Any]]:
        """The start, and quantiles of the outcome."""
        cutoffs = sorted({self.begin, *self._values.quantile(list(SHARES)).tolist()})
        return [{"cutoff": cutoff} for cutoff in cutoffs]

    @cached_property
    def _values(self) -> pd.Series:
        return self.runs[self.outcome].astype(float)

    def _range(self) -> tuple[float, float]:
        """So that about four runs lie on either side."""
        values = np.sort(self._values.to_numpy())
        low, high = values[min(3, len(values) - 1)], values[max(-5, -len(values))]
        low, high = float(min(low, high, self.begin)), float(max(low, high, self.begin))
        return low, high if high > low else 1.01 * low


def explore_cutoff(
    runs: pd.DataFrame,
    outcome: str | None = None,
    exclude: Iterable[str] = (),
    seed: int = 0,
    start: float | None = None,
) -> CutoffExplorer:
    """Look around in an attribution by dragging its cutoff.

    Parameters
    ----------
    runs, outcome, exclude, seed
        As of `explain`; only finished runs count.
    start
        The cutoff to begin with; None: the upper quartile.

    Returns
    -------
    CutoffExplorer: in JupyterLab a slider, on an exported page a few views behind a plain one.

    Raises
    ------
    InputError
        Fewer than two runs, or no such column.
    """
    outcome = outcome_of(runs, outcome).name
    if outcome not in runs:
        raise InputError(
            f"no column {outcome!r} to explore",
            fix=f"the table has: {', '.join(map(str, runs.columns))}",
        )
    finished = runs[runs["status"] == "ok"] if "status" in runs else runs
    if len(finished) < 2:
        raise InputError(
            f"{len(finished)} finished run(s)",
            fix="at least two, so that some lie on either side of a cutoff",
        )
    if start is None or not np.isfinite(start):
        start = float(finished[outcome].quantile(0.75))
    return CutoffExplorer(finished, outcome, tuple(exclude), seed, float(start))


def _picture(found: Explanation, values: np.ndarray) -> str:
    """The distribution at the left, the tree at the right."""
    tree = _tree(found) if found.tree is not None else ""
    depth = _inner(found).max_depth if found.tree is not None else 1
    height = max(260, 40 + LEVEL * (depth + 1))
    label = "distribution with the cutoff, and the tree"
    return draw.picture(height, label, _distribution(found, values, height), tree)


def _distribution(found: Explanation, values: np.ndarray, height: float) -> str:
    """Histogram of the outcome, stacked: fast and slow runs."""
    edges = np.histogram_bin_edges(values, 30)
    slow = found.labels.to_numpy()
    fast, of_slow = (np.histogram(values[part], edges)[0] for part in (~slow, slow))
    most = float((fast + of_slow).max())
    frame = draw.Frame(40, 40, 260, height - 90, (edges[0], edges[-1]), (0, most))
    left, wide = frame.at_x(edges[:-1]), np.diff(frame.at_x(edges)) - 1
    scale = frame.height / most
    bottom = frame.top + frame.height
    first = draw.bars(left, bottom - fast * scale, wide, fast * scale, draw.COLOURS["fast"])
    place = frame.at_x(found.threshold)
    second = draw.bars(
        left, bottom - (fast + of_slow) * scale, wide, of_slow * scale, draw.COLOURS["slow"]
    )
    cut = draw.line(place, frame.top, place, bottom, 'stroke-dasharray="5 3" stroke-width="2"')
    unit = f" ({found.unit})" if found.unit else ""
    axes = frame.x_axis(f"{found.outcome}{unit}", 4) + frame.y_axis("runs")
    return first + second + cut + axes


def _inner(found: Explanation) -> Any:
    """Of scikit-learn, which is not imported here."""
    tree: Any = found.tree
    return tree.tree_


def node_counts(found: Explanation) -> np.ndarray:
    """Fast and slow runs in each node of the tree, int[nodes, 2].

    The tree has the share of slow runs by weight, where both classes weigh the same.
    """
    tree, slow = _inner(found), int(found.labels.sum())
    fast = len(found.labels) - slow
    share, runs = tree.value[:, 0, 1], tree.n_node_samples
    of_slow = np.round(share * runs * slow / (fast * (1 - share) + share * slow)).astype(int)
    return np.column_stack([runs - of_slow, of_slow])


def _tree(found: Explanation) -> str:
    tree, counts = _inner(found), node_counts(found)
    places: dict[int, tuple[float, float]] = {}
    _place(tree, 0, TREE_LEFT, draw.WIDTH, 0, places)
    parts = []
    for node, (x, y) in places.items():
        for child in (tree.children_left[node], tree.children_right[node]):
            if child >= 0:
                to_x, to_y = places[child]
                parts.append(_branch(x, y + 10, to_x, to_y - 14, child == tree.children_left[node]))
    return "".join(parts + [_node(found, node, *places[node], counts[node]) for node in places])


def _branch(x: float, y: float, to_x: float, to_y: float, yes: bool) -> str:
    """A line with its answer beside it, on the outer side."""
    at = (x + to_x) / 2 + (to_x - x) / (to_y - y) * BELOW
    word = ("yes", "end") if yes else ("no", "start")
    answer = draw.text(at - 4 if yes else at + 4, (y + to_y) / 2 + BELOW, *word)
    return draw.line(x, y, to_x, to_y) + answer


def _place(
    tree: Any, node: int, left: float, right: float, level: int, places: dict[int, tuple]
) -> None:
    """Each node in the middle of its part of the width; a part by the number of leaves."""
    places[node] = (left + right) / 2, 34 + LEVEL * level
    one, two = tree.children_left[node], tree.children_right[node]
    if one < 0:
        return
    share = _leaves(tree, one) / (_leaves(tree, one) + _leaves(tree, two))
    middle = left + (right - left) * min(max(share, 0.3), 0.7)
    _place(tree, one, left, middle, level + 1, places)
    _place(tree, two, middle, right, level + 1, places)


def _leaves(tree: Any, node: int) -> int:
    one, two = tree.children_left[node], tree.children_right[node]
    return 1 if one < 0 else _leaves(tree, one) + _leaves(tree, two)


def _node(found: Explanation, node: int, x: float, y: float, counts: np.ndarray) -> str:
    """The question of a node, or the runs of a leaf, in a box."""
    tree = _inner(found)
    fast, slow = counts
    if tree.children_left[node] < 0:
        lines = [f"{fast} fast", f"{slow} slow"]
    else:
        name = _broken(found.features[tree.feature[node]])
        lines = [*name, f"≤ {tree.threshold[node]:.3g}?"]
    wide = 8.2 * max(map(len, lines)) + 10
    high, top = 17 * len(lines) + 8, y - 18
    is_slow = tree.value[node, 0, 1] > 0.5
    colour = draw.COLOURS["slow" if is_slow else "fast"]
    dash = ' stroke-dasharray="4 2"' if is_slow else ""
    frame = f'rx="4" fill="white" stroke="{colour}" stroke-width="1.5"{dash}'
    dark = 'style="fill:#1b1b1b"'
    words = [
        draw.text(x, top + 18 + 17 * row, words, "middle", dark) for row, words in enumerate(lines)
    ]
    return draw.box(x - wide / 2, top, wide, high, frame) + "".join(words)


def _broken(name: str) -> list[str]:
    """A long counter name over several lines, broken after underscores."""
    lines = [""]
    for part in re.findall(r"[^_]*_?", name)[:-1]:
        if lines[-1] and len(lines[-1] + part) > LETTERS:
            lines.append("")
        lines[-1] += part
    return lines


def _known(found: Explanation) -> str:
    """What the knowledge says of the first factor that it knows."""
    members = [member for group in found.factors["members"].head(MOST_FACTORS) for member in group]
    factor = next((known for member in members if (known := factor_of(member))), None)
    return factor._repr_html_() if factor else ""
