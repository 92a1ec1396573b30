"""The colours of Noisebook: each side, class, kind and part has the same one on every page.

Owns the colours (Okabe and Ito 2008, told apart by nearly everybody); the marker, dash and hatch of
each, for print without colour; the two widths of a figure, and the style file. The dictionaries are
what seaborn takes: ``palette=SIDES, markers=MARKERS, dashes=DASHES``.
"""

import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PAGE_IN = 7.0  # width of a page's text, in inches
COLUMN_IN = 3.33  # width of a column of a two-column paper
POINTS = 8  # size of all text
STYLE = Path(__file__).with_name("noisebook.mplstyle")
# what matplotlib writes as mathematics by itself, at an axis with a log scale
_NUMBER = r"[-\u2212]?[\d.]+"
_POWER = re.compile(rf"\$\\mathdefault{{({_NUMBER}\\times)?{_NUMBER}(\^{{{_NUMBER}}})?}}\$")

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, GREY, BLACK, YELLOW = "#E69F00", "#56B4E9", "#999999", "#000000", "#F0E442"
ORDER = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY, BLACK)  # for names without a colour

SIDES = {  # the configurations (`cell`) of a campaign
    "baseline": BLUE,
    "undisturbed": BLUE,
    "untraced": BLUE,
    "injected": VERMILION,
    "replayed": VERMILION,
    "traced": GREEN,
    "tracing": GREEN,
    "disturbed": PURPLE,
}
CLASSES = {"slow": ORANGE, "fast": SKY}  # performance classes of runs
KINDS = {  # kinds of noise events
    "nmi": BLACK,
    "irq": VERMILION,
    "softirq": ORANGE,
    "thread": BLUE,
    "hardware": GREY,
}
PARTS = {  # of a run's time, by its account
    "work": "#DDDDDD",
    "computing": "#BBBBBB",
    "kernel": VERMILION,
    "taken": VERMILION,
    "runnable": "#F0A070",
    "hypervisor": GREY,
    "slower": BLUE,
    "waiting": YELLOW,
    "asleep": SKY,
    "disk": GREEN,
    "stopped": PURPLE,
    "quota": ORANGE,
    "unexplained": BLACK,
}
# of names of threads: neither a colour of interrupts nor of slow and fast runs
THREADS = (BLUE, GREEN, PURPLE, BLACK, YELLOW, "#882255")
HEIGHTS = {"nmi": 0.9, "irq": 0.8, "softirq": 0.65, "thread": 0.5, "hardware": 0.35}  # on a lane
_LOOKS: dict[str, tuple] = {  # marker; dash (lengths drawn and left out, in line widths); hatch
    BLUE: ("o", "", ""),
    VERMILION: ("s", (4, 2), "////"),
    GREEN: ("D", (5, 1.5, 1, 1.5), "||||"),
    PURPLE: ("v", (1, 1.5), "xxxx"),
    ORANGE: ("^", (4, 1, 1, 1), "...."),
    SKY: ("o", (1, 1), ""),
    GREY: ("X", (2, 2), "\\\\\\\\"),
    BLACK: ("P", "", ""),
    YELLOW: ("*", (6, 2), "----"),
}
MARKED = [(colour, look[0]) for colour, look in _LOOKS.items()]  # for what has no name here
_FIXED = KINDS | CLASSES | SIDES
MARKERS = {name: _LOOKS[colour][0] for name, colour in _FIXED.items()}
DASHES = {name: _LOOKS[colour][1] for name, colour in _FIXED.items()}
_CURVE, _THICK = 10, 2  # points from which a line is a curve, widths from which it is a bar


def colours(names: Iterable[str]) -> dict[str, str]:
    """Give each name a colour: its own if it has one, else the first that is free.

    Parameters
    ----------
    names
        What a figure distinguishes, such as the cells of a table; doubles count once.

    Returns
    -------
    Name → colour, in the order of `names`; with more than eight names colours repeat.

    Examples
    --------
    >>> from nbhelpers import palette
    >>> palette.colours(["baseline", "tcmalloc"])
    {'baseline': '#0072B2', 'tcmalloc': '#D55E00'}
    """
    names = list(dict.fromkeys(names))
    fixed = {name: _FIXED[name] for name in names if name in _FIXED}
    free = [colour for colour in ORDER if colour not in fixed.values()] or list(ORDER)
    others = [name for name in names if name not in fixed]
    found = {name: free[place % len(free)] for place, name in enumerate(others)}
    return {name: fixed.get(name) or found[name] for name in names}


def second_channel(figure: Any) -> None:
    """Give curves, marks and bars that differ in their colour alone also the dash, marker and hatch
    of that colour; the legends follow.

    Parameters
    ----------
    figure
        Figure of matplotlib.
    """
    for axes in figure.axes:
        legends = [one for one in (*figure.legends, axes.get_legend()) if one]
        lines = [*axes.lines, *(line for one in legends for line in one.get_lines())]
        curves = {
            _colour(line.get_color())
            for line in axes.lines
            if len(line.get_xdata()) > _CURVE and line.get_linewidth() < _THICK
        }
        if len({_colour(line.get_color()) for line in axes.lines}) > 1:
            for line in lines:
                _dress(line, curves)
        bars = [bar for group in axes.containers for bar in group if hasattr(bar, "set_hatch")]
        if len({_colour(bar.get_facecolor()) for bar in bars}) > 1:
            for bar in (*bars, *(bar for one in legends for bar in one.get_patches())):
                bar.set_hatch(_look(_colour(bar.get_facecolor()))[2])


def _dress(line: Any, curves: set[str]) -> None:
    colour = _colour(line.get_color())
    marker, dash, _ = _look(colour)
    if line.get_marker() == "o":
        line.set_marker(marker)
    elif colour in curves and dash and line.get_linestyle() == "-":
        line.set_linestyle((0, dash))


def _look(colour: str) -> tuple:
    return _LOOKS.get(colour, ("o", "", ""))


def _colour(colour: Any) -> str:
    from matplotlib.colors import to_hex

    return to_hex(colour).upper()


def use_style(seed: int = 0) -> None:
    """Apply the style file to all figures of this process, and seed what scatters their points.

    Parameters
    ----------
    seed
        Seed of NumPy's global generator: seaborn's `stripplot` takes its jitter from it, and two
        runs on the same data shall give the same bytes.
    """
    import matplotlib.style
    import numpy

    matplotlib.style.use(STYLE)
    names_as_they_are()
    # seaborn's grids lay themselves out, which is said of every one
    warnings.filterwarnings("ignore", "The figure layout has changed to tight", UserWarning)
    numpy.random.seed(seed)


def names_as_they_are() -> None:
    r"""From now on no text of a figure is mathematics, but for powers of ten at an axis.

    A thread may be named ``$\frac$kd``, and seaborn lays a figure out before we see it.
    """
    from matplotlib.text import Text

    def is_power(text: Text) -> bool:
        return _POWER.fullmatch(text.get_text()) is not None

    Text.get_parse_math = is_power  # type: ignore[method-assign, assignment]
