"""Injection: replays a noise config beside a workload and logs, event by event, what was done."""

from .accuracy import Accuracy, accuracy_of, workload_accuracy
from .capacity import measure_capacity
from .hog import Hog, random_schedule
from .injector import Injector
from .log import read_logs
from .observed_loss import ObservedLoss, demonstration_noise, observe_loss
from .overheads import measure_overheads
from .plan import make_plan
from .retracing import Retrace, compare_retraced, retrace
from .rules import Overheads, Plan, Rules
from .simple import Injection, inject, injection_campaign
from .stressor_options import StressorOptions

__all__ = [
    "Accuracy",
    "Overheads",
    "ObservedLoss",
    "Hog",
    "Injection",
    "Injector",
    "StressorOptions",
    "Plan",
    "Retrace",
    "Rules",
    "accuracy_of",
    "measure_overheads",
    "measure_capacity",
    "compare_retraced",
    "demonstration_noise",
    "observe_loss",
    "inject",
    "injection_campaign",
    "make_plan",
    "random_schedule",
    "read_logs",
    "retrace",
    "workload_accuracy",
]
