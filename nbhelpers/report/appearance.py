"""How the library's own figures look: colours of `nbhelpers.palette`, with a hatch beside marker
and dash; a figure asks for the style while it is drawn.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .. import palette

COLUMN_IN, PAGE_IN = palette.COLUMN_IN, palette.PAGE_IN
POINTS = SMALL_POINTS = 8  # size of all text


@dataclass(frozen=True)
class Role:
    """How one kind of data is drawn: a colour (Okabe and Ito 2008) and marker, dash and hatch
    next to it.
    """

    colour: str
    marker: str
    dash: str | tuple
    hatch: str


_HATCHES = {
    "injected": "////",
    "slow": "....",
    "traced": "\\\\\\\\",
    "disturbed": "xxxx",
    "irq": "////",
    "softirq": "....",
    "thread": "\\\\\\\\",
    "hardware": "xxxx",
}


def _roles(colours: dict[str, str]) -> dict[str, Role]:
    return {
        name: Role(
            colour,
            palette.MARKERS[name],
            (0, palette.DASHES[name]) if palette.DASHES[name] else "-",
            _HATCHES.get(name, ""),
        )
        for name, colour in colours.items()
    }


_OTHERS = ("baseline", "injected", "traced", "disturbed", "slow", "fast")
_COLOURS = palette.SIDES | palette.CLASSES
ROLES = _roles({name: _COLOURS[name] for name in _OTHERS})
KINDS = _roles(palette.KINDS)


@contextmanager
def style() -> Iterator[None]:
    """Apply the style inside a `with` block only."""
    import matplotlib.style

    with matplotlib.style.context(palette.STYLE):
        yield
