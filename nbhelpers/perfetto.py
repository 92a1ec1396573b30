"""Tables of slices as files for the Perfetto viewer, https://ui.perfetto.dev.

Owns that format: the JSON of Chrome's trace events, which Perfetto and Speedscope open. What was
measured, injected and simulated says itself which slices it has (`tracks_of_…`).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from .files import write_json

_SHOWN = ("by", "ns", "via", "peer", "size", "noise_ns")  # by a click on a slice


def write_tracks(path: str | Path, tracks: Mapping[str, pd.DataFrame]) -> Path:
    """Write tables of slices.

    Parameters
    ----------
    path
        File to write, JSON.
    tracks
        Title → table with `track` (a number, such as the CPU's), `name`, `start_ns`, `end_ns`;
        perhaps `track_name`, and what a click on a slice shows: `by`, `ns`, `via`, `peer`, `size`,
        `noise_ns`.

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
        if "track_name" in table:
            named = dict(zip(table["track"], table["track_name"])).items()
            events += [_named("thread_name", name, pid=number, tid=int(one)) for one, name in named]
        order = table.sort_values(["start_ns", "end_ns"], ascending=[True, False])  # outer first
        events += _slices(number, order)
    return write_json(path, {"displayTimeUnit": "ns", "traceEvents": events}, indent=None)


def _named(what: str, name: str, **of: int) -> dict:
    return {"ph": "M", "name": what, **of, "args": {"name": name}}


def _slices(number: int, table: pd.DataFrame) -> Iterator[dict]:
    about = [name for name in _SHOWN if name in table]
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
