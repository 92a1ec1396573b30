"""A Kineto trace as a schedule: hosts that launch, GPUs that carry out, collectives that meet.

Owns the rules by which recorded times become work and waiting.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..progress import each
from ..simulation import simulate
from ..simulation.noise import NOISELESS, Detours, Noise
from ..simulation.schedule import CALC, RECV, SEND, Schedule
from ..statistics import bootstrap_interval
from .kineto import KinetoTrace, RankRecord
from .schedules import FREE_NETWORK

ROUNDS = 64
"""A collective has so many tags, one for each round of its meeting."""


@dataclass
class _Lane:
    """The operations of one rank of the schedule."""

    kind: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    peer: list[int] = field(default_factory=list)
    tag: list[int] = field(default_factory=list)
    cpu: list[int] = field(default_factory=list)
    needs: list[tuple[int, int]] = field(default_factory=list)

    def add(
        self, kind: int, needs: Iterable[int], size: int = 1, peer: int = 0, tag: int = 0, cpu=0
    ) -> int:
        number = len(self.kind)
        values = (kind, size, peer, tag, cpu)
        for column, value in zip((self.kind, self.size, self.peer, self.tag, self.cpu), values):
            column.append(value)
        self.needs += [(number, need) for need in sorted(set(needs))]
        return number


@dataclass(frozen=True)
class _Meeting:
    """A collective: the places of its recorded ranks, its number, and how long it takes."""

    places: tuple[int, ...]
    number: int
    net_ns: int


def launch_schedule(trace: KinetoTrace) -> Schedule:
    """What hosts and GPUs did, so that it can be simulated under noise of the hosts.

    Rank 2 i is the host of the i-th recorded rank, rank 2 i + 1 its GPU: noise strikes ranks, and
    so it can strike hosts only. Each stream is a CPU of the GPU's rank. Simulate it on
    `FREE_NETWORK`: all times are in the schedule. Without noise and with one rank, it takes exactly
    as long as was recorded.

    Raises
    ------
    InputError
        Ranks that call other collectives in a group, sends and receives between GPUs.

    Notes
    -----
    * A host is busy from call to call, in one order for all its threads. Where it really slept, its
      noise costs nothing: an upper bound.
    * An operation begins when its launch has come, the one before it on its stream is over, and so
      is what it waits for. It is as long as recorded; so is its delay after all of these.
    * After cudaStreamWaitEvent, a thread's next operation waits for the last operation of every
      other stream. After a call that waits, the host goes on when the last operation of each stream
      that had ended is over. Both are inferred: events are not named in the trace. What the
      recorded times contradict is left out.
    * Collectives of a group meet in their order. From then on they take as long as for the rank
      that waited least: no clocks are compared.

    Examples
    --------
    >>> from nbhelpers.training import published_kineto
    >>> launch_schedule(published_kineto()).ranks
    4
    """
    meetings = _meetings(trace)
    lanes: list[_Lane] = []
    for place, record in enumerate(trace.records):
        lanes += _Laying(record, place, meetings[place]).laid()
    counts = [len(lane.kind) for lane in lanes]
    shift = np.concatenate([[0], np.cumsum(counts)[:-1]])
    needs = np.array(
        [(a + low, b + low) for lane, low in zip(lanes, shift) for a, b in lane.needs], np.int64
    )
    columns: dict[str, Any] = {
        name: np.array([value for lane in lanes for value in getattr(lane, name)], np.int64)
        for name in ("kind", "peer", "size", "tag", "cpu")
    }
    return Schedule.from_arrays(
        np.array(counts), **columns, requires=(needs[:, 0], needs[:, 1]), name=trace.name
    )


def _meetings(trace: KinetoTrace) -> list[dict[int, _Meeting]]:
    """Of each recorded rank: row of the operation -> its collective."""
    place_of = {record.rank: place for place, record in enumerate(trace.records)}
    queues: dict[Any, dict[int, list[int]]] = {}
    for place, record in enumerate(trace.records):
        table = record.operations
        for row in np.flatnonzero(table["collective"] != "").tolist():
            group = table.at[row, "group"], table.at[row, "group_name"]
            queues.setdefault(group, {}).setdefault(place, []).append(row)
    found: list[dict[int, _Meeting]] = [{} for _ in trace.records]
    number = 0
    for (ranks, name), rows in queues.items():
        places = tuple(place_of[rank] for rank in ranks if rank in place_of)
        _check_group(trace, places, rows, name)
        for together in zip(*(rows[place] for place in places)):
            tables = [trace.records[place].operations for place in places]
            net = min(
                table.at[row, "end_ns"] - table.at[row, "start_ns"]
                for table, row in zip(tables, together)
            )
            for place, row in zip(places, together):
                found[place][row] = _Meeting(places, number, int(net))
            number += 1
    return found


def _check_group(
    trace: KinetoTrace, places: tuple[int, ...], rows: dict[int, list[int]], name: str
) -> None:
    """All ranks of a group must have the same collectives in the same order."""
    called = {
        place: trace.records[place].operations["collective"].iloc[rows.get(place, [])].tolist()
        for place in places
    }
    first = called[places[0]]
    if {"send", "recv"} & {one for names in called.values() for one in names}:
        raise InputError(
            "sends and receives between GPUs",
            where=f"{trace.name}, group {name or 'of all'}",
            why="the trace does not say reliably who their partners are",
        )
    for place in places:
        if called[place] != first:
            ranks = trace.records[places[0]].rank, trace.records[place].rank
            raise InputError(
                f"ranks {ranks[0]} and {ranks[1]} have {len(first)} and {len(called[place])}"
                " collectives, or other ones",
                where=f"{trace.name}, group {name or 'of all'}",
                why="they would wait for each other for ever",
                fix="record the same steps on all ranks",
            )


class _Laying:
    """One recorded rank, while it becomes the lanes of its host and its GPU."""

    def __init__(self, record: RankRecord, place: int, meetings: dict[int, _Meeting]):
        self.calls, self.operations = record.calls, record.operations
        self.place, self.meetings = place, meetings
        self.host, self.gpu = _Lane(), _Lane()
        self.start = self.operations["start_ns"].to_numpy()
        self.end = self.operations["end_ns"].to_numpy()
        self.stream = self.operations["stream"].tolist()
        self.call = self.operations["call"].to_numpy()
        self.begun = min([*self.calls["begin_ns"][:1], self.start[0]])
        self.released = self._releases()
        self.arrival: dict[int, int] = {}  # call -> the GPU's receive
        self.done: dict[int, int] = {}  # operation -> its last one on the GPU
        self.telling: dict[int, list[int]] = {}  # operation -> tags under which the host is told

    def laid(self) -> list[_Lane]:
        waited = self._waited()
        self._lay_host()
        self._lay_gpu(waited)
        return [self.host, self.gpu]

    def _releases(self) -> dict[int, int]:
        """Call -> when what it launched could begin: at its end, or when that began."""
        released: dict[int, int] = {}
        ends = self.calls["end_ns"].to_numpy()
        for call, start in zip(self.call.tolist(), self.start.tolist()):
            if call >= 0:
                released[call] = min(released.get(call, ends[call]), start)
        return released

    def _waited(self) -> dict[int, list[int]]:
        """Operation -> operations of other streams that it waits for."""
        launched: dict[int, list[int]] = {}
        for operation in np.flatnonzero(self.call >= 0).tolist():
            launched.setdefault(int(self.call[operation]), []).append(operation)
        last: dict[int, int] = {}  # of each stream
        open_: dict[Any, dict[int, int]] = {}  # thread -> stream -> operation
        waited = {}
        for call, kind, thread in zip(
            self.calls.index, self.calls["kind"], self.calls["thread"], strict=True
        ):
            if kind == "event wait":
                open_[thread] = open_.get(thread, {}) | last
            for operation in launched.get(call, []):
                before = open_.pop(thread, {})
                waited[operation] = [
                    one
                    for stream, one in before.items()
                    if stream != self.stream[operation] and self.end[one] <= self.start[operation]
                ]
                last[self.stream[operation]] = operation
        return waited

    # --- the host ---------------------------------------------------------------------------------

    def _lay_host(self) -> None:
        at, tag = self.begun, 0
        before: list[int] = []
        for time, what, number in self._moments():
            told = self._over(number, time) if what == "told" else []
            needs = list(before)
            for operation in told:
                self.telling.setdefault(operation, []).append(tag)
                needs.append(self.host.add(RECV, [], peer=2 * self.place + 1, tag=tag))
                tag += 1
            since = max([at, *(self.end[operation] for operation in told)])
            before = [self.host.add(CALC, needs, size=max(0, int(time - since)))]
            if what == "launch":
                self.host.add(SEND, before, peer=2 * self.place + 1, tag=number)
            at = time

    def _moments(self) -> list[tuple[int, str, int]]:
        """When the host launched, began to wait and was told, in order."""
        moments = []
        over: dict[int, int] = {}
        for call, end in zip(self.call.tolist(), self.end.tolist()):
            over[call] = max(over.get(call, 0), end)
        for row in self.calls.itertuples():
            if row.kind == "launch":
                moments.append((self.released[row.Index], "launch", row.Index))
            if row.kind == "sync":
                moments.append((row.begin_ns, "waits", row.Index))
            if row.kind == "sync" or over.get(row.Index, row.end_ns + 1) <= row.end_ns:
                moments.append((row.end_ns, "told", row.Index))
        return sorted(moments, key=lambda moment: moment[0])

    def _over(self, call: int, time: int) -> list[int]:
        """What the host waited for: of each stream the last operation that was over then; of a
        launch that waits, what it launched.
        """
        if call in self.released:
            return np.flatnonzero(self.call == call).tolist()
        ended = np.flatnonzero((self.end <= time) & (self.call >= 0)).tolist()
        return list({self.stream[operation]: operation for operation in ended}.values())

    # --- the GPU ----------------------------------------------------------------------------------

    def _lay_gpu(self, waited: dict[int, list[int]]) -> None:
        cpus = {stream: 1 + number for number, stream in enumerate(sorted(set(self.stream)))}
        last: dict[int, int] = {}
        host = 2 * self.place
        for operation, stream in enumerate(self.stream):
            others = [one for one in waited.get(operation, []) if one in self.done]
            if stream in last:
                others.append(last[stream])
            needs = [self.done[one] for one in others]
            ready = max([self.begun, *(self.end[one] for one in others)])
            call = int(self.call[operation])
            if call >= 0:
                if call not in self.arrival:
                    self.arrival[call] = self.gpu.add(RECV, [], peer=host, tag=call)
                needs.append(self.arrival[call])
                ready = max(ready, self.released[call])
            delay = max(0, int(self.start[operation] - ready))
            over = self._carried_out(operation, needs, delay, cpus[stream])
            for tag in self.telling.get(operation, []):
                self.gpu.add(SEND, [over], peer=host, tag=tag)
            self.done[operation], last[stream] = over, operation

    def _carried_out(self, operation: int, needs: list[int], delay: int, cpu: int) -> int:
        length = int(self.end[operation] - self.start[operation])
        meeting = self.meetings.get(operation)
        if meeting is None:
            return self.gpu.add(CALC, needs, size=delay + length, cpu=cpu)
        before = [self.gpu.add(CALC, needs, size=delay, cpu=cpu)]
        size, distance, number = len(meeting.places), 1, 0
        me = meeting.places.index(self.place)
        while distance < size:
            peers = [meeting.places[(me + way) % size] for way in (distance, -distance)]
            tag = ROUNDS * meeting.number + number
            before = [
                self.gpu.add(SEND, before, peer=2 * peers[0] + 1, tag=tag),
                self.gpu.add(RECV, [], peer=2 * peers[1] + 1, tag=tag),
            ]
            distance, number = 2 * distance, number + 1
        return self.gpu.add(CALC, before, size=meeting.net_ns, cpu=cpu)


# --- noise ----------------------------------------------------------------------------------------


def host_noise(traces: Sequence[Detours], ranks: int, seed: int = 0, gpus: bool = False) -> Noise:
    """Noise for a schedule of `launch_schedule`: on hosts, or on GPUs as well.

    Each host draws one of the traces and a place in it.

    Parameters
    ----------
    ranks
        Of the schedule: twice those of the job.
    gpus
        Whether streams stop too, all of a GPU at once: what a simulation assumes that does not tell
        them apart.
    """
    which = np.random.default_rng(seed).integers(0, len(traces), ranks)
    if not gpus:
        which[1::2] = NOISELESS
    return Noise.on_ranks(list(traces), ranks, seed=seed, which=which)


def noise_on_hosts(trace: KinetoTrace, traces: Sequence[Detours], seeds: int = 10) -> pd.DataFrame:
    """What noise costs a recorded job if it strikes its hosts only, and if it strikes GPUs as well.

    Returns
    -------
    pandas.DataFrame
        Two rows: `struck` (hosts; hosts and GPUs), `ranks`, `busy` (share of the time in which
        GPUs worked, as recorded), `quiet_s` (simulated without noise), the slow-down's `median`,
        `low`, `high` (95 % bootstrap interval over seeds), `seeds`.
    """
    schedule = launch_schedule(trace)
    quiet = simulate(schedule, FREE_NETWORK).finish_ns.max()
    rows = []
    for gpus in each([False, True], "noise on hosts"):
        noises = [host_noise(traces, schedule.ranks, seed, gpus) for seed in range(seeds)]
        noisy = [simulate(schedule, FREE_NETWORK, noise).finish_ns.max() for noise in noises]
        slowdown = np.array(noisy) / quiet
        low, high = bootstrap_interval(slowdown, "median") if seeds > 1 else (np.nan, np.nan)
        rows.append(
            {
                "struck": "hosts and GPUs" if gpus else "hosts",
                "ranks": len(trace.records),
                "busy": float(np.mean([record.busy for record in trace.records])),
                "quiet_s": quiet / 1e9,
                "median": np.median(slowdown),
                "low": low,
                "high": high,
                "seeds": seeds,
            }
        )
    return pd.DataFrame(rows)
