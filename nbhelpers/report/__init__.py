"""Tables and figures, and the numbers of papers.

A figure function takes tables and returns a matplotlib Figure at print size; `save_figure` puts it
on disk with its caption and data. The functions lie by kind of figure: distributions, repetitions,
time lines, ratios with intervals, curves over a parameter, trees, sources, configs, nodes.
"""

from ._layout import (
    NO_ROWS,
    latex_text,
)
from .accounts import (
    figure_account,
    figure_losses,
)
from .configs import (
    figure_config,
    figure_replay,
    trace_sample,
)
from .curves import (
    figure_curves,
    figure_overheads,
    figure_quantile_shift,
    figure_scaling,
    figure_stopping,
)
from .detours import (
    figure_detours,
    figure_return_levels,
    figure_systems,
)
from .distributions import (
    figure_compare,
)
from .publications import (
    published_results,
    published_table,
)
from .rank_timelines import (
    figure_ranks,
)
from .ratios import (
    figure_causes,
    figure_dots,
    figure_excess,
    figure_findings,
    figure_mitigations,
    figure_planted,
)
from .record import (
    Figure,
    Table,
    save_figure,
    save_table,
)
from .repetitions import (
    figure_clock,
    figure_extremes,
    figure_reserved,
    figure_sides,
)
from .sources import (
    figure_noise,
)
from .tables import (
    Provenance,
    accuracy_table,
    found_html,
    overhead_table,
)
from .timelines import (
    figure_observed_loss,
    figure_subtraction,
    figure_timeline,
)
from .trees import (
    figure_attribution,
)
from .workers import (
    figure_step_times,
    figure_workers,
)

__all__ = [
    "figure_account",
    "figure_losses",
    "Figure",
    "NO_ROWS",
    "Provenance",
    "Table",
    "accuracy_table",
    "figure_attribution",
    "figure_causes",
    "figure_clock",
    "figure_compare",
    "figure_config",
    "figure_curves",
    "figure_detours",
    "figure_dots",
    "figure_excess",
    "figure_extremes",
    "figure_observed_loss",
    "figure_findings",
    "figure_mitigations",
    "figure_noise",
    "figure_overheads",
    "figure_planted",
    "figure_quantile_shift",
    "figure_ranks",
    "figure_replay",
    "figure_reserved",
    "figure_return_levels",
    "figure_scaling",
    "figure_sides",
    "figure_stopping",
    "figure_subtraction",
    "figure_step_times",
    "figure_systems",
    "figure_timeline",
    "figure_workers",
    "found_html",
    "latex_text",
    "overhead_table",
    "published_results",
    "published_table",
    "save_figure",
    "save_table",
    "trace_sample",
]
