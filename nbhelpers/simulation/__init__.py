"""Noise at scale: GOAL schedules, the LogGOPS engine, noise on ranks."""

from .engine import Deadlock, simulate
from .goal import read_goal, write_goal
from .handshakes import with_handshakes
from .implicit import Evaluation, evaluate
from .loggops import LogGOPS, known_network, known_networks
from .machines import at_scale, spread_over, traces_of
from .noise import Detours, Noise, pareto, periodic, poisson, read_detours, signature
from .replicates import Replicates, replicate
from .result import Result
from .schedule import ANY, CALC, RECV, SEND, Schedule, ScheduleError

__all__ = [
    "ANY",
    "CALC",
    "Deadlock",
    "Detours",
    "Evaluation",
    "LogGOPS",
    "Noise",
    "RECV",
    "Replicates",
    "Result",
    "SEND",
    "Schedule",
    "ScheduleError",
    "at_scale",
    "evaluate",
    "known_network",
    "known_networks",
    "pareto",
    "periodic",
    "poisson",
    "read_detours",
    "read_goal",
    "replicate",
    "signature",
    "simulate",
    "spread_over",
    "traces_of",
    "with_handshakes",
    "write_goal",
]
