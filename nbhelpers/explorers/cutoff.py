"""An attribution whose cutoff can be dragged: distribution, tree, factors and what is known of the
first follow it.
"""

import html
from collections.abc import Iterable
from functools import partial

import numpy as np
import pandas as pd

from ..attribution import Explanation, explain
from ..errors import InputError
from ..mitigation.knowledge import factor_of
from ..outcomes import outcome_of, with_cost
from ..report import figure_attribution
from ..report.images import DRAWING, embedded
from ._base import Control, Explorer

SHARES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9)  # of the runs below the cutoff, in the twin
MOST_FACTORS = 5
STEPS = 200
_COLUMNS = ["factor", "direction", "slow_median", "fast_median", "separation"]


def explore_cutoff(
    runs: pd.DataFrame,
    outcome: str | None = None,
    exclude: Iterable[str] = (),
    seed: int = 0,
    start: float | None = None,
) -> Explorer:
    """Look around in an attribution by dragging its cutoff; without a null, so nothing is claimed.

    Parameters
    ----------
    runs, outcome, exclude, seed
        As of `explain`; only finished runs count.
    start
        The cutoff to begin with; None: the upper quartile.

    Returns
    -------
    Explorer: in JupyterLab a slider, on an exported page a few views behind a plain one.

    Raises
    ------
    InputError
        Fewer than two runs, or no such column.
    """
    judged = outcome_of(runs, outcome)
    finished = runs[runs["status"] == "ok"] if "status" in runs else runs
    values = with_cost(finished, outcome)[judged.name].astype(float).sort_values(ignore_index=True)
    if len(values) < 2:
        fix = "at least two, so that some lie on either side of a cutoff"
        raise InputError(f"{len(values)} finished run(s)", fix=fix)
    if start is None or not np.isfinite(start):
        start = float(values.quantile(0.75))
    # about four runs lie on either side
    ends = values[min(3, len(values) - 1)], values[max(len(values) - 5, 0)]
    cutoffs = {start, *np.linspace(min(ends), max(ends), STEPS).tolist()}
    chosen = sorted({start, *values.quantile(list(SHARES)).tolist()})
    explained = partial(
        explain, finished, judged.name, exclude=tuple(exclude), seed=seed, permutations=0
    )
    return Explorer(
        lambda cutoff: _view(explained(cutoff=cutoff), finished),
        {"cutoff": Control("cutoff", sorted(cutoffs), start, judged.unit)},
        [{"cutoff": cutoff} for cutoff in chosen],
    )


def _view(found: Explanation, runs: pd.DataFrame) -> str:
    """The picture, the first factors, what is known of the first of them."""
    slow = f"{int(found.labels.sum())} of {len(found.labels)} runs are slow."
    if found.factors.empty:
        return f"<p>{slow} {html.escape(found.summary)}</p>"
    first = found.factors["members"].head(MOST_FACTORS)
    known = [factor for group in first for name in group if (factor := factor_of(name))]
    return (
        f"<p>{slow} Balanced accuracy on unseen runs: {found.accuracy:.2f} (0.5 is"
        f" guessing).</p>{tree_html(found, runs)}{known[0]._repr_html_() if known else ''}"
    )


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
