"""Replays a noise config beside a workload, tells event by event what it did, and plants
disturbances to be reproduced.
"""

from .accuracy import Accuracy, accuracy_of, workload_accuracy
from .anomalies import (
    describe_configs,
    describe_schedules,
    narrow_means,
    planted_campaign,
    planted_findings,
    planted_schedules,
    planted_table,
    traced_configs,
)
from .calibrate import calibrate
from .felt import Felt, demonstration, feel
from .hog import Hog, random_schedule
from .injection import Injection, inject, injection_campaign
from .injector import Injector
from .kinds import KindOptions, capacity
from .log import read_logs
from .plan import make_plan
from .planted import Interval, mean_interval, mean_ratio, replay_ratio
from .retrace import Retrace, compare_retraced, retrace
from .rules import Calibration, Plan, Rules
from .worst import (
    WorstCase,
    describe_worst,
    worst_campaign,
    worst_cases,
    worst_findings,
    worst_table,
)

__all__ = [
    "Accuracy",
    "Calibration",
    "Felt",
    "Hog",
    "Injection",
    "Injector",
    "Interval",
    "KindOptions",
    "Plan",
    "Retrace",
    "Rules",
    "WorstCase",
    "accuracy_of",
    "calibrate",
    "capacity",
    "compare_retraced",
    "demonstration",
    "describe_configs",
    "describe_schedules",
    "describe_worst",
    "feel",
    "inject",
    "injection_campaign",
    "make_plan",
    "mean_interval",
    "mean_ratio",
    "narrow_means",
    "planted_campaign",
    "planted_findings",
    "planted_schedules",
    "planted_table",
    "random_schedule",
    "read_logs",
    "replay_ratio",
    "retrace",
    "traced_configs",
    "workload_accuracy",
    "worst_campaign",
    "worst_cases",
    "worst_findings",
    "worst_table",
]
