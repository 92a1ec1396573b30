"""Slow runs: the classes they fall into, the counters that go with them, whether a change helped,
and how many runs that takes.
"""

from . import stopping
from .adjusted import adjusted_effect
from .bootstrap import STATISTICS, bootstrap_interval, bootstrap_ratio
from .classes import Classes, classify
from .compare import Comparison, compare, compare_costs, summarise
from .cutoff import Cutoff, find_cutoff
from .difference import difference_tests, holm
from .explain import Explanation, explain
from .layer import LayerEffect, layer_effect
from .order import TimeOrder, time_order
from .predictors import correlated_groups, predictors
from .regression import quantile_effect
from .replayed import course_of, replay_sentence, replayed_rules
from .stopping import Decision, Replay, Rule, replay
from .wide import Sieved, sieve

__all__ = [
    "STATISTICS",
    "Classes",
    "Comparison",
    "Cutoff",
    "Decision",
    "Explanation",
    "LayerEffect",
    "Replay",
    "Rule",
    "Sieved",
    "TimeOrder",
    "adjusted_effect",
    "bootstrap_interval",
    "bootstrap_ratio",
    "classify",
    "compare",
    "compare_costs",
    "correlated_groups",
    "course_of",
    "difference_tests",
    "explain",
    "find_cutoff",
    "holm",
    "layer_effect",
    "predictors",
    "quantile_effect",
    "replay",
    "replay_sentence",
    "replayed_rules",
    "sieve",
    "stopping",
    "summarise",
    "time_order",
]
