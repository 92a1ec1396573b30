"""How MPI's launchers place the ranks of a program, and whether it was linked with their MPI.

Owns the variables' names and forms, from the documentation of Open MPI, MPICH (Hydra) and Intel
MPI; each library ignores the others' variables, so a program gets them all. Owns the error of two
MPIs mixed: ranks that a foreign launcher starts do not find each other, and each would measure a
program of one rank.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from ..errors import InputError

LAUNCHERS = ("open_mpi", "mpich", "intel_mpi")
OPEN_MPI, MPICH = "Open MPI", "MPICH"  # the latter also stands for its relatives
_STARTERS = ("mpirun", "mpiexec", "orterun", "prterun")


def placed_env(base: str, cpus: Sequence[int]) -> dict[str, str]:
    """All variables of a placement; see `launcher_env`."""
    return {
        name: value
        for launcher in LAUNCHERS
        for name, value in launcher_env(launcher, base, cpus).items()
    }


def launcher_env(launcher: str, base: str, cpus: Sequence[int]) -> dict[str, str]:
    """The variables of one launcher: Rm: ranks may run on all CPUs that the launcher may use; TP:
    each rank on one of the CPUs.

    Parameters
    ----------
    launcher
        One of `LAUNCHERS`.
    base
        Rm or TP.
    cpus
        CPU numbers, in the order of the ranks.

    Notes
    -----
    Tried with Open MPI 5.0 and MPICH 5.0; Open MPI 4 and Intel MPI by their documentation only.
    Open MPI 5 assigns the CPUs to the ranks in the order of the machine, and counts CPUs by place,
    core after core. It takes a list in another order on the command line only (--map-by
    pe-list=…:ordered). Where ranks are is therefore to be read from the running ranks
    (`nbhelpers.measurement.placement.running_threads`).
    """
    listed = ",".join(map(str, cpus))
    if launcher == "mpich":
        return {"HYDRA_BINDING": "none" if base == "Rm" else f"user:{listed}"}
    if launcher == "intel_mpi":
        return (
            {"I_MPI_PIN": "0"}
            if base == "Rm"
            else {"I_MPI_PIN": "1", "I_MPI_PIN_PROCESSOR_LIST": listed}
        )
    if base == "Rm":
        return {
            "PRTE_MCA_hwloc_default_binding_policy": "none",
            "OMPI_MCA_hwloc_base_binding_policy": "none",
        }
    return {
        "PRTE_MCA_hwloc_default_cpu_list": listed,
        "PRTE_MCA_hwloc_default_binding_policy": "hwthread",
        "OMPI_MCA_hwloc_base_cpu_list": listed,
        "OMPI_MCA_hwloc_base_binding_policy": "cpu-list:ordered",
    }


def without_placement(env: Mapping[str, str]) -> dict[str, str]:
    """The environment less what an earlier placement set."""
    placing = {*placed_env("Rm", ()), *placed_env("TP", (0,))}
    return {name: value for name, value in env.items() if name not in placing}


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
    path = shutil.which(program)
    return _linked(os.path.abspath(path), os.stat(path).st_mtime_ns) if path else None


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
            content = Path(library).read_bytes()
            if b"ompi_mpi_comm_world" in content:
                return library, OPEN_MPI
            if b"MPICH" in content or b"MPIR_" in content:
                return library, MPICH
    return None


def launcher_kind(launcher: str) -> str | None:
    """Whose launcher this is by its own words: `OPEN_MPI`, `MPICH`, or None: another, or unknown.

    Parameters
    ----------
    launcher
        Path or name of an mpirun or mpiexec; others (srun) serve several MPIs.
    """
    path = shutil.which(launcher)
    if not path or not Path(path).name.startswith(_STARTERS):
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
