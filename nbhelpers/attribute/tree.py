"""The decision tree behind an explanation: its cross-validated accuracy, the null of that accuracy, its stability.

Owns everything random about an explanation; each function takes its random generator.
"""

import numpy as np
from scipy.stats import rankdata
from sklearn.tree import DecisionTreeClassifier

DEPTH = 3
FOLDS = 5
LEAST_GAIN = 0.002  # of 0.5, the impurity of two balanced classes: splits of pure nodes are rounding errors
BOOTSTRAP_TREES = 100
FACTOR_PERMUTATIONS = 1000


def fit(values: np.ndarray, slow: np.ndarray) -> DecisionTreeClassifier:
    """A tree of depth 3 in which slow and fast runs weigh the same as a class.

    Parameters
    ----------
    values : n × k float32; slow : n booleans of which some are True and some False.
    """
    share = slow.mean()
    weights = np.where(slow, 0.5 / share, 0.5 / (1 - share))
    leaf = max(3, round(0.01 * slow.size))
    tree = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=leaf, min_impurity_decrease=LEAST_GAIN, random_state=0)
    return tree.fit(values, slow.astype(np.int8), sample_weight=weights)


def cross_validated(values: np.ndarray, slow: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Prediction for each run by a tree that has not seen it (stratified folds)."""
    fold = _stratified_folds(slow, random)
    predicted = np.zeros(slow.size, bool)
    for number in range(fold.max() + 1):
        held = fold == number
        predicted[held] = fit(values[~held], slow[~held]).predict(values[held])
    return predicted


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


def accuracy_interval(slow: np.ndarray, predicted: np.ndarray, random: np.random.Generator) -> tuple[float, float]:
    """95 % interval of the balanced accuracy: Jeffreys' interval of both shares, combined by sampling."""
    hits = (predicted[slow].sum(), (~predicted[~slow]).sum())
    sizes = (slow.sum(), (~slow).sum())
    shares = [random.beta(hit + 0.5, size - hit + 0.5, 4000) for hit, size in zip(hits, sizes)]
    low, high = np.percentile(np.mean(shares, axis=0), [2.5, 97.5])
    accuracy = balanced_accuracy(slow, predicted)  # Jeffreys' interval by convention reaches 1 where all were hit
    return min(float(low), accuracy), max(float(high), accuracy)


def permutation_p_value(values: np.ndarray, slow: np.ndarray, accuracy: float, random: np.random.Generator,
                        permutations: int) -> float:
    """Share of shuffled outcomes that a tree predicts as well.

    The whole search is repeated on each shuffled outcome. The cutoff depends on the outcomes and not on whose they are, so
    a shuffle leaves it where it was and only the labels move; folds, trees and score are computed anew. Stops early once 20
    shuffles did as well, the p-value then being 20 over the number tried (Besag and Clifford 1991).
    """
    as_good = 0
    for tried in range(1, permutations + 1):
        shuffled = random.permutation(slow)
        as_good += balanced_accuracy(shuffled, cross_validated(values, shuffled, random)) >= accuracy
        if as_good == 20:
            return as_good / tried
    return (as_good + 1) / (permutations + 1)


def bootstrap_importances(values: np.ndarray, slow: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Importance of each column in trees of resampled runs (trees × k), and which column each tree splits on first (−1: none)."""
    classes = np.flatnonzero(slow), np.flatnonzero(~slow)
    importances, roots = [], []
    for _ in range(BOOTSTRAP_TREES):
        rows = np.concatenate([random.choice(rows, rows.size) for rows in classes])
        tree = fit(values[rows], slow[rows])
        importances.append(tree.feature_importances_)
        roots.append(max(tree.tree_.feature[0], -1))
    return np.array(importances), np.array(roots)


def separations(values: np.ndarray, slow: np.ndarray) -> np.ndarray:
    """Chance that a slow run has the larger value than a fast one, for each column (area under the ROC curve)."""
    ranks = rankdata(values, axis=0)
    count = slow.sum()
    return (ranks[slow].sum(axis=0) - count * (count + 1) / 2) / (count * (slow.size - count))


def factor_p_values(values: np.ndarray, slow: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """p-value of each column's separation, corrected for the number of columns (Westfall and Young's maximum)."""
    ranks = rankdata(values, axis=0)
    ranks = (ranks - ranks.mean(axis=0)) / np.maximum(ranks.std(axis=0), 1e-12)
    shuffled = random.permuted(np.tile(slow.astype(float), (FACTOR_PERMUTATIONS, 1)), axis=1)
    largest = np.abs(shuffled @ ranks).max(axis=1)
    observed = np.abs(slow.astype(float) @ ranks)
    return ((largest[:, None] >= observed - 1e-9).sum(axis=0) + 1) / (FACTOR_PERMUTATIONS + 1)
