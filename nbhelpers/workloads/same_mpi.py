"""Which MPI a program was linked with, and whether its launcher belongs to it.

Owns the error of two MPIs mixed: ranks that a foreign launcher starts do not find each other, and
each would measure a program of one rank.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ..errors import InputError

OPEN_MPI, MPICH = "Open MPI", "MPICH"  # the latter also stands for its relatives
_LAUNCHERS = ("mpirun", "mpiexec", "orterun", "prterun")


def check_same_mpi(command: Sequence[str]) -> None:
    """Nothing where launcher and program belong to one MPI, or where that cannot be known.

    Parameters
    ----------
    command
        The launcher's words, then the program's.

    Raises
    ------
    InputError
        The program is linked with another MPI than the launcher's.
    """
    launcher, *words = command
    started_by = launcher_kind(launcher)
    if started_by is None:
        return
    for word in words:
        found = linked_mpi(word)
        if found is not None and found[1] != started_by:
            library, kind = found
            raise InputError(
                f"the program is linked with {kind}, and {Path(launcher).name} is {started_by}'s",
                where=f"{word} needs {library}; the launcher is {shutil.which(launcher)}",
                why="its ranks would not find each other: each would be alone",
                fix=f"start it by the mpirun of {kind}, or build it by the mpicc of {started_by}",
            )


def linked_mpi(program: str) -> tuple[str, str] | None:
    """The MPI library that a program loads at its start, and whose it is; None: no such program.

    Parameters
    ----------
    program
        Its path, or a word of a command that may be none.

    Returns
    -------
    tuple of str
        Path of the library, and `OPEN_MPI` or `MPICH`.
    """
    path = shutil.which(program) if os.sep not in program else program
    if not path or not os.path.isfile(path) or not os.access(path, os.X_OK):
        return None
    return _linked(os.path.abspath(path), os.stat(path).st_mtime_ns)


@cache
def _linked(path: str, _changed_ns: int) -> tuple[str, str] | None:
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return None
    try:
        said = subprocess.run(["ldd", path], capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    for line in said.splitlines():
        name, _, place = line.strip().partition(" => ")
        library = place.rsplit(" (", 1)[0]
        if name.startswith("libmpi") and os.path.isfile(library):
            kind = _library_kind(library)
            if kind:
                return library, kind
    return None


def _library_kind(library: str) -> str | None:
    content = Path(library).read_bytes()
    if b"ompi_mpi_comm_world" in content:
        return OPEN_MPI
    return MPICH if b"MPICH" in content or b"MPIR_" in content else None


def launcher_kind(launcher: str) -> str | None:
    """Whose launcher this is by its own words: `OPEN_MPI`, `MPICH`, or None: another, or unknown.

    Parameters
    ----------
    launcher
        Path or name of an mpirun or mpiexec; others (srun) serve several MPIs.
    """
    path = shutil.which(launcher)
    if not path or not Path(path).name.startswith(_LAUNCHERS):
        return None
    return _launcher_kind(path, os.stat(path).st_mtime_ns)


@cache
def _launcher_kind(path: str, _changed_ns: int) -> str | None:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    said = done.stdout + done.stderr
    if any(name in said for name in ("Open MPI", "OpenRTE", "PRRTE", "prte")):
        return OPEN_MPI
    return MPICH if any(name in said for name in ("HYDRA", "MPICH", "Intel(R) MPI")) else None
