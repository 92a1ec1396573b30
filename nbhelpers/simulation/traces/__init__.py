"""From what a real program called to a schedule: tables of MPI calls, their readers, and
`schedule_of_calls`.
"""

from ._otf2 import read_otf2
from .liballprof import read_liballprof
from .schedules import schedule_of_calls

__all__ = ["read_liballprof", "read_otf2", "schedule_of_calls"]
