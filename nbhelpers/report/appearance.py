"""How figures look: sizes, colours with fixed roles, and a second channel for whoever can't tell
colours apart.

Owns every visual constant; nothing is changed at import, a figure asks for the style while it is
drawn.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

COLUMN_IN = 3.33  # width of a column of a two-column paper
PAGE_IN = 7.0  # width of its text
POINTS = 8  # size of all text but tick, node and legend labels
SMALL_POINTS = 8  # theirs; 9 points on a page that is 800 pixels wide, where figures fill the text

RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": POINTS,
    "axes.titlesize": POINTS,
    "axes.labelsize": POINTS,
    "xtick.labelsize": SMALL_POINTS,
    "ytick.labelsize": SMALL_POINTS,
    "legend.fontsize": SMALL_POINTS,
    "figure.titlesize": POINTS,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "patch.linewidth": 0.6,
    "hatch.linewidth": 0.4,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "svg.hashsalt": "noisebook",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "axes.formatter.useoffset": False,
}


@dataclass(frozen=True)
class Role:
    """How one kind of data is drawn: a colour (Okabe and Ito 2008) and marker, dash and hatch
    next to it.
    """

    colour: str
    marker: str
    dash: str | tuple
    hatch: str


ROLES = {
    "baseline": Role("#0072B2", "o", "-", ""),
    "injected": Role("#D55E00", "s", "--", "////"),
    "slow": Role("#E69F00", "^", (0, (4, 1, 1, 1)), "...."),
    "fast": Role("#56B4E9", "o", (0, (1, 1)), ""),
    "traced": Role("#009E73", "D", "-.", "\\\\\\\\"),
    "disturbed": Role("#CC79A7", "v", ":", "xxxx"),
}
KINDS = {
    "nmi": Role("#000000", "P", "-", ""),
    "irq": Role("#D55E00", "s", "-", "////"),
    "softirq": Role("#E69F00", "^", "--", "...."),
    "thread": Role("#0072B2", "o", "-.", "\\\\\\\\"),
    "hardware": Role("#999999", "X", ":", "xxxx"),
}
_ALIASES = {
    "undisturbed": "baseline",
    "replayed": "injected",
    "tracing": "traced",
    "untraced": "baseline",
}
_OTHERS = ("baseline", "injected", "traced", "disturbed", "slow", "fast")


def roles_of(names: Iterable[object]) -> dict[object, Role]:
    """A role for each name: the one of that name if there is one, else the first free one."""
    names = list(dict.fromkeys(names))
    by_role = {name: _ALIASES.get(str(name), str(name)) for name in names}
    fixed = {name: role for name, role in by_role.items() if role in ROLES}
    free = [role for role in _OTHERS if role not in fixed.values()] or list(_OTHERS)
    others = [name for name in names if name not in fixed]
    chosen = {name: free[number % len(free)] for number, name in enumerate(others)} | fixed
    return {name: ROLES[chosen[name]] for name in names}


def use_style() -> None:
    """Apply the style to every figure drawn from now on in this process."""
    import matplotlib

    matplotlib.rcParams.update(RC)


@contextmanager
def style() -> Iterator[None]:
    """Apply the style inside a `with` block only."""
    import matplotlib

    with matplotlib.rc_context(RC):
        yield
