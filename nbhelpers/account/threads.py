"""Where the time of each thread went: without its CPU, waiting for others, or computing.

Owns the joining of the tables of what was recorded, thread by thread.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import trim_mean

from ..measurement import region_seconds
from ..speed.sums import Sums

# ways in which computing is slower, each with the log of its factor as the probe saw it
SLOWER = ("clock", "core", "memory")
TAKEN = ("kernel", "edges", "hypervisor")
TAKEN_NS = [f"{name}_ns" for name in TAKEN]
# of the samples of a thread, cut off at either end: an interrupt strikes a sample now and then
TRIMMED = 0.1
_QUEUED_NS = 1_000_000  # shorter than that is what the edges' mean leaves
_FEWEST = 5  # samples of a thread, or those of all its run's threads count for it


def thread_times(
    runs: pd.DataFrame,
    occupied: pd.DataFrame | None,
    speed: pd.DataFrame,
    waits: pd.DataFrame,
    held: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Share out the timed region of each thread.

    Parameters
    ----------
    runs
        Finished runs.
    occupied
        When the CPUs were taken from the program (`occupied_intervals`); None: nothing was traced,
        and whatever a busy thread was off its CPU for counts as `kernel`.
    speed
        Samples of the probe (`read_speed`).
    waits
        Busy time of threads by the runtime's marks (`read_waits`); no rows: a thread waits when it
        is off its CPU though nobody took it, or when the probe found it in the runtime.
    held
        When other programs had a CPU on which no thread of the program was (`held_intervals`).
        Threads that share the CPUs that are left lose this time; it counts as `kernel`.

    Returns
    -------
    One row a run and thread, in ns: `region` = `kernel` + `edges` + `hypervisor` + `waiting` +
    `computing`; `robbed`, the part of `kernel` that was lost to held CPUs; and `clock`, `core`,
    `memory`: log of the factor by which the probe's work was slower than at full speed, since the
    clock, the core's units or the memory were.
    """
    regions = dict(zip(runs["run"], np.round(region_seconds(runs) * 1e9)))
    taken = None if occupied is None else _by_run_and_cpu(occupied, TAKEN_NS)
    elsewhere = {} if held is None else _by_run_and_cpu(held, ["length_ns"])
    marked = dict(iter(waits.groupby(["run", "thread"])))
    rows = [
        _thread_row(key, own, float(regions[key[0]]), taken, marked.get(key), elsewhere)
        for key, own in speed.groupby(["run", "thread"])
        if key[0] in regions
    ]
    columns = ["run", "thread", "region", *TAKEN, "waiting", "computing", "robbed"]
    times = pd.DataFrame(rows, columns=columns)
    return times.merge(_slower(speed), on=["run", "thread"], how="left")


def _by_run_and_cpu(intervals: pd.DataFrame, columns: Sequence[str]) -> dict[tuple[int, int], Sums]:
    return {key: Sums(part, columns) for key, part in intervals.groupby(["run", "cpu"])}


def _thread_row(
    key: tuple[int, int],
    samples: pd.DataFrame,
    region_ns: float,
    taken: dict[tuple[int, int], Sums] | None,
    marks: pd.DataFrame | None,
    elsewhere: dict[tuple[int, int], Sums],
) -> list:
    """`samples`, `marks`: of this run and thread."""
    pieces = _pieces(samples, region_ns)
    pieces["held_ns"] = _held_elsewhere(pieces, key[0], elsewhere)
    robbed_ns = 0.0
    if taken is None:
        busy_ns, lost = _seen_by_samples(pieces, marks)
    else:
        busy_ns, lost, robbed_ns = _seen_by_trace(pieces, key[0], taken, marks)
    # who waits loses nothing
    lost *= np.minimum(1.0, busy_ns / np.maximum(lost.sum(axis=0), 1.0))
    sums = lost.sum(axis=1)
    waiting = region_ns - busy_ns.sum()
    return [*key, region_ns, *sums, waiting, busy_ns.sum() - sums.sum(), robbed_ns]


def _held_elsewhere(pieces: pd.DataFrame, run: int, elsewhere: dict) -> np.ndarray:
    """How long, in each piece, other programs had a CPU that is not the thread's."""
    held_ns = np.zeros(len(pieces))
    for (of_run, cpu), intervals in elsewhere.items():
        if of_run == run:
            here = intervals.between(pieces["start_ns"], pieces["end_ns"])[0]
            held_ns += np.where(pieces["cpu"] == cpu, 0.0, here)
    return held_ns


def _seen_by_trace(
    pieces: pd.DataFrame, run: int, taken: dict, marks: pd.DataFrame | None
) -> tuple[np.ndarray, np.ndarray, float]:
    """How long the thread was busy in each piece of the region, what was taken (rows: TAKEN), and
    how much of it since another CPU was held.
    """
    cut = pieces if marks is None else _cut_at_marks(pieces, marks)
    lost = np.zeros((len(TAKEN), len(cut)))
    for cpu, rows in cut.groupby("cpu").indices.items():
        if (run, cpu) in taken:
            own = cut.iloc[rows]
            lost[:, rows] = taken[run, cpu].between(own["start_ns"], own["end_ns"])
    if marks is None:
        return _busy_by_samples(pieces, lost.sum(axis=0)), lost, 0.0
    queued, robbed = _queued_shares(pieces, cut, lost.sum(axis=0))
    robbed_ns = cut["busy_ns"].to_numpy() * robbed
    lost[0] += robbed_ns
    return cut["busy_ns"].to_numpy() * (1 - queued), lost, float(robbed_ns.sum())


def _queued_shares(
    pieces: pd.DataFrame, cut: pd.DataFrame, lost_ns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Share of its busy time that a thread was ready but off its CPU though no noise had it: it
    waited for other threads of the program that ran there, or was robbed of a CPU held elsewhere.
    """
    at = _piece_at(pieces, cut["start_ns"])
    busy_ns, length_ns, lost_ns = (
        np.bincount(at, values, len(pieces))
        for values in (cut["busy_ns"], cut["end_ns"] - cut["start_ns"], lost_ns)
    )
    off_ns, held_ns = (pieces[name].to_numpy() for name in ("off_ns", "held_ns"))
    queued_ns = off_ns - (length_ns - busy_ns) - lost_ns
    # who shares a CPU while another is held is off it in busy and in waiting time alike
    sharing_ns = (off_ns - lost_ns) * busy_ns / np.maximum(length_ns, 1.0)
    queued_ns = np.where(held_ns > length_ns / 2, np.maximum(queued_ns, sharing_ns), queued_ns)
    queued_ns[queued_ns < _QUEUED_NS] = 0.0
    robbed_ns = np.minimum(queued_ns, held_ns)
    shares = np.array([queued_ns - robbed_ns, robbed_ns]) / np.maximum(busy_ns, 1.0)
    shares = np.clip(shares, 0.0, 1.0)
    shares[:, -1] = shares[:, -2]  # after the last sample nothing is known
    return shares[0, at], shares[1, at]


def _seen_by_samples(
    pieces: pd.DataFrame, marks: pd.DataFrame | None
) -> tuple[np.ndarray, np.ndarray]:
    """The same where nothing was traced: who is busy and off the CPU was robbed of it."""
    lost, off_ns = np.zeros((len(TAKEN), len(pieces))), pieces["off_ns"].to_numpy()
    if marks is None:
        return _busy_by_samples(pieces, lost[0]), lost
    busy_ns = Sums(marks, ["busy_ns"]).between(pieces["start_ns"], pieces["end_ns"])[0]
    length = (pieces["end_ns"] - pieces["start_ns"]).to_numpy()
    lost[0] = np.maximum(off_ns - (length - busy_ns), 0.0)
    return busy_ns, lost


def _pieces(samples: pd.DataFrame, region_ns: float) -> pd.DataFrame:
    """The region cut at the samples: `start_ns`, `end_ns`, `cpu`, `off_ns` (not on any CPU), `away`
    (in the runtime); after the last sample a thread goes on as before.
    """
    if (samples["place"] == "ended").any():
        region_ns = float(samples["start_ns"].max())  # a thread that has ended does nothing
    ends = samples["start_ns"].to_numpy(float)
    # of a probe beside the program nobody knows what the program did
    off_ns = (samples["wall_ns"] - samples["cpu_ns"]).fillna(0).clip(lower=0).to_numpy(float)
    places = samples["place"].isin(["openmp", "mpi"]).to_numpy()
    cpus = samples["cpu"].to_numpy()
    starts = np.append(0.0, ends)
    return pd.DataFrame(
        {
            "start_ns": starts,
            "end_ns": np.append(ends, region_ns),
            "cpu": np.append(cpus, cpus[-1]),
            "off_ns": np.append(np.minimum(off_ns, np.diff(starts)), 0.0),
            "away": np.append(places, False),
        }
    )


def _busy_by_samples(pieces: pd.DataFrame, lost_ns: np.ndarray) -> np.ndarray:
    """Busy is who is on a CPU in the program, or would be if nobody had taken the CPU."""
    length = (pieces["end_ns"] - pieces["start_ns"]).to_numpy()
    blocked = np.maximum(pieces["off_ns"].to_numpy() - lost_ns, 0.0)
    return np.where(pieces["away"], np.minimum(lost_ns, length), length - blocked)


def _cut_at_marks(pieces: pd.DataFrame, marks: pd.DataFrame) -> pd.DataFrame:
    """The time between the first mark and the last, cut at marks and samples, with `busy_ns`; the
    thread waits outside of it.
    """
    marked = marks[["start_ns", "end_ns"]].to_numpy(float)
    samples = pieces["end_ns"].to_numpy()
    inside = samples[(samples > marked.min()) & (samples < marked.max())]
    bounds = np.unique(np.concatenate([marked.ravel(), inside]))
    starts, ends = bounds[:-1], bounds[1:]
    return pd.DataFrame(
        {
            "start_ns": starts,
            "end_ns": ends,
            "cpu": pieces["cpu"].to_numpy()[_piece_at(pieces, starts)],
            "busy_ns": Sums(marks, ["busy_ns"]).between(starts, ends)[0],
        }
    )


def _piece_at(pieces: pd.DataFrame, moments: np.ndarray | pd.Series) -> np.ndarray:
    """Row of the piece that holds each moment."""
    at = np.searchsorted(pieces["end_ns"].to_numpy(), moments, side="right")
    return np.minimum(at, len(pieces) - 1)


def slower_by(speed: pd.DataFrame) -> pd.DataFrame:
    """The log of the factor by which the probe's work was slower in each sample, for each of
    SLOWER; a chain bound by throughput is slowed down by the clock, too, which is taken out.
    """
    kinds = ("latency", "throughput", "memory")
    logs = {name: -np.log(speed[name].fillna(1.0)) for name in kinds}  # NaN: not measured here
    return pd.DataFrame(
        {
            "run": speed["run"],
            "thread": speed["thread"],
            "clock": logs["latency"],
            "core": np.maximum(logs["throughput"] - logs["latency"], 0.0),
            "memory": logs["memory"],
        }
    )


def _slower(speed: pd.DataFrame) -> pd.DataFrame:
    """`slower_by` of each run and thread: the trimmed mean of its samples."""
    samples = slower_by(speed[speed["place"] != "ended"])
    trimmed = samples.groupby(["run", "thread"])[list(SLOWER)].agg(_trimmed)
    size = samples.groupby(["run", "thread"]).size()
    of_run = samples.groupby("run")[list(SLOWER)].agg(_trimmed)
    few = (size < _FEWEST).to_numpy()
    if few.any():
        replaced = of_run.reindex(trimmed.index.get_level_values("run")[few])
        trimmed.loc[few] = replaced.to_numpy()
    return trimmed.reset_index()


def _trimmed(values: pd.Series) -> float:
    return float(trim_mean(values, TRIMMED))
