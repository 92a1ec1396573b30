"""Noise at scale: GOAL schedules, the LogGOPS engine, noise on ranks.

Patterns of communication are in `patterns`, skeletons of applications in `applications`, fat
trees and dragonflies in `topology`, messages with an L and G of their own in `spread`.
"""

from .engine import simulate
from .goal import read_goal, write_goal
from .implicit import evaluate
from .loggops import LogGOPS, known_network
from .machines import at_scale, spread_over
from .noise import Detours, Noise, periodic, poisson, read_detours
from .replicates import replicate
from .result import Result
from .schedule import Schedule
from .signatures import signature_on_ranks

__all__ = [
    "Detours",
    "LogGOPS",
    "Noise",
    "Result",
    "Schedule",
    "at_scale",
    "evaluate",
    "known_network",
    "periodic",
    "poisson",
    "read_detours",
    "read_goal",
    "replicate",
    "signature_on_ranks",
    "simulate",
    "spread_over",
    "write_goal",
]
