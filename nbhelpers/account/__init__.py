"""The account: where the time of a run went, and where a slow run lost its time.

`measure_edges` measures what an interruption costs beyond its records, `occupied_intervals` says
from when to when a program was without its CPU.
`owned_ms` says who had the time of each run's critical path, by name.
`Account` joins them with the speed of the CPUs and with what threads waited.
"""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from .edges import measure_edges
    from .occupied import occupied_intervals
    from .owned import owned_ms
    from .table import Account
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
