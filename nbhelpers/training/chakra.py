"""Chakra execution traces, one file a rank, as schedules: protobuf by its field numbers, or JSON.

Owns the decoding and the translation of nodes. Schema: mlcommons/chakra, et_def.proto.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..reading import read_bytes
from ..simulation.schedule import CALC, RECV, SEND, Schedule
from ..simulation.traces.collectives import chosen_algorithms

COMP, SENDING, RECEIVING, COLLECTIVE = 4, 5, 6, 7
TYPES = {
    name: number
    for number, name in enumerate(
        [
            "INVALID",
            "METADATA",
            "MEM_LOAD",
            "MEM_STORE",
            "COMP",
            "COMM_SEND",
            "COMM_RECV",
            "COMM_COLL",
        ]
    )
}
COLLECTIVES = [
    "Allreduce",
    "Reduce",
    "Allgather",
    "Gather",
    "Scatter",
    "Bcast",
    "Alltoall",
    "Reduce_scatter",
    "Reduce_scatter",
    "Barrier",
]
HOST, GPU, NETWORK = 0, 1, 2
_NUMBERS = (7, 9, 11, 13, 27)  # an attribute's fields that hold a plain number


def read_chakra(files: Sequence[str | Path], name: str = "Chakra trace") -> Schedule:
    """Read the traces of all ranks, in order.

    Each rank has three CPUs: its host's operations, its GPU's, communication. Nodes wait for their
    data and control dependencies. Collectives are of all ranks, matched in the order of the files,
    and become messages by the algorithms of `chosen_algorithms`.

    Raises
    ------
    InputError
        A file cut short, no nodes, groups of ranks, ranks with other collectives.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "0.json"
    ...     _ = path.write_text('{"workload_graph": [{"Id": 1, "NodeType": 4, "runtime": 7}]}')
    ...     read_chakra([path])
    Schedule(Chakra trace: 1 ranks, 1 operations, 0 messages)
    """
    nodes = [_nodes(Path(path)) for path in files]
    try:
        return _schedule(nodes, name)
    except (LookupError, ValueError, TypeError, AttributeError, OverflowError) as problem:
        raise InputError(
            "not a trace of Chakra's", where=", ".join(map(str, files)), why=str(problem)
        ) from problem


def _schedule(nodes: list[list[dict[str, Any]]], name: str) -> Schedule:
    meetings = [[node for node in each if node["type"] == COLLECTIVE] for each in nodes]
    kinds = [[(_number(n, "comm_type"), _number(n, "comm_size")) for n in m] for m in meetings]
    for rank, own in enumerate(kinds):
        if own != kinds[0]:
            raise InputError(f"ranks 0 and {rank} have other collectives", where=name)
    patterns, tag = [], 1 + max((_number(n, "comm_tag") for each in nodes for n in each), default=0)
    for kind, size in kinds[0]:
        pattern = chosen_algorithms()[COLLECTIVES[kind]](len(nodes), size, 0)
        patterns.append((pattern, tag))
        tag += 1 + int(pattern.tag.max(initial=0))
    ranks = [_rank(each, number, patterns) for number, each in enumerate(nodes)]
    counts = [len(rows) for rows, _ in ranks]
    low = np.concatenate([[0], np.cumsum(counts)[:-1]])
    rows = np.array([row for own, _ in ranks for row in own], np.int64)
    needs = np.array(
        [(a + s, b + s) for (_, own), s in zip(ranks, low) for a, b in own], np.int64
    ).reshape(-1, 2)
    kind, size, peer, number, cpu = rows.T
    return Schedule.from_arrays(
        np.array(counts), kind, peer, size, tag=number, cpu=cpu,
        requires=(needs[:, 0], needs[:, 1]), name=name,
    )  # fmt: skip


def _rank(
    nodes: list[dict[str, Any]], rank: int, patterns: list[tuple[Schedule, int]]
) -> tuple[list[tuple[int, ...]], list[tuple[int, int]]]:
    """Rows (kind, size, peer, tag, cpu) and (operation, needed)."""
    rows: list[tuple[int, ...]] = []
    needs: list[tuple[int, int]] = []
    entry, over, meeting = {}, {}, 0
    for node in nodes:
        entry[node["id"]] = len(rows)
        kind, size = node["type"], _number(node, "comm_size")
        host = _number(node, "is_cpu_op") and kind not in (SENDING, RECEIVING, COLLECTIVE)
        if kind == COLLECTIVE:
            rows.append((CALC, 0, 0, 0, NETWORK))
            pattern, tag = patterns[meeting]
            meeting += 1
            _expand(rows, needs, pattern, rank, tag)
        elif kind in (SENDING, RECEIVING):
            peer = _number(node, "comm_dst" if kind == SENDING else "comm_src")
            way = SEND if kind == SENDING else RECV
            rows.append((way, size, peer, _number(node, "comm_tag"), NETWORK))
        else:
            rows.append((CALC, 1000 * node["us"], 0, 0, HOST if host else GPU))
        over[node["id"]] = len(rows) - 1
    for node in nodes:
        for need in node["deps"]:
            if need in over:  # nodes that were left out of the trace are not waited for
                needs.append((entry[node["id"]], over[need]))
    return rows, needs


def _expand(
    rows: list[tuple[int, ...]],
    needs: list[tuple[int, int]],
    pattern: Schedule,
    rank: int,
    tag: int,
) -> None:
    """A rank's part of a collective, between its entry (the last row) and a new last row."""
    first, end = (int(place) for place in pattern.rank_start[rank : rank + 2])
    shift = len(rows) - first
    entry = len(rows) - 1
    for op in range(first, end):
        kind, size, peer, number = (
            int(pattern.column(c)[op]) for c in ("kind", "size", "peer", "tag")
        )
        rows.append((kind, size, peer, tag + number, NETWORK))
        needs.append((op + shift, entry))
    for which in ("requires", "irequires"):
        for operation, needed in zip(*(side.tolist() for side in pattern.edges(which))):
            if first <= operation < end:
                needs.append((operation + shift, needed + shift))
    needs += [(len(rows), op + shift) for op in range(first, end)] or [(len(rows), entry)]
    rows.append((CALC, 0, 0, 0, NETWORK))


def _number(node: dict[str, Any], name: str) -> int:
    return int(node["attr"].get(name, 0))


# --- files ----------------------------------------------------------------------------------------


def _nodes(path: Path) -> list[dict[str, Any]]:
    data = read_bytes(path, "trace")
    try:
        json_text = data.lstrip()[:1] == b"{"
        nodes = list(_of_json(data.decode()) if json_text else _of_protobuf(data))
    except (
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as problem:
        raise InputError(
            "a trace that is cut short, or not Chakra's", where=str(path), why=str(problem)
        ) from problem
    if not nodes:
        raise InputError("a trace without nodes", where=str(path))
    if any(node["attr"].get("pg_name") for node in nodes):
        raise InputError("collectives of groups", where=str(path), why="only those of all are read")
    return nodes


def _of_json(text: str) -> Iterator[dict[str, Any]]:
    """Nodes of a workload_graph, or of objects one after the other (a dump of the protobuf)."""
    decoder, at, found = json.JSONDecoder(), 0, []
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        one, at = decoder.raw_decode(text, at)
        found += one.get("workload_graph", [one] if "type" in one else [])
    for raw in found:
        kind = raw.get("NodeType", raw.get("type"))
        number = kind if isinstance(kind, int) else TYPES[kind.removesuffix("_NODE")]
        attributes = {
            a["name"]: next((v for k, v in a.items() if k.endswith("Val")), 0)
            for a in raw.get("attr", [])
        }
        deps = [raw.get(key, []) for key in ("ctrl_deps", "ctrlDeps", "data_deps", "dataDeps")]
        yield {
            "id": int(raw.get("Id", raw.get("id", 0))),
            "type": number,
            "us": int(raw.get("runtime", raw.get("durationMicros", 0))),
            "deps": {int(dep) for some in deps for dep in some},
            "attr": {k: v for k, v in raw.items() if k.startswith(("comm_", "is_"))} | attributes,
        }


def _of_protobuf(data: bytes) -> Iterator[dict[str, Any]]:
    """Each message after its length; the first is about the whole file."""
    at, first = 0, True
    while at < len(data):
        length, at = _varint(data, at)
        if at + length > len(data):
            raise ValueError("the file ends within a node")
        if not first:
            yield _node(data[at : at + length])
        at, first = at + length, False


def _node(data: bytes) -> dict[str, Any]:
    node: dict[str, Any] = {"id": 0, "type": 0, "us": 0, "deps": set(), "attr": {}}
    names = {1: "id", 3: "type", 7: "us"}
    for number, value in _fields(data):
        if number in names:
            node[names[number]] = value
        elif number in (4, 5):
            node["deps"] |= set(_packed(value))
        elif number == 10:
            parts = dict(_fields(value))
            values = [parts[k] for k in _NUMBERS if k in parts] or [parts.get(29, 0)]
            node["attr"][parts[1].decode()] = values[0]
    return node


def _packed(value: int | bytes) -> Iterator[int]:
    if isinstance(value, int):
        yield value
        return
    at = 0
    while at < len(value):
        one, at = _varint(value, at)
        yield one


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        length = {1: 8, 5: 4}.get(wire, 0)
        if wire == 2:
            length, at = _varint(data, at)
        elif not length:
            raise ValueError(f"a field of type {wire}")
        yield key >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
