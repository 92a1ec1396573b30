"""Where the workers come from: this machine, Slurm, PBS.

Owns how they are asked for: one worker a node, one task at a time, the node to itself.
"""

import shutil
import signal
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..errors import InputError, Unavailable

if TYPE_CHECKING:
    from distributed import LocalCluster

SLURM_EXCLUSIVE = ["--exclusive", "--nodes=1", "--ntasks=1"]
PBS_EXCLUSIVE = ["-l place=excl"]
_ENVIRONMENT = "distributed.nanny.pre-spawn-environ"


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
    import dask
    from distributed import LocalCluster

    with dask.config.set({_ENVIRONMENT: _nothing_set()}):
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
    return _scaled("SLURMCluster", "sbatch", nodes, SLURM_EXCLUSIVE, walltime, options)


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
    return _scaled("PBSCluster", "qsub", nodes, PBS_EXCLUSIVE, walltime, options)


def _scaled(
    kind: str, submit: str, nodes: int, exclusive: list[str], walltime: str, options: dict
) -> Any:
    if nodes < 0:
        raise InputError(f"{nodes} nodes", fix="at least one")
    module = _dask_jobqueue()
    if nodes and not shutil.which(submit):
        raise Unavailable(
            f"there is no command {submit} here",
            why="it submits the jobs",
            fix="run this on a login node of the cluster; local_workers tries it on one machine",
        )
    directives = [*exclusive, *options.pop("job_extra_directives", [])]
    prologue = [
        f'export DASK_DISTRIBUTED__NANNY__PRE_SPAWN_ENVIRON="{_nothing_set()}"',
        *options.pop("job_script_prologue", []),
    ]
    defaults = {"cores": 1, "processes": 1, "memory": "1GB", "python": sys.executable}
    cluster = getattr(module, kind)(
        **defaults | options,
        walltime=walltime,
        job_extra_directives=directives,
        job_script_prologue=prologue,
    )
    if nodes:
        cluster.scale(jobs=nodes)
    return cluster


def _nothing_set() -> dict[str, None]:
    """Dask sets OMP_NUM_THREADS=1 and the like for its workers, and for the process that starts
    them: the program that is measured would inherit it. None leaves a variable alone.
    """
    import dask
    import distributed  # noqa: F401 - its defaults

    return dict.fromkeys(dask.config.get(_ENVIRONMENT))


def _dask_jobqueue() -> ModuleType:
    """Its import replaces the handler of Ctrl-C: ours is put back."""
    _needs_dask("dask_jobqueue")
    handler = signal.getsignal(signal.SIGINT)
    try:
        import dask_jobqueue
    finally:
        signal.signal(signal.SIGINT, handler)
    return dask_jobqueue


def _needs_dask(module: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise Unavailable(
            f"{module.replace('_', '-')} is not installed",
            why="a campaign over nodes is started by Dask",
            fix='pip install "noisebook[cluster]"',
        )
