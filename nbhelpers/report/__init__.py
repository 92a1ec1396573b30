"""Tables, figures, the paper, and pages that open without a network."""

from .figures import (figure_attribution, figure_compare, figure_detours, figure_distribution, figure_noise, figure_planted, figure_timeline)
from .page import banner_html, export_page, outside_loads
from .paper import Numbered, Paper, collect, provenance_html
from .published import published, published_names
from .record import Figure, Table, save_figure, save_table
from .style import COLUMN_IN, KINDS, PAGE_IN, ROLES, Role, style, use_style
from .tables import Findings, Provenance, accuracy_table, found_html, overhead_table

__all__ = ["COLUMN_IN", "Findings", "KINDS", "PAGE_IN", "ROLES", "Figure", "Numbered", "Paper", "Provenance", "Role", "Table", "accuracy_table", "banner_html", "collect",
           "export_page", "figure_attribution", "figure_compare", "figure_detours", "figure_distribution", "figure_noise", "figure_planted",
           "figure_timeline", "found_html", "outside_loads", "overhead_table", "provenance_html", "published", "published_names", "save_figure",
           "save_table", "style", "use_style"]
