"""Noise at scale: GOAL schedules, the LogGOPS engine, noise on ranks.

Patterns of communication are in `patterns`, skeletons of applications in `applications`.
"""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from .detours import Detours, pareto, periodic
    from .engine import simulate
    from .goal import read_goal, write_goal
    from .loggops import LogGOPS, known_network
    from .noise import Noise
    from .replicates import replicate
    from .schedule import Schedule
    from .signatures import signature_on_ranks
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
