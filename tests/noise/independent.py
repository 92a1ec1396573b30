"""Independent computations for the tests of nbhelpers.noise: slow, literal, one nanosecond or one
event at a time.
"""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

INTERRUPTS = ("nmi", "irq", "softirq", "hardware")
TIES = ("start_ns", "cpu", "duration_ns")


def event_rows(most, cpus=None, sources=None, longest_ns=15, kinds=None, runs=None, shortest_ns=1):
    """A strategy for rows of `event_table`: of one run and CPU unless it is said otherwise."""
    event = st.tuples(
        st.just(0) if runs is None else runs,
        st.just(0) if cpus is None else cpus,
        st.sampled_from([*INTERRUPTS, "thread"] if kinds is None else kinds),
        st.sampled_from(["a", "b"]) if sources is None else sources,
        st.integers(0, 4 * longest_ns),
        st.integers(shortest_ns, longest_ns),
    )
    return st.lists(event, min_size=1, max_size=most)


def event_table(rows: list[tuple], **attrs: object) -> pd.DataFrame:
    """Rows of (run, cpu, kind, source, start_ns, duration_ns[, policy, priority]) as an events
    table.
    """
    full = [(*row, *("", 0)[len(row) - 6 :]) if len(row) < 8 else row for row in rows]
    columns = ["run", "cpu", "kind", "source", "start_ns", "duration_ns", "policy", "priority"]
    table = pd.DataFrame(full, columns=columns).astype({"kind": str, "source": str, "policy": str})
    end_ns = table["start_ns"] + table["duration_ns"]
    table = table.assign(end_ns=end_ns, pid=0, interrupted="workload")
    table.attrs = {"tracer": "by hand", "lost": 0, **attrs}
    return table


def runs_table(seconds: list[float], status: str = "ok") -> pd.DataFrame:
    return pd.DataFrame({"run": range(len(seconds)), "seconds": seconds, "status": status})


def text_delta(events: list[dict], averages: dict, seconds: float) -> list[dict]:
    """Section 4.2 word by word: as often as expected, the untouched instance closest to the average
    is reduced by it.
    """
    left = [dict(event, touched=False) for event in events]
    for source, (frequency_hz, average_ns) in averages.items():
        for _ in range(int(np.floor(frequency_hz * seconds + 0.5))):
            own = [
                (abs(event["duration_ns"] - average_ns), *(event[name] for name in TIES), place)
                for place, event in enumerate(left)
                if (event["kind"], event["source"]) == source and not event["touched"]
            ]
            if not own:
                break
            closest = left[min(own)[-1]]
            closest["touched"] = True
            closest["duration_ns"] -= average_ns
    return [event for event in left if event["duration_ns"] > 0]


def occupied(events: pd.DataFrame) -> list[tuple[int, str]]:
    """The improved combination, nanosecond by nanosecond: what one CPU does (time, "interrupt" or
    "thread"); interrupts first.
    """
    waiting, done, now = {"interrupt": 0, "thread": 0}, [], 0
    arrivals = {}
    for kind, start, duration in zip(events["kind"], events["start_ns"], events["duration_ns"]):
        arrivals.setdefault(start, []).append(
            ("thread" if kind == "thread" else "interrupt", duration)
        )
    while arrivals or any(waiting.values()):
        for what, duration in arrivals.pop(now, []):
            waiting[what] += duration
        what = next((what for what in ("interrupt", "thread") if waiting[what]), None)
        if what:
            waiting[what] -= 1
            done.append((now, what))
        now += 1
    return done


def published_merge(events: list[tuple[int, int, int]], window_ns: int) -> list[list[int]]:
    """The published merge with its sentinel: (start, duration, priority) of one CPU, sorted by
    start.
    """
    merged = []
    in_order = sorted(events, key=lambda event: event[0])
    for start, duration, priority in [*in_order, (window_ns, 0, 0)]:
        if merged and merged[-1][0] + merged[-1][1] >= start:
            merged[-1][1] += duration
            merged[-1][2] = min(merged[-1][2], priority)
        else:
            merged.append([start, duration, priority])
    return merged
