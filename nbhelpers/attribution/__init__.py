"""Attribution: performance classes of runs, and the counters that are associated with slow runs."""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from .cutoff import find_cutoff
    from .explanation import Explanation, explain
    from .who import slow_runs, who_took_it
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
