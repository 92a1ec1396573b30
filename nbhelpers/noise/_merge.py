"""From overlapping noise events of a CPU to a list that one process can replay: sorted, nothing
overlapping.

Owns the three ways of combining, for noise that occupies a CPU; other kinds overlap with it and
with each other, each is replayed by a separate process. Durations are net, so a CPU with
overlapping events works like a server with a queue: it is busy until all that has arrived is done.
Its busy periods are found with a running maximum, without a loop over events.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import pandas as pd

from ..errors import InputError
from ._tables import coded, require_columns, whole_numbers
from ._vocabulary import (
    ALL_KINDS,
    INJECTED_AS,
    INTERRUPT_KINDS,
    KINDS,
    LARGEST_CPU,
    LARGEST_NS,
    NEAREST,
    POLICIES,
    REAL_TIME,
    STRESSORS,
)

POLICY_NAMES = tuple(POLICIES)
_IS_INTERRUPT = np.array([kind in INTERRUPT_KINDS for kind in ALL_KINDS])
_IS_REAL_TIME = np.array([policy in REAL_TIME for policy in POLICY_NAMES])


@dataclass(frozen=True)
class Columns:
    """Noise events as equally long arrays; `policy`, `kind` and `source` are places in
    POLICY_NAMES, ALL_KINDS and the sources.

    `intensity` is None where every event occupies a CPU, and NaN for those that do.
    """

    cpu: np.ndarray
    start_ns: np.ndarray
    duration_ns: np.ndarray
    policy: np.ndarray
    priority: np.ndarray
    kind: np.ndarray
    source: np.ndarray
    intensity: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, rows: np.ndarray) -> "Columns":
        """These rows (places or a mask)."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self, **{name: column[rows] for name, column in columns.items() if column is not None}
        )

    def with_(self, **columns: np.ndarray) -> "Columns":
        """The same events with some columns replaced."""
        return replace(self, **columns)


def joined(parts: list[Columns]) -> Columns:
    """One list after the other; with intensities if the first one has them."""
    names = [field.name for field in fields(Columns) if getattr(parts[0], field.name) is not None]
    return Columns(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    )


def from_table(events: pd.DataFrame) -> tuple[Columns, list[str]]:
    """Events table to columns, sorted by CPU and start, with the policy each event is injected
    with; and the sources.

    Raises
    ------
    InputError
        a column is missing, a kind or policy is unknown, a priority, time or intensity is out of
        range.
    """
    require_columns(events, ("cpu", "kind", "source", "start_ns", "duration_ns"), "events")
    kind = _places(events["kind"], ALL_KINDS, "kind")
    policy, priority = _injected_as(events, kind)
    source, sources = coded(events["source"], "source")
    columns = Columns(
        whole_numbers(events, "cpu", "events"),
        whole_numbers(events, "start_ns", "events"),
        whole_numbers(events, "duration_ns", "events"),
        policy,
        priority,
        kind,
        source,
        _intensities(events, kind),
    )
    _refuse_excess(columns)
    columns = columns.take(np.flatnonzero(columns.duration_ns > 0))
    order = _order(columns)
    return columns.take(order), list(sources)


def _order(columns: Columns) -> np.ndarray:
    """By CPU and start; by all else only where two begin together, which is rare."""
    order = np.lexsort([columns.start_ns, columns.cpu])
    cpu, start = columns.cpu[order], columns.start_ns[order]
    same = np.concatenate([[False], (cpu[1:] == cpu[:-1]) & (start[1:] == start[:-1])])[
        : len(order)
    ]
    tied = np.flatnonzero(same | np.append(same[1:], False)[: len(order)])
    rows = columns.take(order[tied])
    order[tied] = order[tied][
        np.lexsort(
            [
                rows.source,
                rows.priority,
                rows.policy,
                rows.duration_ns,
                rows.kind,
                rows.start_ns,
                rows.cpu,
            ]
        )
    ]
    return order


def _places(values: pd.Series, names: tuple[str, ...], what: str) -> np.ndarray:
    codes, unique = pd.factorize(values)
    place = {name: number for number, name in enumerate(names)}
    unknown = [value for value in unique if value not in place]
    if unknown or (codes < 0).any():
        raise InputError(
            f"unknown {what} {unknown[0]!r}" if unknown else f"an event without a {what}",
            where=f"events table, column {what}",
            fix=f"known: {', '.join(names)}",
        )
    return (
        np.array([place[value] for value in unique], np.int16)[codes]
        if len(codes)
        else codes.astype(np.int16)
    )


def _injected_as(events: pd.DataFrame, kind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Policy and priority of each event: of a thread as the trace states, of an interrupt
    always real-time.
    """
    usual = [INJECTED_AS.get(name, INJECTED_AS["thread"]) for name in ALL_KINDS]
    policy = np.array([POLICY_NAMES.index(name) for name, _ in usual], np.int16)[kind]
    priority = np.array([number for _, number in usual], np.int64)[kind]
    if "policy" not in events.columns:
        return policy, priority
    codes, policies = pd.factorize(events["policy"])
    for code, name in enumerate(map(str, policies)):
        rows = (codes == code) & (~_IS_INTERRUPT[kind] | (name in REAL_TIME))
        if name in POLICIES:
            policy[rows] = POLICY_NAMES.index(name)
            priority[rows] = _known_priority(events, rows, name)
        elif name in NEAREST:
            policy[rows], priority[rows] = POLICY_NAMES.index(NEAREST[name][0]), NEAREST[name][1]
        elif name:
            raise InputError(
                f"unknown policy {name!r}",
                where=f"events table, row {int(np.argmax(codes == code))}",
                fix=f"known: {', '.join((*POLICIES, *NEAREST))}, or empty for unknown",
            )
    return policy, priority


def _known_priority(events: pd.DataFrame, rows: np.ndarray, policy: str) -> np.ndarray:
    require_columns(events, ("priority",), "events")
    lowest, highest = POLICIES[policy]
    values = whole_numbers(events[rows], "priority", f"events ({policy})", lowest=None)
    if len(values) and not lowest <= values.min() <= values.max() <= highest:
        worst = values.min() if values.min() < lowest else values.max()
        raise InputError(
            f"priority {worst} is none of {policy}'s",
            where="events table, column priority",
            fix=f"{policy} has {lowest} … {highest}",
        )
    return values


def _intensities(events: pd.DataFrame, kind: np.ndarray) -> np.ndarray | None:
    """Intensity of each event that does more than occupy a CPU, NaN of the others; None if there
    are only others.
    """
    stressing = kind >= len(KINDS)
    if not stressing.any():
        return None
    require_columns(events, ("intensity",), "events")
    values = pd.to_numeric(events["intensity"], errors="coerce").to_numpy(
        dtype=float, na_value=np.nan
    )
    bad = stressing & ~(np.isfinite(values) & (values > 0))
    if bad.any():
        at = int(np.argmax(bad))
        name = ALL_KINDS[kind[at]]
        raise InputError(
            f"the intensity of {name} noise is {events['intensity'].iloc[at]}",
            where=f"events table, row {at}, column intensity",
            fix=f"a positive number of {STRESSORS[name].unit}",
        )
    return np.where(stressing, values, np.nan)


def _refuse_excess(columns: Columns) -> None:
    """The sum of durations stays below 2^62 ns, so that no end can overflow, and a CPU has at most
    five digits.
    """
    if columns.duration_ns.sum(dtype=float) >= LARGEST_NS:
        raise InputError(
            "the durations add up to more than 2^62 ns", where="events table, column duration_ns"
        )
    if len(columns) and columns.cpu.max() > LARGEST_CPU:
        raise InputError(f"there is no CPU {columns.cpu.max()}", where="events table, column cpu")


def each_cpu(columns: Columns, combine: Callable[[Columns], Columns]) -> Columns:
    """Combine the events of each CPU for itself; the result is again sorted by CPU and start."""
    bounds = np.flatnonzero(np.diff(columns.cpu)) + 1
    parts = [combine(columns.take(rows)) for rows in np.split(np.arange(len(columns)), bounds)]
    return joined(parts)


def combine(columns: Columns, merge: str) -> Columns:
    """Combine what occupies each CPU; what does more is left as it is, and comes after it where
    both begin together.

    Raises
    ------
    InputError
        Two events of such a kind overlap on a CPU.
    """
    if columns.intensity is None:
        return each_cpu(columns, MERGES[merge])
    stressing = columns.kind >= len(KINDS)
    stressors, others = columns.take(stressing), columns.take(~stressing)
    _refuse_overlap(stressors)
    both = joined([each_cpu(others, MERGES[merge]), stressors] if len(others) else [stressors])
    occupying = both.kind < len(KINDS)
    return both.take(np.lexsort([np.where(occupying, -1, both.kind), both.start_ns, both.cpu]))


def _refuse_overlap(stressors: Columns) -> None:
    ordered = stressors.take(np.lexsort([stressors.start_ns, stressors.kind, stressors.cpu]))
    same = (np.diff(ordered.cpu) == 0) & (np.diff(ordered.kind) == 0)
    bad = same & (ordered.start_ns[1:] < (ordered.start_ns + ordered.duration_ns)[:-1])
    if bad.any():
        at = int(np.argmax(bad)) + 1
        raise InputError(
            f"two events of {ALL_KINDS[ordered.kind[at]]} noise overlap",
            where=f"CPU {ordered.cpu[at]}, at {ordered.start_ns[at]} ns",
            why="one process injects each kind on a CPU",
            fix="add up their intensities, or use another CPU",
        )


def completion(start_ns: np.ndarray, duration_ns: np.ndarray) -> np.ndarray:
    """When each event is done, if events are worked off in the order of their starts, one at a
    time.

    >>> completion(np.array([0, 5, 40]), np.array([10, 10, 10])).tolist()
    [10, 20, 50]
    """
    work = np.cumsum(duration_ns)
    return work + np.maximum.accumulate(start_ns - (work - duration_ns)) if len(work) else work


def pessimistic(columns: Columns) -> Columns:
    """Overlapping or touching events of a CPU become one, real-time if one of them is: the
    published merge.

    A merged event begins with the first of its parts and lasts as long as all of them together.
    (The published code adds the gap between two parts that its threshold, by default 0, lets merge;
    touching parts have none.)
    """
    ends = completion(columns.start_ns, columns.duration_ns)
    return _merged(columns, np.concatenate([[True], columns.start_ns[1:] > ends[:-1]]))


def improved(columns: Columns) -> Columns:
    """Interrupts merge among themselves where they overlap; threads are cut where an interrupt
    falls, and go on after it.
    """
    interrupt = _IS_INTERRUPT[columns.kind]
    interrupts, threads = columns.take(interrupt), columns.take(~interrupt)
    if len(interrupts):
        ends = completion(interrupts.start_ns, interrupts.duration_ns)
        interrupts = _merged(
            interrupts, np.concatenate([[True], interrupts.start_ns[1:] >= ends[:-1]])
        )
    both = joined([interrupts, _cut(threads, interrupts)])
    return both.take(np.argsort(both.start_ns, kind="stable"))


def _merged(columns: Columns, first: np.ndarray) -> Columns:
    """One event a block; `first` marks where blocks begin. Policy of its most urgent part, name of
    its longest.
    """
    begin = np.flatnonzero(first)
    named = columns.take(_largest_in(columns.duration_ns, begin))
    urgent = columns.take(_largest_in(_urgency(columns), begin))
    return named.with_(
        start_ns=columns.start_ns[begin],
        duration_ns=np.add.reduceat(columns.duration_ns, begin),
        policy=urgent.policy,
        priority=urgent.priority,
    )


def _urgency(columns: Columns) -> np.ndarray:
    """Larger for what the scheduler runs first: real-time by priority, others by niceness."""
    return np.where(_IS_REAL_TIME[columns.policy], 1000 + columns.priority, -columns.priority)


def _largest_in(values: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Place of the (first) largest value of each block."""
    sizes = np.diff(np.append(begin, len(values)))
    places = np.flatnonzero(values == np.repeat(np.maximum.reduceat(values, begin), sizes))
    block = np.searchsorted(begin, places, side="right")
    return places[np.flatnonzero(np.diff(block, prepend=0))]


def _cut(threads: Columns, interrupts: Columns) -> Columns:
    """Cut thread events at interrupts so that the pieces of each add up to its net duration.

    Counted in *thread time*, which stands still during interrupts, threads are worked off one after
    the other, and an interrupt is a point. Those points inside a thread event cut it; then every
    piece is put back to real time.
    """
    if not len(threads) or not len(interrupts):
        return threads.with_(
            start_ns=completion(threads.start_ns, threads.duration_ns) - threads.duration_ns
        )
    taken = np.cumsum(interrupts.duration_ns)
    point = interrupts.start_ns - (taken - interrupts.duration_ns)
    end = completion(_thread_time(threads.start_ns, interrupts), threads.duration_ns)
    begin = end - threads.duration_ns
    low = np.searchsorted(point, begin, side="right")
    high = np.searchsorted(point, end, side="left")
    owner = np.repeat(np.arange(len(threads)), high - low + 1)
    within = np.arange(len(owner)) - np.repeat(
        np.cumsum(high - low + 1) - (high - low + 1), high - low + 1
    )
    place = low[owner] + within
    piece_begin = np.where(within == 0, begin[owner], point[np.maximum(place - 1, 0)])
    piece_end = np.where(
        within == (high - low)[owner], end[owner], point[np.minimum(place, len(point) - 1)]
    )
    before = np.concatenate([[0], taken])[np.searchsorted(point, piece_begin, side="right")]
    pieces = threads.take(owner).with_(
        start_ns=piece_begin + before, duration_ns=piece_end - piece_begin
    )
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
    policy = np.where(
        interrupt, POLICY_NAMES.index("SCHED_FIFO"), POLICY_NAMES.index("SCHED_OTHER")
    ).astype(np.int16)
    return columns.with_(policy=policy, priority=interrupt.astype(np.int64))


def compat(columns: Columns) -> Columns:
    """The published code's list: its two policies, its merge. (Its sentinel of no length can't
    change another event.)
    """
    return pessimistic(as_published(columns))


MERGES = {"improved": improved, "pessimistic": pessimistic, "compat": compat}
