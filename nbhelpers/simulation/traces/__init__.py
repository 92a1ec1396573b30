"""From what a real program called to a schedule: tables of MPI calls and `schedule_of_calls`."""

from typing import TYPE_CHECKING

from ... import lazily

if TYPE_CHECKING:
    from .schedules import asking, schedule_of_calls
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
