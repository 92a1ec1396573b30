"""Chakra traces: a public one, and small ones in both forms."""

import json

import pytest

from nbhelpers.errors import InputError
from nbhelpers.simulation import LogGOPS, patterns, simulate
from nbhelpers.training.chakra import read_chakra

NETWORK = LogGOPS(L=1000, o=100, g=100, G=0.01, O=0)
# astra-sim (MIT licence), examples/workload/microbenchmarks/all_reduce/4npus_1MB, commit 518bd513
PUBLIC = bytes.fromhex(
    "070a05302e302e344a08011214616c6c5f7265647563655f346e7075735f314d421807520e0a0969735f6370"
    "755f6f70d80100520d0a09636f6d6d5f747970654800520f0a09636f6d6d5f73697a6548808040"
)


def write(folder, *ranks):
    paths = [folder / f"{rank}.json" for rank in range(len(ranks))]
    for path, nodes in zip(paths, ranks):
        path.write_text(json.dumps({"workload_graph": nodes}))
    return paths


def node(number, kind, runtime=0, needs=(), **more):
    return {"Id": number, "NodeType": kind, "runtime": runtime, "data_deps": list(needs)} | more


def test_a_public_collective_takes_as_long_as_its_pattern(tmp_path):
    paths = [tmp_path / f"{rank}.et" for rank in range(4)]
    for path in paths:
        path.write_bytes(PUBLIC)
    alone = simulate(patterns.rabenseifner_allreduce(4, 1 << 20), NETWORK).finish_ns
    read = simulate(read_chakra(paths), NETWORK).finish_ns
    assert read.tolist() == pytest.approx(alone.tolist())
    paths[2].write_bytes(PUBLIC[:-3])
    with pytest.raises(InputError, match="cut short"):
        read_chakra(paths)


def test_computing_and_messages_wait_for_their_needs(tmp_path):
    message = {"comm_src": 0, "comm_dst": 1, "comm_tag": 3, "comm_size": 1}
    sender = [node(1, 4, 7, is_cpu_op=True), node(2, 4, 5, [1]), node(3, 5, 0, [2], **message)]
    receiver = [node(1, 6, **message), node(2, 4, 4, [1])]
    schedule = read_chakra(write(tmp_path, sender, receiver))
    assert simulate(schedule, NETWORK).finish_ns.tolist() == [12_100, 17_200]


def test_ranks_with_other_collectives_are_refused(tmp_path):
    one = [node(1, 7, comm_type=0, comm_size=8)]
    other = [node(1, 7, comm_type=2, comm_size=8)]
    with pytest.raises(InputError, match="ranks 0 and 1 have other collectives"):
        read_chakra(write(tmp_path, one, other))
    with pytest.raises(InputError, match="without nodes"):
        read_chakra(write(tmp_path, []))
