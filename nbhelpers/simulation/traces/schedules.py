"""From the MPI calls of a run to its schedule: messages, what waits for them, and the computation
between the calls.

Owns the order of a rank's calls as dependencies, the expansion of collectives, and the
extrapolation to more ranks (Hoefler et al. 2010, "Application trace extrapolation").
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ...errors import InputError
from ...mpi import Calls
from .._composition import Part, joined
from ..loggops import NO_COSTS, CallCosts
from ..schedule import ANY, CALC, RECV, SEND, Schedule
from .calls import NOBODY, WAITS, checked_calls
from .collectives import BY_SIZE, algorithm_name, local_ns
from .matching import Instance, check_messages, matched_collectives


def schedule_of_calls(
    calls: Calls,
    *,
    times: int = 1,
    drawn: int | None = None,
    medians: bool = False,
    costs: CallCosts = NO_COSTS,
    name: str = "traced run",
) -> Schedule:
    """What a traced program did, as a schedule that can be simulated.

    Parameters
    ----------
    calls
        Calls of a traced program, from `nbhelpers.mpi.read_calls` or a reader of another format.
    times
        Extrapolate to so many times the ranks: messages between two ranks are copied for each block
        of ranks, collectives of all ranks are made anew over all (Hoefler et al. 2010). Weak
        scaling: each rank computes as long as before.
    drawn
        A seed: in the copied blocks each computation is drawn from those of the same rank between
        the same two calls (their partner, bytes and tag), so that ranks differ as the traced ones
        do from turn to turn (after Cornebize and Legrand 2021). The noise that the program was
        recorded under is in them. None: the same times in every block.
    medians
        Each computation is the median of all such turns, in every block: without most of what
        disturbed the recording, and without its ranks' own changes from turn to turn.
    costs
        What calls take besides their messages: `calls` of the network.
    name
        For titles and errors.

    Returns
    -------
    Schedule
        A schedule of `calls.ranks` × `times` ranks. Time between two calls is computation. Time in
        a call is not in it: the simulation decides how long a call takes.

    Raises
    ------
    InputError
        Messages without a partner, ranks that call different collectives, a table that is not
        whole.

    Notes
    -----
    Calls that only ask (MPI_Comm_rank, MPI_Iprobe, a test that completes nothing) count as
    computation. Those that make a communicator of another are barriers of its ranks. Time in a
    probe that waits counts as none: the message is received later. A receive from anybody takes
    whom the trace names, and anybody where it names no one.

    Examples
    --------
    Rank 0 computes for 5 µs and sends; rank 1 receives:

    >>> import pandas as pd
    >>> from nbhelpers.mpi import NUMBERS, Calls
    >>> send = dict.fromkeys(NUMBERS, -1) | dict(
    ...     call="MPI_Send", rank=0, start_ns=5000, end_ns=6000, peer=1, tag=7, bytes=8, comm=0
    ... )
    >>> receive = send | dict(
    ...     call="MPI_Recv", rank=1, start_ns=0, end_ns=9000, peer=0, received_bytes=8, source=0
    ... )
    >>> waits = pd.DataFrame(columns=["rank", "row", "request"])
    >>> schedule_of_calls(Calls(pd.DataFrame([send, receive]), waits, {0: (0, 1)}, 2))
    Schedule(traced run: 2 ranks, 4 operations, 1 messages)
    """
    if times < 1 or int(times) != times:
        raise InputError(f"{times} times as many ranks", fix="a whole number, 1 at least")
    traced = checked_calls(calls)
    instances = matched_collectives(traced)
    ranks = _programs(traced, costs)
    check_messages(_messages(ranks))
    for one in ranks if medians else []:
        one.level()
    return _Laying(ranks, traced, int(times), name, drawn, costs).laid(instances)


# --- one rank -------------------------------------------------------------------------------------


@dataclass
class _Program:
    """What one rank does, while its calls are read: operations, and who waits for whom.

    Collectives are two calculations, on entering and on leaving; their messages come later.
    """

    tags: dict[tuple[int, int], int]
    kind: list[int] = field(default_factory=list)
    peer: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    tag: list[int] = field(default_factory=list)
    done: list[tuple[int, int]] = field(default_factory=list)  # (operation, needed)
    begun: list[tuple[int, int]] = field(default_factory=list)
    doors: list[tuple[int, int]] = field(default_factory=list)  # of each collective
    requests: dict[int, int] = field(default_factory=dict)  # open: request -> operation
    before: list[tuple[int, bool]] = field(default_factory=list)  # what comes next waits for
    alike: dict[tuple, list[int]] = field(default_factory=dict)  # computations between like calls
    computed_ns: float = 0  # so far
    used: dict[int, float] = field(default_factory=dict)  # bytes of messages: `computed_ns` then

    def add(self, kind: int, size: int, peer: int = 0, tag: int = 0) -> int:
        self.kind.append(kind)
        self.peer.append(peer)
        self.size.append(size)
        self.tag.append(tag)
        return len(self.kind) - 1

    def work(self, ns: float) -> int:
        """The computation before a call."""
        operation = self.add(CALC, max(0, round(ns)))
        for needed, only_begun in self.before:
            (self.begun if only_begun else self.done).append((operation, needed))
        self.before = [(operation, False)]
        return operation

    def enter(self, computed_ns: float, bytes: int, costs: CallCosts) -> None:
        """What a call takes before it does anything: memory that a message of so many bytes takes,
        and that was last used by one of as many, has left the caches meanwhile. What every message
        uses is not counted twice.
        """
        self.computed_ns += computed_ns
        ns = costs.cold_ns(self._unused_ns(1), 1)
        if bytes > 1:
            unused_ns = self._unused_ns(bytes)
            ns += max(0.0, costs.cold_ns(unused_ns, bytes) - costs.cold_ns(unused_ns, 1))
        if ns >= 1:
            self.work(ns)

    def _unused_ns(self, bytes: int) -> float:
        """How much was computed since a message of so many bytes; now there is one."""
        last = max((at for size, at in self.used.items() if size >= bytes), default=0)
        self.used[bytes] = self.computed_ns
        return self.computed_ns - last

    def message(self, kind: int, peer: int, size: int, tag: int, comm: int) -> int | None:
        """A send or a receive after the computation; None: there is nobody at the other end."""
        if peer == NOBODY:
            return None
        number = ANY if tag < 0 else self.tags.setdefault((comm, tag), len(self.tags))
        operation = self.add(kind, size, peer, number)
        self.done.append((operation, self.before[0][0]))
        return operation

    def level(self) -> None:
        """Give all computations between like calls their median."""
        for places in self.alike.values():
            middle = round(float(np.median([self.size[place] for place in places])))
            for place in places:
                self.size[place] = middle

    def wait(self, operations: list[int]) -> int:
        operation = self.add(CALC, 0)
        self.done += [(operation, needed) for needed in operations]
        return operation


def _programs(traced: Calls, costs: CallCosts) -> list[_Program]:
    table = _with_partners(traced)
    completed = traced.waits.groupby("row")["request"].apply(list).to_dict()
    tags: dict[tuple[int, int], int] = {}
    programs = [_Program(tags) for _ in range(traced.ranks)]
    ends, last = [0] * traced.ranks, [()] * traced.ranks
    for row in table.itertuples():
        program = programs[row.rank]
        if row.call in WAITS:
            ends[row.rank] += row.end_ns - row.start_ns
        if not _acts(row, completed):
            continue
        computed_ns = row.start_ns - ends[row.rank]
        work = program.work(computed_ns)
        to_each = len(traced.comms[row.comm]) if row.collective.startswith("Alltoall") else 1
        program.enter(computed_ns, max(row.bytes, row.received_bytes) // to_each, costs)
        this = (row.call, row.peer, row.bytes, row.tag, row.comm)
        program.alike.setdefault((last[row.rank], this), []).append(work)
        ends[row.rank], last[row.rank] = row.end_ns, this
        _call(program, row, completed.get(row.Index, []))
    return programs


def asking(calls: Calls) -> pd.Series:
    """What calls that only ask took, by call, the largest first: a share of the computation, as
    which it counts. Of a program that waits in a loop of MPI_Test or MPI_Iprobe it is much.

    Parameters
    ----------
    calls
        As of `schedule_of_calls`.
    """
    table = checked_calls(calls).table
    took = table["end_ns"] - table["start_ns"]
    waits = table.index.isin(calls.waits["row"]) | table["call"].isin(WAITS)
    acts = table["kind"].isin(["send", "receive", "both", "collective"]) | waits
    inside = ~table["call"].isin(["MPI_Init", "MPI_Init_thread", "MPI_Finalize"])
    region = table.groupby("rank").agg(begin=("end_ns", "min"), end=("start_ns", "max"))
    computed = (region["end"] - region["begin"]).sum() - took[acts & inside].sum()
    asked = took[~acts & inside].groupby(table["call"]).sum()
    return (asked / max(computed, 1)).sort_values(ascending=False)


def _acts(row: Any, completed: Mapping[int, list]) -> bool:
    """Whether a call does what others wait for, or ends the program."""
    return (
        row.kind in ("send", "receive", "both", "collective")
        or row.call == "MPI_Finalize"
        or row.Index in completed
    )


def _call(program: _Program, row: Any, completes: list[int]) -> None:
    """One call, after the computation before it."""
    entered = program.before[0][0]
    if row.collective:
        left = program.add(CALC, 0)
        program.done.append((left, entered))
        program.doors.append((entered, left))
        if row.begins:
            program.requests[row.request] = left
        else:
            program.before = [(left, False)]
    elif row.kind == "wait":
        ended = [program.requests.pop(request, entered) for request in completes]
        program.before = [(program.wait([entered, *ended]), False)]
    else:
        _two_sided(program, row)


def _two_sided(program: _Program, row: Any) -> None:
    operations = []
    if row.kind in ("send", "both"):
        operations.append(program.message(SEND, row.peer, row.bytes, row.tag, row.comm))
    if row.kind in ("receive", "both"):
        operations.append(
            program.message(RECV, row.source, row.received_bytes, row.received_tag, row.comm)
        )
    real = [operation for operation in operations if operation is not None]
    if row.kind in ("send", "receive") and row.begins:
        program.requests |= dict.fromkeys([row.request], real[0]) if real else {}
        program.before = [(real[0], True)] if real else program.before
    elif real:
        program.before = [(operation, False) for operation in real]


def _with_partners(traced: Calls) -> pd.DataFrame:
    """The table with `source` and `received_tag` of every receive: whom the trace names, or whom
    the program asked for.
    """
    table = traced.table.copy()
    one, both = table["kind"] == "receive", table["kind"] == "both"
    for came, asked in (("source", "peer"), ("received_tag", "tag")):
        table[came] = table[came].mask(one & (table[came] < 0), table[asked])
    # nobody asked for by name, nothing came: MPI_PROC_NULL
    nothing = (table["source"] == -1) & (table["received_bytes"] <= 0)
    table.loc[(one | both) & nothing, "source"] = NOBODY
    sends = (table["kind"] == "send") | both
    table.loc[sends & (table["peer"] < 0), "peer"] = NOBODY
    return table


def _messages(programs: list[_Program]) -> pd.DataFrame:
    """All sends and receives: `rank`, `kind`, `peer`, `tag` (comm, tag)."""
    names = {number: pair for pair, number in programs[0].tags.items()} | {ANY: (0, -1)}
    parts = [
        pd.DataFrame({"rank": rank, "kind": one.kind, "peer": one.peer, "tag": one.tag})
        for rank, one in enumerate(programs)
    ]
    table = pd.concat(parts, ignore_index=True)
    table = table[table["kind"] != CALC]
    return table.assign(
        comm=table["tag"].map(lambda number: names[number][0]),
        tag=table["tag"].map(lambda number: names[number][1]),
    )


# --- all ranks ------------------------------------------------------------------------------------


class _Laying:
    """The arrays of a schedule while collectives are laid between the ranks' own operations."""

    def __init__(
        self,
        programs: list[_Program],
        traced: Calls,
        times: int,
        name: str,
        drawn: int | None,
        costs: CallCosts,
    ):
        self.costs, self.cpu = costs, int(traced.offloaded)  # of collectives; computations have 0
        self.ranks, self.times, self.name = traced.ranks, times, name
        self.draws = None if drawn is None else np.random.default_rng(drawn)
        self.programs, self.tags = programs, len(programs[0].tags)
        self.base = np.tile([len(one.kind) for one in programs], times)
        self.inner = np.zeros(self.ranks * times, np.int64)  # of collectives, so far
        self.entered = [0] * self.ranks  # how many collectives were laid

    def laid(self, instances: list[Instance]) -> Schedule:
        cache: dict[tuple, Part] = {}
        placed = []
        for instance in instances:
            for members, doors in self._groups(instance):
                key = (algorithm_name(instance.name), len(members), instance.bytes, instance.root)
                if key not in cache:
                    cache[key] = Part.of(BY_SIZE[key[0]](*key[1:]))
                local = round(local_ns(instance.name, *key[1:3], self.costs))
                placed.append((cache[key], members, doors, self.inner[members].copy(), local))
                self.inner[members] += cache[key].counts
        return self._schedule(placed)

    def _groups(self, instance: Instance) -> list[tuple[np.ndarray, np.ndarray]]:
        """Members, and the operations at which each enters and leaves: one group of all blocks, or
        one a block.
        """
        members = np.array(instance.members)
        doors = np.array([self.programs[rank].doors[self._turn(rank)] for rank in members])
        shifts = np.arange(self.times) * self.ranks
        if len(members) == self.ranks:
            every = (members + shifts[:, None]).reshape(-1)
            return [(every, np.tile(doors, (self.times, 1)))]
        return [(members + shift, doors) for shift in shifts]

    def _turn(self, rank: int) -> int:
        self.entered[rank] += 1
        return self.entered[rank] - 1

    def _schedule(self, placed: list) -> Schedule:
        counts = self.base + self.inner
        start = np.cumsum(counts) - counts
        columns = {
            name: np.zeros(int(counts.sum()), dtype)
            for name, dtype in (("kind", np.uint8), ("peer", np.int64), ("size", np.int64))
        }
        columns |= {name: np.zeros(int(counts.sum()), np.int64) for name in ("tag", "cpu")}
        done, begun = self._lay_blocks(columns, start)
        for part, members, doors, offset, local in placed:
            done += self._collective(columns, part, members, start, doors, offset, begun)
            columns["size"][start[members] + doors[:, 1]] = local
        return Schedule.from_arrays(
            counts,
            columns["kind"],
            columns["peer"],
            columns["size"],
            tag=columns["tag"],
            cpu=columns["cpu"],
            requires=joined(done),
            irequires=joined(begun),
            name=self.name,
        )

    def _lay_blocks(self, columns: dict, start: np.ndarray) -> tuple[list, list]:
        """What the ranks do themselves, in every block."""
        done, begun = [], []
        for rank, one in enumerate(self.programs):
            own = ("kind", "peer", "size", "tag")
            arrays = {name: np.array(getattr(one, name), np.int64) for name in own}
            pairs = [np.array(edges, np.int64).reshape(-1, 2) for edges in (one.done, one.begun)]
            for block in range(self.times):
                first = start[rank + block * self.ranks]
                at = slice(first, first + len(one.kind))
                moved = (arrays["kind"] != CALC) & (arrays["peer"] != ANY)
                for name in own:
                    columns[name][at] = arrays[name]
                if block and self.draws is not None:
                    for places in map(np.array, one.alike.values()):
                        found = self.draws.choice(arrays["size"][places], len(places))
                        columns["size"][first + places] = found
                columns["peer"][at] += moved * block * self.ranks
                done.append((pairs[0] + first).T)
                begun.append((pairs[1] + first).T)
        return done, begun

    def _collective(
        self,
        columns: dict,
        part: Part,
        members: np.ndarray,
        start: np.ndarray,
        doors: np.ndarray,
        offset: np.ndarray,
        begun: list,
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """One collective between its doors; returns who waits for whom."""
        pattern = part.schedule
        at = (start[members] + self.base[members] + offset)[part.rank] + part.place
        columns["kind"][at], columns["size"][at] = pattern.kind, pattern.size
        columns["peer"][at] = np.where(pattern.kind == CALC, 0, members[pattern.peer])
        columns["tag"][at] = pattern.column("tag") + self.tags
        columns["cpu"][at] = self.cpu
        self.tags += part.tags
        entered, left = (start[members] + doors[:, side] for side in (0, 1))
        operation, needed = pattern.edges("irequires")
        begun.append((at[operation], at[needed]))
        operation, needed = pattern.edges()
        return [
            (at[operation], at[needed]),
            (at[part.first], entered[part.rank[part.first]]),
            (left[part.rank[part.last]], at[part.last]),
        ]
