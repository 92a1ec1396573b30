"""A folder of traces that somebody else recorded, as runs and noise events.

Owns the layout in which Persson et al. 2025 publish theirs: an osnoise trace a run, and a line
``Total Duration: X seconds`` in a file next to it or within it. The text of other tools says by
itself when the program ran (`text`).
"""

import re
from pathlib import Path

import pandas as pd

from ..errors import InputError
from ..progress import each
from ._files import read_trace
from ._table import KINDS, join_events
from .osnoise import lines_of_noise, read_osnoise
from .text import read_text

_DURATION = re.compile(
    rb"^Total Duration:\s*(\d+\.?\d*(?:[eE][+-]?\d{1,2})?)\s*seconds", re.MULTILINE
)
_BESIDE = (".benchout", ".out")
_NO_TRACES = (*_BESIDE, ".json", ".md", ".stats")


def read_foreign_traces(folder: str | Path, workload: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read a folder of traces, for `average_noise` and `delta_noise`.

    Parameters
    ----------
    folder
        With one trace a run (any name; plain or .gz), or one such file. Either osnoise's text as
        tracefs prints it: the line ``Total Duration: X seconds`` that the program printed stands
        in a file NAME.benchout or NAME.out, or at the end of the trace. Or the text of perf script,
        trace-cmd report, traceconv systrace or babeltrace (`text.read_text`).
    workload
        Name (comm) of the program, whose threads are not noise; the run begins with its first
        event (`window_from_workload`). "": of text other than osnoise's, the busiest name.

    Returns
    -------
    runs
        One row a trace: `run` (from 0, by name), `cell` ("traced"), `seconds`, `status` ("ok"),
        `trace` (the file), of text other than osnoise's also `program` (the name).
    events
        Noise events of all runs, with the columns of `read_traces`.

    Raises
    ------
    InputError
        No trace, no name, or a trace that cannot be read; the file is named.
    LostEvents
        The kernel lost events.
    """
    inside = [Path(folder)] if Path(folder).is_file() else sorted(Path(folder).glob("*"))
    paths = [path for path in inside if path.is_file() and path.suffix not in _NO_TRACES]
    if not paths:
        raise _unknown("no trace is here", folder)
    read = [
        (_read_osnoise if b"_noise:" in read_trace(path) else read_text)(path, workload, run)
        for run, path in enumerate(each(paths, "reading traces", "files"))
    ]
    return pd.DataFrame([row for row, _ in read]), join_events([events for _, events in read])


def _read_osnoise(path: Path, workload: str, run: int) -> tuple[dict, pd.DataFrame]:
    if not workload:
        raise _unknown("the name of the program is missing", path)
    window = window_from_workload(path, workload)
    seconds = (window[1] - window[0]) / 1e9
    row = {"run": run, "cell": "traced", "seconds": seconds, "status": "ok", "trace": path.name}
    return row, read_osnoise(path, window=window, workload=workload, run=run)


def _unknown(what: str, where: str | Path) -> InputError:
    why = "its threads must not count as noise"
    fix = "give the folder with the files of tracefs' `trace`, and the program's name"
    return InputError(what, where=where, why=why, fix=fix)


def window_from_workload(path: str | Path, workload: str) -> tuple[int, int]:
    """The timed region as the published method finds it (Persson et al. 2025, their released
    scripts): ns, in the events' clock.

    It begins at the earliest start of a `thread_noise` that carries the workload's name and lasts
    what the program printed. So it includes the start of the process: the window lies early by that
    time. With process ids and a marked region (our traces) nothing of this is needed.

    Parameters
    ----------
    path
        The trace; in it or in a file NAME.benchout or NAME.out next to it stands a line `Total
        Duration: 2.17 seconds`.
    workload
        Name (comm) of the workload, at most 15 characters of it are in a trace.

    Raises
    ------
    InputError
        The workload is not in the trace, or its length is nowhere.
    """
    columns = lines_of_noise(path)
    thread = columns["kind"] == KINDS.index("thread")
    own = thread & (columns["source"] == workload[:15])
    if not own.any():
        names = sorted(set(columns["source"][thread]))
        raise InputError(
            f"no thread named '{workload[:15]}' in the trace",
            where=path,
            why="its first event shows when the workload began",
            fix=f"threads seen: {', '.join(names[:20])}",
        )
    start_ns = int(columns["start_ns"][own].min())
    return start_ns, start_ns + round(1e9 * _printed_seconds(Path(path)))


def _printed_seconds(path: Path) -> float:
    base = path.with_suffix("") if path.suffix == ".gz" else path
    beside = [base.with_suffix(suffix) for suffix in _BESIDE]
    texts = [read_trace(path), *(each.read_bytes() for each in beside if each.exists())]
    found = [float(one[1]) for text in texts if (one := _DURATION.search(text))]
    if not found or not 0 < found[0] < 1e9:
        raise InputError(
            "how long the workload ran is nowhere",
            where=path,
            why="the window of the trace needs its end",
            fix=f"write 'Total Duration: X seconds' into {beside[0]}",
        )
    return found[0]
