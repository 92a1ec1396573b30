"""The decision tree behind an explanation: its accuracy, importance and stability on unseen runs.

Owns everything random about an explanation; each function takes its seed or random generator.
"""

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np
from scipy.stats import rankdata
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ..statistics import percentile_interval

DEPTH = 3
FOLDS = 5
# of 0.5, the impurity of two balanced classes: splits of pure nodes are rounding errors
LEAST_GAIN = 0.002
BOOTSTRAP_TREES = 100


def fit(values: np.ndarray, slow: np.ndarray, seed: int = 0) -> DecisionTreeClassifier:
    """A tree of depth 3 in which slow and fast runs weigh the same as a class.

    Parameters
    ----------
    values
        n × k float32.
    slow
        n booleans of which some are True and some False.
    seed
        Of the order in which columns are looked at: of two that split equally well the first is
        taken.
    """
    # whole numbers: else rounding decides between equal splits
    weights = np.where(slow, (~slow).sum(), slow.sum()).astype(float)
    leaf = max(3, round(0.01 * slow.size))
    tree = DecisionTreeClassifier(
        max_depth=DEPTH, min_samples_leaf=leaf, min_impurity_decrease=LEAST_GAIN, random_state=seed
    )
    # unchecked: the checks take as long as a small tree
    return tree.fit(
        np.ascontiguousarray(values, np.float32),
        slow.astype(np.int8),
        sample_weight=weights,
        check_input=False,
    )


@dataclass(frozen=True, eq=False)
class FoldTrees:
    """A tree for each fold of the runs, fitted to the others.

    Attributes
    ----------
    values, slow
        n × k columns, and n booleans.
    held
        Of each fold, which runs its tree has not seen.
    trees
        One a fold.
    random
        The generator of the folds, in the state after them.
    """

    values: np.ndarray
    slow: np.ndarray
    held: list[np.ndarray]
    trees: list[DecisionTreeClassifier]
    random: np.random.Generator

    @classmethod
    def of(cls, values: np.ndarray, slow: np.ndarray, seed: int) -> "FoldTrees":
        """Of stratified folds."""
        random = np.random.default_rng(seed)
        fold = _stratified_folds(slow, random)
        held = [fold == number for number in range(fold.max() + 1)]
        fitted = [fit(values[~part], slow[~part]) for part in held]
        return cls(values, slow, held, fitted, random)

    def predictions(self) -> np.ndarray:
        """Of each run, by the tree that has not seen it."""
        predicted = np.zeros(self.slow.size, bool)
        for part, tree in zip(self.held, self.trees):
            unseen = np.ascontiguousarray(self.values[part], np.float32)
            predicted[part] = tree.predict(unseen, check_input=False)
        return predicted

    def importance(self) -> np.ndarray:
        """`held_out_importance` of the trees, averaged."""
        random = copy.deepcopy(self.random)
        importances = [
            held_out_importance(tree, self.values[part], self.slow[part], random)
            for part, tree in zip(self.held, self.trees)
        ]
        return np.mean(importances, axis=0)


def _stratified_folds(slow: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Fold of each run; every fold holds its share of the slow ones."""
    count = min(FOLDS, int(slow.sum()), int((~slow).sum()))
    order = random.permutation(slow.size)
    order = order[np.argsort(slow[order], kind="stable")]
    fold = np.empty(slow.size, int)
    fold[order] = np.arange(slow.size) % count
    return fold


def balanced_accuracy(slow: np.ndarray, predicted: np.ndarray) -> float:
    """Mean of the shares of slow and of fast runs that were recognised; 0.5 is guessing."""
    return float((predicted[slow].mean() + (~predicted[~slow]).mean()) / 2)


def accuracy_interval(
    slow: np.ndarray, predicted: np.ndarray, random: np.random.Generator
) -> tuple[float, float]:
    """95 % interval of the balanced accuracy: Jeffreys' interval of both shares, combined by
    sampling.
    """
    hits = (predicted[slow].sum(), (~predicted[~slow]).sum())
    sizes = (slow.sum(), (~slow).sum())
    shares = [random.beta(hit + 0.5, size - hit + 0.5, 4000) for hit, size in zip(hits, sizes)]
    low, high = percentile_interval(np.mean(shares, axis=0))
    # Jeffreys' interval by convention reaches 1 where all predictions were right
    accuracy = balanced_accuracy(slow, predicted)
    return min(float(low), accuracy), max(float(high), accuracy)


def bootstrap(
    values: np.ndarray, slow: np.ndarray, seed: int, workers: int
) -> tuple[np.ndarray, np.ndarray]:
    """Trees of resampled runs.

    Returns
    -------
    importances
        Of each column on the runs that a tree has not seen (trees × k).
    roots
        Column of each tree's first split; −1: none.

    Notes
    -----
    Importance is what the balanced accuracy loses when the column's values are shuffled among the
    runs that the tree has not seen (Breiman, Random forests, 2001, section 10).
    """

    classes = np.flatnonzero(slow), np.flatnonzero(~slow)

    def one_tree(source: np.random.SeedSequence) -> tuple[np.ndarray, int]:
        random = np.random.default_rng(source)
        rows = np.concatenate([random.choice(rows, rows.size) for rows in classes])
        unseen = np.setdiff1d(np.arange(slow.size), rows)
        # a seed for each tree: else the same one of equal columns would win in all of them
        tree = fit(values[rows], slow[rows], int(random.integers(2**31)))
        importance = held_out_importance(tree, values[unseen], slow[unseen], random)
        return importance, max(tree.tree_.feature[0], -1)

    sources = np.random.SeedSequence(seed).spawn(BOOTSTRAP_TREES)
    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(one_tree, sources))
    importances = np.array([importance for importance, _ in results])
    return importances, np.array([root for _, root in results])


def held_out_importance(
    tree: DecisionTreeClassifier, values: np.ndarray, slow: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Loss of balanced accuracy when each column in turn is shuffled; NaN if the runs are all of
    one class.
    """
    if slow.all() or not slow.any():
        return np.full(values.shape[1], np.nan)
    importance = np.zeros(values.shape[1])
    accuracy = balanced_accuracy(slow, tree.predict(values) > 0)
    for column in np.unique(tree.tree_.feature[tree.tree_.feature >= 0]):
        shuffled = values.copy()
        shuffled[:, column] = random.permutation(shuffled[:, column])
        importance[column] = accuracy - balanced_accuracy(slow, tree.predict(shuffled) > 0)
    return importance


def variance_shares(values: np.ndarray, outcome: np.ndarray, seed: int) -> np.ndarray:
    """Share of the outcome's variance that each of a few columns explains on held-out runs;
    together, what all of them explain.

    Shapley values (Lindeman, Merenda and Gold 1980) of the cross-validated R² of a regression tree:
    columns that overlap divide what they share. Shares below 0 are noise.
    """
    count = values.shape[1]
    subsets = {
        chosen: _held_out_r2(values[:, list(chosen)], outcome, seed) if chosen else 0.0
        for size in range(count + 1)
        for chosen in combinations(range(count), size)
    }
    shares = np.zeros(count)
    for chosen, explained in subsets.items():
        if len(chosen) == count:
            continue
        weight = factorial(len(chosen)) * factorial(count - len(chosen) - 1) / factorial(count)
        for column in set(range(count)) - set(chosen):
            shares[column] += weight * (subsets[tuple(sorted((*chosen, column)))] - explained)
    return shares


def _held_out_r2(values: np.ndarray, outcome: np.ndarray, seed: int) -> float:
    fold = np.random.default_rng(seed).permutation(outcome.size) % FOLDS
    predicted = np.empty(outcome.size)
    for number in range(FOLDS):
        held = fold == number
        tree = DecisionTreeRegressor(
            max_depth=DEPTH, min_samples_leaf=max(3, round(0.02 * outcome.size)), random_state=0
        )
        predicted[held] = tree.fit(values[~held], outcome[~held]).predict(values[held])
    unexplained = ((outcome - predicted) ** 2).sum()
    return max(0.0, 1 - float(unexplained / ((outcome - outcome.mean()) ** 2).sum()))


def separations(values: np.ndarray, slow: np.ndarray) -> np.ndarray:
    """Chance that a slow run has the larger value than a fast one, for each column (area under the
    ROC curve).
    """
    ranks = rankdata(values, axis=0)
    count = slow.sum()
    return (ranks[slow].sum(axis=0) - count * (count + 1) / 2) / (count * (slow.size - count))
