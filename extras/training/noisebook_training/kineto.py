"""Traces of PyTorch's profiler (Kineto): a JSON file a rank, of what its GPU did and when.

A rank is its GPU. Collectives are kernels of NCCL or RCCL: they go on beside the computation, and
the rank waits for one where nothing else was done when it was over, or at the end of the trace.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nbhelpers.errors import InputError
from nbhelpers.mpi import NUMBERS, Calls
from nbhelpers.reading import read_json

ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
ON_HOST = ("cuda_runtime", "cuda_driver")
_KERNEL = re.compile(r"[nr]ccl(?:Dev)?Kernel_([A-Za-z]+)")
_STEP = "ProfilerStep#"
_WORDS = ("allreduce", "allgather", "alltoall", "reducescatter", "broadcast", "reduce", "barrier")
_MESSAGES = {"send": "Dst Rank", "recv": "Src Rank"}
_OTHERWISE = {"broadcast": "bcast", "reducescatter": "reduce_scatter"}  # MPI's word
_BYTES = {"double": 8, "long": 8, "float": 4, "int": 4, "half": 2, "bfloat16": 2}
FIX = "record every rank by torch.profiler of PyTorch 2.2 or later, its GPU too"


class Operation(NamedTuple):
    """What a GPU did; `name` is "" of what is no communication, and `peer` −1 of what is no
    message. `step` is the profiler's, in which the host started it; −1: none.
    """

    start_ns: int
    end_ns: int
    step: int
    name: str = ""
    given: int = 0
    got: int = 0
    group: str = ""
    members: tuple[int, ...] = ()
    peer: int = -1


def read_kineto(path: Path) -> Calls:
    """The collectives of a job, from a folder with a file a rank, JSON or packed by gzip.

    Parameters
    ----------
    path
        The folder, or the file of one rank.

    Returns
    -------
    Calls
        Times of each rank count from the first operation of its GPU. Where one rank of a job whose
        collectives are all ranks' is there, the others are copies of it, and `notes` says so.

    Raises
    ------
    InputError
        A file that is no such trace, without a GPU or sizes; ranks that are missing.
    """
    found, world = recorded_ranks(path)
    notes, everybody = _copied(found, world, path), tuple(range(world))
    comms = {(one.group, one.members) for each in found.values() for one in each if one.members}
    numbers = {key: number for number, key in enumerate(sorted(comms), 1)}
    rows: list[dict] = []
    waits: list[tuple] = []
    for rank in everybody:
        _add_calls(rank, found[rank], numbers, rows, waits)
    return Calls(
        pd.DataFrame(rows, columns=["call", *NUMBERS]),
        pd.DataFrame(waits, columns=["rank", "row", "request"]),
        {0: everybody} | {number: members for (_, members), number in numbers.items()},
        world,
        notes=notes,
        offloaded=True,
    )


def recorded_ranks(path: Path) -> tuple[dict[int, list[Operation]], int]:
    """What the GPU of each rank did, sorted by its begin, from a folder or a file; and how many
    ranks the job has.
    """
    files = sorted([*path.glob("*.json"), *path.glob("*.json.gz")]) or [path]
    ranks = [_rank(file) for file in files]
    found = {rank: operations for rank, _, operations in ranks}
    if len(found) < len(files):
        raise InputError("a rank is there twice", where=path, fix="leave out the other run's files")
    return found, max(world for _, world, _ in ranks)


def _rank(path: Path) -> tuple[int, int, list[Operation]]:
    """Its number, the number of ranks, and what its GPU did."""
    trace = read_json(path, "trace of PyTorch's profiler")
    try:
        info, everything = trace.get("distributedInfo") or {}, trace["traceEvents"]
        events = [e for e in everything if e.get("ph") == "X" and e.get("cat") in ON_GPU]
        events.sort(key=lambda event: event["ts"])
        step_of = _steps(everything)
        operations = [_operation(e, events[0]["ts"], step_of(e), info) for e in events]
        world = 1 + max((max(one.members) for one in operations if one.members), default=-1)
        if not world:
            raise InputError("a trace without collectives of a GPU", where=path, fix=FIX)
        return int(info.get("rank", 0)), max(world, int(info.get("world_size", 1))), operations
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as problem:
        raise InputError(
            f"a trace that can't be read: {type(problem).__name__} {problem}",
            where=path,
            why="times, sizes or groups of its collectives are missing",
            fix=FIX,
        ) from problem


def _steps(events: list[dict[str, Any]]) -> Callable[[dict[str, Any]], int]:
    """Of an event of the GPU: the step in which the host started it."""
    marks = [e for e in events if e.get("cat") == "user_annotation" and e["name"].startswith(_STEP)]
    marks.sort(key=lambda event: event["ts"])
    begins = [mark["ts"] for mark in marks]
    started = {
        event["args"]["correlation"]: event["ts"]
        for event in events
        if event.get("cat") in ON_HOST and "correlation" in event.get("args", {})
    }

    def step_of(event: dict[str, Any]) -> int:
        at = started.get(event.get("args", {}).get("correlation"), event["ts"])
        place = int(np.searchsorted(begins, at, "right")) - 1
        if place < 0 or at >= begins[place] + marks[place]["dur"]:
            return -1
        return int(marks[place]["name"].removeprefix(_STEP))

    return step_of


def _operation(event: dict[str, Any], zero: float, step: int, info: dict[str, Any]) -> Operation:
    start = round((event["ts"] - zero) * 1000)
    end = start + round(event.get("dur", 0) * 1000)
    kernel, args = _KERNEL.search(event["name"]), event.get("args", {})
    if not kernel:
        return Operation(start, end, step)
    said = re.sub("[^a-z]", "", str(args.get("Collective name") or kernel[1]).lower())
    word = next((word for word in _WORDS if word in said), "")
    peer = int(args.get(_MESSAGES.get(said, ""), -1))
    name = word or (said if peer >= 0 else kernel[0])
    wide = _BYTES.get(str(args.get("dtype")).lower(), 1)
    given, got = (int(args[f"{way} msg nelems"]) * wide for way in ("In", "Out"))
    group = str(args["Process Group Name"])
    groups = {str(one["pg_name"]): one.get("ranks") for one in info.get("pg_config") or []}
    every = range(args["Group size"]) if args["Group size"] == info.get("world_size") else ()
    members = groups.get(group) or every or json.loads(args["Process Group Ranks"])
    return Operation(start, end, step, name, given, got, group, tuple(members), peer)


def _copied(found: dict[int, list[Operation]], world: int, path: Path) -> tuple[str, ...]:
    """Makes the missing ranks copies of the only one that was recorded, if that can be; says so."""
    missing = sorted(set(range(world)) - set(found))
    (own, operations), *more = found.items()
    if missing and (more or any(one.name and len(one.members) < world for one in operations)):
        raise InputError(
            f"{len(missing)} of {world} ranks are missing, the first: {missing[0]}",
            where=path,
            why="a collective ends when its last rank has come",
            fix=FIX,
        )
    found |= dict.fromkeys(missing, operations)
    said = f"Of {world} ranks only {own} was recorded: the others are its copies."
    return (said,) if missing else ()


def _add_calls(
    rank: int, operations: list[Operation], numbers: dict[tuple, int], rows: list, waits: list
) -> None:
    """The calls of a rank: where its collectives begin, and where it waits for them."""
    others = np.array([(0, 0), *(one[:2] for one in operations if not one.name)])
    busy_until = np.maximum.accumulate(others[:, 1])
    events: list[tuple] = []
    left: list[int] = []
    for number, one in enumerate(each for each in operations if each.name):
        known = one.name in _WORDS
        call = f"MPI_I{_OTHERWISE.get(one.name, one.name)}" if known else one.name
        about = {"call": call, "comm": numbers[one.group, one.members], "request": number}
        about |= {"bytes": one.given, "received_bytes": one.got}
        events.append((one.start_ns, one.start_ns, about, []))
        still = busy_until[np.searchsorted(others[:, 0], one.end_ns, "right") - 1]
        if still < one.end_ns:
            waited = (max(one.start_ns, int(still)), one.end_ns, {"call": "MPI_Wait"}, [number])
            events.append(waited)
        else:
            left.append(number)
    last = max(one.end_ns for one in operations)
    events.sort(key=lambda event: event[0])
    events += [
        (last, last, {"call": "MPI_Waitall"}, left),
        (last, last, {"call": "MPI_Finalize"}, []),
    ]
    now = 0
    for start, end, about, requests in events:
        start, now = max(start, now), max(start, now, end)
        waits += [(rank, len(rows), request) for request in requests]
        times = {"rank": rank, "start_ns": start, "end_ns": now, "bytes": 0, "received_bytes": 0}
        rows.append(dict.fromkeys(NUMBERS, -1) | times | about)
