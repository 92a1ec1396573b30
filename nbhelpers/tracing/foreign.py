"""A folder of osnoise traces that somebody else recorded, as runs and noise events.

Owns the layout in which Persson et al. 2025 publish theirs: a trace a run, and a line ``Total
Duration: X seconds`` in a file next to it or within it.
"""

import re
from pathlib import Path

import pandas as pd

from ..errors import InputError
from ..progress import each
from ._files import read_trace
from ._table import join_events
from .osnoise import read_osnoise, window_from_workload

_DURATION = re.compile(rb"^Total Duration:\s*(\d+\.?\d*(?:[eE][+-]?\d+)?)\s*seconds", re.MULTILINE)
_BESIDE = (".benchout", ".out")
_NO_TRACES = (*_BESIDE, ".json", ".md", ".stats")


def read_foreign_traces(folder: str | Path, workload: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read a folder of osnoise traces, for `average_noise` and `delta_noise`.

    Parameters
    ----------
    folder
        With one trace a run (any name; plain or .gz), as tracefs prints it. The line ``Total
        Duration: X seconds`` that the program printed stands in a file NAME.benchout or NAME.out,
        or at the end of the trace.
    workload
        Name (comm) of the program, whose threads are not noise; the run begins with its first
        event (`window_from_workload`).

    Returns
    -------
    runs
        One row a trace: `run` (from 0, by name), `cell` ("traced"), `seconds`, `status` ("ok"),
        `trace` (the file).
    events
        As of `read_traces`.

    Raises
    ------
    InputError
        No trace, no name, or a trace that cannot be read; the file is named.
    LostEvents
        The kernel lost events.
    """
    paths = [
        path
        for path in sorted(Path(folder).glob("*"))
        if path.is_file() and path.suffix not in _NO_TRACES
    ]
    if not paths or not workload:
        raise InputError(
            "no trace is here" if not paths else "the name of the program is missing",
            where=folder,
            why="its threads must not count as noise",
            fix="give the folder with the files of tracefs' `trace`, and the program's name",
        )
    rows, tables = [], []
    for run, path in enumerate(each(paths, "reading traces", "files")):
        window = window_from_workload(path, workload, _seconds_within(path))
        tables.append(read_osnoise(path, window=window, workload=workload, run=run))
        rows.append(
            {
                "run": run,
                "cell": "traced",
                "seconds": (window[1] - window[0]) / 1e9,
                "status": "ok",
                "trace": path.name,
            }
        )
    return pd.DataFrame(rows), join_events(tables)


def _seconds_within(path: Path) -> float | None:
    """What the trace states; None: another file must."""
    found = _DURATION.search(read_trace(path))
    return float(found[1]) if found else None
