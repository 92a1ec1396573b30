"""Statistics that every part may use: intervals, comparison, adjusted effects, time order,
stopping.

Tables and arrays in, numbers out; nothing here reads a file or knows of a campaign.
"""

from . import stopping
from .adjustment import adjusted_effect
from .comparison import Comparison, cell_statistics, compare, compare_costs
from .epochs import same_epochs
from .intervals import (
    STATISTICS,
    as_values,
    bootstrap_interval,
    bootstrap_ratio,
    mean_interval,
    mean_ratio,
    percentile_interval,
    quantile_interval,
)
from .regression import quantile_effect
from .stopping_evaluation import evaluate_rules, running_statistic, stopping_sentence

__all__ = [
    "STATISTICS",
    "Comparison",
    "adjusted_effect",
    "as_values",
    "bootstrap_interval",
    "bootstrap_ratio",
    "cell_statistics",
    "compare",
    "compare_costs",
    "evaluate_rules",
    "mean_interval",
    "mean_ratio",
    "percentile_interval",
    "quantile_effect",
    "quantile_interval",
    "running_statistic",
    "same_epochs",
    "stopping",
    "stopping_sentence",
]
