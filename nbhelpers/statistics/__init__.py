"""Statistics that every part may use: intervals, comparison, time order, stopping.

Tables and arrays in, numbers out; nothing here reads a file or knows of a campaign.
"""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from . import stopping
    from .comparison import Comparison, cell_statistics, compare, compare_costs
    from .epochs import same_epochs
    from .intervals import (
        bootstrap_interval,
        bootstrap_ratio,
        mean_interval,
        percentile_interval,
        quantile_interval,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
