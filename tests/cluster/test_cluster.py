"""Campaigns over nodes: real Dask workers on this machine, one of them killed; and what Slurm and
PBS would be asked.
"""

import importlib.util
import os
import shutil
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest

from nbhelpers.cluster.campaign import measure_on_nodes, recorded_on_nodes
from nbhelpers.cluster.comparison import compare_nodes
from nbhelpers.cluster.workers import local_workers, pbs_workers, slurm_workers
from nbhelpers.errors import InputError, RunError, Unavailable
from nbhelpers.files import read_json

pytest.importorskip("distributed", reason="Dask is an extra: pip install 'noisebook[cluster]'")
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


def test_the_schedulers_are_asked_for_whole_nodes():
    if not importlib.util.find_spec("dask_jobqueue"):
        pytest.skip("dask-jobqueue is an extra: pip install 'noisebook[cluster]'")
    for asked, words in (
        (slurm_workers, ["#SBATCH --exclusive", "#SBATCH --nodes=1", "#SBATCH -t 00:10:00"]),
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


def asked_script(asked):
    """The script that would be submitted; there is no scheduler here to submit it to."""
    cluster = asked(0, walltime="00:10:00", interface="lo")
    try:
        return cluster.job_script()
    finally:
        cluster.close()
