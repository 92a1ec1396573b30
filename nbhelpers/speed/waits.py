"""How long each thread of an OpenMP program worked and waited, and in which function: its marks.

Owns the way from ticks and marks (`workloads/marks.h`) to nanoseconds of the timed region.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from .samples import REGION, content_of

COLUMNS = ("run", "thread", "start_ns", "end_ns", "busy_ns")
_BOUNDS = ("since", "ticks")
CALLS = ("run", "thread", "function", "start_ns", "end_ns", "calls", "busy_ns")


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
    return _of_runs(_waits, COLUMNS, folder, runs)


def read_calls(folder: str | Path, runs: pd.DataFrame) -> pd.DataFrame:
    """How long the threads of OpenMP programs were busy in the functions of their regions.

    Parameters
    ----------
    folder
        Folder in which `SpeedProbe` stored its files.
    runs
        Finished runs.

    Returns
    -------
    One row for calls of a function by a thread that follow each other within 4 ms, or one longer
    call; what lies between two waits counts as a call: `run`, `thread`, `function` (the same in
    each run: place of the region or task in its object), `start_ns`, `end_ns` (of the first and
    the last call, from the begin of the timed region), `calls`, `busy_ns` (of these calls, calls
    within them left out). In long runs of many functions a row may hold more than 4 ms. A thread
    that the runtime never ends lacks its last 4 ms; tasks of LLVM's runtime have no rows. No rows:
    no OpenMP, or recorded before the format had them.

    Raises
    ------
    InputError
        A file is missing or damaged.
    """
    return _of_runs(_calls, CALLS, folder, runs)


def _of_runs(
    read: Callable[[Path], pd.DataFrame],
    columns: Sequence[str],
    folder: str | Path,
    runs: pd.DataFrame,
) -> pd.DataFrame:
    tables = [read(Path(folder) / f"run-{int(run):06d}.speed.gz") for run in runs["run"]]
    empty = pd.DataFrame({name: np.empty(0, np.int64) for name in columns})
    return pd.concat([empty, *tables], ignore_index=True)


def _calls(path: Path) -> pd.DataFrame:
    header, _, marks, _ = content_of(path)
    states, marks = marks[marks["state"] != REGION], marks[marks["state"] == REGION]
    clock = states[np.argsort(states["ticks"], kind="stable")]
    rate = _rate(clock)
    if not len(clock):
        return pd.DataFrame(columns=CALLS)
    start, end = (_wall_ns(marks[name], clock, rate) - header["start_ns"] for name in _BOUNDS)
    table = pd.DataFrame({name: marks[name] for name in ("thread", "function", "calls")})
    table["run"], table["start_ns"], table["end_ns"] = header["run"], start, end
    table["busy_ns"] = np.rint(marks["busy"] * rate).astype(np.int64)
    region_ns = header["end_ns"] - header["start_ns"]
    table[["start_ns", "end_ns"]] = table[["start_ns", "end_ns"]].clip(0, region_ns)
    middle = (start + end) / 2
    table = table[(middle >= 0) & (middle <= region_ns)].sort_values(
        ["thread", "start_ns"], kind="stable"
    )
    return table[list(CALLS)]


def _waits(path: Path) -> pd.DataFrame:
    header, _, marks, places = content_of(path)
    region = header["start_ns"], header["end_ns"]
    marks = marks[marks["state"] != REGION]
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
