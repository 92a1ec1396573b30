"""A cutoff, the tree that it makes, and the factors, as HTML; how a view looks in JupyterLab."""

import numpy as np
import pandas as pd

from ..attribution import Explanation
from ..report import figure_attribution
from ..report.images import DRAWING, embedded

STATIC = "NOISEBOOK_STATIC"  # set where nobody is there to drag
STEPS = 200  # of a cutoff's slider
MOST_FACTORS = 5
# JupyterLab's own rules for tables do not reach into widgets; pages have theirs.
LOOK = (
    "<style>.jupyter-widgets .explorer{line-height:1.4}"
    ".jupyter-widgets .explorer p{margin:.5em 0}"
    ".jupyter-widgets .explorer table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".jupyter-widgets .explorer :is(th,td){padding:.25em .7em;text-align:right}"
    ".jupyter-widgets .explorer thead{border-bottom:1px solid}</style>"
)
_COLUMNS = ["factor", "direction", "slow_median", "fast_median", "separation"]


def tree_html(found: Explanation, runs: pd.DataFrame) -> str:
    """The distribution with its cutoff, the tree, and the first factors; p-values where there is a
    null.

    Parameters
    ----------
    found, runs
        What `explain` found in the runs.
    """
    columns = [*_COLUMNS, "p_value"] if np.isfinite(found.p_value) else _COLUMNS
    first = found.factors[columns].head(MOST_FACTORS)
    with DRAWING:
        shown = embedded(figure_attribution(found, runs), "Distribution and tree")
    table = first.to_html(float_format=lambda value: f"{value:.4g}", border=0)
    return shown if first.empty else shown + table
