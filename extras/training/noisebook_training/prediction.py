"""The distribution of a loop's step times under noise, from its quiet steps and the noise alone.

Owns the prediction, its price by source, and the distance of two distributions.
"""

import numpy as np
import pandas as pd


def predicted_steps(
    quiet_s: np.ndarray, events: pd.DataFrame, steps: int, draws: int = 20, seed: int = 0
) -> np.ndarray:
    """Step times of a loop that begins together with the noise, float64 [draws, steps].

    A step needs as long as a quiet one, drawn at random, and loses whatever the noise takes.

    Parameters
    ----------
    quiet_s
        Measured steps without this noise.
    events
        `start_ns`, `duration_ns` from the begin of the loop, on its CPU. They do not begin again:
        a loop that outlasts them is quiet from then on.
    steps
        Number of steps of a loop.
    draws
        Loops.

    Examples
    --------
    >>> noise = pd.DataFrame({"start_ns": [1.5e6], "duration_ns": [4e6]})
    >>> predicted_steps(np.array([0.001]), noise, 3, 1).tolist()
    [[0.001, 0.005, 0.001]]
    """
    quiet_s = np.asarray(quiet_s, float)
    work = np.random.default_rng(seed).choice(quiet_s, (draws, steps))
    free_ns, lost_ns = _stretches(events)
    needed_ns = np.cumsum(np.rint(work * 1e9), axis=1)  # whole, so that equal times are equal
    ends_ns = needed_ns + lost_ns[np.searchsorted(free_ns, needed_ns, side="left")]
    return np.diff(ends_ns, axis=1, prepend=0.0) / 1e9


def price_by_source(
    quiet_s: np.ndarray, events: pd.DataFrame, steps: int, draws: int = 20, seed: int = 0
) -> pd.DataFrame:
    """What each source of noise costs a step: predicted with all, and without that source.

    Returns
    -------
    pandas.DataFrame
        One row a source: `source`, `events`, `lost_share` (of the loop's time), `mean_ms` and
        `p99_ms` (by how much a step's mean and 99th percentile fall without the source).
    """
    everything = predicted_steps(quiet_s, events, steps, draws, seed)
    rows = []
    for source, its in events.groupby("source"):
        without = predicted_steps(quiet_s, events[events["source"] != source], steps, draws, seed)
        rows.append(
            {
                "source": source,
                "events": len(its),
                "lost_share": (everything - without).sum() / everything.sum(),
                "mean_ms": 1e3 * (everything.mean() - without.mean()),
                "p99_ms": 1e3 * (np.quantile(everything, 0.99) - np.quantile(without, 0.99)),
            }
        )
    table = pd.DataFrame(rows, columns=["source", "events", "lost_share", "mean_ms", "p99_ms"])
    return table.sort_values("mean_ms", ascending=False, ignore_index=True)


def ks_distance(one: np.ndarray, other: np.ndarray) -> float:
    """The greatest difference of two cumulative distributions (Kolmogorov and Smirnov).

    Examples
    --------
    >>> ks_distance(np.array([1, 2, 3, 4]), np.array([3, 4, 5, 6]))
    0.5
    """
    one, other = np.sort(one), np.sort(other)
    both = np.concatenate([one, other])
    shares = [np.searchsorted(values, both, "right") / len(values) for values in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


def _stretches(events: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """After so many ns of work, so many were lost: free [M], lost [M + 1]; events that overlap
    count once.
    """
    if not len(events):
        return np.zeros(0), np.zeros(1)
    ordered = events.sort_values("start_ns")
    start = ordered["start_ns"].to_numpy(float)
    end = np.maximum.accumulate(start + ordered["duration_ns"].to_numpy(float))
    before = np.concatenate([[0.0], end[:-1]])
    lost = np.cumsum(np.maximum(end - np.maximum(start, before), 0))
    free = np.maximum(start, before) - np.concatenate([[0.0], lost[:-1]])
    return free, np.concatenate([[0.0], lost])
