"""Injection: replays a noise config while a workload runs, and logs every event."""

from .accuracy import accuracy_of, workload_accuracy
from .capacity import measure_capacity
from .hog import Hog, random_schedule
from .injector import Injector
from .log import read_logs
from .observed_loss import demonstration_noise, observe_loss
from .overheads import measure_overheads
from .plan import make_plan
from .retracing import retrace
from .rules import Overheads, Plan, Rules
from .simple import inject, injection_campaign
from .stressor_options import StressorOptions

__all__ = [
    "Hog",
    "Injector",
    "Overheads",
    "Plan",
    "Rules",
    "StressorOptions",
    "accuracy_of",
    "demonstration_noise",
    "inject",
    "injection_campaign",
    "make_plan",
    "measure_capacity",
    "measure_overheads",
    "observe_loss",
    "random_schedule",
    "read_logs",
    "retrace",
    "workload_accuracy",
]
