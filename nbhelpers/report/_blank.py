"""A figure for which there is nothing to draw is a figure that says why."""

import textwrap
from typing import TYPE_CHECKING

import pandas as pd

from ..empty import why_empty
from ..palette import COLUMN_IN, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LETTERS = 60  # a line


def blank_figure(table: pd.DataFrame, why: str = "nothing to draw") -> "Figure":
    """A figure of one sentence: why a table has no rows, where it says that itself, else `why`."""
    import matplotlib.pyplot as plt

    words = textwrap.fill(f"Nothing to draw: {why_empty(table) or why}.", _LETTERS)
    with plt.style.context(STYLE):
        figure = plt.figure(figsize=(COLUMN_IN, 0.4 + 0.16 * (1 + words.count("\n"))))
        figure.text(0.02, 0.5, words, ha="left", va="center")
    return figure
