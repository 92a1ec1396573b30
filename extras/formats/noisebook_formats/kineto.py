"""Traces of PyTorch's profiler (Kineto): a JSON file a rank, of what its GPU did and when.

A rank is its GPU. Collectives are kernels of NCCL or RCCL: they go on beside the computation, and
the rank waits for one where nothing else was done when it was over, or at the end of the trace.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbhelpers.errors import InputError
from nbhelpers.mpi import NUMBERS, Calls
from nbhelpers.reading import read_json

ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
_KERNEL = re.compile(r"[nr]ccl(?:Dev)?Kernel_([A-Za-z]+)")
_WORDS = ("allreduce", "allgather", "alltoall", "reducescatter", "broadcast", "reduce", "barrier")
_OTHERWISE = {"broadcast": "bcast", "reducescatter": "reduce_scatter"}  # MPI's word
_BYTES = {"double": 8, "long": 8, "float": 4, "int": 4, "half": 2, "bfloat16": 2}
_FIX = "record every rank by torch.profiler of PyTorch 2.2 or later, its GPU too"


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
    files = sorted([*path.glob("*.json"), *path.glob("*.json.gz")]) or [path]
    ranks = [_rank(file) for file in files]
    found, world = {rank: one for rank, _, one in ranks}, max(world for _, world, _ in ranks)
    if len(found) < len(files):
        raise InputError("a rank is there twice", where=path, fix="leave out the other run's files")
    notes, everybody = _copied(found, world, path), tuple(range(world))
    comms = {(name, members) for each in found.values() for *_, name, members in each if members}
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


def _rank(path: Path) -> tuple[int, int, list[tuple]]:
    """Its number, the number of ranks, and what its GPU did: start, end, call ("": none), bytes
    given, bytes got, group, members.
    """
    trace = read_json(path, "trace of PyTorch's profiler")
    try:
        info = trace.get("distributedInfo") or {}
        events = [e for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") in ON_GPU]
        events.sort(key=lambda event: event["ts"])
        operations = [_operation(event, events[0]["ts"], info) for event in events]
        world = 1 + max((max(one[-1]) for one in operations if one[-1]), default=-1)
        if not world:
            raise InputError("a trace without collectives of a GPU", where=path, fix=_FIX)
        return int(info.get("rank", 0)), max(world, int(info.get("world_size", 1))), operations
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as problem:
        raise InputError(
            f"a trace that can't be read: {type(problem).__name__} {problem}",
            where=path,
            why="times, sizes or groups of its collectives are missing",
            fix=_FIX,
        ) from problem


def _operation(event: dict[str, Any], zero: float, info: dict[str, Any]) -> tuple:
    start = round((event["ts"] - zero) * 1000)
    end = start + round(event.get("dur", 0) * 1000)
    kernel, args = _KERNEL.search(event["name"]), event.get("args", {})
    if not kernel:
        return start, end, "", 0, 0, "", ()
    said = re.sub("[^a-z]", "", str(args.get("Collective name") or kernel[1]).lower())
    word = next((word for word in _WORDS if word in said), "")
    call = f"MPI_I{_OTHERWISE.get(word, word)}" if word else kernel[0]
    wide = _BYTES.get(str(args.get("dtype")).lower(), 1)
    given, got = (int(args[f"{way} msg nelems"]) * wide for way in ("In", "Out"))
    group = str(args["Process Group Name"])
    groups = {str(one["pg_name"]): one.get("ranks") for one in info.get("pg_config") or []}
    every = range(args["Group size"]) if args["Group size"] == info.get("world_size") else ()
    members = groups.get(group) or every or json.loads(args["Process Group Ranks"])
    return start, end, call, given, got, group, tuple(members)


def _copied(found: dict[int, list[tuple]], world: int, path: Path) -> tuple[str, ...]:
    """Makes the missing ranks copies of the only one that was recorded, if that can be; says so."""
    missing = sorted(set(range(world)) - set(found))
    (own, operations), *more = found.items()
    if missing and (more or any(one[2] and len(one[-1]) < world for one in operations)):
        raise InputError(
            f"{len(missing)} of {world} ranks are missing, the first: {missing[0]}",
            where=path,
            why="a collective ends when its last rank has come",
            fix=_FIX,
        )
    found |= dict.fromkeys(missing, operations)
    said = f"Of {world} ranks only {own} was recorded: the others are its copies."
    return (said,) if missing else ()


def _add_calls(
    rank: int, operations: list[tuple], numbers: dict[tuple, int], rows: list, waits: list
) -> None:
    """The calls of a rank: where its collectives begin, and where it waits for them."""
    others = np.array([(0, 0), *(one[:2] for one in operations if not one[2])])
    busy_until = np.maximum.accumulate(others[:, 1])
    events: list[tuple] = []
    left: list[int] = []
    for number, (start, end, call, given, got, *group) in enumerate(
        one for one in operations if one[2]
    ):
        about = {"call": call, "comm": numbers[tuple(group)], "request": number}
        events.append((start, start, about | {"bytes": given, "received_bytes": got}, []))
        still = busy_until[np.searchsorted(others[:, 0], end, "right") - 1]
        if still < end:
            events.append((max(start, int(still)), end, {"call": "MPI_Wait"}, [number]))
        else:
            left.append(number)
    last = max(one[1] for one in operations)
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
