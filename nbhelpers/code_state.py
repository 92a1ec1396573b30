"""Which state of the code a table was computed by: a line in its file, read when it is shown.

Owns that line, and which packages decide what a table says.
"""

import io
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from .files import digest
from .imports import LIBRARY, CodeTree, modules_digest
from .places import PACKAGE, shipped
from .reading import open_regular

# How a table is measured, shown or stored is none of its numbers.
COMPUTE = tuple(
    f"{LIBRARY}.{package}."
    for package in ("noise", "simulation", "statistics", "studies", "training")
)
KEY, CODE = "# key: ", "# code: "


def code_line(modules: Iterable[str]) -> str:
    """The line that names the present state of the code behind a table.

    Parameters
    ----------
    modules
        Those that compute it. What they import from the packages that compute counts, too, with
        the C engine and the facts that they read (`nbhelpers.imports.RESTS_ON`).

    Returns
    -------
    A digest, and the modules, so that it can be compared without computing the table again.

    Examples
    --------
    >>> code_line(["nbhelpers.simulation.loggops"]).split()[-1]
    'nbhelpers.simulation.loggops'
    """
    named = tuple(sorted({name for name in modules if name.split(".")[0] == LIBRARY}))
    return " ".join((f"{CODE}{_state(named)}", *named))


def tables_of_other_code(folder: str | Path) -> list[str]:
    """Which computed tables of a folder another state of the code has computed, or an unknown one.

    Parameters
    ----------
    folder
        Its files NAME.csv that begin with a line of `KEY` are the tables.

    Returns
    -------
    Their names, in order.
    """
    return [
        path.stem
        for path in sorted(Path(folder).glob("*.csv"))
        if (lines := head_of(path)) and not _is_of_this_code(lines)
    ]


def head_of(path: str | Path) -> list[str]:
    """The lines at the top of a computed table that are none of it; of any other file none."""
    lines = []
    with open_regular(path, "table") as file:
        for line in io.TextIOWrapper(file, "utf-8", "replace"):
            if not line.startswith((KEY, CODE)):
                break
            lines.append(line.rstrip("\n"))
    return lines if lines and lines[0].startswith(KEY) else []


def _is_of_this_code(head: list[str]) -> bool:
    lines = [line for line in head if line.startswith(CODE)]
    return bool(lines) and lines[0] == code_line(lines[0].removeprefix(CODE).split()[1:])


@lru_cache(maxsize=64)
def _state(modules: tuple[str, ...]) -> str:
    """Digest of what these modules compute with, here and now."""
    return state_of(modules, CodeTree(PACKAGE.parent), shipped())


def state_of(modules: Iterable[str], tree: CodeTree, sources: Path) -> str:
    """Digest of what modules compute with.

    Parameters
    ----------
    modules
        Their names; one that is no more changes the digest.
    tree, sources
        See `nbhelpers.imports.code_digest`.
    """
    named = sorted(modules)
    reached = tree.reached([], [name for name in named if name in tree.paths])
    computing = {name for name in reached if name.startswith(COMPUTE)}
    return digest(*named, modules_digest(computing, tree, sources))
