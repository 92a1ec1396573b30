"""Traces of PyTorch's profiler: a real one, and what becomes of its collectives."""

import gzip
import json
from pathlib import Path

import pytest
from noisebook_training.kineto import read_kineto

from nbhelpers.cli import DONE, main
from nbhelpers.errors import InputError
from nbhelpers.simulation import LogGOPS, simulate
from nbhelpers.simulation.traces import schedule_of_calls

SAMPLE = Path(__file__).parent / "data" / "kineto-rank0.json.gz"
TRACE = json.loads(gzip.decompress(SAMPLE.read_bytes()))


def test_a_real_job_takes_as_long_on_its_own_network():
    calls = read_kineto(SAMPLE)
    assert calls.notes == ("Of 2 ranks only 0 was recorded: the others are its copies.",)
    reduced = [e for e in TRACE["traceEvents"] if e["name"].startswith("nccl")]
    assert calls.table["call"].str.startswith("MPI_I").sum() == 2 * len(reduced) == 42
    gpu = [
        e for e in TRACE["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    ]
    took_ms = (max(e["ts"] + e["dur"] for e in gpu) - min(e["ts"] for e in gpu)) / 1e3
    rate = (
        sum(e["dur"] for e in reduced) * 1e3 / sum(4 * e["args"]["In msg nelems"] for e in reduced)
    )
    simulated = simulate(schedule_of_calls(calls), LogGOPS(L=0, o=0, g=0, G=rate, O=0, S=2**40))
    assert simulated.makespan_ns / 1e6 == pytest.approx(took_ms, rel=0.02)


@pytest.mark.parametrize(
    "old, new, said",
    [
        ('"world_size": 2', '"world_size": 3', "1 of 3 ranks are missing"),
        ('"rank": 1', '"rank": 0', "a rank is there twice"),
        ('"In msg nelems"', '"in"', "can't be read.*In msg nelems"),
        ('"allreduce"', '"coalesced"', "× ncclKernel_AllReduce"),
        ('"kernel"', '"cpu_op"', "without collectives of a GPU"),
        ("", "", ""),
    ],
)
def test_two_ranks_and_what_is_refused(old, new, said, tmp_path):
    for rank in (0, 1):
        own = TRACE["distributedInfo"] | {"rank": rank}
        text = json.dumps(TRACE | {"distributedInfo": own}).replace(old, new)
        (tmp_path / f"{rank}.pt.trace.json").write_text(text)
    if said:
        with pytest.raises(InputError, match=said):
            schedule_of_calls(read_kineto(tmp_path))
    else:
        assert main(["whatif", str(tmp_path), "--noise", "none", "--times", "2"]) == DONE
