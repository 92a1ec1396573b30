"""Attribution: the performance classes that runs fall into, and the counters that are associated with the slow ones."""

from .classes import Classes, classify
from .cutoff import Cutoff, find_cutoff
from .explanation import Explanation, explain
from .layer_effects import LayerEffect, layer_effect
from .screening import candidate_columns, correlated_groups
from .wide_tables import FilteredColumns, filter_columns

__all__ = [
    "Classes",
    "Cutoff",
    "Explanation",
    "LayerEffect",
    "FilteredColumns",
    "classify",
    "correlated_groups",
    "explain",
    "find_cutoff",
    "layer_effect",
    "candidate_columns",
    "filter_columns",
]
