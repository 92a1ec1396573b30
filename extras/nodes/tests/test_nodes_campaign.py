"""Campaigns over nodes: real Dask workers on this machine, one of them killed; and what Slurm and
PBS would be asked.
"""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from noisebook_nodes._task import names_of
from noisebook_nodes.campaign import _wait_for_workers, measure_on_nodes, recorded_on_nodes
from noisebook_nodes.comparison import compare_nodes
from noisebook_nodes.workers import (
    local_workers,
    pbs_workers,
    slurm_workers,
    submit_again,
)

from nbhelpers.errors import InputError, RunError, Unavailable
from nbhelpers.reading import read_json

pytest.importorskip("distributed", reason="make extra EXTRA=nodes")
from distributed import Client  # noqa: E402

LOOPBACK = {"interface": "lo", "scheduler_options": {"dashboard_address": "127.0.0.1:0"}}
# The second worker's "node" is ten times slower: the program knows its node by its name.
SLOW = "case $NOISEBOOK_NODE in *-1) sleep 0.5;; *) sleep 0.05;; esac"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_slow_node_is_found_and_each_node_describes_itself(tmp_path):
    with local_workers(2) as workers:
        runs = measure_on_nodes(workers, SLOW, tmp_path / "a b", rounds=6, runs=2, shell=True)
        again = measure_on_nodes(workers, SLOW, tmp_path / "a b", rounds=6, runs=2, shell=True)
    assert runs.attrs["notes"] == []
    assert runs.groupby(["node", "node_round"]).size().tolist() == [2] * 12
    assert again["run"].tolist() == runs["run"].tolist()  # nothing was measured twice
    table = compare_nodes(runs)
    assert table["node"][0].endswith("-1")
    assert table["verdict"].tolist() == ["worse", "better"]
    means = runs.groupby(["node", "node_round"])["seconds"].mean().unstack("node")
    ratio = np.exp(np.log(means[table["node"][0]] / means[table["node"][1]]).mean())
    assert table["change_percent"][0] == pytest.approx(100 * (ratio - 1))
    for node in table["node"]:
        kept = read_json(tmp_path / "a b" / node / "node.json")
        assert {"doctor", "machine", "calibration", "host"} <= set(kept)
        assert kept["doctor"]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_killed_worker_costs_its_round_of_its_node_only(tmp_path):
    with local_workers(2) as workers:
        killer = threading.Thread(target=kill_when_measuring, args=(workers, tmp_path))
        killer.start()
        runs = measure_on_nodes(workers, "sleep 0.1", tmp_path, rounds=3, runs=4)
        killer.join()
    assert len([note for note in runs.attrs["notes"] if "died in round" in note]) == 1
    assert "measured again" in " ".join(runs.attrs["notes"])
    ok = runs[runs["status"] == "ok"]
    assert ok.groupby(["node", "node_round"]).size().tolist() == [4] * 6
    assert recorded_on_nodes(tmp_path)["seconds"].tolist() == runs["seconds"].tolist()


def kill_when_measuring(workers, folder):
    """SIGKILL to the process of a worker, once it has a run on disk."""
    while not list(folder.glob("*-0/runs.jsonl")):
        time.sleep(0.05)
    from distributed import Client

    with Client(workers) as client:
        for pid, name in client.run(lambda dask_worker: (os.getpid(), dask_worker.name)).values():
            if name == 0:
                os.kill(pid, signal.SIGKILL)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_program_that_fails_on_one_node_leaves_that_node_out(tmp_path):
    command = "case $NOISEBOOK_NODE in *-1) exit 3;; *) sleep 0.01;; esac"
    with local_workers(2) as workers:
        runs = measure_on_nodes(workers, command, tmp_path, rounds=2, runs=1, shell=True)
    assert runs[runs.status == "ok"]["node"].nunique() == 1
    assert [note for note in runs.attrs["notes"] if "-1 was left out" in note]
    with pytest.raises(InputError, match="at least two nodes"):
        compare_nodes(runs)


def test_what_is_no_campaign_is_refused(tmp_path):
    with pytest.raises(InputError, match="at least one"):
        measure_on_nodes(None, "true", tmp_path, rounds=0)
    with pytest.raises(InputError, match="at least one"):
        local_workers(0)
    with pytest.raises(RunError, match="no node measured"):
        recorded_on_nodes(tmp_path)


@pytest.mark.parametrize("nodes, slow", [(3, None), (5, 2)])
def test_nodes_are_judged_together_by_rounds(nodes, slow):
    draw = np.random.default_rng(7)
    rows = [
        {
            "node": f"n{node}",
            "node_round": number,
            "seconds": weather * (1.1 if node == slow else 1.0) * draw.normal(1, 0.005),
            "status": "ok",
        }
        for number in range(12)
        for weather in [draw.uniform(0.8, 1.4)]  # a round is as good or as bad for all nodes
        for node in range(nodes)
    ]
    table = compare_nodes(pd.DataFrame(rows)).set_index("node")
    assert (table["rounds"] == 12).all()
    if slow is None:
        assert set(table["verdict"]) == {"no difference"}
    else:
        assert table.loc[f"n{slow}", "verdict"] == "worse"
        assert table.loc[f"n{slow}", "change_percent"] == pytest.approx(10, abs=1)
        assert "worse" not in set(table.drop(f"n{slow}")["verdict"])


needs_jobqueue = pytest.mark.skipif(
    not importlib.util.find_spec("dask_jobqueue"),
    reason="make extra EXTRA=nodes",
)


@needs_jobqueue
def test_the_schedulers_are_asked_for_whole_nodes():
    whole = ["#SBATCH --exclusive", "#SBATCH --nodes=1", "#SBATCH --mem=0", "#SBATCH -t 00:10:00"]
    for asked, words in (
        (slurm_workers, whole),
        (pbs_workers, ["#PBS -l place=excl", "#PBS -l walltime=00:10:00"]),
    ):
        script = asked_script(asked)
        assert all(word in script for word in words), script
        assert "distributed" in script
        if not shutil.which("sbatch" if asked is slurm_workers else "qsub"):
            with pytest.raises(Unavailable, match="login node"):
                asked(1)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_workers_leave_the_process_and_the_programs_environment_alone(tmp_path):
    """Dask sets OMP_NUM_THREADS=1 in both; dask-jobqueue takes Ctrl-C."""
    before, handler = dict(os.environ), signal.getsignal(signal.SIGINT)
    with local_workers(1) as workers:
        command = 'test -z "$OMP_NUM_THREADS$MALLOC_TRIM_THRESHOLD_"'
        runs = measure_on_nodes(workers, command, tmp_path, rounds=1, runs=1, shell=True)
    assert runs["status"].tolist() == ["ok"]
    if importlib.util.find_spec("dask_jobqueue"):
        assert "'OMP_NUM_THREADS': None" in asked_script(slurm_workers)
    assert signal.getsignal(signal.SIGINT) is handler
    assert dict(os.environ) == before


@needs_jobqueue
def test_a_job_has_all_memory_of_its_node_unless_some_is_named():
    assert "#SBATCH --mem=8G" in asked_script(slurm_workers, memory="8GiB")
    assert "#SBATCH --mem=5000" in asked_script(slurm_workers, job_mem="5000")


def scheduler(folder, name, answer, monkeypatch):
    """A command `name` that writes down the scripts that it is to submit, and answers."""
    command = folder / name
    command.write_text(f'#!/bin/sh\ncat "$1" >>"{folder}/submitted"\n{answer}\n')
    command.chmod(0o755)
    cancel = folder / {"sbatch": "scancel", "qsub": "qdel"}[name]
    cancel.write_text("#!/bin/sh\n")
    cancel.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@needs_jobqueue
@pytest.mark.parametrize("asked, name", [(slurm_workers, "sbatch"), (pbs_workers, "qsub")])
def test_a_refused_job_is_an_error_with_the_schedulers_words(asked, name, tmp_path, monkeypatch):
    scheduler(tmp_path, name, "echo your account is empty >&2; exit 1", monkeypatch)
    with pytest.raises(RunError, match="a job was refused: your account is empty"):
        asked(2, **LOOPBACK)
    assert "IO loop" not in {thread.name for thread in threading.enumerate()}  # it is closed


@needs_jobqueue
@pytest.mark.parametrize("asked, name", [(slurm_workers, "sbatch"), (pbs_workers, "qsub")])
def test_a_lost_job_is_submitted_again_and_slurm_is_asked_for_its_node(
    asked, name, tmp_path, monkeypatch
):
    scheduler(tmp_path, name, "echo job 7", monkeypatch)
    with asked(2, **LOOPBACK) as cluster:
        lost, other = sorted(cluster.workers)
        submit_again(cluster, lost, "n5")  # it is there: nothing happens
        for _ in range(2):
            del cluster.workers[lost]
            submit_again(cluster, lost, "n5")
            end = time.monotonic() + 60
            while lost not in cluster.workers and time.monotonic() < end:
                time.sleep(0.01)
        assert sorted(cluster.workers) == [lost, other]
    jobs = (tmp_path / "submitted").read_text().split("#!/usr/bin/env bash")[1:]
    again = 1 if asked is slurm_workers else 0
    assert [job.count("--nodelist=n5") for job in jobs] == [0, 0, again, again]


def test_workers_that_do_not_come_are_said():
    class Queue:
        """A client with `here` workers: waiting for more of them ends in a TimeoutError."""

        def __init__(self, here):
            self.here = here

        def wait_for_workers(self, number, timeout):
            if number > self.here:
                raise TimeoutError

        def nthreads(self):
            return dict.fromkeys(range(self.here), 1)

    assert _wait_for_workers(Queue(3), 3, 5.0) == []
    assert _wait_for_workers(Queue(2), 3, 5.0) == ["1 of 3 workers did not come within 5 s"]
    with pytest.raises(RunError, match="no worker came within 5 s"):
        _wait_for_workers(Queue(0), 3, 5.0)


def test_a_node_has_the_name_by_which_slurm_knows_it(monkeypatch):
    worker = types.SimpleNamespace(name="w-0")
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    assert names_of(worker) == (socket.gethostname(), "w-0")
    monkeypatch.setenv("SLURMD_NODENAME", "n5")
    assert names_of(worker) == ("n5", "w-0")


def asked_script(asked, **options):
    """The script that would be submitted."""
    cluster = asked(0, walltime="00:10:00", **LOOPBACK, **options)
    try:
        return cluster.job_script()
    finally:
        cluster.close()


STRANGER = """
import sys
from distributed import Client
try:
    with Client(sys.argv[1], timeout=4, set_as_default=False) as client:
        print("came in:", client.submit(lambda: 7).result(timeout=4))
except Exception as error:
    print("refused")
"""


@pytest.mark.timeout(120)
@pytest.mark.skipif(
    not shutil.which("openssl"), reason="without openssl there is no TLS, as is said"
)
def test_nobody_without_the_certificate_can_submit_tasks():
    """A client of another user has the address, but not the private folder."""
    with local_workers(1) as workers:
        address = workers.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        with Client(workers) as mine:
            assert mine.submit(len, "abc").result(timeout=20) == 3
        key = Path(workers.security.tls_client_key)
        assert (key.stat().st_mode & 0o777, key.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        for place in (address, address.replace("tls://", "tcp://")):
            done = subprocess.run(
                [sys.executable, "-c", STRANGER, place], capture_output=True, text=True, timeout=60
            )
            assert done.stdout.strip() == "refused", done.stdout + done.stderr
