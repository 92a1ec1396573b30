"""The decision tree as nodes that can be clicked: what each asks, and how many runs it holds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..attribution import Explanation


@dataclass(frozen=True)
class Node:
    """A node of the tree.

    Attributes
    ----------
    metric, threshold
        Runs with `metric <= threshold` go to the left; of a leaf "" and 0.
    fast, slow
        Runs in the node.
    left, right
        The nodes below; None of a leaf.
    """

    metric: str
    threshold: float
    fast: int
    slow: int
    left: "Node | None" = None
    right: "Node | None" = None

    @property
    def is_leaf(self) -> bool:
        """Whether nothing is asked here."""
        return self.left is None

    @property
    def is_slow(self) -> bool:
        """Whether most of its runs are slow."""
        return self.slow > self.fast

    @property
    def leaves(self) -> int:
        """Leaves below, or 1."""
        return self.left.leaves + self.right.leaves if self.left and self.right else 1

    @property
    def metrics(self) -> list[str]:
        """What it and the nodes below ask, each once, from the top."""
        below = [self.left, self.right] if self.left and self.right else []
        names = [self.metric] if self.metric else []
        return list(dict.fromkeys([*names, *(name for node in below for name in node.metrics)]))


def nodes_of(explanation: Explanation, runs: pd.DataFrame) -> Node | None:
    """The root of an explanation's tree; None where there is no tree.

    Parameters
    ----------
    explanation
        Of `explain(runs, …)`.
    runs
        The same runs table.
    """
    if explanation.tree is None:
        return None
    tree: Any = explanation.tree
    columns = runs[explanation.features].astype(float)
    paths = tree.decision_path(columns.fillna(columns.median()).to_numpy(np.float32))
    slow = explanation.labels.reindex(runs.index).to_numpy(bool)
    tally = [np.asarray(paths[chosen].sum(axis=0)).ravel() for chosen in (~slow, slow)]
    return _node(tree.tree_, explanation.features, tally, 0)


def _node(tree: Any, features: list[str], tally: list[np.ndarray], at: int) -> Node:
    counts = (int(tally[0][at]), int(tally[1][at]))
    left, right = int(tree.children_left[at]), int(tree.children_right[at])
    if left < 0:
        return Node("", 0.0, *counts)
    below = (_node(tree, features, tally, place) for place in (left, right))
    return Node(features[tree.feature[at]], float(tree.threshold[at]), *counts, *below)
