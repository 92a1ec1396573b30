"""Simulations as Chrome trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open: a
process a rank, a thread a CPU, arrows for messages.

Owns the format, both ways; the times come from `Result.timeline`.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..files import write_text
from ..reading import read_json
from .result import Result

PATH_THREAD, NOISE_THREAD = 900, 1000
_COLOURS = {
    "calc": "thread_state_running",
    "send": "thread_state_runnable",
    "reception": "thread_state_iowait",
    "detour": "terrible",
}
_FLOW = "message"


def write_perfetto(result: Result, path: str | Path, ranks: np.ndarray | None = None) -> Path:
    """Write what happened in a simulation for Perfetto; a name that ends in .gz is compressed.

    Each rank is a process with a track a CPU (calculations, sends, receptions), one for noise (more
    where detours overlap), and on the ranks that it touches one for the critical path; arrows lead
    from each send to the reception of its message. Times are simulated µs.

    Parameters
    ----------
    result
        Of `simulate(…, critical_path=True)`.
    ranks
        Only these, for large cases.

    Raises
    ------
    InputError
        What happened was not recorded.
    """
    timeline = _in_lanes(result.timeline(ranks))
    shown = np.unique(timeline["rank"]) if len(timeline) else np.arange(0)
    path_rows = result.path()
    path_rows = path_rows[path_rows["rank"].isin(shown)]
    events = [
        *_names(timeline, path_rows),
        *_slices(timeline),
        *_arrows(timeline),
        *_path(path_rows),
    ]
    head = {
        "simulation": result.schedule.name,
        "ranks": result.schedule.ranks,
        "makespan_ns": result.makespan_ns,
        "network": str(result.network),
        "mode": result.mode,
        "noise": repr(result.noise),
    }
    text = json.dumps(
        {"displayTimeUnit": "ns", "otherData": head, "traceEvents": events},
        separators=(",", ":"),
        ensure_ascii=False,
    )
    return write_text(path, text)


def _in_lanes(timeline: pd.DataFrame) -> pd.DataFrame:
    """With a column `thread`: the CPU; of detours a track for noise, and further ones for those
    that overlap, since slices of a track must not.
    """
    threads = timeline["cpu"].astype(int).tolist()
    ends: dict[int, list[float]] = {}
    for at, row in enumerate(timeline.itertuples()):
        if row.what == "detour":
            lanes = ends.setdefault(row.rank, [])
            lane = next(
                (number for number, end_ns in enumerate(lanes) if end_ns <= row.start_ns),
                len(lanes),
            )
            lanes[lane : lane + 1] = [row.end_ns]
            threads[at] = NOISE_THREAD + lane
    return timeline.assign(thread=threads)


def _names(timeline: pd.DataFrame, path_rows: pd.DataFrame) -> list[dict]:
    busy = timeline[timeline["what"].isin(["calc", "send", "reception"])]
    threads = [
        (rank, cpu, f"CPU {cpu}")
        for rank, cpu in busy[["rank", "cpu"]].drop_duplicates().itertuples(index=False)
    ]
    noise = timeline.loc[timeline["what"] == "detour", ["rank", "thread"]].drop_duplicates()
    threads += [(rank, thread, "noise") for rank, thread in noise.itertuples(index=False)]
    threads += [(rank, PATH_THREAD, "critical path") for rank in path_rows["rank"].unique()]
    ranks = sorted({int(rank) for rank, _, _ in threads})
    named = [_meta("process_name", rank, 0, name=f"rank {rank}") for rank in ranks] + [
        _meta("process_sort_index", rank, 0, sort_index=rank) for rank in ranks
    ]
    return named + [
        _meta("thread_name", int(rank), int(thread), name=name) for rank, thread, name in threads
    ]


def _meta(kind: str, pid: int, tid: int, **args: object) -> dict:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args}


def _slices(timeline: pd.DataFrame) -> list[dict]:
    events = []
    for row in timeline[timeline["what"] != "message"].itertuples():
        noise = row.what == "detour"
        args = (
            {"source": row.source}
            if noise
            else {"op": int(row.op), "noise_ns": float(row.noise_ns), **_message_args(row)}
        )
        events.append(
            {
                "ph": "X",
                "name": (row.source or "detour") if noise else row.what,
                "cat": row.what,
                "pid": int(row.rank),
                "tid": int(row.thread),
                "ts": row.start_ns / 1e3,
                "dur": (row.end_ns - row.start_ns) / 1e3,
                "cname": _COLOURS[row.what],
                "args": args,
            }
        )
    return events


def _message_args(row: Any) -> dict:
    if row.what == "calc":
        return {}
    return {"to" if row.what == "send" else "from": int(row.peer), "bytes": int(row.size)}


def _arrows(timeline: pd.DataFrame) -> list[dict]:
    """A flow from each send's slice to its reception's; `op` is the send's number in its rank in
    both rows.
    """
    sends = timeline[timeline["what"] == "send"].set_index(["rank", "op"])
    receptions = timeline[timeline["what"] == "reception"]
    events = []
    for number, row in enumerate(receptions.itertuples()):
        if (row.peer, row.op) not in sends.index:
            continue
        send = sends.loc[(row.peer, row.op)]
        common = {"name": _FLOW, "cat": _FLOW, "id": number}
        events.append(
            {
                "ph": "s",
                **common,
                "pid": int(row.peer),
                "tid": int(send["cpu"]),
                "ts": send["start_ns"] / 1e3,
            }
        )
        events.append(
            {
                "ph": "f",
                "bp": "e",
                **common,
                "pid": int(row.rank),
                "tid": int(row.cpu),
                "ts": row.start_ns / 1e3,
            }
        )
    return events


def _path(path_rows: pd.DataFrame) -> list[dict]:
    return [
        {
            "ph": "X",
            "name": f"{row.what} ({row.via})",
            "cat": "critical path",
            "pid": int(row.rank),
            "tid": PATH_THREAD,
            "ts": row.begin_ns / 1e3,
            "dur": (row.end_ns - row.begin_ns) / 1e3,
            "args": {
                "op": int(row.op),
                "clean_ns": float(row.clean_ns),
                "noise_ns": float(row.noise_ns),
            },
        }
        for row in path_rows.itertuples()
        if row.end_ns > row.begin_ns
    ]


def read_perfetto(path: str | Path) -> pd.DataFrame:
    """The slices and arrows of a file of `write_perfetto` as a table: `rank`, `thread`, `what`,
    `name`, `start_ns`, `end_ns`, `peer` (of arrows: where to).

    Raises
    ------
    InputError
        Not such a file; an arrow without its other end; two slices of a track that overlap without
        one lying in the other, which viewers drop.
    """
    content = read_json(path)
    if not isinstance(content, dict) or "traceEvents" not in content:
        raise InputError("not a Chrome trace: it has no list 'traceEvents'", where=path)
    try:
        return _table_of(content["traceEvents"], path)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"an event that is not write_perfetto's: {error!r}", where=path) from None


def _table_of(events: list[dict], path: str | Path) -> pd.DataFrame:
    rows = [
        (e["pid"], e["tid"], e["cat"], e["name"], e["ts"] * 1e3, (e["ts"] + e["dur"]) * 1e3, -1)
        for e in events
        if e["ph"] == "X"
    ]
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    starts = [e for e in events if e["ph"] == "s"]
    if {e["id"] for e in starts} != set(ends):
        raise InputError("an arrow without its other end", where=path)
    rows += [
        (
            e["pid"],
            e["tid"],
            _FLOW,
            _FLOW,
            e["ts"] * 1e3,
            ends[e["id"]]["ts"] * 1e3,
            ends[e["id"]]["pid"],
        )
        for e in starts
    ]
    table = pd.DataFrame(
        rows, columns=["rank", "thread", "what", "name", "start_ns", "end_ns", "peer"]
    )
    _check_nesting(table[table["what"] != _FLOW], path)
    return table


def _check_nesting(slices: pd.DataFrame, path: str | Path) -> None:
    for (rank, thread), track in slices.groupby(["rank", "thread"]):
        open_until: list[float] = []
        for begin, end in track.sort_values(["start_ns", "end_ns"], ascending=[True, False])[
            ["start_ns", "end_ns"]
        ].itertuples(index=False):
            while open_until and open_until[-1] <= begin + 1e-3:
                open_until.pop()
            if open_until and end > open_until[-1] + 1e-3:
                raise InputError(
                    "slices of a track overlap",
                    where=f"{path}, rank {rank}, thread {thread}, at {begin:.3f} ns",
                    why="a viewer drops one of them",
                )
            open_until.append(end)
