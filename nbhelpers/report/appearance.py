"""The style of the library's own figures: each asks for it while it is drawn."""

from collections.abc import Iterator
from contextlib import contextmanager

from .. import palette

COLUMN_IN, PAGE_IN = palette.COLUMN_IN, palette.PAGE_IN
POINTS = 8  # size of all text


@contextmanager
def style() -> Iterator[None]:
    """Apply the style inside a `with` block only."""
    import matplotlib.style

    with matplotlib.style.context(palette.STYLE):
        yield
