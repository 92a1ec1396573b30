"""Replays a noise config beside a workload, tells event by event what it did, and plants disturbances to be reproduced."""

from .anomalies import (describe_configs, describe_schedules, planted_campaign, planted_findings, planted_schedules, planted_table,
                        traced_configs)
from .hog import Hog, random_schedule
from .injection import Injection, inject
from .injector import Injector
from .log import Accuracy, accuracy_of, read_logs
from .plan import Plan, Rules, make_plan
from .planted import Interval, mean_interval, replay_ratio

__all__ = ["Accuracy", "Hog", "Injection", "Injector", "Interval", "Plan", "Rules", "accuracy_of", "describe_configs", "describe_schedules", "inject", "make_plan", "mean_interval", "planted_campaign", "planted_findings", "planted_schedules",
           "planted_table",
           "random_schedule", "read_logs", "replay_ratio", "traced_configs"]
