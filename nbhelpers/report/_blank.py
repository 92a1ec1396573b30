"""A figure for which there is nothing to draw is a figure that says why.

Owns `NothingToDraw`, which a figure function raises inside, and the decorator that makes a picture
of it; and the checks of what a figure needs.
"""

import textwrap
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import pandas as pd

from ..empty import why_empty
from ..errors import InputError
from .appearance import COLUMN_IN, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Arguments = ParamSpec("Arguments")
_LETTERS = 60  # a line


class NothingToDraw(InputError):
    """There is no row, run or event to draw; that is a result, not a fault."""


def or_blank(draw: Callable[Arguments, "Figure"]) -> Callable[Arguments, "Figure"]:
    """Let a figure function that raises `NothingToDraw` return a figure with the reason in
    words.
    """

    @wraps(draw)
    def drawn(*args: Arguments.args, **options: Arguments.kwargs) -> "Figure":
        try:
            return draw(*args, **options)
        except NothingToDraw as nothing:
            return blank_figure(why_empty(*args) or nothing.what)

    return drawn


def blank_figure(why: str) -> "Figure":
    """A figure of one sentence, such as "Nothing to draw: no run was traced"."""
    import matplotlib.pyplot as plt

    words = textwrap.fill(f"Nothing to draw: {why}.", _LETTERS)
    with style():
        figure = plt.figure(figsize=(COLUMN_IN, 0.4 + 0.16 * (1 + words.count("\n"))))
        figure.text(0.02, 0.5, words, ha="left", va="center")
    return figure


def need_rows(table: pd.DataFrame, what: str, **details: Any) -> None:
    """Raise `NothingToDraw` of a table without rows; the details are those of every error."""
    if table.empty:
        raise NothingToDraw(what, **details)


def need_columns(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raise an error of a table that lacks columns, or has no rows."""
    missing = [name for name in columns if name not in table]
    if missing:
        raise InputError(
            f"a table without {', '.join(map(repr, missing))}",
            where=f"columns: {', '.join(map(str, table.columns))}",
        )
    need_rows(table, "nothing to draw")
