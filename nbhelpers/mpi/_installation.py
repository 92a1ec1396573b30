"""Which MPI is here, and how it starts ranks.

Owns what `make mpi` wrote down about it, and the words that start ranks of each kind of MPI.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from ..errors import Unavailable
from ..places import how_to
from ..workloads import binary_folder

FILE = ".installation"
# Of the wheel of `make mpi` alone, a site's MPI is left as it was set up. Its one-sided transport
# for networks looks for adapters and sleeps 1 s in MPI_Init where there are none: start and end of
# a program took 1.25 s, without it 0.29 s (5.0.11). No program here is one-sided.
_WITHOUT_SLEEP = ["--mca", "btl", "^ofi"]


@dataclass(frozen=True)
class Installation:
    """An MPI that programs here are built with.

    Attributes
    ----------
    mpicc
        Path of its C compiler.
    launcher
        Path of what starts its ranks (mpirun, mpiexec, srun).
    kind
        "Open MPI", "MPICH", "Intel MPI", "MVAPICH", or "MPI": another one.
    version
        Version of the MPI, as its header states it.
    programs
        The folder of the programs and the trace library that were built with it.
    """

    mpicc: Path
    launcher: Path
    kind: str
    version: str
    programs: Path

    def command(self, ranks: int) -> list[str]:
        """The words before a program's own that start it on so many ranks of this machine.

        More ranks than CPUs are allowed, and Open MPI starts them for root, too. Where each rank
        can have a CPU of its own, mpirun binds it as `Workload.placed` asks.

        Parameters
        ----------
        ranks
            Their number.

        Examples
        --------
        >>> here = Installation(
        ...     Path("/opt/bin/mpicc"),
        ...     Path("/opt/bin/mpirun"),
        ...     kind="MPICH",
        ...     version="5.0.2",
        ...     programs=Path("/tmp"),
        ... )
        >>> here.command(4)
        ['/opt/bin/mpirun', '-n', '4']
        """
        options = _of_open_mpi(ranks) if self._is_mpirun_of_open_mpi else []
        options += _WITHOUT_SLEEP if self.python else []
        return [str(self.launcher), *options, "-n", str(ranks)]

    @property
    def _is_mpirun_of_open_mpi(self) -> bool:
        return self.kind == "Open MPI" and not self.launcher.name.startswith("srun")

    @property
    def python(self) -> Path | None:
        """The Python that has mpi4py for this MPI, where `make mpi` installed it; else None."""
        python = self.mpicc.parent / "python"
        return python if (self.mpicc.parent.parent / "installed").is_file() else None

    def __str__(self) -> str:
        return f"{self.kind} {self.version}"


def _of_open_mpi(ranks: int) -> list[str]:
    """Options of its mpirun. With --oversubscribe it binds no rank, whatever the environment asks
    for (5.0.11, read from the ranks' masks): two ranks that spin then share a CPU at times.

    Without it, it binds to any CPU of the machine, also to one that this process may not use.
    """
    usable = len(os.sched_getaffinity(0))
    fits = ranks <= usable == os.cpu_count()
    return ["--use-hwthread-cpus" if fits else "--oversubscribe", "--allow-run-as-root"]


def installation(folder: str | Path | None = None) -> Installation:
    """The MPI that the programs of a folder were built with; nothing is started.

    Parameters
    ----------
    folder
        The folder that `make mpi` built into; None: `mpi` in the folder of the programs.

    Raises
    ------
    Unavailable
        There is none, or it is gone; the message says `make mpi`.
    """
    programs = Path(folder) if folder else binary_folder() / "mpi"
    try:
        lines = (programs / FILE).read_text().splitlines()
    except OSError:
        raise _unavailable("no MPI is installed for Noisebook", programs / FILE) from None
    known = dict(line.split("=", 1) for line in lines if "=" in line)
    mpicc, launcher = (
        Path(os.path.normpath(programs / known.get(name, "?"))) for name in ("mpicc", "launcher")
    )
    for path in (mpicc, launcher):
        if not os.access(path, os.X_OK):
            raise _unavailable(f"the MPI that the programs were built with has no {path}", programs)
    return Installation(mpicc, launcher, known["kind"], known["version"], programs)


def _unavailable(what: str, where: Path) -> Unavailable:
    return Unavailable(
        what,
        where=where,
        why="programs with several ranks are neither built nor started",
        fix=f"{how_to('mpi')}    (Open MPI; or one of your own: make mpi MPICC=/path/of/mpicc)",
    )
