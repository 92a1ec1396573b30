"""The one events table that every tracer feeds: its columns, its clipping to the timed region, its
scheduling policies.

Owns the mapping from a kernel event to the policy and priority that a replay of it must have.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

KINDS = ("nmi", "irq", "softirq", "thread", "hardware")
POLICIES = (
    "",
    "SCHED_OTHER",
    "SCHED_FIFO",
    "SCHED_RR",
    "SCHED_BATCH",
    "SCHED_IDLE",
    "SCHED_DEADLINE",
)
INTERRUPTED = ("workload", "idle", "other")

# Interrupts are replayed as SCHED_FIFO (Persson et al. 2025, section 4.2). The kernel's order of
# preemption holds:
# NMI (and hardware) over interrupt over softirq over ordinary real-time threads, whose priorities
# are mostly below 49.
REPLAY_PRIORITY = {"nmi": 51, "irq": 50, "softirq": 49, "hardware": 51}

NO_PID = -1  # interrupts belong to no process
LARGEST_NS = 1 << 62  # 146 years: any greater time in a trace is damage

_INTEGERS = ("run", "cpu", "start_ns", "duration_ns", "end_ns", "priority", "pid")
COLUMNS = (
    "run",
    "cpu",
    "kind",
    "source",
    "start_ns",
    "duration_ns",
    "end_ns",
    "policy",
    "priority",
    "pid",
    "interrupted",
)


def noise_events(columns: dict, **attrs: object) -> pd.DataFrame:
    """Build an events table, sorted by start, from arrays of equal length; `attrs` become the
    table's own.

    Categorical columns keep ten million events small; `kind`, `policy` and `interrupted` know all
    their values.
    """
    table = pd.DataFrame(
        {name: np.asarray(columns[name], dtype=np.int64) for name in _INTEGERS if name in columns}
    )
    table["run"] = columns.get("run", 0)
    for name, known in (("kind", KINDS), ("policy", POLICIES), ("interrupted", INTERRUPTED)):
        table[name] = pd.Categorical(columns[name], categories=known)
    source = pd.Categorical(columns["source"])
    table["source"] = unite_texts([source.remove_unused_categories()])
    table = table[list(COLUMNS)].sort_values(
        ["start_ns", "cpu", "end_ns"], kind="stable", ignore_index=True
    )
    table.attrs = {"lost": 0, **attrs}
    return table


def in_order(raw: pd.DataFrame) -> pd.DataFrame:
    """Records sorted by CPU and time."""
    order = np.lexsort((raw["time_ns"].to_numpy(), raw["cpu"].to_numpy()))
    return raw.iloc[order] if (np.diff(order) != 1).any() else raw


def hardware_events(
    table: pd.DataFrame, source: str, policy: str, priority: int, run: int, tracer: str
) -> pd.DataFrame:
    """Events of hardware, each of which interrupted the workload, from `cpu`, `start_ns`,
    `duration_ns`.
    """
    count = len(table)
    columns = {
        "run": run,
        **{name: table[name] for name in ("cpu", "start_ns", "duration_ns")},
        "end_ns": table["start_ns"] + table["duration_ns"],
        "kind": ["hardware"] * count,
        "source": [source] * count,
        "policy": [policy] * count,
        "priority": np.full(count, priority),
        "pid": np.full(count, NO_PID),
        "interrupted": ["workload"] * count,
    }
    return noise_events(columns, clock="monotonic", tracer=tracer)


def within_interrupts(entry: np.ndarray, exit_: np.ndarray, cpu: np.ndarray) -> np.ndarray:
    """Whether a CPU is in an interrupt after each record, which are in order: bool[n]."""
    depth = pd.Series(entry.astype(int) - exit_.astype(int)).groupby(cpu).cumsum()
    # an exit whose entry was before the recording ends nothing
    return (depth - depth.groupby(cpu).cummin().clip(upper=0)).to_numpy() > 0


def rows_by_cpu(cpu: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each CPU and the places of its rows, in their order; in time that hundreds of CPUs do not
    multiply.
    """
    order = np.argsort(cpu, kind="stable")
    numbers, begins = np.unique(cpu[order], return_index=True)
    yield from zip(numbers.tolist(), np.split(order, begins[1:]))


def unite_texts(parts: list[pd.Categorical]) -> pd.Categorical:
    """Concatenate categorical columns of texts; categories are united and sorted."""
    texts = [
        pd.Categorical.from_codes(part.codes, categories=pd.Index(part.categories, dtype="str"))
        for part in parts
    ]
    return pd.api.types.union_categoricals(texts, sort_categories=True)


def stacked(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """Tables one below the other, with the columns of the first; texts stay categories, since there
    are millions of them.
    """
    first = tables[0]
    differ = [
        name
        for name in first
        if isinstance(first[name].dtype, pd.CategoricalDtype)
        and any(table[name].dtype != first[name].dtype for table in tables)
    ]
    joined = pd.concat([table.drop(columns=differ) for table in tables], ignore_index=True)
    for name in differ:
        joined[name] = unite_texts([pd.Categorical(table[name]) for table in tables])
    return joined[list(first.columns)]


def empty_events(**attrs: object) -> pd.DataFrame:
    """An events table without a row."""
    return noise_events({name: [] for name in COLUMNS if name != "run"}, **attrs)


def clip_to_window(events: pd.DataFrame, start_ns: int, end_ns: int) -> pd.DataFrame:
    """Keep what overlaps [start, end) and count times from its start.

    An event that reaches over an edge keeps the part inside; its net duration shrinks in proportion
    to its extent, because where in the event the nested noise lay is not recorded.
    """
    inside = events[(events["end_ns"] > start_ns) & (events["start_ns"] < end_ns)].copy()
    begin, end = inside["start_ns"].clip(lower=start_ns), inside["end_ns"].clip(upper=end_ns)
    cut = ((begin != inside["start_ns"]) | (end != inside["end_ns"])).to_numpy()
    extent = (inside["end_ns"] - inside["start_ns"]).to_numpy()[cut]
    share = (end - begin).to_numpy()[cut] / np.maximum(extent, 1)
    duration = inside["duration_ns"].to_numpy().copy()
    duration[cut] = np.rint(duration[cut] * share).astype(np.int64)
    inside["start_ns"] = begin - start_ns
    inside["end_ns"] = end - start_ns
    inside["duration_ns"] = duration
    inside.attrs = events.attrs
    return inside.reset_index(drop=True)


def join_events(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """One table of many, categories united; the attributes of the first stay, but `cpus` are those
    of all, and counts are sums.
    """
    full = [table for table in tables if len(table)]
    if not full:
        return tables[0].copy() if tables else empty_events()
    joined = stacked(full)
    cpus = sorted(set().union(*(table.attrs.get("cpus", ()) for table in tables)))
    sums = {
        name: sum(table.attrs.get(name, 0) for table in tables)
        for name in ("inferred_switches", "ambiguous_ns")
    }
    joined.attrs = tables[0].attrs | {"cpus": cpus} | sums
    return joined


def policy_of(kernel_priority: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Policy code (index into POLICIES) and priority of threads, from the `prio` that sched_switch
    prints.

    The kernel's scale: below 0 deadline, 0..98 real-time 99..1, 100..139 fair with nice −20..19.
    FIFO and RR look alike in it, and so do fair, batch and idle; the stopper threads (migration/N)
    show as 0, above every other.
    """
    prio = np.asarray(kernel_priority, dtype=np.int64)
    fifo, fair, deadline = (
        POLICIES.index(f"SCHED_{name}") for name in ("FIFO", "OTHER", "DEADLINE")
    )
    is_early = [prio < 0, prio < 100]
    priority = np.select(is_early, [0, np.clip(99 - prio, 1, 99)], np.clip(prio - 120, -20, 19))
    return np.select(is_early, [deadline, fifo], fair), priority
