"""Where things lie: in a checkout of the repository, or in an installed package.

Owns that question: what is shipped (notebooks, knowledge, programs, C sources) and where results
go. A wheel holds the shipped folders in `nbhelpers/_shipped`, laid out as in the repository
(setup.py).
"""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
SHIPPED = PACKAGE / "_shipped"
HOME = "NOISEBOOK_HOME"
SOURCES = ("injector_c", "simulator_c", "workloads")


def is_installed() -> bool:
    """Whether this library was installed from a wheel; otherwise it is part of a checkout."""
    return SHIPPED.is_dir()


def shipped() -> Path:
    """The folder that holds `notebooks`, `data`, and the C sources: the checkout, or the package's.

    Nothing is ever written there by an installed package.

    Examples
    --------
    >>> (shipped() / "data" / "knowledge").is_dir()
    True
    """
    return SHIPPED if is_installed() else PACKAGE.parent


def knowledge() -> Path:
    """The facts of data/knowledge: $NOISEBOOK_KNOWLEDGE, or those that are shipped."""
    chosen = os.environ.get("NOISEBOOK_KNOWLEDGE")
    return Path(chosen) if chosen else shipped() / "data" / "knowledge"


def programs() -> Path:
    """Where our programs, the launcher and its library lie: $NOISEBOOK_BIN, or the built ones."""
    chosen = os.environ.get("NOISEBOOK_BIN")
    if chosen:
        return Path(chosen).resolve()
    return SHIPPED / "bin" if is_installed() else results() / "bin"


def results() -> Path:
    """Where measured data and results go, a folder a profile below it.

    In a checkout: `build`. Installed: $NOISEBOOK_HOME, or `noisebook` in the current folder.
    """
    if not is_installed():
        return PACKAGE.parent / "build"
    return Path(os.environ.get(HOME) or "noisebook").absolute()


def how_to(target: str) -> str:
    """What a user types for a target of the Makefile, here: `make doctor`, or `noisebook doctor`.

    Parameters
    ----------
    target
        With its variables, such as ``"paper PROFILE=quick"``.

    Examples
    --------
    >>> how_to("paper PROFILE=quick") in (
    ...     "make paper PROFILE=quick",
    ...     "noisebook paper --profile quick",
    ... )
    True
    """
    if not is_installed():
        return f"make {target}"
    return f"noisebook {target.replace('PROFILE=', '--profile ')}"
