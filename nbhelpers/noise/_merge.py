"""From overlapping noise events of a CPU to a list that one process can replay: sorted, nothing overlapping.

Owns the three ways of combining. Durations are net, so a CPU with overlapping events works like a server with a queue: it
is busy until all that has arrived is done. Its busy periods are found with a running maximum, without a loop over events.
"""

from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from ..errors import InputError
from ._tables import coded, require_columns, whole_numbers
from ._vocabulary import INJECTED_AS, INTERRUPT_KINDS, KINDS, LARGEST_CPU, LARGEST_NS, NEAREST, POLICIES, REAL_TIME

POLICY_NAMES = tuple(POLICIES)
_IS_INTERRUPT = np.array([kind in INTERRUPT_KINDS for kind in KINDS])
_IS_REAL_TIME = np.array([policy in REAL_TIME for policy in POLICY_NAMES])


@dataclass(frozen=True)
class Columns:
    """Noise events as equally long arrays; `policy`, `kind` and `source` are places in POLICY_NAMES, KINDS and the sources."""

    cpu: np.ndarray
    start_ns: np.ndarray
    duration_ns: np.ndarray
    policy: np.ndarray
    priority: np.ndarray
    kind: np.ndarray
    source: np.ndarray

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, rows: np.ndarray) -> "Columns":
        """These rows (places or a mask)."""
        return Columns(*(getattr(self, field.name)[rows] for field in fields(self)))

    def with_(self, **columns: np.ndarray) -> "Columns":
        """The same events with some columns replaced."""
        return Columns(**{field.name: columns.get(field.name, getattr(self, field.name)) for field in fields(self)})


def joined(parts: list[Columns]) -> Columns:
    """One list after the other."""
    return Columns(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Columns)))


def from_table(events: pd.DataFrame) -> tuple[Columns, list[str]]:
    """Events table to columns, sorted by CPU and start, with the policy each event is injected with; and the sources.

    Raises
    ------
    InputError : a column is missing, a kind or policy is unknown, a priority or time is out of range.
    """
    require_columns(events, ("cpu", "kind", "source", "start_ns", "duration_ns"), "events")
    kind = _places(events["kind"], KINDS, "kind")
    policy, priority = _injected_as(events, kind)
    source, sources = coded(events["source"], "source")
    columns = Columns(whole_numbers(events, "cpu", "events"), whole_numbers(events, "start_ns", "events"),
                      whole_numbers(events, "duration_ns", "events"), policy, priority, kind, source)
    _refuse_excess(columns)
    columns = columns.take(np.flatnonzero(columns.duration_ns > 0))
    order = np.lexsort([columns.source, columns.priority, columns.policy, columns.duration_ns, columns.kind,
                        columns.start_ns, columns.cpu])
    return columns.take(order), list(sources)


def _places(values: pd.Series, names: tuple[str, ...], what: str) -> np.ndarray:
    codes, unique = pd.factorize(values)
    place = {name: number for number, name in enumerate(names)}
    unknown = [value for value in unique if value not in place]
    if unknown or (codes < 0).any():
        raise InputError(f"unknown {what} {unknown[0]!r}" if unknown else f"an event without a {what}",
                         where=f"events table, column {what}", mend=f"known: {', '.join(names)}")
    return np.array([place[value] for value in unique], np.int16)[codes] if len(codes) else codes.astype(np.int16)


def _injected_as(events: pd.DataFrame, kind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Policy and priority of each event: of a thread its own where the trace tells, of an interrupt always real-time."""
    policy = np.array([POLICY_NAMES.index(INJECTED_AS[name][0]) for name in KINDS], np.int16)[kind]
    priority = np.array([INJECTED_AS[name][1] for name in KINDS], np.int64)[kind]
    if "policy" not in events.columns:
        return policy, priority
    codes, told = pd.factorize(events["policy"])
    for code, name in enumerate(map(str, told)):
        rows = (codes == code) & (~_IS_INTERRUPT[kind] | (name in REAL_TIME))
        if name in POLICIES:
            policy[rows], priority[rows] = POLICY_NAMES.index(name), _told_priority(events, rows, name)
        elif name in NEAREST:
            policy[rows], priority[rows] = POLICY_NAMES.index(NEAREST[name][0]), NEAREST[name][1]
        elif name:
            raise InputError(f"unknown policy {name!r}", where=f"events table, row {int(np.argmax(codes == code))}",
                             mend=f"known: {', '.join((*POLICIES, *NEAREST))}, or empty for unknown")
    return policy, priority


def _told_priority(events: pd.DataFrame, rows: np.ndarray, policy: str) -> np.ndarray:
    require_columns(events, ("priority",), "events")
    lowest, highest = POLICIES[policy]
    values = whole_numbers(events[rows], "priority", f"events ({policy})", lowest=None)
    if len(values) and not lowest <= values.min() <= values.max() <= highest:
        worst = values.min() if values.min() < lowest else values.max()
        raise InputError(f"priority {worst} is none of {policy}'s", where="events table, column priority",
                         mend=f"{policy} has {lowest} … {highest}")
    return values


def _refuse_excess(columns: Columns) -> None:
    """The sum of durations stays below 2^62 ns, so that no end can overflow, and a CPU has at most five digits."""
    if columns.duration_ns.sum(dtype=float) >= LARGEST_NS:
        raise InputError("the durations add up to more than 2^62 ns", where="events table, column duration_ns")
    if len(columns) and columns.cpu.max() > LARGEST_CPU:
        raise InputError(f"there is no CPU {columns.cpu.max()}", where="events table, column cpu")


def each_cpu(columns: Columns, combine: object) -> Columns:
    """Combine the events of each CPU for itself; the result is again sorted by CPU and start."""
    bounds = np.flatnonzero(np.diff(columns.cpu)) + 1
    parts = [combine(columns.take(rows)) for rows in np.split(np.arange(len(columns)), bounds)]
    return joined(parts)


def completion(start_ns: np.ndarray, duration_ns: np.ndarray) -> np.ndarray:
    """When each event is done, if events are worked off in the order of their starts, one at a time.

    >>> completion(np.array([0, 5, 40]), np.array([10, 10, 10])).tolist()
    [10, 20, 50]
    """
    work = np.cumsum(duration_ns)
    return work + np.maximum.accumulate(start_ns - (work - duration_ns)) if len(work) else work


def pessimistic(columns: Columns) -> Columns:
    """Overlapping or touching events of a CPU become one, real-time if one of them is: the published merge.

    A merged event begins with the first of its parts and lasts as long as all of them together. (The published code adds
    the gap between two parts that its threshold, by default 0, lets merge; touching parts have none.)
    """
    ends = completion(columns.start_ns, columns.duration_ns)
    return _merged(columns, np.concatenate([[True], columns.start_ns[1:] > ends[:-1]]))


def improved(columns: Columns) -> Columns:
    """Interrupts merge among themselves where they overlap; threads are cut where an interrupt falls, and go on after it."""
    interrupt = _IS_INTERRUPT[columns.kind]
    interrupts, threads = columns.take(interrupt), columns.take(~interrupt)
    if len(interrupts):
        ends = completion(interrupts.start_ns, interrupts.duration_ns)
        interrupts = _merged(interrupts, np.concatenate([[True], interrupts.start_ns[1:] >= ends[:-1]]))
    both = joined([interrupts, _cut(threads, interrupts)])
    return both.take(np.argsort(both.start_ns, kind="stable"))


def _merged(columns: Columns, first: np.ndarray) -> Columns:
    """One event a block; `first` marks where blocks begin. Policy of its most urgent part, name of its longest."""
    begin = np.flatnonzero(first)
    named = columns.take(_largest_in(columns.duration_ns, begin))
    urgent = columns.take(_largest_in(_urgency(columns), begin))
    return named.with_(start_ns=columns.start_ns[begin], duration_ns=np.add.reduceat(columns.duration_ns, begin),
                       policy=urgent.policy, priority=urgent.priority)


def _urgency(columns: Columns) -> np.ndarray:
    """Larger for what the scheduler runs first: real-time by priority, then the others by niceness."""
    return np.where(_IS_REAL_TIME[columns.policy], 1000 + columns.priority, -columns.priority)


def _largest_in(values: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Place of the (first) largest value of each block."""
    sizes = np.diff(np.append(begin, len(values)))
    places = np.flatnonzero(values == np.repeat(np.maximum.reduceat(values, begin), sizes))
    block = np.searchsorted(begin, places, side="right")
    return places[np.flatnonzero(np.diff(block, prepend=0))]


def _cut(threads: Columns, interrupts: Columns) -> Columns:
    """Cut thread events at interrupts so that the pieces of each add up to its net duration.

    Counted in *thread time*, which stands still during interrupts, threads are worked off one after the other, and an
    interrupt is a point. Those points inside a thread event cut it; then every piece is put back to real time.
    """
    if not len(threads) or not len(interrupts):
        return threads.with_(start_ns=completion(threads.start_ns, threads.duration_ns) - threads.duration_ns)
    taken = np.cumsum(interrupts.duration_ns)
    point = interrupts.start_ns - (taken - interrupts.duration_ns)
    end = completion(_thread_time(threads.start_ns, interrupts), threads.duration_ns)
    begin = end - threads.duration_ns
    low, high = np.searchsorted(point, begin, side="right"), np.searchsorted(point, end, side="left")
    owner = np.repeat(np.arange(len(threads)), high - low + 1)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(high - low + 1) - (high - low + 1), high - low + 1)
    place = low[owner] + within
    piece_begin = np.where(within == 0, begin[owner], point[np.maximum(place - 1, 0)])
    piece_end = np.where(within == (high - low)[owner], end[owner], point[np.minimum(place, len(point) - 1)])
    before = np.concatenate([[0], taken])[np.searchsorted(point, piece_begin, side="right")]
    pieces = threads.take(owner).with_(start_ns=piece_begin + before, duration_ns=piece_end - piece_begin)
    return pieces.take(pieces.duration_ns > 0)


def _thread_time(start_ns: np.ndarray, interrupts: Columns) -> np.ndarray:
    """Time up to `start_ns` that no interrupt took."""
    taken = np.concatenate([[0], np.cumsum(interrupts.duration_ns)])
    begun = np.searchsorted(interrupts.start_ns, start_ns, side="right")
    last = np.maximum(begun - 1, 0)
    unfinished = np.maximum(interrupts.start_ns[last] + interrupts.duration_ns[last] - start_ns, 0)
    return start_ns - taken[begun] + np.where(begun > 0, unfinished, 0)


def as_published(columns: Columns) -> Columns:
    """Policies as the published code assigns them: threads SCHED_OTHER, all else SCHED_FIFO 1."""
    interrupt = _IS_INTERRUPT[columns.kind]
    policy = np.where(interrupt, POLICY_NAMES.index("SCHED_FIFO"), POLICY_NAMES.index("SCHED_OTHER")).astype(np.int16)
    return columns.with_(policy=policy, priority=interrupt.astype(np.int64))


def compat(columns: Columns) -> Columns:
    """The published code's list: its two policies, its merge. (Its sentinel of no length can't change another event.)"""
    return pessimistic(as_published(columns))


MERGES = {"improved": improved, "pessimistic": pessimistic, "compat": compat}
