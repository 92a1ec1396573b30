"""Attribution: performance classes of runs, and the counters that are associated with slow runs."""

from .classes import Classes, classify
from .cutoff import Cutoff, find_cutoff
from .explanation import Explanation, explain
from .layer_effects import layer_effect
from .wide_tables import filter_columns

__all__ = [
    "Classes",
    "Cutoff",
    "Explanation",
    "classify",
    "explain",
    "filter_columns",
    "find_cutoff",
    "layer_effect",
]
