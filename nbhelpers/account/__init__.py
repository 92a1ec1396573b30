"""The account: who had the time of a run, and where a slow run lost its time.

`owned_ms` says who had the time of each run's critical path, by name.
`owned_and_lost` also says when a run lost time that a replay can take away again.
"""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from .owned import owned_and_lost, owned_ms
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
