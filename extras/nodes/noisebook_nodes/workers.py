"""Where the workers come from: this machine, Slurm, PBS.

Owns how they are asked for: one worker a node, one task at a time, the node to itself.
"""

import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
import weakref
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nbhelpers.errors import InputError, RunError, Unavailable

if TYPE_CHECKING:
    from distributed import LocalCluster
    from distributed.security import Security

SLURM_EXCLUSIVE = ["--exclusive", "--nodes=1", "--ntasks=1"]
PBS_EXCLUSIVE = ["-l place=excl"]
_ENVIRONMENT = "distributed.nanny.pre-spawn-environ"


def local_workers(workers: int = 2) -> "LocalCluster":
    """Start workers on this machine, to try a campaign before it goes to a cluster.

    They share the machine's measuring lock, so that their runs take turns. A worker that dies is
    started again. Scheduler and workers talk by TLS with a certificate of this user's, made for
    this cluster by openssl: otherwise every user of the machine could submit tasks.

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

    folder = tempfile.mkdtemp(prefix="noisebook-cluster-")
    try:
        with dask.config.set({_ENVIRONMENT: _nothing_set()}):
            cluster = LocalCluster(
                security=_certified(Path(folder)),
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                memory_limit=0,
                dashboard_address="127.0.0.1:0",
                host="127.0.0.1",
                silence_logs=50,
            )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(cluster, shutil.rmtree, folder, ignore_errors=True)
    return cluster


def _certified(folder: Path) -> "Security | None":
    """TLS by a fresh certificate in a private folder; None, with a warning, without openssl."""
    from distributed.security import Security

    key, certificate = folder / "key.pem", folder / "certificate.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30"]
    words += ["-subj", "/CN=noisebook", "-keyout", str(key), "-out", str(certificate)]
    try:
        subprocess.run(words, check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        warnings.warn(
            "the local workers talk without TLS, since there is no openssl here: other users of"
            " this machine could submit tasks to them",
            RuntimeWarning,
            stacklevel=3,
        )
        return None
    key.chmod(0o600)
    files = {
        f"tls_{role}_{what}": str(path)
        for role in ("scheduler", "worker", "client")
        for what, path in (("key", key), ("cert", certificate))
    }
    return Security(require_encryption=True, tls_ca_file=str(certificate), **files)


def slurm_workers(nodes: int, walltime: str = "01:00:00", **options: Any) -> Any:
    """Ask Slurm for nodes, each exclusively.

    Parameters
    ----------
    nodes
        How many; 0: none yet, to look at `job_script()`.
    walltime
        Longest time of a node, HH:MM:SS; the campaign goes on in a later call.
    options
        Keywords of `dask_jobqueue.SLURMCluster`, such as queue, account, interface. Without memory
        or job_mem a job has all memory of its node.

    Returns
    -------
    SLURMCluster
        To use in a `with` block; `job_script()` shows what is submitted.

    Raises
    ------
    InputError
        Fewer than none.
    RunError
        Slurm refused a job.
    Unavailable
        dask-jobqueue or Slurm is not here.
    """
    if not {"memory", "job_mem"} & options.keys():
        options["job_mem"] = "0"  # exclusive nodes give all CPUs, but only the memory asked for
    return _scaled("SLURMCluster", "sbatch", nodes, SLURM_EXCLUSIVE, walltime, options)


def pbs_workers(nodes: int, walltime: str = "01:00:00", **options: Any) -> Any:
    """Ask PBS for nodes, each exclusively.

    Parameters
    ----------
    nodes, walltime
        Number of nodes, and longest time of a node, HH:MM:SS; see `slurm_workers`.
    options
        Keywords of `dask_jobqueue.PBSCluster`, such as queue, account, interface. PBS may hold the
        program to memory, which is 1 GB unless it is named.

    Returns
    -------
    PBSCluster
        To use in a `with` block; `job_script()` shows what is submitted.

    Raises
    ------
    InputError, RunError, Unavailable
        Fewer than no nodes, a job that PBS refused, or no dask-jobqueue or PBS here.
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
    _submit(cluster, nodes)
    return cluster


def _submit(cluster: Any, nodes: int) -> None:
    """Submit a job a node. Dask's `scale` would only log that a job was refused, and workers that
    never come would be waited for.
    """

    async def submit() -> None:
        for _ in range(nodes):
            cluster.worker_spec.update(cluster.new_worker_spec())
        await cluster._correct_state()

    try:
        cluster.sync(submit)
    except (RuntimeError, OSError, ValueError) as refused:
        _close(cluster)
        raise RunError(
            f"a job was refused: {str(refused).split('stderr:')[-1].strip()}",
            why="without its job a node does not measure",
            fix="see what is submitted by nodes=0 and job_script(); name what the site wants: "
            "queue=, account=, walltime=, memory= or job_extra_directives=",
        ) from None


def submit_again(cluster: Any, worker: str, node: str) -> None:
    """Submit the job of a worker that is gone, if Dask has noticed and does not start it by itself.

    Slurm is asked for the same node, since another one would be another row of the comparison.

    Parameters
    ----------
    cluster
        A cluster of `slurm_workers`, `pbs_workers` or `local_workers`, or any Dask cluster.
    worker
        Dask's name of the worker.
    node
        Where it was.
    """
    specification = getattr(cluster, "worker_spec", {}).get(worker)
    if specification is None or worker in cluster.workers:
        return
    if getattr(specification["cls"], "submit_command", "") == "sbatch":
        options = specification["options"]
        others = [
            directive
            for directive in options["job_extra_directives"]
            if not directive.startswith("--nodelist=")
        ]
        specification["options"] = {
            **options,
            "job_extra_directives": [*others, f"--nodelist={node}"],
        }
    cluster.scale(len(cluster.worker_spec))


def _close(cluster: Any) -> None:
    """Dask refuses to close a cluster with jobs that were never submitted."""
    from distributed.core import Status

    for job in cluster.workers.values():
        if job.job_id is None:
            job.status = Status.failed
    cluster.close()


def _nothing_set() -> dict[str, None]:
    """Dask sets OMP_NUM_THREADS=1 and the like for its workers, and for the process that starts
    them: the program that is measured would inherit it. None leaves a variable alone.
    """
    import dask
    from distributed.config import defaults

    # a setting that somebody undoes may take all of distributed's defaults along
    usual = defaults["distributed"]["nanny"]["pre-spawn-environ"]
    return dict.fromkeys(dask.config.get(_ENVIRONMENT, usual))


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
            fix="make extra EXTRA=nodes",
        )
