"""An attribution whose cutoff can be dragged: distribution, tree, factors and what is known of the
first follow it.

Owns the view of one cutoff, the slider in JupyterLab, and its twin for pages: a few views made
beforehand, behind a plain slider.
"""

import base64
import html
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ..attribution import Explanation, explain
from ..errors import InputError
from ..mitigation.knowledge import factor_of
from ..outcomes import outcome_of
from .trees import figure_attribution

SHARES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9)  # of the runs below the cutoff, in the twin
MOST_FACTORS = 5
STATIC = "NOISEBOOK_STATIC"  # set where nobody is there to drag
_COLUMNS = ["factor", "direction", "slow_median", "fast_median", "separation"]
_SHOW = (
    "var views=this.parentNode.querySelectorAll('[data-view]');"
    "for(var i=0;i&lt;views.length;i++)views[i].style.display=(i==this.value)?'':'none'"
)


@dataclass(frozen=True, eq=False)
class Exploration:
    """An attribution to look around in; shows itself in a notebook.

    Attributes
    ----------
    runs
        Runs table.
    outcome, exclude, seed
        As of `explain`.
    start
        The cutoff to begin with.
    """

    runs: pd.DataFrame = field(repr=False)
    outcome: str
    exclude: tuple[str, ...]
    seed: int
    start: float

    def explanation(self, cutoff: float) -> Explanation:
        """The attribution at a cutoff, without a null: for looking around, nothing is claimed."""
        return explain(
            self.runs, self.outcome, float(cutoff), self.exclude, self.seed, permutations=0
        )

    def view(self, cutoff: float) -> str:
        """HTML of a cutoff: the figure, the first factors, what is known of the first of them."""
        found = self.explanation(cutoff)
        summary = (
            f"Cutoff {cutoff:.4g}: {int(found.labels.sum())} of {len(found.labels)} runs are slow."
        )
        if found.factors.empty:
            return f"<p>{summary} {html.escape(found.summary)}</p>"
        table = (
            found.factors[_COLUMNS]
            .head(MOST_FACTORS)
            .to_html(float_format=lambda value: f"{value:.4g}", border=0)
        )
        return (
            f"<p>{summary} Balanced accuracy on unseen runs: {found.accuracy:.2f} (0.5 is"
            f" guessing).</p>{_picture(found, self.runs)}{table}{_known(found)}"
        )

    def widget(self):
        """The slider with its view, for a running JupyterLab (ipywidgets VBox)."""
        import ipywidgets

        low, high = self._range()
        slider = ipywidgets.FloatSlider(
            self.start,
            min=low,
            max=high,
            step=(high - low) / 200,
            readout_format=".4g",
            description="cutoff",
            continuous_update=False,
            layout=ipywidgets.Layout(width="90%"),
        )
        shown = ipywidgets.HTML(self.view(slider.value))
        slider.observe(lambda change: setattr(shown, "value", self.view(change["new"])), "value")
        return ipywidgets.VBox([slider, shown])

    def twin(self) -> str:
        """HTML that needs no kernel: views of a few cutoffs behind a plain slider."""
        cutoffs = sorted({self.start, *self._values().quantile(SHARES)})
        at = cutoffs.index(self.start)
        views = "".join(
            f'<div data-view="{number}"{"" if number == at else hidden}>{self.view(cutoff)}</div>'
            for number, cutoff in enumerate(cutoffs)
            for hidden in [' style="display:none"']
        )
        return (
            f'<div><label>cutoff, {cutoffs[0]:.4g} to {cutoffs[-1]:.4g} </label><input type="range"'
            f' min="0" max="{len(cutoffs) - 1}" value="{at}" style="width:60%"'
            f' oninput="{_SHOW}">{views}</div>'
        )

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        display(HTML(self.twin()) if os.environ.get(STATIC) else self.widget())

    def _values(self) -> pd.Series:
        return self.runs[self.outcome].astype(float)

    def _range(self) -> tuple[float, float]:
        """So that about four runs lie on either side."""
        low, high = np.sort(self._values().to_numpy())[
            [min(3, len(self.runs) - 1), max(-5, -len(self.runs))]
        ]
        low, high = float(min(low, high, self.start)), float(max(low, high, self.start))
        return low, high if high > low else 1.01 * low


def explore(
    runs: pd.DataFrame,
    outcome: str | None = None,
    exclude: Iterable[str] = (),
    seed: int = 0,
    start: float | None = None,
) -> Exploration:
    """Look around in an attribution by dragging its cutoff.

    Parameters
    ----------
    runs, outcome, exclude, seed
        As of `explain`; only finished runs count.
    start
        The cutoff to begin with; None: the upper quartile.

    Returns
    -------
    Exploration: in JupyterLab a slider, on an exported page a few views behind a plain one.

    Raises
    ------
    InputError
        Fewer than two runs, or no such column.
    """
    outcome = outcome_of(runs, outcome).name
    if outcome not in runs:
        raise InputError(
            f"no column {outcome!r} to explore",
            fix=f"the table has: {', '.join(map(str, runs.columns))}",
        )
    finished = runs[runs["status"] == "ok"] if "status" in runs else runs
    if len(finished) < 2:
        raise InputError(
            f"{len(finished)} finished run(s)",
            fix="at least two, so that some lie on either side of a cutoff",
        )
    start = (
        float(finished[outcome].quantile(0.75))
        if start is None or not np.isfinite(start)
        else float(start)
    )
    return Exploration(finished, outcome, tuple(exclude), seed, start)


def _picture(found: Explanation, runs: pd.DataFrame) -> str:
    import matplotlib.pyplot as plt

    figure, drawn = figure_attribution(found, runs), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=110, metadata={"Software": None})
    plt.close(figure)
    code = base64.b64encode(drawn.getvalue()).decode()
    return (
        f'<img alt="distribution with the cutoff, and the tree" src="data:image/png;base64,{code}"'
        ' style="max-width:100%">'
    )


def _known(found: Explanation) -> str:
    """What the knowledge says of the first factor that it knows."""
    members = [member for group in found.factors["members"].head(MOST_FACTORS) for member in group]
    factor = next((known for member in members if (known := factor_of(member))), None)
    return factor._repr_html_() if factor else ""
