"""Statistics that every part may use: intervals, comparison, adjusted effects, time order, stopping.

Tables and arrays in, numbers out; nothing here reads a file or knows of a campaign.
"""

from . import stopping
from .adjustment import adjusted_effect
from .bootstrap import STATISTICS, bootstrap_interval, bootstrap_ratio
from .comparison import Comparison, cell_statistics, compare, compare_costs
from .difference import difference_tests, holm
from .epochs import same_epochs
from .means import Interval, mean_interval, mean_ratio, replay_ratio
from .order import TimeOrder, time_order
from .regression import quantile_effect
from .stopping import Decision, Rule, RuleEvaluation, evaluate_rule
from .stopping_evaluation import evaluate_rules, running_statistic, stopping_sentence

__all__ = [
    "Comparison",
    "Decision",
    "Interval",
    "RuleEvaluation",
    "Rule",
    "STATISTICS",
    "TimeOrder",
    "adjusted_effect",
    "bootstrap_interval",
    "bootstrap_ratio",
    "compare",
    "compare_costs",
    "running_statistic",
    "difference_tests",
    "holm",
    "mean_interval",
    "mean_ratio",
    "quantile_effect",
    "evaluate_rule",
    "replay_ratio",
    "stopping_sentence",
    "evaluate_rules",
    "same_epochs",
    "stopping",
    "cell_statistics",
    "time_order",
]
