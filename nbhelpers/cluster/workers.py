"""Where the workers come from: this machine, Slurm, PBS.

Owns how they are asked for: one worker a node, one task at a time, the node to itself.
"""

import shutil
import sys
from typing import TYPE_CHECKING, Any

from ..errors import InputError, Unavailable

if TYPE_CHECKING:
    from distributed import LocalCluster

SLURM_EXCLUSIVE = ["--exclusive", "--nodes=1", "--ntasks=1"]
PBS_EXCLUSIVE = ["-l place=excl"]


def local_workers(workers: int = 2) -> "LocalCluster":
    """Start workers on this machine, to try a campaign before it goes to a cluster.

    They share the machine's measuring lock, so that their runs take turns. A worker that dies is
    started again.

    Parameters
    ----------
    workers
        How many.

    Returns
    -------
    LocalCluster
        To use in a `with` block.

    Raises
    ------
    InputError
        Fewer than one worker.
    Unavailable
        Dask is not installed.

    Examples
    --------
    >>> with local_workers(2) as workers:
    ...     len(workers.scheduler_info["workers"])
    2
    """
    if workers < 1:
        raise InputError(f"{workers} workers", fix="at least one")
    _needs_dask("distributed")
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        memory_limit=0,
        dashboard_address="127.0.0.1:0",
        host="127.0.0.1",
        silence_logs=50,
    )


def slurm_workers(nodes: int, walltime: str = "01:00:00", **options: Any) -> Any:
    """Ask Slurm for nodes, each exclusively.

    Parameters
    ----------
    nodes
        How many; 0: none yet, to look at `job_script()`.
    walltime
        Longest time of a node, HH:MM:SS; the campaign goes on in a later call.
    options
        Of `dask_jobqueue.SLURMCluster`, such as queue, account, interface, memory.

    Returns
    -------
    SLURMCluster
        To use in a `with` block; `job_script()` shows what is submitted.

    Raises
    ------
    InputError
        Fewer than none.
    Unavailable
        dask-jobqueue or Slurm is not here.
    """
    _needs_dask("dask_jobqueue")
    from dask_jobqueue import SLURMCluster

    return _scaled(SLURMCluster, "sbatch", nodes, SLURM_EXCLUSIVE, walltime, options)


def pbs_workers(nodes: int, walltime: str = "01:00:00", **options: Any) -> Any:
    """Ask PBS for nodes, each exclusively.

    Parameters
    ----------
    nodes, walltime
        As of `slurm_workers`.
    options
        Of `dask_jobqueue.PBSCluster`, such as queue, account, interface, memory.

    Returns
    -------
    PBSCluster
        As of `slurm_workers`.

    Raises
    ------
    InputError, Unavailable
        As of `slurm_workers`.
    """
    _needs_dask("dask_jobqueue")
    from dask_jobqueue import PBSCluster

    return _scaled(PBSCluster, "qsub", nodes, PBS_EXCLUSIVE, walltime, options)


def _scaled(
    kind: Any, submit: str, nodes: int, exclusive: list[str], walltime: str, options: dict
) -> Any:
    if nodes < 0:
        raise InputError(f"{nodes} nodes", fix="at least one")
    if nodes and not shutil.which(submit):
        raise Unavailable(
            f"there is no command {submit} here",
            why="it submits the jobs",
            fix="run this on a login node of the cluster; local_workers tries it on one machine",
        )
    directives = [*exclusive, *options.pop("job_extra_directives", [])]
    defaults = {"cores": 1, "processes": 1, "memory": "1GB", "python": sys.executable}
    cluster = kind(**defaults | options, walltime=walltime, job_extra_directives=directives)
    if nodes:
        cluster.scale(jobs=nodes)
    return cluster


def _needs_dask(module: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise Unavailable(
            f"{module.replace('_', '-')} is not installed",
            why="a campaign over nodes is started by Dask",
            fix='pip install "noisebook[cluster]"',
        )
