"""Tables and figures, and the numbers of papers.

A figure function takes tables and returns a matplotlib Figure at print size; `save_figure` puts it
on disk with its caption and data. A figure of one page is drawn in a cell of that page.
"""

from typing import TYPE_CHECKING

from .. import lazily

if TYPE_CHECKING:
    from .publications import published_results, published_table
    from .ratios import figure_dots, figure_findings
    from .record import Figure, Shown, Table, first_html, save_figure, save_table
    from .tables import Text, folded_html, found_html
    from .trees import figure_attribution
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
