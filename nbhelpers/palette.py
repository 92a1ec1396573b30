"""The colours of Noisebook: each side, class, kind and source has the same one on every page.

Owns the colours (Okabe and Ito 2008, told apart by nearly everybody), a marker and a dash beside
each for print without colour, the two widths of a figure, and the style file. The dictionaries
are what seaborn takes: ``palette=SIDES, markers=MARKERS, dashes=DASHES``.
"""

import re
import warnings
from collections.abc import Iterable
from pathlib import Path

PAGE_IN = 7.0  # width of a page's text, in inches
COLUMN_IN = 3.33  # width of a column of a two-column paper
STYLE = Path(__file__).with_name("noisebook.mplstyle")
# what matplotlib writes as mathematics by itself, at an axis with a log scale
_NUMBER = r"[-\u2212]?[\d.]+"
_POWER = re.compile(rf"\$\\mathdefault{{({_NUMBER}\\times)?{_NUMBER}(\^{{{_NUMBER}}})?}}\$")

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, GREY, BLACK = "#E69F00", "#56B4E9", "#999999", "#000000"
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
    "waiting": "#F0E442",
    "asleep": SKY,
    "disk": GREEN,
    "stopped": PURPLE,
    "quota": ORANGE,
    "unexplained": BLACK,
}
SOURCES = {  # the commonest sources of Linux; `colours` finds one for any other
    "local_timer": VERMILION,
    "TIMER": ORANGE,
    "SCHED": SKY,
    "RCU": PURPLE,
    "call_function_single": GREEN,
    "reschedule": BLACK,
    "rcu_preempt": BLUE,
}
MARKERS = {
    "baseline": "o",
    "undisturbed": "o",
    "untraced": "o",
    "injected": "s",
    "replayed": "s",
    "traced": "D",
    "tracing": "D",
    "disturbed": "v",
    "slow": "^",
    "fast": "o",
    "nmi": "P",
    "irq": "s",
    "softirq": "^",
    "thread": "o",
    "hardware": "X",
}
DASHES = {  # lengths drawn and left out, in line widths; "" is a solid line
    "baseline": "",
    "undisturbed": "",
    "untraced": "",
    "injected": (4, 2),
    "replayed": (4, 2),
    "traced": (5, 1.5, 1, 1.5),
    "tracing": (5, 1.5, 1, 1.5),
    "disturbed": (1, 1.5),
    "slow": (4, 1, 1, 1),
    "fast": (1, 1),
    "nmi": "",
    "irq": "",
    "softirq": (4, 2),
    "thread": (5, 1.5, 1, 1.5),
    "hardware": (1, 1.5),
}
_FIXED = SOURCES | KINDS | CLASSES | SIDES


def colours(names: Iterable[str]) -> dict[str, str]:
    """Give each name a colour: its own if it has one, else the first that is free.

    Parameters
    ----------
    names
        What a figure distinguishes, such as the sources or cells of a table; doubles count once.

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
