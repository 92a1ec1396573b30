"""How long each thread of an OpenMP program worked and waited, from its marks.

Owns the way from ticks and marks (`workloads/marks.h`) to nanoseconds of the timed region.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from .samples import content_of

COLUMNS = ("run", "thread", "start_ns", "end_ns", "busy_ns")


def read_waits(folder: str | Path, runs: pd.DataFrame) -> pd.DataFrame:
    """When the threads of OpenMP programs worked, and when they waited for others.

    Parameters
    ----------
    folder
        Folder in which `SpeedProbe` stored its files.
    runs
        Finished runs.

    Returns
    -------
    One row an interval of a thread: `run`, `thread`, `start_ns`, `end_ns` (from the begin of the
    timed region, clipped to it), `busy_ns` (time in the program's own code; in the rest the thread
    waited). A thread's rows follow each other without a gap, from its begin to its end. Programs
    without OpenMP have no rows, nor have runs that were recorded without marks.

    Raises
    ------
    InputError
        A file is missing or damaged.

    Notes
    -----
    States of 1 ms and more are exact. Shorter ones may share a row with one long state, so busy
    time up to any moment is wrong by 1 ms at most. Waiting is time at a barrier, at the end of a
    region, between regions (for all threads but the one that forks), at a lock and for tasks. A
    thread that has lost its CPU stays in its state.
    """
    tables = [_read(Path(folder) / f"run-{int(run):06d}.speed.gz") for run in runs["run"]]
    empty = pd.DataFrame({name: np.empty(0, np.int64) for name in COLUMNS})
    return pd.concat([empty, *tables], ignore_index=True)


def _read(path: Path) -> pd.DataFrame:
    header, _, marks, places = content_of(path)
    region = header["start_ns"], header["end_ns"]
    marks = marks[np.argsort(marks["ticks"], kind="stable")]
    tables: list[pd.DataFrame] = []
    threads = np.union1d(marks["thread"], places["thread"]) if len(marks) else ()
    for thread in threads:
        of_thread, place = marks[marks["thread"] == thread], places[places["thread"] == thread]
        table = _rows(*_points(of_thread, place, marks, region[1]), *region)
        table.insert(0, "thread", int(thread))
        table.insert(0, "run", header["run"])
        tables.append(table)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=COLUMNS)


def _points(
    of_thread: np.ndarray, place: np.ndarray, marks: np.ndarray, end_ns: int
) -> tuple[np.ndarray, np.ndarray]:
    """Moments of a thread's life (ns of CLOCK_MONOTONIC) and its busy time (ns) until each."""
    rate, clock = _rate(marks), of_thread if len(of_thread) else marks[-1:]
    ticks = np.column_stack([of_thread["since"], of_thread["ticks"]]).ravel()
    length = of_thread["ticks"] - of_thread["since"]
    busy = np.column_stack(
        [of_thread["busy"] - of_thread["state"] * length, of_thread["busy"]]
    ).ravel()
    if len(place):
        last = place[0]
        ended = last["ended"] or clock["ticks"][-1] + (end_ns - clock["wall_ns"][-1]) / rate
        ended = max(ended, last["since"])
        ticks = np.append(ticks, [last["since"], ended])
        busy = np.append(busy, last["busy"] + last["state"] * np.array([0, ended - last["since"]]))
    return _wall_ns(ticks, clock, rate), (busy - busy[0]) * rate


def _rate(marks: np.ndarray) -> float:
    """Nanoseconds a tick, by the first and the last mark; a tick that is not the CPU's is 1 ns."""
    ticks = int(marks["ticks"][-1] - marks["ticks"][0]) if len(marks) else 0
    return float(marks["wall_ns"][-1] - marks["wall_ns"][0]) / ticks if ticks > 0 else 1.0


def _wall_ns(ticks: np.ndarray, clock: np.ndarray, rate: float) -> np.ndarray:
    """The time of ticks: between two marks of the thread by both, elsewhere by the nearest one."""
    known = np.clip(ticks, clock["ticks"][0], clock["ticks"][-1])
    wall = np.interp(known, clock["ticks"], (clock["wall_ns"] - clock["wall_ns"][0]).astype(float))
    return clock["wall_ns"][0] + np.rint(wall + (ticks - known) * rate).astype(np.int64)


def _rows(wall_ns: np.ndarray, busy_ns: np.ndarray, start_ns: int, end_ns: int) -> pd.DataFrame:
    """The intervals between the points, cut at both ends of the timed region."""
    wall = np.maximum.accumulate(wall_ns - start_ns)
    length = end_ns - start_ns
    at = np.unique(np.clip(wall, 0, length))
    busy = np.rint(np.interp(at, wall, busy_ns)).astype(np.int64)
    lengths = np.diff(at)
    return pd.DataFrame(
        {
            "start_ns": at[:-1],
            "end_ns": at[1:],
            "busy_ns": np.clip(np.diff(busy), 0, lengths),
        }
    )
