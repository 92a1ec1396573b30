"""Schedules from schedules: one after the other, in a loop with computation, on other ranks.

Between two parts, every rank has a calculation that waits for all that the rank has to do in the
part before, and that all its first operations of the next part wait for. Each part gets tags of its
own, so that no message strays into another part.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError
from ._building import Building, Numbers, checked
from .schedule import ANY, CALC, Edges, Schedule


@dataclass(frozen=True)
class Part:
    """What the composition needs to know of a schedule, however often that is repeated."""

    schedule: Schedule
    counts: np.ndarray  # operations of each rank
    rank: np.ndarray  # of each operation
    place: np.ndarray  # its number within the rank
    first: np.ndarray  # operations that wait for nothing
    last: np.ndarray  # operations whose end nothing waits for
    tags: int  # 1 + the largest tag

    @classmethod
    def of(cls, schedule: Schedule) -> "Part":
        counts = np.diff(schedule.rank_start)
        rank = np.repeat(np.arange(schedule.ranks, dtype=np.int32), counts)
        waits = np.zeros(len(schedule), bool)
        for which in ("requires", "irequires"):
            waits[schedule.edges(which)[0]] = True
        needed = np.zeros(len(schedule), bool)
        needed[schedule.edges()[1]] = True
        return cls(
            schedule,
            counts,
            rank,
            np.arange(len(schedule)) - schedule.rank_start[rank],
            np.flatnonzero(~waits),
            np.flatnonzero(~needed),
            1 + max(0, int(schedule.tag.max(initial=0))),
        )


def compose(
    parts: Sequence[Schedule],
    compute_ns: Sequence[Numbers | None],
    *,
    name: str = "composition",
) -> Schedule:
    """Computation 0, part 0, computation 1, part 1, …

    Parameters
    ----------
    parts
        All for the same number of ranks; the same one may stand here many times.
    compute_ns
        Before each part, a number, or int[P], ns; None: nothing, and ranks go on at once, which
        only the first may be, or parts on other ranks than those before.
    """
    _check_parts(parts, compute_ns)
    known = {id(part): Part.of(part) for part in parts}
    laid = [known[id(part)] for part in parts]
    # where each part begins within each rank, its computation included
    begin = [np.zeros(laid[0].schedule.ranks, np.int64)]
    for part, ns in zip(laid, compute_ns, strict=True):
        begin.append(begin[-1] + part.counts + (ns is not None))
    counts = begin[-1]
    weaving = _Weaving(np.cumsum(counts) - counts, int(counts.sum()))
    for part, ns, offset in zip(laid, compute_ns, begin[:-1], strict=True):
        weaving.add(part, ns, offset)
    return weaving.schedule(counts, name)


def _check_parts(parts: Sequence[Schedule], compute_ns: Sequence[Numbers | None]) -> None:
    if not parts:
        raise InputError("nothing to compose", why="at least one schedule is needed")
    if len({part.ranks for part in parts}) > 1:
        raise InputError(
            "schedules for different numbers of ranks",
            where=", ".join(sorted({repr(part) for part in parts})),
            why="their parts are done by the same ranks, one after the other",
            fix="`embed` places a schedule among more ranks",
        )
    if any(np.asarray(ns).shape not in ((), (parts[0].ranks,)) for ns in compute_ns):
        raise InputError(
            "computations of the wrong shape",
            why=f"a number is needed, or one for each of the {parts[0].ranks} ranks",
        )


class _Weaving:
    """The arrays of a composition while its parts are laid down."""

    def __init__(self, start: np.ndarray, count: int):
        self.start = start
        self.kind, self.peer = np.full(count, CALC, np.uint8), np.zeros(count, np.int32)
        self.size, self.tag = np.zeros(count, np.int64), np.zeros(count, np.int32)
        self.cpu, self.nic = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
        self.needs: dict[str, list[Edges]] = {"requires": [], "irequires": []}
        self.calc: np.ndarray | None = None  # of each rank: the calculation before the part
        # per part: (rank, operation) of those whose end is not waited for yet
        self.open: list[tuple[np.ndarray, np.ndarray]] = []
        self.tags = 0

    def add(self, part: Part, ns: Numbers | None, offset: np.ndarray) -> None:
        if ns is not None:
            self.calculate(ns, offset)
            offset = offset + 1
        at = (self.start + offset)[part.rank] + part.place
        for column in ("kind", "peer", "size", "cpu", "nic"):
            getattr(self, column)[at] = getattr(part.schedule, column)
        tag = part.schedule.column("tag")
        self.tag[at] = tag + self.tags * ((tag != ANY) & (part.schedule.kind != CALC))
        self.tags += part.tags
        for which, needs in self.needs.items():
            operation, needed = part.schedule.edges(which)
            needs.append((at[operation], at[needed]))
        if self.calc is not None:
            self.needs["requires"].append((at[part.first], self.calc[part.rank[part.first]]))
        self.open.append((part.rank[part.last], at[part.last]))

    def calculate(self, ns: Numbers, offset: np.ndarray) -> None:
        """A calculation in every rank; it waits for everything that is open, and for the last one
        where nothing else is in between.
        """
        at = self.start + offset
        self.size[at] = ns
        between = np.zeros(len(at), bool)
        for rank, operation in self.open:
            self.needs["requires"].append((at[rank], operation))
            between[rank] = True
        self.open.clear()
        if self.calc is not None:
            self.needs["requires"].append((at[~between], self.calc[~between]))
        self.calc = at

    def schedule(self, counts: np.ndarray, name: str) -> Schedule:
        if self.tags >= 2**31:
            raise InputError("the parts need more than 2^31 tags")
        number = np.int32 if len(self.kind) < 2**31 else np.int64
        return Schedule.from_arrays(
            counts,
            self.kind,
            self.peer,
            self.size,
            tag=self.tag,
            cpu=self.cpu,
            nic=self.nic,
            name=name,
            requires=joined(self.needs["requires"], number),
            irequires=joined(self.needs["irequires"], number),
        )


def joined(edges: list[Edges], dtype: type = np.int64) -> Edges:
    """All dependencies of a sort, (operation, needed)."""
    operation, needed = zip(*edges, strict=True)
    return np.concatenate(operation, dtype=dtype), np.concatenate(needed, dtype=dtype)


def sequence(*parts: Schedule) -> Schedule:
    """Schedules one after the other: a rank begins the next when its own part of the last is
    done.
    """
    return compose(parts, [None] + [0] * (len(parts) - 1), name="sequence")


def loop(body: Schedule, iterations: int, compute_ns: np.ndarray | int) -> Schedule:
    """Computation, body, computation, body, …: a bulk-synchronous program.

    Parameters
    ----------
    compute_ns
        One number, or int[P], each rank its own.
    """
    name = f"{iterations} x (computation, {body.name})"
    return compose([body] * iterations, [compute_ns] * iterations, name=name)


def calls(
    pattern: Callable[..., Schedule],
    ranks: int,
    bytes: int = 1,
    times: int = 1,
    rotated: bool = False,
) -> Schedule:
    """A pattern in the loop of a benchmark: so many calls, consecutive ones overlap where the
    pattern lets them.

    `rotated`: with the roots 0, 1, 2, …, as benchmarks do against pipelining (Hoefler, Schneider,
    Lumsdaine, "LogGP in Theory and Practice", Simulation Modelling Practice and Theory, 2009).
    """
    roots = [{"root": root} for root in range(min(times, ranks))] if rotated else [{}]
    turns = [pattern(ranks, bytes, **root) for root in roots]
    parts = [turns[i % len(turns)] for i in range(times)]
    return compose(parts, [None] + [0] * (times - 1), name=f"{times} x {turns[0].name}")


def compute(ranks: int, ns: np.ndarray | int) -> Schedule:
    """One computation a rank, without communication: ns one number or int[P]."""
    build = Building(checked(ranks), "computation")
    build.calc(np.arange(ranks), ns)
    return build.schedule()


def embed(schedule: Schedule, members: np.ndarray, ranks: int) -> Schedule:
    """A schedule among more ranks, as in a sub-communicator: its rank r is rank members[r] of
    `ranks`, in ascending order; the others do nothing.
    """
    members = np.asarray(members, np.int64)
    rising = np.diff(members, prepend=-1, append=ranks) > 0
    if len(members) != schedule.ranks or not rising.all():
        raise InputError(
            f"{schedule.ranks} ascending ranks below {ranks} are needed, one for each of the"
            " schedule"
        )
    counts = np.zeros(ranks, np.int64)
    counts[members] = np.diff(schedule.rank_start)
    named = (schedule.kind != CALC) & (schedule.peer != ANY)
    return replace(
        schedule,
        rank_start=np.concatenate([[0], np.cumsum(counts)]),
        peer=np.where(named, members[schedule.peer], schedule.peer).astype(np.int32),
    )


def side_by_side(*schedules: Schedule) -> Schedule:
    """Schedules at the same time, each on ranks of its own: those of the first come first."""
    ends = np.cumsum([schedule.ranks for schedule in schedules])
    placed = [
        embed(schedule, np.arange(end - schedule.ranks, end), ends[-1])
        for schedule, end in zip(schedules, ends, strict=True)
    ]
    name = " and ".join(schedule.name for schedule in schedules)
    return compose(placed, [None] * len(placed), name=name)
