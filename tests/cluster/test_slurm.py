"""Campaigns through a real Slurm with three nodes on this machine: what is submitted is run."""

import threading
from importlib.util import find_spec

import pytest

from nbhelpers.cluster.campaign import measure_on_nodes
from nbhelpers.cluster.comparison import compare_nodes
from nbhelpers.cluster.workers import slurm_workers
from nbhelpers.errors import RunError

from .own_slurm import CPUS, MEMORY_MB, missing, own_slurm, wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not find_spec("dask_jobqueue"),  # not imported: that takes Ctrl-C away from other tests
        reason="an extra: pip install 'noisebook[cluster]'",
    ),
    pytest.mark.skipif(bool(missing()), reason=f"needs a Slurm: {missing()}"),
]
SLOW = "case $NOISEBOOK_NODE in n1) sleep 0.3;; *) sleep 0.05;; esac"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with own_slurm(tmp_path_factory.mktemp("slurm"), nodes=3) as running:
        yield running


def workers_of(folder, **options):
    """Two nodes of this Slurm, on loopback only."""
    return slurm_workers(
        2,
        walltime="00:10:00",
        interface="lo",
        log_directory=str(folder),
        local_directory=str(folder / "dask"),
        scheduler_options={"dashboard_address": "127.0.0.1:0"},
        worker_extra_args=["--dashboard-address", "127.0.0.1:0"],
        **options,
    )


def test_a_cancelled_job_costs_its_round_of_its_node_only(slurm, tmp_path):
    import dask
    import distributed  # noqa: F401 - before its setting is changed: else all its defaults would go

    jobs: dict[str, str] = {}
    canceller = threading.Thread(target=cancel_when_measuring, args=(slurm, tmp_path / "c", jobs))
    soon = dask.config.set({"distributed.deploy.lost-worker-timeout": "1s"})
    with soon, workers_of(tmp_path) as workers:
        canceller.start()
        runs = measure_on_nodes(workers, SLOW, tmp_path / "c", rounds=6, runs=2, shell=True)
        canceller.join()
    (note,) = runs.attrs["notes"]
    assert note.startswith("the worker of n1 died in round")
    assert len(list(tmp_path.glob("dask-worker-*.out"))) == 3  # jobs
    ok = runs[runs["status"] == "ok"]
    assert ok.groupby(["node", "node_round"]).size().to_dict() == {
        (node, number): 2 for node in ("n0", "n1") for number in range(6)
    }
    table = compare_nodes(runs)
    assert dict(zip(table["node"], table["verdict"])) == {"n1": "worse", "n0": "better"}
    for node, job in jobs.items():  # all of the node is the job's, its memory, too
        assert f"NodeList={node}" in job and f"NumCPUs={CPUS} " in job, job
        assert f"mem={MEMORY_MB}M" in job, job


def cancel_when_measuring(slurm, folder, jobs):
    """Cancel the job of n1, once it has a run on disk; `jobs` says what Slurm knew of each job."""
    begun = folder / "n1" / "runs.jsonl"
    wait_until(lambda: begun.exists() and begun.stat().st_size, "n1 did not measure", slurm, 300)
    for node in ("n0", "n1"):
        number = slurm.run("squeue", "--noheader", f"--nodelist={node}", "--format=%i")
        jobs[node] = slurm.run("scontrol", "show", "job", number)
        if node == "n1":
            slurm.run("scancel", number)


def test_a_job_that_slurm_refuses_is_said_at_once(slurm, tmp_path):
    with pytest.raises(RunError, match="invalid partition specified: nowhere"):
        workers_of(tmp_path, queue="nowhere")
    assert not slurm.run("squeue", "--noheader")
