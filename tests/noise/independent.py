"""Independent computations for the tests of nbhelpers.noise: slow, literal, one nanosecond or one
event at a time.
"""

import numpy as np
import pandas as pd

INTERRUPTS = ("nmi", "irq", "softirq", "hardware")


def event_table(rows: list[tuple], **attrs: object) -> pd.DataFrame:
    """Rows of (run, cpu, kind, source, start_ns, duration_ns[, policy, priority]) as an events
    table.
    """
    full = [(*row, *("", 0)[len(row) - 6 :]) if len(row) < 8 else row for row in rows]
    columns = ["run", "cpu", "kind", "source", "start_ns", "duration_ns", "policy", "priority"]
    table = pd.DataFrame(full, columns=columns).astype({"kind": str, "source": str, "policy": str})
    table = table.assign(
        end_ns=table["start_ns"] + table["duration_ns"], pid=0, interrupted="workload"
    )
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
                event
                for event in left
                if (event["kind"], event["source"]) == source and not event["touched"]
            ]
            if not own:
                break
            closest = min(
                own,
                key=lambda event: (
                    abs(event["duration_ns"] - average_ns),
                    event["start_ns"],
                    event["cpu"],
                    event["duration_ns"],
                ),
            )
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
    for start, duration, priority in [
        *sorted(events, key=lambda event: event[0]),
        (window_ns, 0, 0),
    ]:
        if merged and merged[-1][0] + merged[-1][1] >= start:
            merged[-1][1] += duration
            merged[-1][2] = min(merged[-1][2], priority)
        else:
            merged.append([start, duration, priority])
    return merged
