"""What a plan demands: how long real-time noise holds a CPU, and how much of a second.

Owns the arithmetic of stretches of noise; pure.
"""

import numpy as np
import pandas as pd

from ..noise._vocabulary import REAL_TIME


def realtime_spans(
    events: pd.DataFrame, pause_ns: int = 100_000
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """For each CPU of the config, starts and ends (ns) of its real-time noise; shorter pauses than
    `pause_ns` count as none.
    """
    realtime = events[events["policy"].isin(REAL_TIME)]
    return {int(cpu): _spans(noise, pause_ns) for cpu, noise in realtime.groupby("cpu")}


def _spans(noise: pd.DataFrame, pause_ns: int) -> tuple[np.ndarray, np.ndarray]:
    noise = noise.sort_values("start_ns", kind="stable")
    start_ns = noise["start_ns"].to_numpy()
    latest_ns = np.maximum.accumulate(start_ns + noise["duration_ns"].to_numpy())
    new = np.flatnonzero(np.append(True, start_ns[1:] - latest_ns[:-1] > pause_ns))
    return start_ns[new], latest_ns[np.append(new[1:] - 1, len(start_ns) - 1)]


def longest_span_ns(events: pd.DataFrame) -> int:
    """Longest time for which real-time noise holds one CPU without a pause."""
    spans = realtime_spans(events).values()
    return max((int((ends - starts).max()) for starts, ends in spans), default=0)


def busiest_second_share(events: pd.DataFrame) -> float:
    """Largest share of any second that real-time noise takes of one CPU; times are planned ones."""
    return max(
        (_busiest(starts, ends) for starts, ends in realtime_spans(events, pause_ns=0).values()),
        default=0.0,
    )


def _busiest(starts: np.ndarray, ends: np.ndarray) -> float:
    """A window that holds most begins with a start or ends with an end."""
    times, taken = np.column_stack([starts, ends]).ravel(), np.cumsum(ends - starts)
    covered = np.column_stack([taken - (ends - starts), taken]).ravel()
    window = np.concatenate([starts, ends - 10**9])
    return float(
        (np.interp(window + 10**9, times, covered) - np.interp(window, times, covered)).max() / 1e9
    )
