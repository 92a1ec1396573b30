"""The critical path of a simulation, the detours that lie on it, and time lines: out of the
engine's record.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import InputError
from .detours import Detours
from .noise import NOISELESS
from .schedule import CALC, KIND_NAMES, RECV, SEND

if TYPE_CHECKING:
    from .result import Record, Result

VIA = ("start", "cpu", "send gap", "receive gap", "network", "rendezvous", "done", "begun")
_CPU, _SEND_GAP, _RECEIVE_GAP, _NETWORK, _DONE = 1, 2, 3, 4, 6
_NONE = 2**32 - 1


def follow(record: Record, result: Result, rank: int) -> pd.DataFrame:
    """The path of `Result.path`."""
    if not 0 <= rank < result.schedule.ranks:
        raise InputError(f"there is no rank {rank}", where=result.schedule.name)
    cost = _Costs(result)
    n, rows = len(result.schedule), []
    node, via = int(record.last[rank]), int(record.last_via[rank])
    leaves = round(result.finish_ns[rank] / result.unit_ns)
    while node != _NONE:
        begins, clean = int(record.begin[node]), cost.clean(node, via)
        rows.append((node, begins, leaves, via, clean, leaves - begins - clean))
        via, node, leaves = int(record.via[node]), int(record.cause[node]), begins
    table = np.array(rows[::-1], np.int64).reshape(-1, 6)
    nodes, begin, end, vias, clean_units, noise = table.T
    return _named(result, nodes, n).assign(
        begin_ns=begin * result.unit_ns,
        end_ns=end * result.unit_ns,
        via=[VIA[v] for v in vias],
        clean_ns=clean_units * result.unit_ns,
        noise_ns=noise * result.unit_ns,
    )


def _named(result: Result, nodes: np.ndarray, n: int) -> pd.DataFrame:
    """rank, op and what of each node."""
    schedule = result.schedule
    op = np.where(nodes < n, nodes, nodes - n)
    owner = schedule.rank_of(op)
    rank = np.where(nodes < n, owner, schedule.peer[op])
    what = np.where(nodes < n, np.array(["", *KIND_NAMES.values()])[schedule.kind[op]], "reception")
    return pd.DataFrame({"rank": rank, "op": op - schedule.rank_start[owner], "what": what})


class _Costs:
    """What an operation costs without noise, in the engine's unit: as in simulator_c/model.h, for
    the few on a path.
    """

    def __init__(self, result: Result):
        self.schedule = result.schedule
        self.pieces = [one.times(1000) for one in result.network.pieces]

    def clean(self, node: int, via: int) -> int:
        """From the begin of a node to when it lets the next one go on, by `via`."""
        op = node if node < len(self.schedule) else node - len(self.schedule)
        kind, size = int(self.schedule.kind[op]), int(self.schedule.column("size")[op])
        least, L, o, r, g, G, O = self.piece(size)
        D, B = (round(max(size - least, 0) * cost) for cost in (O, G))
        if via == _NETWORK:
            return o + L
        if via in (_SEND_GAP, _RECEIVE_GAP):
            return g + B
        if via not in (_CPU, _DONE) or (node < len(self.schedule) and kind == RECV):
            return 0
        if node >= len(self.schedule):
            return r + max(D, B)
        return size * 1000 if kind == CALC else o + D

    def piece(self, size: int) -> tuple:
        """The piece of a message's size: see `Piece.times`."""
        return self.pieces[bisect_right(self.pieces, size, lo=1, key=itemgetter(0)) - 1]


# --- the detours ----------------------------------------------------------------------------------


def struck(path: pd.DataFrame, result: Result) -> pd.DataFrame:
    """The detours of `Result.struck`."""
    rows = []
    for step in path[path["noise_ns"] > 0].itertuples():
        found = _hits(result, step)
        lost = sum(overlap for *_, overlap in found)
        rows += [
            (
                step.rank,
                source,
                start,
                duration,
                step.noise_ns * overlap / lost if lost else 0.0,
                step.what,
                step.op,
            )
            for source, start, duration, overlap in found
        ]
    return pd.DataFrame(
        rows, columns=["rank", "source", "start_ns", "duration_ns", "path_ns", "what", "op"]
    )


def _hits(result: Result, step: Any) -> list[tuple]:
    """(source, start, duration, overlap) of the detours that a step of the path met."""
    noise, o = result.noise, max(max(one.o, one.r) for one in result.network.pieces)
    assert noise is not None  # or nothing was struck
    trace, phase_ns = noise.traces[noise.rank_trace[step.rank]], float(noise.phase_ns[step.rank])
    found = []
    # mostly o alone is what noise put off: the rest is the network's time, or absorbed
    if step.what != "calc":
        found = _overlaps(trace, step.begin_ns, step.begin_ns + o + step.noise_ns, phase_ns)
    if sum(overlap for *_, overlap in found) < step.noise_ns - 1e-3:
        found = _overlaps(trace, step.begin_ns, step.end_ns, phase_ns)
    return found


def _overlaps(trace: Detours, begin_ns: float, end_ns: float, phase_ns: float) -> list[tuple]:
    low, high, period = begin_ns + phase_ns, end_ns + phase_ns, trace.period_ns
    longest = float(trace.duration_ns.max())
    found = []
    for turn in range(int((low - longest) // period), int(high // period) + 1):
        shift = turn * period
        if shift + period < 0:
            continue
        first, last = np.searchsorted(trace.start_ns + shift, [low - longest, high])
        for k in range(first, last):
            start, duration = float(trace.start_ns[k]) + shift, float(trace.duration_ns[k])
            overlap = min(start + duration, high) - max(start, low)
            if overlap > 0:
                found.append((_source(trace, k), start - phase_ns, duration, overlap))
    return found


def _source(trace: Detours, k: int) -> str:
    return trace.sources[trace.source[k]] if len(trace.source) else trace.name


# --- time lines -----------------------------------------------------------------------------------


def timeline(record: Record, result: Result, ranks: np.ndarray | None) -> pd.DataFrame:
    """The intervals of `Result.timeline`."""
    schedule, n = result.schedule, len(result.schedule)
    chosen = np.arange(schedule.ranks) if ranks is None else np.unique(np.asarray(ranks))
    owner = schedule.rank_of(np.arange(n))
    sends = np.flatnonzero(schedule.kind == SEND)
    works = np.flatnonzero(schedule.kind != RECV)
    cost = _Costs(result)
    sent = np.isin(owner[sends], chosen) & np.isin(schedule.peer[sends], chosen)
    parts = [
        _rows(result, record, works[np.isin(owner[works], chosen)], owner, cost),
        _rows(result, record, n + sends[np.isin(schedule.peer[sends], chosen)], owner, cost),
        _messages(result, record, sends[sent], owner, cost),
    ]
    if result.noise is not None:
        parts.append(_all_detours(result, chosen))
    table = (
        pd.concat([part for part in parts if len(part)], ignore_index=True)
        if any(map(len, parts))
        else parts[0]
    )
    return table.sort_values(["rank", "start_ns"], kind="stable", ignore_index=True)


def _rows(
    result: Result, record: Record, nodes: np.ndarray, owner: np.ndarray, cost: _Costs
) -> pd.DataFrame:
    schedule, n, unit = result.schedule, len(result.schedule), result.unit_ns
    op = np.where(nodes < n, nodes, nodes - n)
    begin, end = record.begin[nodes].astype(np.int64), record.end[nodes].astype(np.int64)
    clean = np.array([cost.clean(int(node), _CPU) for node in nodes], np.int64)
    is_send = schedule.kind[op] == SEND
    peer = np.where(nodes >= n, owner[op], np.where(is_send, schedule.peer[op], -1))
    return _named(result, nodes, n).assign(
        cpu=schedule.column("cpu")[op],
        start_ns=begin * unit,
        end_ns=end * unit,
        peer=peer,
        size=schedule.column("size")[op].astype(np.int64),
        noise_ns=(end - begin - clean) * unit,
        source="",
    )[_COLUMNS]


def _messages(
    result: Result, record: Record, sends: np.ndarray, owner: np.ndarray, cost: _Costs
) -> pd.DataFrame:
    arrival = record.arrival[sends].astype(np.int64)
    schedule = result.schedule
    size = schedule.column("size")[sends].astype(np.int64)
    latency = np.array([cost.piece(int(one))[1] for one in size], np.int64)
    return pd.DataFrame(
        {
            "rank": owner[sends],
            "cpu": schedule.column("cpu")[sends],
            "what": "message",
            "start_ns": (arrival - latency) * result.unit_ns,
            "end_ns": arrival * result.unit_ns,
            "op": sends - schedule.rank_start[owner[sends]],
            "peer": schedule.peer[sends],
            "size": size,
            "noise_ns": 0.0,
            "source": "",
        }
    )[_COLUMNS]


def _all_detours(result: Result, ranks: np.ndarray) -> pd.DataFrame:
    noise, rows = result.noise, []
    assert noise is not None
    for rank in ranks[noise.rank_trace[ranks] != NOISELESS]:
        trace = noise.traces[noise.rank_trace[rank]]
        for source, start, duration, _ in _overlaps(
            trace, 0.0, float(result.finish_ns[rank]), float(noise.phase_ns[rank])
        ):
            rows.append(
                (rank, 0, "detour", max(start, 0.0), start + duration, -1, -1, 0, 0.0, source)
            )
    return pd.DataFrame(rows, columns=_COLUMNS)


_COLUMNS = ["rank", "cpu", "what", "start_ns", "end_ns", "op", "peer", "size", "noise_ns", "source"]
