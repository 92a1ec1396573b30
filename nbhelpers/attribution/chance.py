"""How accurate a tree is by chance: that of tables whose outcomes were shuffled.

Owns that number. It is shown beside the accuracy of a tree; what is claimed rests on the p-value of
the whole search (`null`), which keeps the order of the runs where it matters.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .explanation import Explanation, folds_of, search_of
from .screening import Consequences
from .tree import balanced_accuracy

SHUFFLES = 40


@dataclass(frozen=True)
class Chance:
    """Accuracy of trees on unseen runs, where outcome and columns have nothing in common.

    Attributes
    ----------
    median, high
        Median and 95th percentile of the balanced accuracy.
    shuffles
        How many shuffled tables they are of.
    """

    median: float
    high: float
    shuffles: int

    def __str__(self) -> str:
        return (
            f"trees of {self.shuffles} shuffled tables reach {self.median:.2f} (median; 95th"
            f" percentile {self.high:.2f})"
        )


def accuracy_by_chance(
    runs: pd.DataFrame,
    explanation: Explanation,
    exclude: Iterable[str] = (),
    seed: int = 0,
    shuffles: int = SHUFFLES,
    consequences: Consequences = None,
) -> Chance | None:
    """Shuffle the outcomes among the runs, and choose columns and fit trees as `explain` does.

    Parameters
    ----------
    runs
        Runs table.
    explanation
        Of `explain(runs, …)`, whose outcome and cutoff are used.
    exclude, seed, consequences
        As they were there; the shuffles are drawn by the same seed.
    shuffles
        Number of shuffled tables.

    Returns
    -------
    Chance; None where the explanation has no tree whose accuracy could be compared.
    """
    if np.isnan(explanation.accuracy):
        return None
    runs = runs.loc[explanation.labels.index]
    searched = explanation.cutoff.kind == "searched"
    cutoff = "search" if searched else explanation.cutoff
    name, higher = explanation.outcome, explanation.higher_is_better
    random = np.random.default_rng(seed)
    reached = []
    for _ in range(shuffles):
        shuffled = runs.assign(**{name: random.permutation(runs[name].to_numpy())})
        _, seen = search_of(shuffled, name, cutoff, exclude, seed, 0, higher, consequences, None)
        if seen is None or (folds := folds_of(seen, seed)) is None:
            continue
        reached.append(balanced_accuracy(seen.slow, folds.predictions()))
    if not reached:
        return None
    return Chance(float(np.median(reached)), float(np.quantile(reached, 0.95)), len(reached))
