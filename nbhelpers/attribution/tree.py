"""The decision tree behind an explanation, and how accurate it is on unseen runs.

Owns the settings of the tree and its folds; both are scikit-learn's.
"""

import numpy as np
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from ..statistics import percentile_interval

DEPTH = 3
FOLDS = 5
# of 0.5, the impurity of two balanced classes: splits of pure nodes are rounding errors
LEAST_GAIN = 0.002


def unfitted(size: int, seed: int = 0) -> DecisionTreeClassifier:
    """A tree of depth 3 in which slow and fast runs weigh the same as a class.

    Parameters
    ----------
    size
        Number of runs: a leaf holds 1 % of them, three at least.
    seed
        Seed of the order in which columns are looked at: of two that split equally well the first
        is taken.
    """
    return DecisionTreeClassifier(
        max_depth=DEPTH,
        min_samples_leaf=max(3, round(0.01 * size)),
        min_impurity_decrease=LEAST_GAIN,
        class_weight="balanced",
        random_state=seed,
    )


def held_out(values: np.ndarray, slow: np.ndarray, seed: int) -> np.ndarray:
    """Predict each run by a tree that has not seen it: five folds with their share of slow runs."""
    folds = min(FOLDS, int(slow.sum()), int((~slow).sum()))
    cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return cross_val_predict(unfitted(slow.size), values, slow, cv=cv).astype(bool)


def accuracy_interval(slow: np.ndarray, predicted: np.ndarray, seed: int) -> tuple[float, float]:
    """95 % interval of the balanced accuracy: Jeffreys' interval of both shares, combined by
    sampling.
    """
    random = np.random.default_rng(seed)
    hits = (predicted[slow].sum(), (~predicted[~slow]).sum())
    sizes = (slow.sum(), (~slow).sum())
    shares = [random.beta(hit + 0.5, size - hit + 0.5, 4000) for hit, size in zip(hits, sizes)]
    low, high = percentile_interval(np.mean(shares, axis=0))
    # Jeffreys' interval by convention reaches 1 where all predictions were right
    accuracy = float(balanced_accuracy_score(slow, predicted))
    return min(float(low), accuracy), max(float(high), accuracy)
