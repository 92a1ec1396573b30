"""A recorded run as a file for the Perfetto viewer: who had each CPU, interrupts, threads' states.

Owns that format: the JSON of Chrome's trace events, which Perfetto and Speedscope open.
"""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from ..errors import InputError
from ..files import write_json
from .campaign import EVENTS, OWNERS, STATES, each_recording
from .states import IDLE, NOT_RECORDED

_CPUS, _INTERRUPTS, _THREADS = 1, 2, 3  # "processes" of the viewer
_NAMES = {_CPUS: "CPUs", _INTERRUPTS: "interrupts", _THREADS: "threads of the program"}


def write_perfetto(folder: str | Path, run: pd.DataFrame, path: str | Path) -> Path:
    """Write a recorded run for https://ui.perfetto.dev.

    Parameters
    ----------
    folder
        Where `Tracer` put the traces.
    run
        One row of the runs table.
    path
        File to write, JSON.

    Returns
    -------
    The file. Times are from the begin of the timed region; each slice of a thread names who ended
    it (`woken_by`).

    Raises
    ------
    InputError
        The run was not recorded by tracepoints.
    LostEvents
        Its recording has losses.
    """
    recorded = next(each_recording(folder, run.head(1)), None)
    if recorded is None:
        raise InputError("no recording to show", where=folder, why=NOT_RECORDED, fix="make doctor")
    owners, events, states = (recorded[name] for name in (OWNERS, EVENTS, STATES))
    had = owners[owners["name"] != IDLE].rename(columns={"cpu": "track", "thread": "of"})
    taken = events[(events["kind"] != "thread").to_numpy()]
    taken = taken.rename(columns={"cpu": "track", "source": "name"}).assign(of=-1)
    own = states.rename(columns={"thread": "track", "woken_by_name": "of", "name": "thread"})
    own = own.assign(name=own["state"])
    names = dict(zip(own["track"], own["thread"]))
    tracks = [(_CPUS, had), (_INTERRUPTS, taken), (_THREADS, own)]
    slices = [one for track in tracks for one in _slices(*track)]
    return write_json(path, {"displayTimeUnit": "ns", "traceEvents": [*_named(names), *slices]})


def _named(threads: dict[int, str]) -> Iterator[dict]:
    for number, name in _NAMES.items():
        yield {"ph": "M", "name": "process_name", "pid": number, "args": {"name": name}}
    for number, name in threads.items():
        said = {"ph": "M", "name": "thread_name", "pid": _THREADS, "tid": int(number)}
        yield said | {"args": {"name": name}}


def _slices(number: int, table: pd.DataFrame) -> Iterator[dict]:
    for row in table.itertuples():
        yield {
            "ph": "X",
            "pid": number,
            "tid": int(row.track),
            "name": str(row.name),
            "ts": row.start_ns / 1e3,
            "dur": (row.end_ns - row.start_ns) / 1e3,
            "args": {"by": str(row.of)},
        }
