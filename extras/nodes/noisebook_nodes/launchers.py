"""How a site's launcher spreads the ranks of a program over nodes: Slurm, PBS, mpirun.

Owns the words of each launcher, from their documentation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nbhelpers.errors import InputError, check_choice
from nbhelpers.mpi._installation import Installation, installation

LAUNCHERS = ("srun", "mpirun of Open MPI", "mpiexec of MPICH", "mpiexec of PBS (PALS)")


@dataclass(frozen=True)
class Spread:
    """So many ranks on each of so many nodes, by a site's launcher.

    Parameters
    ----------
    launcher
        One of `LAUNCHERS`.
    nodes
        How many.
    ranks_per_node
        On each.
    words
        Further words for the launcher, as the site wants them ("--hint=nomultithread").
    path
        The launcher's own path, if it is not found in PATH.

    Notes
    -----
    The words are from the launchers' documentation. mpirun of Open MPI and mpiexec of MPICH were
    tried on one node; srun, PALS, and several nodes were not.

    Examples
    --------
    >>> Spread("srun", nodes=4, ranks_per_node=2).command()
    ['srun', '--nodes=4', '--ntasks=8', '--ntasks-per-node=2', '--kill-on-bad-exit=1']
    """

    launcher: str
    nodes: int = 1
    ranks_per_node: int = 1
    words: tuple[str, ...] = ()
    path: str = ""

    def __post_init__(self):
        check_choice("launcher", self.launcher, LAUNCHERS)
        if min(self.nodes, self.ranks_per_node) < 1:
            raise InputError("there must be a node or more, and a rank or more on each")

    @property
    def ranks(self) -> int:
        """On all nodes."""
        return self.nodes * self.ranks_per_node

    def command(self, variables: Sequence[str] = ()) -> list[str]:
        """The words before a program's own.

        Parameters
        ----------
        variables
            Names of variables of the environment that the ranks on other nodes need: mpirun of Open
            MPI hands on only those that it is told of, the others all.
        """
        each, all_ = str(self.ranks_per_node), str(self.ranks)
        own = {
            "srun": [
                f"--nodes={self.nodes}",
                f"--ntasks={all_}",
                f"--ntasks-per-node={each}",
                "--kill-on-bad-exit=1",
            ],
            "mpirun of Open MPI": [
                *("--oversubscribe", "--allow-run-as-root", "-n", all_, "--map-by"),
                f"ppr:{each}:node",
                *(word for name in variables for word in ("-x", name)),
            ],
            "mpiexec of MPICH": ["-n", all_, "-ppn", each],
            "mpiexec of PBS (PALS)": ["-n", all_, "--ppn", each],
        }[self.launcher]
        return [self.path or self.launcher.split()[0], *own, *self.words]


def spread_here(ranks: int, here: Installation | None = None) -> Spread:
    """The installed MPI's launcher with all ranks on this machine.

    Parameters
    ----------
    ranks
        Their number.
    here
        The MPI; None: `installation()`.
    """
    here = here or installation()
    name = "mpirun of Open MPI" if here.kind == "Open MPI" else "mpiexec of MPICH"
    name = "srun" if here.launcher.name == "srun" else name
    return Spread(name, 1, ranks, path=str(here.launcher))
