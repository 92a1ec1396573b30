"""A figure for which there is nothing to draw is a figure that says why.

Owns `NothingToDraw`, which a figure function raises inside, and the decorator that makes a picture
of it.
"""

import textwrap
from collections.abc import Callable
from functools import wraps

from ..empty import why_empty
from ..errors import InputError
from .appearance import COLUMN_IN, style

_LETTERS = 60  # a line


class NothingToDraw(InputError):
    """There is no row, run or event to draw; that is a result, not a fault."""


def or_blank(draw: Callable) -> Callable:
    """Let a figure function that raises `NothingToDraw` return a figure with the reason in words."""

    @wraps(draw)
    def drawn(*args: object, **options: object):
        try:
            return draw(*args, **options)
        except NothingToDraw as nothing:
            return blank_figure(why_empty(*args) or nothing.what)

    return drawn


def blank_figure(why: str, width_in: float = COLUMN_IN):
    """A figure of one sentence, such as "Nothing to draw: no run was traced"."""
    import matplotlib.pyplot as plt

    words = textwrap.fill(f"Nothing to draw: {why}.", _LETTERS)
    with style():
        figure = plt.figure(figsize=(width_in, 0.4 + 0.16 * (1 + words.count("\n"))))
        figure.text(0.02, 0.5, words, ha="left", va="center")
    return figure
