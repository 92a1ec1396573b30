"""Injection: replays a noise config beside a workload and logs, event by event, what was done."""

from .accuracy import Accuracy, accuracy_of, workload_accuracy
from .calibration import calibrate
from .hog import Hog, random_schedule
from .injector import Injector
from .kinds import KindOptions, capacity
from .log import read_logs
from .observed_loss import Felt, demonstration, feel
from .plan import make_plan
from .retracing import Retrace, compare_retraced, retrace
from .rules import Calibration, Plan, Rules
from .simple import Injection, inject, injection_campaign

__all__ = [
    "Accuracy",
    "Calibration",
    "Felt",
    "Hog",
    "Injection",
    "Injector",
    "KindOptions",
    "Plan",
    "Retrace",
    "Rules",
    "accuracy_of",
    "calibrate",
    "capacity",
    "compare_retraced",
    "demonstration",
    "feel",
    "inject",
    "injection_campaign",
    "make_plan",
    "random_schedule",
    "read_logs",
    "retrace",
    "workload_accuracy",
]
