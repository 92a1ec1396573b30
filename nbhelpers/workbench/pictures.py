"""Pictures of the workbench: a metric against the outcome, and distributions over each other."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..outcomes import outcome_of
from ..palette import CLASSES, COLUMN_IN, MARKERS, SIDES
from ..report.appearance import style
from ..report.images import DRAWING
from ..statistics.intervals import shortest_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST = 5  # runs with a value of both


def relation_sentence(runs: pd.DataFrame, metric: str, outcome: str) -> str:
    """R² of a metric and the outcome in words, with the 95 % interval of the correlation and n.

    Examples
    --------
    >>> runs = pd.DataFrame({"faults": range(20), "seconds": [1 + n / 10 for n in range(20)]})
    >>> relation_sentence(runs, "faults", "seconds")[:32]
    'R² 1.00 (1.00 to 1.00, n = 20 ru'
    """
    from scipy.stats import pearsonr

    both = _both(runs, metric, outcome)
    if len(both) < FEWEST or both.nunique().min() < 2:
        return f"No R²: too few values of {metric} or {outcome} differ (n = {len(both)} runs)."
    found = pearsonr(both[metric], both[outcome])
    ends = np.array(found.confidence_interval())
    low = 0.0 if ends[0] < 0 < ends[1] else (ends**2).min()
    return (
        f"R² {found.statistic**2:.2f} ({low:.2f} to {(ends**2).max():.2f}, n = {len(both)} runs) of"
        f" {outcome} with {metric}; an association, which need not be a cause."
    )


def _both(runs: pd.DataFrame, metric: str, outcome: str) -> pd.DataFrame:
    """The runs with a number of both."""
    columns = runs[list(dict.fromkeys([metric, outcome]))]
    numbers = columns.apply(pd.to_numeric, errors="coerce").astype(float)
    return numbers.replace([np.inf, -np.inf], np.nan).dropna()


def figure_relation(runs: pd.DataFrame, metric: str, outcome: str, slow: pd.Series) -> "Figure":
    """Every run: a metric against the outcome, with the line of least squares.

    Parameters
    ----------
    runs
        Runs table.
    metric, outcome
        Columns.
    slow
        Which runs are slow, with the index of the runs.
    """
    import matplotlib.pyplot as plt
    import seaborn

    drawn = _both(runs, metric, outcome)
    classes = slow.reindex(drawn.index).map({True: "slow", False: "fast"})
    look = {"palette": CLASSES, "markers": MARKERS, "alpha": 0.75}
    with DRAWING, style():
        figure, axes = plt.subplots(figsize=(COLUMN_IN, 2.4))
        names = {"x": metric, "y": outcome, "ax": axes}
        if drawn[metric].nunique() > 1:
            line = {"color": "black", "linewidth": 0.9}
            seaborn.regplot(drawn, **names, scatter=False, ci=None, line_kws=line)
        seaborn.scatterplot(drawn, **names, hue=classes, style=classes, **look)
        axes.set(xlabel=metric, ylabel=outcome_of(runs, outcome).label)
        axes.legend(title="")
    return figure


def figure_densities(values: dict[str, np.ndarray], label: str) -> "Figure":
    """Distributions over each other: density, each run, and where 95 % of the runs lie.

    Parameters
    ----------
    values
        Outcomes by name, such as untreated and treated.
    label
        Of the outcome, with its unit.
    """
    import matplotlib.pyplot as plt
    import seaborn

    with DRAWING, style():
        figure, axes = plt.subplots(figsize=(1.4 * COLUMN_IN, 2.2))
        for place, (name, one) in enumerate(values.items()):
            colour, label_n = SIDES[("baseline", "injected")[place]], f"{name} (n = {len(one)})"
            look = {"x": one, "ax": axes, "color": colour}
            seaborn.kdeplot(**look, fill=True, warn_singular=False, label=label_n)
            seaborn.rugplot(**look, height=0.08)
            place_y, where = -0.03 - 0.04 * place, axes.get_xaxis_transform()
            bar = axes.hlines(place_y, *shortest_interval(one), colour, clip_on=False)
            bar.set(linewidth=2.5, transform=where, label="95 % of the runs")
        axes.set(xlabel=label, ylabel="density", yticks=[], ylim=(0, None))
        axes.tick_params(axis="x", pad=10)
        figure.legend(loc="outside upper left", ncols=len(values))
    return figure
