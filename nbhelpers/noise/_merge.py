"""From overlapping noise events of a CPU to a list that one process can replay: sorted, nothing
overlapping.

Owns the three ways of combining, for noise that occupies a CPU; other kinds overlap with it and
with each other, each is replayed by a separate process. Durations are net, so a CPU with
overlapping events works like a server with a queue: it is busy until all that has arrived is done.
Its busy periods are found with a running maximum, without a loop over events. The plain way is the
published merge (`pessimistic`): of 268 ms of ordinary noise in 40 recorded runs it makes 217 ms
real-time, `improved` none (benchmarks/rivals.py merge).
"""

import numpy as np
import pandas as pd

from ..errors import InputError
from ._tables import categories, require_columns, whole_numbers
from ._vocabulary import (
    ALL_KINDS,
    INJECTED_AS,
    INTERRUPT_KINDS,
    LARGEST_CPU,
    LARGEST_NS,
    NEAREST,
    POLICIES,
    REAL_TIME,
    STRESSOR_KINDS,
    STRESSORS,
)

POLICY_NAMES = tuple(POLICIES)


THREADS = {"recorded": None, "raised": ("SCHED_OTHER", -20), "slices": ("SCHED_FIFO", 1)}


def from_table(events: pd.DataFrame, threads: str = "recorded") -> pd.DataFrame:
    """Events that are to be injected, by CPU and start, with the policy each is injected with.

    `threads` is what ordinary thread noise gets (`NoiseConfig.from_events`).

    Returns
    -------
    `cpu`, `start_ns`, `duration_ns`, `policy`, `priority`, `kind`, `source` (words are categories)
    and `intensity`: NaN for what occupies a CPU.

    Raises
    ------
    InputError
        A column is missing, a kind or policy is unknown, a priority, time or intensity is out of
        range.
    """
    require_columns(events, ("cpu", "kind", "source", "start_ns", "duration_ns"), "events")
    kind = categories(events, "kind", ALL_KINDS)
    policy, priority = _injected_as(events, kind)
    if instead := THREADS[threads]:
        ordinary = (kind == "thread") & ~np.isin(policy.astype(str), REAL_TIME)
        policy[ordinary], priority[ordinary] = instead
    table = pd.DataFrame(
        {
            "cpu": whole_numbers(events, "cpu", "events"),
            "start_ns": whole_numbers(events, "start_ns", "events"),
            "duration_ns": whole_numbers(events, "duration_ns", "events"),
            "policy": pd.Categorical(policy, POLICY_NAMES),
            "priority": priority,
            "kind": kind,
            "source": categories(events, "source"),
            "intensity": _intensities(events, kind),
        }
    )
    if table["duration_ns"].to_numpy().sum(dtype=float) >= LARGEST_NS:  # no end can overflow
        raise InputError(
            "the durations add up to more than 2^62 ns", where="events table, column duration_ns"
        )
    if len(table) and table["cpu"].max() > LARGEST_CPU:
        raise InputError(f"there is no CPU {table['cpu'].max()}", where="events table, column cpu")
    table = table[table["duration_ns"] > 0]
    codes = table.assign(**{name: table[name].cat.codes for name in ("kind", "policy", "source")})
    order = ["cpu", "start_ns", "kind", "duration_ns", "policy", "priority", "source"]
    return table.loc[codes.sort_values(order).index].reset_index(drop=True)


def _injected_as(events: pd.DataFrame, kind: pd.Categorical) -> tuple[np.ndarray, np.ndarray]:
    """Policy and priority of each event: of a thread as the trace states, of an interrupt
    always real-time.
    """
    usual = [INJECTED_AS.get(name, INJECTED_AS["thread"]) for name in ALL_KINDS]
    policy = np.array([name for name, _ in usual], object)[kind.codes]
    priority = np.array([number for _, number in usual], np.int64)[kind.codes]
    if "policy" not in events.columns:
        return policy, priority
    is_interrupt, stated = kind.isin(INTERRUPT_KINDS), events["policy"].astype(str).to_numpy()
    for name in pd.unique(stated):
        rows = (stated == name) & (~is_interrupt | (name in REAL_TIME))
        if name in POLICIES:
            policy[rows], priority[rows] = name, _known_priority(events, rows, name)
        elif name in NEAREST:
            policy[rows], priority[rows] = NEAREST[name]
        elif name and name != "nan":
            raise InputError(
                f"unknown policy {name!r}",
                where=f"events table, row {int(np.argmax(stated == name))}",
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


def _intensities(events: pd.DataFrame, kind: pd.Categorical) -> np.ndarray:
    """Intensity of each event that does more than occupy a CPU, NaN of the others."""
    stressing = kind.isin(STRESSOR_KINDS)
    if not stressing.any():
        return np.full(len(events), np.nan)
    require_columns(events, ("intensity",), "events")
    values = pd.to_numeric(events["intensity"], errors="coerce").to_numpy(float, na_value=np.nan)
    bad = stressing & ~(np.isfinite(values) & (values > 0))
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"the intensity of {kind[at]} noise is {events['intensity'].iloc[at]}",
            where=f"events table, row {at}, column intensity",
            fix=f"a positive number of {STRESSORS[kind[at]].unit}",
        )
    return np.where(stressing, values, np.nan)


def combine(table: pd.DataFrame, merge: str) -> pd.DataFrame:
    """Combine what occupies each CPU; what does more is left as it is, and comes after it where
    both begin together.

    Raises
    ------
    InputError
        Two events of such a kind overlap on a CPU.
    """
    stressing = table["intensity"].notna()
    _refuse_overlap(table[stressing])
    parts = [MERGES[merge](part) for _, part in table[~stressing].groupby("cpu")]
    both = pd.concat([*parts, table[stressing]], ignore_index=True)
    after = both["kind"].cat.codes.where(both["intensity"].notna(), -1)
    return both.iloc[np.lexsort([after, both["start_ns"], both["cpu"]])].reset_index(drop=True)


def _refuse_overlap(stressors: pd.DataFrame) -> None:
    ordered = stressors.sort_values(["cpu", "kind", "start_ns"])
    before = ordered.groupby(["cpu", "kind"], observed=True)[["start_ns", "duration_ns"]].shift()
    bad = ordered[ordered["start_ns"] < before.sum(axis=1, skipna=False)]
    if len(bad):
        raise InputError(
            f"two events of {bad['kind'].iloc[0]} noise overlap",
            where=f"CPU {bad['cpu'].iloc[0]}, at {bad['start_ns'].iloc[0]} ns",
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


def _times(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    return table["start_ns"].to_numpy(), table["duration_ns"].to_numpy()


def pessimistic(table: pd.DataFrame) -> pd.DataFrame:
    """Overlapping or touching events of a CPU become one, real-time if one of them is: the
    published merge.

    A merged event begins with the first of its parts and lasts as long as all of them together.
    (The published code adds the gap between two parts that its threshold, by default 0, lets merge;
    touching parts have none.)
    """
    start_ns, ends = table["start_ns"].to_numpy(), completion(*_times(table))
    return _merged(table, np.append(True, start_ns[1:] > ends[:-1]))


def compat(table: pd.DataFrame) -> pd.DataFrame:
    """The published code's list: its two policies (threads SCHED_OTHER, all else SCHED_FIFO 1), its
    merge. (Its sentinel of no length can't change another event.)
    """
    interrupt = table["kind"].isin(INTERRUPT_KINDS).to_numpy()
    policy = pd.Categorical(np.where(interrupt, "SCHED_FIFO", "SCHED_OTHER"), POLICY_NAMES)
    return pessimistic(table.assign(policy=policy, priority=interrupt.astype(np.int64)))


def improved(table: pd.DataFrame) -> pd.DataFrame:
    """Interrupts merge among themselves where they overlap; threads are cut where an interrupt
    falls, and go on after it.
    """
    interrupt = table["kind"].isin(INTERRUPT_KINDS)
    interrupts, threads = table[interrupt], table[~interrupt]
    if len(interrupts):
        start_ns, ends = interrupts["start_ns"].to_numpy(), completion(*_times(interrupts))
        interrupts = _merged(interrupts, np.append(True, start_ns[1:] >= ends[:-1]))
    both = pd.concat([interrupts, _cut(threads, interrupts)])
    return both.sort_values("start_ns", kind="stable")


def _merged(table: pd.DataFrame, first: np.ndarray) -> pd.DataFrame:
    """One event a block; `first` marks where blocks begin. Policy of its most urgent part (for the
    scheduler: real-time by priority, others by niceness), name of its longest.
    """
    block = np.cumsum(first)
    priority = table["priority"]
    urgency = (priority + 1000).where(table["policy"].isin(REAL_TIME), -priority)
    named = table.loc[table["duration_ns"].groupby(block).idxmax()]
    urgent = table.loc[urgency.groupby(block).idxmax()]
    return named.assign(
        start_ns=table["start_ns"].to_numpy()[first],
        duration_ns=table["duration_ns"].groupby(block).sum().to_numpy(),
        policy=urgent["policy"].array,
        priority=urgent["priority"].to_numpy(),
    )


def _cut(threads: pd.DataFrame, interrupts: pd.DataFrame) -> pd.DataFrame:
    """Cut thread events at interrupts so that the pieces of each add up to its net duration.

    Counted in *thread time*, which stands still during interrupts, threads are worked off one after
    the other, and an interrupt is a point. Those points inside a thread event cut it; then every
    piece is put back to real time.
    """
    (start_ns, duration_ns), (interrupt_ns, length_ns) = _times(threads), _times(interrupts)
    if not len(threads) or not len(interrupts):
        return threads.assign(start_ns=completion(start_ns, duration_ns) - duration_ns)
    taken = np.cumsum(length_ns)
    point = interrupt_ns - (taken - length_ns)
    end = completion(_thread_time(start_ns, interrupt_ns, length_ns), duration_ns)
    begin = end - duration_ns
    low = np.searchsorted(point, begin, side="right")
    pieces = np.searchsorted(point, end, side="left") - low + 1
    owner = np.repeat(np.arange(len(threads)), pieces)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    place = low[owner] + within
    piece_begin = np.where(within == 0, begin[owner], point[np.maximum(place - 1, 0)])
    is_last = within == pieces[owner] - 1
    piece_end = np.where(is_last, end[owner], point[np.minimum(place, len(point) - 1)])
    before = np.append(0, taken)[np.searchsorted(point, piece_begin, side="right")]
    cut = threads.iloc[owner].assign(
        start_ns=piece_begin + before, duration_ns=piece_end - piece_begin
    )
    return cut[cut["duration_ns"] > 0]


def _thread_time(
    start_ns: np.ndarray, interrupt_ns: np.ndarray, length_ns: np.ndarray
) -> np.ndarray:
    """Time up to `start_ns` that no interrupt took."""
    taken = np.append(0, np.cumsum(length_ns))
    begun = np.searchsorted(interrupt_ns, start_ns, side="right")
    last = np.maximum(begun - 1, 0)
    unfinished = np.maximum(interrupt_ns[last] + length_ns[last] - start_ns, 0)
    return start_ns - taken[begun] + np.where(begun > 0, unfinished, 0)


MERGES = {"improved": improved, "pessimistic": pessimistic, "compat": compat}
