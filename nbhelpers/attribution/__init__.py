"""Attribution: the performance classes that runs fall into, and the counters that are associated with the slow ones."""

from .classes import Classes, classify
from .cutoff import Cutoff, find_cutoff
from .explanation import Explanation, explain
from .layer_effects import LayerEffect, layer_effect
from .screening import correlated_groups, predictors
from .wide_tables import Sieved, sieve

__all__ = [
    "Classes",
    "Cutoff",
    "Explanation",
    "LayerEffect",
    "Sieved",
    "classify",
    "correlated_groups",
    "explain",
    "find_cutoff",
    "layer_effect",
    "predictors",
    "sieve",
]
