"""Runs as files for the Perfetto viewer: who had each CPU, the critical path and its owners, and
what was injected.

Owns that format: the JSON of Chrome's trace events, which Perfetto and Speedscope open.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from ..errors import InputError
from ..files import write_json
from ..tracing.campaign import EVENTS, OWNERS, STATES, STOLEN, each_recording
from ..tracing.states import IDLE, NOT_RECORDED
from .owners import owned_pieces
from .path import critical_path

THREADS = "threads of the program"


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
    it (`by`). The critical path, by wake-ups alone, has its account: a slice is a piece of it,
    named after who had it, with the part of the account that it counts for and the ns that count.

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
    had = owners[owners["name"] != IDLE].rename(columns={"cpu": "track", "thread": "by"})
    taken = events[(events["kind"] != "thread").to_numpy()]
    taken = taken.rename(columns={"cpu": "track", "source": "name"})
    own = states.rename(columns={"thread": "track", "woken_by_name": "by", "name": "thread"})
    pieces = owned_pieces(critical_path(states), owners, events, recorded[STOLEN])
    pieces = pieces.rename(columns={"owner": "name", "part": "by"}).assign(track=0)
    tracks = {"CPUs": had, "interrupts": taken, THREADS: own.assign(name=own["state"])}
    names = dict(zip(own["track"], own["thread"]))
    return write_tracks(path, tracks | {"account of the critical path": pieces}, {THREADS: names})


def write_tracks(
    path: str | Path,
    tracks: Mapping[str, pd.DataFrame],
    names: Mapping[str, Mapping[int, str]] | None = None,
) -> Path:
    """Write tables of slices for https://ui.perfetto.dev.

    Parameters
    ----------
    path
        File to write, JSON.
    tracks
        Title → table with `track` (a number, such as the CPU's), `name`, `start_ns`, `end_ns`, and
        perhaps `by` and `ns`, which a click on a slice shows.
    names
        Title → track → its name.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> one = pd.DataFrame({"track": [0], "name": "timer", "start_ns": 0, "end_ns": 5000})
    >>> with TemporaryDirectory() as folder:
    ...     write_tracks(f"{folder}/injected.json", {"planned": one}).stat().st_size > 100
    True
    """
    events: list[dict] = []
    for number, (title, table) in enumerate(tracks.items(), 1):
        events += [_named("process_name", title, pid=number)]
        named = (names or {}).get(title, {}).items()
        events += [_named("thread_name", name, pid=number, tid=int(one)) for one, name in named]
        order = table.sort_values(["start_ns", "end_ns"], ascending=[True, False])  # outer first
        events += _slices(number, order)
    return write_json(path, {"displayTimeUnit": "ns", "traceEvents": events})


def _named(what: str, name: str, **of: int) -> dict:
    return {"ph": "M", "name": what, **of, "args": {"name": name}}


def _slices(number: int, table: pd.DataFrame) -> Iterator[dict]:
    about = [name for name in ("by", "ns") if name in table]
    for row in table.itertuples():
        yield {
            "ph": "X",
            "pid": number,
            "tid": int(row.track),
            "name": str(row.name),
            "ts": row.start_ns / 1e3,
            "dur": (row.end_ns - row.start_ns) / 1e3,
            "args": {name: str(getattr(row, name)) for name in about},
        }
