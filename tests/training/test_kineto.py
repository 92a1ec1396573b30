"""Kineto traces: a public one takes as long as recorded, small ones show who waits for whom."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.places import shipped
from nbhelpers.simulation import Detours, Noise, periodic, simulate
from nbhelpers.training import noise_on_hosts, published_kineto
from nbhelpers.training.kineto import read_kineto
from nbhelpers.training.launches import host_noise, launch_schedule
from nbhelpers.training.schedules import FREE_NETWORK

PUBLIC = shipped() / "data/published/kineto/ddp-rank0.json.gz"


def launch(number, ts, dur=2, name="cudaLaunchKernel", thread=1):
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 9, "tid": thread, "ts": ts,
            "dur": dur, "args": {"correlation": number}}  # fmt: skip


def kernel(number, ts, dur, stream=7, name="gemm", **args):
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": ts,
            "dur": dur, "args": {"correlation": number, "stream": stream, **args}}  # fmt: skip


def reduction(number, ts, dur, ranks="[0, 1]"):
    return kernel(number, ts, dur, 40, "ncclDevKernel_AllReduce_Sum_f32", **{
        "Collective name": "allreduce", "In msg nelems": 1000, "dtype": "Float",
        "Process Group Ranks": ranks, "Process Group Name": "0"})  # fmt: skip


def write(folder, events, rank=0, world=1):
    path = folder / f"rank{rank}.json"
    info = {"rank": rank, "world_size": world}
    path.write_text(json.dumps({"distributedInfo": info, "traceEvents": events}))
    return path


def finish_us(trace, noise=None):
    return simulate(launch_schedule(trace), FREE_NETWORK, noise).finish_ns / 1e3


def one_detour(trace, place, start_us, length_us):
    """A detour of one host, and of nothing else."""
    events = pd.DataFrame({"start_ns": [start_us * 1e3], "duration_ns": [length_us * 1e3]})
    detours = Detours.from_table(events, 1e9, "one")
    return Noise.on_ranks(detours, 2 * len(trace.records), phases_ns=0, noisy=[2 * place])


BOUND_BY_GPU = [launch(1, 0), launch(2, 4), launch(3, 8),
                kernel(1, 10, 100), kernel(2, 110, 100), kernel(3, 210, 100)]  # fmt: skip
BOUND_BY_HOST = [launch(1, 0), kernel(1, 5, 10), launch(2, 100), kernel(2, 105, 10)]
SYNC = [launch(1, 0), kernel(1, 5, 100), launch(0, 10, 97, "cudaDeviceSynchronize"),
        launch(2, 110), kernel(2, 115, 10)]  # fmt: skip


def test_the_public_trace_takes_as_long_as_recorded():
    trace = published_kineto()
    assert finish_us(trace).max() == pytest.approx(trace.records[0].seconds * 1e6, abs=0.002)
    assert trace.copied == (1,) and trace.records[1].rank == 1


def test_the_public_trace_has_what_its_json_has():
    events = json.loads(gzip.decompress(PUBLIC.read_bytes()))["traceEvents"]
    on_gpu = [e for e in events if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    table = published_kineto().records[0].operations
    assert len(table) == len(on_gpu) and (table["call"] >= 0).all()
    nccl = [e for e in on_gpu if "nccl" in e["name"]]
    assert (table["collective"] != "").sum() == len(nccl)
    sent = sum(
        e["args"]["In msg nelems"] * {"Float": 4, "Long": 8}[e["args"]["dtype"]] for e in nccl
    )
    assert table.loc[table["collective"] != "", "bytes"].sum() == sent


@pytest.mark.parametrize(
    "events, quiet, delayed",
    [(BOUND_BY_GPU, 310, 310), (BOUND_BY_HOST, 115, 165), (SYNC, 125, 125)],
)
def test_a_detour_of_the_host_costs_what_the_gpu_does_not_hide(tmp_path, events, quiet, delayed):
    trace = read_kineto(write(tmp_path, events))
    assert finish_us(trace).max() == pytest.approx(quiet)
    noise = one_detour(trace, 0, start_us=20, length_us=50)
    assert finish_us(trace, noise).max() == pytest.approx(delayed)


def test_a_host_that_waited_goes_on_after_its_gpu(tmp_path):
    trace = read_kineto(write(tmp_path, SYNC))
    noise = one_detour(trace, 0, start_us=1, length_us=50)  # the first launch comes later
    assert finish_us(trace, noise).max() == pytest.approx(125 + 50)


def test_an_awaited_stream_is_awaited(tmp_path):
    wait = launch(9, 6, 1, "cudaStreamWaitEvent")
    events = [launch(1, 0), kernel(1, 5, 100), wait, launch(2, 8), kernel(2, 105, 10, stream=8)]
    trace = read_kineto(write(tmp_path, events))
    noise = one_detour(trace, 0, start_us=6.5, length_us=50)
    assert finish_us(trace, noise).max() == pytest.approx(115)
    without = read_kineto(write(tmp_path, [e for e in events if e is not wait]))
    assert finish_us(without, noise).max() == pytest.approx(115 + 50)  # keeps its delay


def two_ranks(folder):
    """Rank 1 comes 30 µs later to a reduction of 20 µs; clocks differ by 1 ms."""
    early = [launch(1, 0), reduction(1, 5, 50), launch(2, 60), kernel(2, 65, 10)]
    late = [launch(7, 1000), kernel(7, 1002, 1), launch(1, 1030), reduction(1, 1035, 20),
            launch(2, 1060), kernel(2, 1065, 10)]  # fmt: skip
    return read_kineto([write(folder, early, 0, 2), write(folder, late, 1, 2)])


def test_a_collective_ends_when_the_last_has_come(tmp_path):
    trace = two_ranks(tmp_path)
    assert finish_us(trace)[1::2].tolist() == pytest.approx([75, 75])
    noise = one_detour(trace, 1, start_us=20, length_us=200)
    delayed = finish_us(trace, noise)
    assert delayed[1::2].tolist() == pytest.approx([235 + 20, 260 + 15])
    assert delayed[0] == finish_us(trace)[0]  # the host of rank 0 did not wait


def test_noise_of_hosts_strikes_no_gpu():
    detours = [periodic(1000, 25), periodic(10, 2500)]
    noise = host_noise(detours, 8, seed=3)
    assert (noise.rank_trace[1::2] == -1).all() and (noise.rank_trace[::2] >= 0).all()
    assert (host_noise(detours, 8, seed=3, gpus=True).rank_trace >= 0).all()


def test_a_host_that_never_rests_loses_what_noise_takes():
    """The public job is bound by its hosts: its GPUs are busy a quarter of the time."""
    trace = published_kineto()
    table = noise_on_hosts(trace, [periodic(1000, 25)], seeds=3).set_index("struck")
    assert table.at["hosts", "median"] == pytest.approx(1 / (1 - 0.025), abs=0.002)
    times = trace.records[0].operations[["start_ns", "end_ns"]].to_numpy()
    busy = np.zeros(700_000, bool)  # of each µs
    for start, end in times // 1000:
        busy[start:end] = True
    share = busy.sum() / trace.records[0].seconds / 1e6
    assert table["busy"].tolist() == pytest.approx([share, share], abs=0.01)
    assert table.at["hosts and GPUs", "median"] >= table.at["hosts", "median"] - 1e-9


def test_ranks_that_are_missing_are_named_copied_or_left_out(tmp_path):
    with pytest.raises(InputError, match="1 of 2 ranks are missing: 1"):
        read_kineto(PUBLIC)
    alone = read_kineto(PUBLIC, missing="leave out")
    assert launch_schedule(alone).ranks == 2 and not alone.copied


def test_bad_files_say_what_is_wrong(tmp_path):
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(PUBLIC.read_bytes()[:50_000])
    text = tmp_path / "cut.json"
    text.write_text(gzip.decompress(PUBLIC.read_bytes()).decode()[:50_000])
    for path in (cut, text):
        with pytest.raises(InputError, match="cut short"):
            read_kineto(path)
    with pytest.raises(InputError, match="without operations of a GPU"):
        read_kineto(write(tmp_path, [launch(1, 0)]))
    with pytest.raises(InputError, match="no traceEvents"):
        text.write_text("{}")
        read_kineto(text)
    with pytest.raises(InputError, match="cannot read"):
        read_kineto(tmp_path / "none.json")


def test_ranks_that_call_other_collectives_are_refused(tmp_path):
    both = [launch(1, 0), reduction(1, 5, 50)]
    more = [*both, launch(2, 60), reduction(2, 65, 50)]
    trace = read_kineto([write(tmp_path, both, 0, 2), write(tmp_path, more, 1, 2)])
    with pytest.raises(InputError, match="have 1 and 2 collectives"):
        launch_schedule(trace)
    with pytest.raises(InputError, match="there twice"):
        other = write(tmp_path, both, 0, 2).rename(tmp_path / "other.json")
        read_kineto([other, write(tmp_path, both, 0, 2)])


def test_many_ranks_meet_in_one_collective(tmp_path):
    paths = [
        write(tmp_path, [launch(1, 0), reduction(1, 5, 10 + rank, "[0, 1, 2, 3, 4]")], rank, 5)
        for rank in range(5)
    ]
    trace = read_kineto(paths)
    noise = one_detour(trace, 3, start_us=1, length_us=100)
    assert np.allclose(finish_us(trace, noise)[1::2], 115)
