"""What a plan demands: how long real-time noise holds a CPU or all CPUs, and how much of a
second.

Owns the arithmetic of stretches of noise; pure.
"""

import numpy as np
import pandas as pd

REALTIME = ("SCHED_FIFO", "SCHED_RR")
FROM_ELSEWHERE = ("ipi",)  # disturb their CPU from another one


def is_among(column: pd.Series, names: tuple[str, ...]) -> np.ndarray:
    """Whether each value of a column of words is one of `names`; of a categorical column only the
    categories are compared.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        found = np.append(column.cat.categories.isin(list(names)), False)
        return found[column.cat.codes]
    return column.isin(list(names)).to_numpy()


def realtime_spans(
    events: pd.DataFrame, pause_ns: int = 100_000
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """For each CPU of the config, starts and ends (ns) of its real-time noise; shorter pauses than
    `pause_ns` count as none.
    """
    realtime = is_among(events["policy"], REALTIME)
    cpu, start = (events[name].to_numpy()[realtime] for name in ("cpu", "start_ns"))
    end = start + events["duration_ns"].to_numpy()[realtime]
    order = np.argsort(cpu, kind="stable")
    cpus, firsts = np.unique(cpu[order], return_index=True)
    return {
        int(cpu): _merge(start[rows], end[rows], pause_ns)
        for cpu, rows in zip(cpus, np.split(order, firsts[1:]))
    }


def _merge(starts: np.ndarray, ends: np.ndarray, pause_ns: int) -> tuple[np.ndarray, np.ndarray]:
    if not len(starts):
        return starts, ends
    if (starts[1:] < starts[:-1]).any():
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    latest = np.maximum.accumulate(ends)
    new = np.flatnonzero(np.concatenate([[True], starts[1:] - latest[:-1] > pause_ns]))
    return starts[new], latest[np.append(new[1:] - 1, len(starts) - 1)]


def _longest(starts: np.ndarray, ends: np.ndarray) -> int:
    return int((ends - starts).max()) if len(starts) else 0


def longest_span_ns(events: pd.DataFrame) -> int:
    """Longest time for which real-time noise holds one CPU without a pause."""
    return max((_longest(*spans) for spans in realtime_spans(events).values()), default=0)


def longest_full_stop_ns(events: pd.DataFrame, cpu_count: int) -> int:
    """Longest stretch in which `cpu_count` CPUs have real-time noise at the same time.

    A pause that is below 1 ms and not longer than the noise before it counts as none.
    """
    spans = realtime_spans(events)
    if len(spans) < cpu_count:
        return 0
    starts, ends = (np.concatenate(parts) for parts in zip(*spans.values()))
    times = np.concatenate([starts, ends])
    steps = np.repeat([1, -1], [len(starts), len(ends)])
    order = np.lexsort((-steps, times))
    times, busy = times[order], np.cumsum(steps[order])
    full = np.flatnonzero(busy[:-1] >= cpu_count)
    starts, ends = _merge(times[full], times[full + 1], 0)
    pauses = starts[1:] - ends[:-1]
    apart = np.flatnonzero(pauses > np.minimum(1_000_000, (ends - starts)[:-1])) + 1
    if not len(starts):
        return 0
    return _longest(starts[np.append(0, apart)], ends[np.append(apart - 1, len(ends) - 1)])


def held_cpus(events: pd.DataFrame) -> pd.DataFrame:
    """The events with the CPU that each holds: what disturbs a CPU from another one holds that
    other, which has no number yet (here -1 less the CPU).
    """
    elsewhere = is_among(events["kind"], FROM_ELSEWHERE)
    cpu = events["cpu"].to_numpy()
    return events.assign(cpu=np.where(elsewhere, -1 - cpu, cpu))


def busiest_second_share(events: pd.DataFrame) -> float:
    """Largest share of any second that real-time noise takes of one CPU; times are planned ones."""
    return max(
        (_busiest(starts, ends) for starts, ends in realtime_spans(events, pause_ns=0).values()),
        default=0.0,
    )


def _busiest(starts: np.ndarray, ends: np.ndarray) -> float:
    """A window that holds most begins with a start or ends with an end."""
    times = np.column_stack([starts, ends]).ravel()
    covered = np.column_stack(
        [np.cumsum(ends - starts) - (ends - starts), np.cumsum(ends - starts)]
    ).ravel()
    window = np.concatenate([starts, ends - 10**9])
    return float(
        (np.interp(window + 10**9, times, covered) - np.interp(window, times, covered)).max() / 1e9
    )
