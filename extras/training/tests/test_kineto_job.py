"""Stragglers from the profiler's traces: a real rank, and real jobs written as such traces."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from noisebook_training import kineto_job, named, played, published_job, what_if, worker_steps
from noisebook_training.dependencies import CLIP, EMBEDDING, GATHER, MESSAGES, SCATTER
from noisebook_training.scenarios import late_seconds
from noisebook_training.trace import COMPUTE, COMPUTING

from nbhelpers.errors import InputError

SAMPLE = Path(__file__).parent / "data" / "kineto-rank0.json.gz"
PEERS = {MESSAGES[0]: 1, MESSAGES[1]: -1, MESSAGES[2]: -1, MESSAGES[3]: 1}  # stages further
COLLECTIVES = {GATHER: "allgather", SCATTER: "reduce_scatter", CLIP: "allreduce"}
COLLECTIVES |= {EMBEDDING: "allreduce"}


def written(job, folder):
    """Writes a job as the profiler would have recorded it; each rank's clock is another."""
    folder.mkdir()
    ranks = np.arange(job.stages * job.replicas).reshape(job.stages, job.replicas).T
    begins = np.cumsum([0, *job.step_s])[:-1] + 1
    for (replica, stage), rank in np.ndenumerate(ranks):
        zero, events = 1e6 * rank, []
        for step, (number, begin) in enumerate(zip(job.steps, begins)):
            mark = {"cat": "user_annotation", "name": f"ProfilerStep#{number}", "ph": "X"}
            events.append(mark | {"ts": zero + begin * 1e6, "dur": job.step_s[step] * 1e6})
            done = ~np.isin(job.kind, COMPUTING) | (job.duration_s[:, step, replica] > 0)
            for op in np.flatnonzero((job.stage == stage) & done):
                times = begin + job.start_s[op, step, replica], job.duration_s[op, step, replica]
                event = _event(str(job.kind[op]), replica, stage, ranks)
                started = {"ph": "X", "cat": "cuda_runtime", "args": {"correlation": len(events)}}
                event["args"]["correlation"] = len(events)
                events.append(event | {"ts": zero + times[0] * 1e6, "dur": times[1] * 1e6})
                events.append(started | {"ts": zero + begin * 1e6, "name": "cudaLaunchKernel"})
        about = {"rank": int(rank), "world_size": ranks.size}
        text = json.dumps({"distributedInfo": about, "traceEvents": events})
        (folder / f"rank{rank}.json").write_text(text)
    return folder


def _event(kind, replica, stage, ranks):
    event = {"ph": "X", "cat": "kernel", "name": "gemm", "args": {}}
    if kind in MESSAGES:
        way, peer = kind.partition("-")[2], int(ranks[replica, stage + PEERS[kind]])
        said = {"Collective name": way, ("Dst Rank" if way == "send" else "Src Rank"): peer}
        members = ranks[replica].tolist()
    elif kind in COLLECTIVES or " of " in kind:
        said = {"Collective name": COLLECTIVES.get(kind, kind.partition(" ")[0])}
        of = {CLIP: ranks.ravel(), EMBEDDING: ranks[replica, [0, -1]]}
        members = of.get(kind, ranks[:, stage]).tolist()
    else:
        return event
    said |= {"In msg nelems": 1, "Out msg nelems": 1, "Group size": len(members), "dtype": "Float"}
    said |= {"Process Group Name": str(members), "Process Group Ranks": str(members)}
    return (
        event
        | {"name": "ncclDevKernel_SendRecv" if kind in MESSAGES else "ncclDevKernel_X"}
        | {"args": said}
    )


def test_a_real_rank_becomes_a_job_that_takes_as_long_as_it_took():
    job = kineto_job(SAMPLE)
    events = json.loads(gzip.decompress(SAMPLE.read_bytes()))["traceEvents"]
    kernels = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    reduced = [e for e in kernels if e["name"].startswith("nccl")]
    assert job.steps.tolist() == [4, 5, 6] and job.ranks.tolist() == [[0]]
    assert 3 * sum(job.kind != COMPUTE) == len(reduced) == 21
    table = worker_steps(what_if(job))
    talked = table["transfer_ms"].sum() + table["wait_ms"].sum()
    assert talked == pytest.approx(sum(e["dur"] for e in reduced) / 1e3, rel=1e-6)
    busy = sum(e["dur"] for e in kernels) / 1e3 - talked
    assert busy <= table["compute_ms"].sum() <= 1e3 * job.step_s.sum()
    with pytest.raises(InputError, match="too few"):
        named(what_if(job))


def test_a_slow_copy_of_a_real_rank_is_named(tmp_path):
    one = kineto_job(SAMPLE)
    start, lasts = ([each, np.roll(each, 1, 1)] for each in (one.start_s, one.duration_s))
    two = replace(one, start_s=np.concatenate(start, 2), duration_s=np.concatenate(lasts, 2))
    quiet = what_if(two)
    for factor, names in ((1, []), (2, ["worker 1/0"])):
        net_s = np.clip(quiet.net_s, 0, None)
        net_s[two.kind == COMPUTE, :, 1] *= factor
        spoiled = played(quiet, net_s, late_seconds(quiet))
        job = kineto_job(written(spoiled, tmp_path / str(factor)))
        assert job.ranks.tolist() == [[0], [1]]
        assert named(what_if(job))["name"].tolist() == names


@pytest.mark.parametrize("name, slow", [("ST", "stage 3"), ("AR", "worker 0/0")])
def test_a_published_job_has_the_same_culprit_from_its_ranks_traces(name, slow, tmp_path):
    job = published_job(name)
    job = replace(
        job, steps=job.steps[:6], start_s=job.start_s[:, :6], duration_s=job.duration_s[:, :6]
    )
    read = kineto_job(written(job, tmp_path / name))
    assert read.step_s == pytest.approx(job.step_s, rel=0.01)
    result = what_if(read)
    assert result.replayed_s == pytest.approx(what_if(job).replayed_s, rel=0.06)
    computed = worker_steps(result).groupby("step")["compute_ms"].sum() / 1e3
    rows = np.isin(job.kind, COMPUTING)
    assert computed.to_numpy() == pytest.approx(job.duration_s[rows].sum((0, 2)), rel=0.05)
    assert named(result)["name"].tolist() == [slow]


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("ProfilerStep", "Step", "usual collectives"),
        ('"Dst Rank": 2', '"Dst Rank": 4', "stage 0 to 2"),
        ('"Dst Rank": 2', '"Dst Rank": 9', "rank 9 of a pipeline is missing"),
        ('"[0, 1]"', '"[0, 3]"', "neither all replicas"),
    ],
)
def test_what_no_job_can_be_made_of_is_refused(old, new, said, tmp_path):
    job = published_job("ST")
    job = replace(
        job, steps=job.steps[:3], start_s=job.start_s[:, :3], duration_s=job.duration_s[:, :3]
    )
    file = written(job, tmp_path / "job") / "rank0.json"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(InputError, match=said):
        kineto_job(file.parent)
