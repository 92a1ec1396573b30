"""Statistics that every part may use: intervals, comparison, adjusted effects, time order, stopping.

Tables and arrays in, numbers out; nothing here reads a file or knows of a campaign.
"""

from . import stopping
from .adjustment import adjusted_effect
from .bootstrap import STATISTICS, bootstrap_interval, bootstrap_ratio
from .comparison import Comparison, compare, compare_costs, summarise
from .difference import difference_tests, holm
from .epochs import same_epochs
from .means import Interval, mean_interval, mean_ratio, replay_ratio
from .order import TimeOrder, time_order
from .regression import quantile_effect
from .stopping import Decision, Replay, Rule, replay
from .stopping_replay import course_of, replay_sentence, replayed_rules

__all__ = [
    "Comparison",
    "Decision",
    "Interval",
    "Replay",
    "Rule",
    "STATISTICS",
    "TimeOrder",
    "adjusted_effect",
    "bootstrap_interval",
    "bootstrap_ratio",
    "compare",
    "compare_costs",
    "course_of",
    "difference_tests",
    "holm",
    "mean_interval",
    "mean_ratio",
    "quantile_effect",
    "replay",
    "replay_ratio",
    "replay_sentence",
    "replayed_rules",
    "same_epochs",
    "stopping",
    "summarise",
    "time_order",
]
