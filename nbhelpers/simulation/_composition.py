"""Schedules from schedules: one after the other, in a loop with computation, overlapped, on other
ranks.

Between two parts, every rank has a calculation that waits for all that the rank has to do in the
part before, and that all its first operations of the next part wait for. Each part gets tags of its
own, so that no message strays into another part.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError
from ._building import Building, Numbers, at_least, checked
from ._exchanges import dissemination
from ._goal_arrays import ranges
from .schedule import ANY, CALC, RECV, Edges, Schedule


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
    overlap: bool = False,
    early_receives: bool = False,
    join: bool = False,
    name: str = "composition",
) -> Schedule:
    """Computation 0, part 0, computation 1, part 1, …

    Parameters
    ----------
    parts
        All for the same number of ranks; the same one may stand here many times.
    compute_ns
        Before each part, a number, or int[P], ns; None: nothing, which only the first may be.
    overlap
        a computation waits only for the one before it, so that communication goes on meanwhile
        (MPI_Iallreduce); implies `join`.
    early_receives
        Receives that begin a part are posted when the computation before it begins (MPI_Irecv
        before computing).
    join
        At the end, every rank has a calculation of 0 ns that waits for all.
    """
    _check_parts(parts, compute_ns)
    known = {id(part): Part.of(part) for part in parts}
    laid = [known[id(part)] for part in parts]
    # where each part begins within each rank, its computation included
    begin = [np.zeros(laid[0].schedule.ranks, np.int64)]
    for part, ns in zip(laid, compute_ns, strict=True):
        begin.append(begin[-1] + part.counts + (ns is not None))
    counts = begin[-1] + (join or overlap)
    start = np.cumsum(counts) - counts
    weaving = _Weaving(
        start,
        int(counts.sum()),
        any(len(part.schedule.begun_op) for part in laid) or early_receives,
        overlap,
        early_receives,
    )
    for part, ns, offset in zip(laid, compute_ns, begin, strict=False):
        weaving.add(part, ns, offset)
    if join or overlap:
        weaving.calculate(0, begin[-1], everything=True)
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
    if len(compute_ns) != len(parts):
        raise InputError(
            f"{len(compute_ns)} computations for {len(parts)} parts", why="there is one before each"
        )
    if any(ns is not None and np.shape(ns) not in ((), (parts[0].ranks,)) for ns in compute_ns):
        raise InputError(
            "computations of the wrong shape",
            why=f"a number is needed, or one for each of the {parts[0].ranks} ranks",
        )
    if any(ns is None for ns in compute_ns[1:]):
        raise InputError(
            "no computation between two parts", why="it is what orders them", fix="give 0 ns"
        )
    if any(np.min(ns) < 0 for ns in compute_ns if ns is not None):
        raise InputError("a computation of negative length")


class _Weaving:
    """The arrays of a composition while its parts are laid down."""

    def __init__(
        self, start: np.ndarray, count: int, begun: bool, overlap: bool, early_receives: bool
    ):
        self.start, self.overlap, self.early = start, overlap, early_receives
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
            self.calculate(ns, offset, everything=not self.overlap)
            offset = offset + 1
        at = (self.start + offset)[part.rank] + part.place
        for column in ("kind", "peer", "size", "cpu", "nic"):
            getattr(self, column)[at] = getattr(part.schedule, column)
        tag = part.schedule.column("tag")
        self.tag[at] = (
            np.where((tag == ANY) | (part.schedule.kind == CALC), tag, tag + self.tags)
            if self.tags
            else tag
        )
        self.tags += part.tags
        for which, needs in self.needs.items():
            operation, needed = part.schedule.edges(which)
            needs.append((at[operation], at[needed]))
        if self.calc is not None:
            self._begin(part, at, self.calc)
        self.open.append((part.rank[part.last], at[part.last]))

    def _begin(self, part: Part, at: np.ndarray, calc: np.ndarray) -> None:
        early = (
            (part.schedule.kind[part.first] == RECV)
            if self.early
            else np.zeros(len(part.first), bool)
        )
        for which, chosen in (("requires", ~early), ("irequires", early)):
            first = part.first[chosen]
            self.needs[which].append((at[first], calc[part.rank[first]]))

    def calculate(self, ns: Numbers, offset: np.ndarray, everything: bool) -> None:
        """A calculation in every rank; it waits for everything that is open, and for the last one
        where nothing else is in between.
        """
        at = self.start + offset
        self.size[at] = ns
        between = np.zeros(len(at), bool)
        if everything:
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
        return Schedule.from_arrays(
            counts,
            self.kind,
            self.peer,
            self.size,
            tag=self.tag,
            cpu=self.cpu,
            nic=self.nic,
            name=name,
            requires=self._joined("requires"),
            irequires=self._joined("irequires"),
        )

    def _joined(self, which: str) -> Edges | None:
        """All dependencies of a sort, (operation, needed)."""
        if not self.needs[which]:
            return None
        dtype = np.int32 if len(self.kind) < 2**31 else np.int64
        operations, needed = zip(*self.needs[which], strict=True)
        return (
            np.concatenate([part.astype(dtype) for part in operations]),
            np.concatenate([part.astype(dtype) for part in needed]),
        )


def sequence(*parts: Schedule, gap_ns: Numbers = 0) -> Schedule:
    """Schedules one after the other: a rank begins the next when its own part of the last is done
    (and after `gap_ns`, one number or int[P]).
    """
    return compose(parts, [None] + [gap_ns] * (len(parts) - 1), name="sequence")


def repeat(schedule: Schedule, times: int, gap_ns: Numbers = 0) -> Schedule:
    """A schedule again and again, as a benchmark does: consecutive calls overlap where the pattern
    lets them.
    """
    at_least(1, times=times)
    return replace(sequence(*[schedule] * times, gap_ns=gap_ns), name=f"{times} x {schedule.name}")


def loop(
    body: Schedule,
    iterations: int,
    compute_ns: np.ndarray | int,
    *,
    early_receives: bool = False,
    join: bool = False,
) -> Schedule:
    """Computation, body, computation, body, …: a bulk-synchronous program.

    Parameters
    ----------
    compute_ns
        One number, int[P] (each rank its own) or int[iterations, P].
    early_receives, join
        See `compose`.
    """
    each = np.asarray(compute_ns)
    grain: list[Numbers] = list(each) if each.ndim == 2 else [compute_ns] * iterations
    return compose(
        [body] * iterations,
        grain,
        early_receives=early_receives,
        join=join,
        name=f"{iterations} x (computation, {body.name})",
    )


def rotate_root(
    pattern: Callable[..., Schedule],
    ranks: int,
    bytes: int = 1,
    times: int = 1,
    gap_ns: Numbers = 0,
    **options: object,
) -> Schedule:
    """A pattern with a root `times` times, with the roots 0, 1, 2, …: what benchmarks do against
    pipelining.

    Hoefler, Schneider, Lumsdaine, "LogGP in Theory and Practice", Simulation Modelling Practice and
    Theory 17(9), 2009.
    """
    at_least(1, times=times)
    turns = [pattern(ranks, bytes, root=root, **options) for root in range(min(times, ranks))]
    return compose(
        [turns[i % ranks] for i in range(times)],
        [None] + [gap_ns] * (times - 1),
        name=f"{times} x {turns[0].name}, root rotated",
    )


def compute(ranks: int, ns: np.ndarray | int) -> Schedule:
    """One computation a rank, without communication: ns one number or int[P]."""
    build = Building(checked(ranks), "computation")
    build.calc(np.arange(ranks), ns)
    return build.schedule()


def idle(ranks: int) -> Schedule:
    """Nothing to do for any rank."""
    return Building(checked(ranks), "nothing").schedule()


def chained_dissemination(ranks: int, bytes: int = 10_000, times: int = 5) -> Schedule:
    """Disseminations that follow each other rank by rank (Schedgen's chained_dissem: 5 of 10,000
    bytes).
    """
    return replace(repeat(dissemination(ranks, bytes), times), name="chained dissemination")


def training_step(
    allreduces: Sequence[Schedule], forward_ns: int, backward_ns: Sequence[int]
) -> Schedule:
    """A step of data-parallel training (the shape of Schedgen's resnet): forward, then backward
    layer by layer, gradients reduced meanwhile.

    Parameters
    ----------
    allreduces
        One a bucket of gradients, in the order in which they become ready.
    backward_ns
        The computation before each.
    """
    grains = [forward_ns * (bucket == 0) + ns for bucket, ns in enumerate(backward_ns)]
    return compose(allreduces, grains, overlap=True, name="training step")


def renumber(schedule: Schedule, new: np.ndarray) -> Schedule:
    """The same schedule with rank r called new[r], a permutation of 0 … P − 1."""
    new = np.asarray(new)
    if not np.array_equal(np.sort(new), np.arange(schedule.ranks)):
        raise InputError(
            "not a permutation of the ranks",
            why=f"every number from 0 to {schedule.ranks - 1} has to occur once",
        )
    return embed(schedule, new, schedule.ranks)


def shift_ranks(schedule: Schedule, by: int) -> Schedule:
    """Rank r becomes rank r + by, modulo their number."""
    return renumber(schedule, (np.arange(schedule.ranks) + by) % schedule.ranks)


def embed(schedule: Schedule, members: np.ndarray, ranks: int) -> Schedule:
    """A schedule among more ranks, as in a sub-communicator: its rank r is rank members[r] of
    `ranks`; the others do nothing.
    """
    members = np.asarray(members, np.int64)
    if (
        len(members) != schedule.ranks
        or len(np.unique(members)) != len(members)
        or members.min() < 0
        or members.max() >= ranks
    ):
        raise InputError(
            f"{schedule.ranks} different ranks below {ranks} are needed, one for each of the"
            " schedule"
        )
    counts = np.zeros(ranks, np.int64)
    counts[members] = np.diff(schedule.rank_start)
    moved = ranges(schedule.rank_start[:-1][order := np.argsort(members)], counts[members[order]])
    peer = np.where(
        (schedule.kind == CALC) | (schedule.peer == ANY), schedule.peer, members[schedule.peer]
    )[moved].astype(np.int32)
    place = np.empty(len(schedule), np.int64)
    place[moved] = np.arange(len(moved))

    def column(values: np.ndarray) -> np.ndarray:
        return values[moved] if len(values) > 1 else values

    def edges(which: str) -> Edges:
        operation, needed = schedule.edges(which)
        return place[operation], place[needed]

    return Schedule.from_arrays(
        counts,
        schedule.kind[moved],
        peer,
        column(schedule.size),
        tag=column(schedule.tag),
        cpu=column(schedule.cpu),
        nic=column(schedule.nic),
        requires=edges("requires"),
        irequires=edges("irequires"),
        name=schedule.name,
    )


def side_by_side(*schedules: Schedule) -> Schedule:
    """Schedules at the same time, each on ranks of its own: those of the first come first."""
    total = sum(schedule.ranks for schedule in schedules)
    begins = np.cumsum([0] + [schedule.ranks for schedule in schedules])
    placed = [
        embed(schedule, np.arange(begin, begin + schedule.ranks), total)
        for schedule, begin in zip(schedules, begins, strict=False)
    ]
    offsets = np.cumsum([0] + [len(schedule) for schedule in placed])

    def column(name: str) -> np.ndarray:
        return np.concatenate([schedule.column(name) for schedule in placed])

    def edges(which: str) -> Edges:
        found = [schedule.edges(which) for schedule in placed]
        return (
            np.concatenate([pair[0] + offset for pair, offset in zip(found, offsets)]),
            np.concatenate([pair[1] + offset for pair, offset in zip(found, offsets)]),
        )

    return Schedule.from_arrays(
        np.sum([np.diff(schedule.rank_start) for schedule in placed], axis=0),
        column("kind"),
        column("peer"),
        column("size"),
        tag=column("tag"),
        cpu=column("cpu"),
        nic=column("nic"),
        requires=edges("requires"),
        irequires=edges("irequires"),
        name=" and ".join(s.name for s in schedules),
    )
