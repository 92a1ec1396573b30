"""Slow runs: the cutoff that labels them, the counters that go with them, and whether a change helped."""

from .adjusted import adjusted_effect
from .bootstrap import STATISTICS, bootstrap_interval, bootstrap_ratio
from .compare import Comparison, compare, summarise
from .cutoff import Cutoff, find_cutoff
from .explain import Explanation, explain
from .predictors import correlated_groups, predictors

__all__ = ["STATISTICS", "Comparison", "Cutoff", "Explanation", "adjusted_effect", "bootstrap_interval", "bootstrap_ratio", "compare",
           "correlated_groups", "explain", "find_cutoff", "predictors", "summarise"]
