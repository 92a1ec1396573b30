"""Tables, figures, the paper, and pages that open without a network."""

from .figures import (figure_attribution, figure_causes, figure_classes, figure_clock, figure_compare, figure_config, figure_detours, figure_distribution, figure_excess, figure_extremes, figure_factor, figure_felt,
                      figure_findings, figure_mitigations, figure_noise, figure_planted, figure_quanta, figure_replay, figure_reserved, figure_scaling, figure_sides, figure_stopping, figure_subtraction, figure_systems, figure_quantile_shift, figure_timeline, trace_sample)
from ._simulate import figure_curves, figure_dots, figure_overheads, figure_ranks, published_results
from .interactive import Exploration, explore
from .page import banner_html, export_page, outside_loads
from .paper import Numbered, Paper, collect, provenance_html
from .published import published, published_names
from .record import Figure, Table, save_figure, save_table
from .style import COLUMN_IN, KINDS, PAGE_IN, ROLES, Role, style, use_style
from .tables import Findings, Provenance, accuracy_table, found_html, overhead_table

__all__ = ["COLUMN_IN", "Exploration", "Findings", "KINDS", "PAGE_IN", "ROLES", "Figure", "Numbered", "Paper", "Provenance", "Role", "Table", "accuracy_table", "banner_html", "collect",
           "explore", "export_page", "figure_config", "figure_replay", "figure_stopping", "figure_subtraction", "trace_sample", "figure_clock", "figure_extremes", "figure_reserved", "figure_scaling", "figure_sides", "figure_attribution", "figure_causes", "figure_curves", "figure_dots", "figure_overheads", "figure_ranks", "figure_classes", "figure_compare", "figure_detours", "figure_distribution", "figure_excess", "figure_factor", "figure_felt",
           "figure_findings", "figure_mitigations", "figure_noise", "figure_planted", "figure_quanta", "figure_systems", "figure_quantile_shift", "figure_timeline", "found_html", "outside_loads", "overhead_table", "provenance_html", "published", "published_names", "published_results", "save_figure",
           "save_table", "style", "use_style"]
