"""Real MPI: which one is here, traces of a program's MPI calls, and what they say about it."""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from ._calls import KINDS, NUMBERS, Calls, read_calls
    from ._installation import installation
    from ._trace import CallTrace
    from .programs import PROGRAMS
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
