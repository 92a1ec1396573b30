"""Kineto traces (PyTorch's profiler, one JSON file a rank): what the host called, what its GPU did.

Owns the reading and its errors; what waits for what is in launches.py.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..places import shipped
from ..reading import read_json

CALLS = ("cuda_runtime", "cuda_driver", "privateuse1_runtime")
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
BYTES = {"float": 4, "int": 4, "double": 8, "long": 8, "half": 2, "bfloat16": 2}
_PUBLISHED = "data/published/kineto/ddp-rank0.json.gz"
_RECORD = "record all ranks with torch.profiler: activities CPU and CUDA, export_chrome_trace"


@dataclass(frozen=True, eq=False, repr=False)
class RankRecord:
    """One rank: `calls` of its host and `operations` of its GPU, ns on its own clock.

    Parameters
    ----------
    rank
        In the job.
    calls
        One row a call, in order: `kind` (launch, event wait, sync), `thread`, `begin_ns`,
        `end_ns`.
    operations
        One row an operation, in order of begin: `stream`, `name`, `start_ns`, `end_ns`, `call` (row
        of the call that launched it; −1: not recorded), `collective` ("": none), `bytes`, `group`
        (ranks) and `group_name`.
    """

    rank: int
    calls: pd.DataFrame
    operations: pd.DataFrame

    @property
    def seconds(self) -> float:
        """From the first begin to the last end that counts."""
        begins = [*self.calls["begin_ns"][:1], *self.operations["start_ns"][:1]]
        ends = [*self.calls["end_ns"], *self.operations["end_ns"]]
        return (max(ends) - min(begins)) / 1e9

    @property
    def busy(self) -> float:
        """Share of the time in which the GPU did anything."""
        start = self.operations["start_ns"].to_numpy()
        end = np.maximum.accumulate(self.operations["end_ns"].to_numpy())
        since = np.maximum(start, np.concatenate([start[:1], end[:-1]]))
        return float(np.maximum(end - since, 0).sum() / 1e9 / self.seconds)


@dataclass(frozen=True, eq=False, repr=False)
class KinetoTrace:
    """The ranks of a job; those in `copied` are copies of the first that was recorded.

    Examples
    --------
    >>> published_kineto()
    KinetoTrace(ddp-rank0: 2 ranks of 2, of which 1 is a copy; 7548 GPU operations, 42 collectives)
    """

    name: str
    world: int
    records: tuple[RankRecord, ...]
    copied: tuple[int, ...] = ()

    def __repr__(self) -> str:
        operations = sum(len(record.operations) for record in self.records)
        meetings = sum((record.operations["collective"] != "").sum() for record in self.records)
        copies = f", of which {len(self.copied)} is a copy" if self.copied else ""
        return (
            f"KinetoTrace({self.name}: {len(self.records)} ranks of {self.world}{copies};"
            f" {operations} GPU operations, {meetings} collectives)"
        )


def published_kineto() -> KinetoTrace:
    """Three steps of a public job: data parallel on two GPUs. Rank 1 is a copy of rank 0.

    From HolisticTraceAnalysis (see data/published/kineto); only rank 0 was published.
    """
    return read_kineto([shipped() / _PUBLISHED], missing="copy")


def read_kineto(
    files: str | Path | Iterable[str | Path], missing: str = "refuse", name: str = ""
) -> KinetoTrace:
    """Read the traces of a job's ranks.

    Parameters
    ----------
    files
        A file a rank, JSON, packed by gzip or not.
    missing
        What is done about ranks without a file. "refuse"; "copy": each is a copy of the first
        recorded rank; "leave out": collectives are those of recorded ranks only.
    name
        Of the job; otherwise the first file's.

    Returns
    -------
    KinetoTrace
        Ranks in order.

    Raises
    ------
    InputError
        A file that is cut short or not Kineto's, one without operations of a GPU, ranks that are
        missing or there twice.
    """
    if missing not in ("refuse", "copy", "leave out"):
        raise InputError(f"no choice {missing!r} for missing ranks", fix="refuse, copy, leave out")
    paths = [Path(files)] if isinstance(files, (str, Path)) else [Path(path) for path in files]
    if not paths:
        raise InputError("no Kineto file", fix=_RECORD)
    traces = {path: _content(path) for path in paths}
    world = max(_distributed(trace).get("world_size", 1) for trace in traces.values())
    records: dict[int, RankRecord] = {}
    for path, trace in traces.items():
        record = _record(path, trace, world, len(paths))
        if record.rank in records:
            raise InputError(f"rank {record.rank} is there twice", where=str(path))
        records[record.rank] = record
    name = name or paths[0].name.split(".")[0]
    absent = sorted(set(range(world)) - set(records))
    if absent and missing == "refuse":
        raise InputError(
            f"{len(absent)} of {world} ranks are missing: {_some(absent)}",
            where=name,
            why="a collective ends when its last rank has come",
            fix=f"{_RECORD}; or missing='copy' or 'leave out', which changes what is simulated",
        )
    if missing == "copy":
        first = records[min(records)]
        records |= {rank: replace(first, rank=rank) for rank in absent}
    copied = tuple(absent) if missing == "copy" else ()
    return KinetoTrace(name, world, tuple(records[rank] for rank in sorted(records)), copied)


def _some(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (", …" if len(numbers) > 8 else "")


def _content(path: Path) -> dict[str, Any]:
    content = read_json(path, "trace")
    if not isinstance(content, dict) or not isinstance(content.get("traceEvents"), list):
        raise InputError("not a Kineto trace: it has no traceEvents", where=str(path), fix=_RECORD)
    return content


def _distributed(trace: dict[str, Any]) -> dict[str, Any]:
    return trace.get("distributedInfo") or {}


def _record(path: Path, trace: dict[str, Any], world: int, files: int) -> RankRecord:
    info = _distributed(trace)
    if "rank" not in info and files > 1:
        raise InputError(
            "the file does not say which rank it is",
            where=str(path),
            why="distributedInfo is missing",
            fix="start the profiler after torch.distributed.init_process_group",
        )
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    on_gpu = sorted((e for e in events if e.get("cat") in ON_GPU), key=lambda event: event["ts"])
    if not on_gpu:
        raise InputError(
            "a trace without operations of a GPU",
            where=str(path),
            why="there is nothing that the host could have launched",
            fix=_RECORD,
        )
    base = int(min(event["ts"] for event in events))
    launched = {event["args"].get("correlation") for event in on_gpu}
    calls, rows = _calls(events, launched, base)
    configured = {
        str(group.get("pg_name")): group.get("ranks") for group in info.get("pg_config") or []
    }
    table = pd.DataFrame([_operation(e, rows, base, configured, world) for e in on_gpu])
    return RankRecord(int(info.get("rank", 0)), calls, table)


def _calls(
    events: list[dict], launched: set[Any], base: int
) -> tuple[pd.DataFrame, dict[Any, int]]:
    """The calls that matter, and the row of each correlation id."""
    rows: list[dict[str, Any]] = []
    row_of: dict[Any, int] = {}
    calls = (event for event in events if event.get("cat") in CALLS)
    for event in sorted(calls, key=lambda event: event["ts"]):
        kind = _kind(event, launched)
        if not kind or (kind == "launch" and event["args"]["correlation"] in row_of):
            continue  # a driver's call within the runtime's has the same id
        if kind == "launch":
            row_of[event["args"]["correlation"]] = len(rows)
        begin, end = _times(event, base)
        rows.append({"kind": kind, "thread": event["tid"], "begin_ns": begin, "end_ns": end})
    return pd.DataFrame(rows, columns=["kind", "thread", "begin_ns", "end_ns"]), row_of


def _kind(event: dict[str, Any], launched: set[Any]) -> str:
    if event.get("args", {}).get("correlation") in launched:
        return "launch"
    if "Synchronize" in event["name"]:
        return "sync"
    return "event wait" if "StreamWaitEvent" in event["name"] else ""


def _times(event: dict[str, Any], base: int) -> tuple[int, int]:
    begin = round((event["ts"] - base) * 1000)
    return begin, begin + round(event.get("dur", 0) * 1000)


def _operation(
    event: dict[str, Any],
    rows: dict[Any, int],
    base: int,
    configured: dict[str, Any],
    world: int,
) -> dict[str, Any]:
    args = event["args"]
    start, end = _times(event, base)
    collective = _collective(event)
    group_name = str(args.get("Process Group Name", ""))
    elements = max(int(args.get(key, 0)) for key in ("In msg nelems", "Out msg nelems"))
    return {
        "stream": int(args.get("stream", event["tid"])),
        "name": event["name"],
        "start_ns": start,
        "end_ns": end,
        "call": rows.get(args.get("correlation"), -1),
        "collective": collective,
        "bytes": elements * BYTES.get(str(args.get("dtype", "")).lower(), 1),
        "group": _group(args, configured.get(group_name), world) if collective else (),
        "group_name": group_name,
    }


def _collective(event: dict[str, Any]) -> str:
    """Its name, by the arguments or by the kernel's name; "" for other operations.

    >>> _collective({"name": "ncclDevKernel_AllGather_RING_LL", "args": {}})
    'allgather'
    """
    head, _, rest = event["name"].partition("Kernel_")
    if not head.startswith(("nccl", "rccl")):
        return ""
    return str(event["args"].get("Collective name") or rest.split("_")[0]).lower()


def _group(args: dict[str, Any], configured: Any, world: int) -> tuple[int, ...]:
    """The ranks of a group: as configured, else as the operation says, else all."""
    if configured:
        return tuple(configured)
    try:  # a long list is shortened: [0, 1, ...]
        return tuple(json.loads(args.get("Process Group Ranks", ""))) or tuple(range(world))
    except (TypeError, ValueError):
        return tuple(range(world))
