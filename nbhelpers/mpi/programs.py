"""Our MPI programs as workloads: what each is, what it stands for, and how ranks of it are started.

Owns their names and options; the programs themselves are workloads/mpi/*.c.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..errors import InputError, check_choice
from ..workloads import Workload
from ._installation import Installation, installation


@dataclass(frozen=True)
class Program:
    """One of our MPI programs.

    Attributes
    ----------
    stands_for
        The application, or benchmark, whose communication it has.
    does
        What it computes, in a sentence.
    options
        Names of its options, as keywords; the defaults are the program's own (`--help` lists them).
    """

    stands_for: str
    does: str
    options: tuple[str, ...]


PROGRAMS: Mapping[str, Program] = MappingProxyType(
    {
        "collectives": Program(
            "a benchmark of collectives",
            "one collective again and again, by size; every call of every rank is timed",
            ("operation", "smallest", "largest", "factor", "calls", "before", "span"),
        ),
        "halo2d": Program(
            "POP",
            "tracers are mixed, then conjugate gradients with halos in 2-D and 8-byte reductions",
            ("nx", "ny", "levels", "steps", "tolerance", "bcasts", "barriers"),
        ),
        "halo3d": Program(
            "CTH",
            "advection in 3-D: large faces, one 32-byte reduction and one 1-KiB broadcast a step",
            ("nx", "fields", "steps", "reductions", "reduce_bytes", "bcasts", "bcast_bytes"),
        ),
        "adaptive": Program(
            "SAGE",
            "a mesh refined at a moving front, shared anew; an 8-byte reduction a step",
            ("blocks", "columns", "rows", "fields", "steps", "every"),
        ),
        "sweep": Program(
            "Sweep3D",
            "wavefronts from eight corners by blocking messages; an 8-byte reduction an iteration",
            ("nx", "ny", "nz", "planes", "angles", "iterations", "bcasts", "barriers"),
        ),
        "amg": Program(
            "AMG",
            "conjugate gradients with an algebraic multigrid cycle; coarse levels: small messages",
            ("nx", "levels", "solves", "sweeps", "tolerance"),
        ),
    }
)


def mpi_program(
    name: str,
    ranks: int = 2,
    *,
    here: Installation | None = None,
    timeout_s: float = 60.0,
    **options: object,
) -> Workload:
    """Return one of our MPI programs as a workload; its region is rank 0's, between two barriers.

    Parameters
    ----------
    name
        One of `PROGRAMS`.
    ranks
        Ranks that the launcher starts on this machine; more than CPUs share them.
    here
        The MPI that it was built with; None: `installation()`.
    timeout_s
        Seconds after which a run is killed; see `Workload`.
    options
        Options of the program, for example nx=64.

    Raises
    ------
    InputError
        No such program or option, or fewer than one rank.
    Unavailable
        There is no MPI; see `installation`.

    Examples
    --------
    >>> from pathlib import Path
    >>> mpich = Installation(Path("mpicc"), Path("mpiexec"), "MPICH", "5.0", Path("bin"))
    >>> mpi_program("amg", 2, here=mpich, nx=16)
    Workload(amg, mpi, Rm: mpiexec -n 2 bin/amg --nx 16)
    """
    check_choice("MPI program", name, PROGRAMS)
    if unknown := set(options) - set(PROGRAMS[name].options):
        raise InputError(
            f"'{min(unknown)}' is no option of the program '{name}'",
            fix=f"options: {', '.join(PROGRAMS[name].options)}",
        )
    if ranks < 1:
        raise InputError(f"ranks is {ranks}; at least 1 is needed", where=name)
    here = here or installation()
    words = [
        word
        for option, value in options.items()
        for word in (f"--{option.replace('_', '-')}", str(value))
    ]
    return Workload(
        name,
        "mpi",
        (*here.command(ranks), str(here.programs / name), *words),
        region="symbols",  # type: ignore[arg-type]
        timeout_s=timeout_s,
    )
