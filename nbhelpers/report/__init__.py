"""Tables, figures and the paper."""

from .figures import (figure_attribution, figure_causes, figure_classes, figure_clock, figure_compare, figure_config, figure_detours,
                      figure_distribution, figure_excess, figure_extremes, figure_factor, figure_felt, figure_findings,
                      figure_mitigations, figure_noise, figure_planted, figure_quanta, figure_quantile_shift, figure_replay,
                      figure_reserved, figure_scaling, figure_sides, figure_stopping, figure_subtraction, figure_systems, figure_timeline,
                      trace_sample)
from ._simulate import figure_curves, figure_dots, figure_overheads, figure_ranks, published_results
from .interactive import Exploration, explore
from .paper import Numbered, Paper, collect, provenance_html
from .published import published, published_names
from .record import Figure, Table, save_figure, save_table
from .style import COLUMN_IN, KINDS, PAGE_IN, ROLES, Role, style, use_style
from .tables import Findings, Provenance, accuracy_table, found_html, overhead_table

__all__ = ["COLUMN_IN", "Exploration", "Figure", "Findings", "KINDS", "Numbered", "PAGE_IN", "Paper", "Provenance", "ROLES", "Role",
           "Table", "accuracy_table", "collect", "explore", "figure_attribution", "figure_causes", "figure_classes", "figure_clock",
           "figure_compare", "figure_config", "figure_curves", "figure_detours", "figure_distribution", "figure_dots", "figure_excess",
           "figure_extremes", "figure_factor", "figure_felt", "figure_findings", "figure_mitigations", "figure_noise", "figure_overheads",
           "figure_planted", "figure_quanta", "figure_quantile_shift", "figure_ranks", "figure_replay", "figure_reserved",
           "figure_scaling", "figure_sides", "figure_stopping", "figure_subtraction", "figure_systems", "figure_timeline", "found_html",
           "overhead_table", "provenance_html", "published", "published_names", "published_results", "save_figure", "save_table", "style",
           "trace_sample", "use_style"]
