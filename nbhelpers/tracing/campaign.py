"""Reading what `Tracer` recorded in a campaign, all runs together or one after the other.

Owns which file of a run is read, and the processes that read ahead on all CPUs. What was read is
cached as Parquet (`_cached_events.py`).
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError, LostEvents, NoisebookError
from ..measurement.table import region_notes
from ..progress import each
from ._cached_events import EVENTS, STOLEN, Reader, is_cached, table_of
from ._table import empty_events, join_events
from .detours import read_detours_run
from .hypervisor import SHORTEST_US, stolen_of_recording, stolen_time
from .osnoise import read_osnoise
from .tracepoints import events_of_recording, read_recording


def _read_recording(path: Path, run: int) -> Mapping[str, pd.DataFrame]:
    """Both tables of a recording of tracepoints, which is decoded one time."""
    header, raw = read_recording(path)
    return {
        EVENTS: events_of_recording(header, raw, path, run=run),
        STOLEN: stolen_of_recording(header, raw, path, run=run),
    }


_READERS: dict[str, Reader] = {
    "osnoise": lambda path, run: {EVENTS: read_osnoise(path, run=run)},
    "tracepoints": _read_recording,
    "detours": lambda path, run: {EVENTS: read_detours_run(path, run=run)},
}
_MANY_BYTES = 64 << 20  # of traces; fewer are read before another process has started
_READ_AHEAD = "from nbhelpers.tracing.campaign import read_ahead; read_ahead()"


def read_traces(folder: str | Path, runs: pd.DataFrame) -> pd.DataFrame:
    """Read the traces of all finished runs into one table of noise events.

    Parameters
    ----------
    folder
        Where `Tracer` put them; of whichever source.
    runs
        The runs table; only rows with status "ok" count.

    Returns
    -------
    The events table of CONTRIBUTING.md, times from each run's `start_ns`. `attrs["cpus"]` are the
    CPUs that were traced; `attrs["notes"]` states which timed regions are not known.

    Raises
    ------
    LostEvents
        The trace of a run has losses; run and file are named.
    InputError
        A run without a trace, or a damaged one.
    """
    tables = list(each_trace(folder, runs))
    events = join_events(tables) if tables else empty_events()
    events.attrs["notes"] = region_notes(_finished(runs))
    return events


def each_trace(folder: str | Path, runs: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Read the traces of all finished runs, one after the other: for more than fit into memory.

    Parameters
    ----------
    folder, runs
        As for `read_traces`.

    Yields
    ------
    The events table of each run, in the order of `runs`.

    Raises
    ------
    LostEvents, InputError
        As `read_traces`.

    Examples
    --------
    The delta of the slowest of any number of runs, with the events of one run in memory::

        average = average_noise(each_trace(folder, runs), runs)
        slowest = worst_first(runs).head(1)
        delta = delta_noise(read_traces(folder, slowest), average, runs)
    """
    numbers = [int(run) for run in _finished(runs)["run"]]
    traces = [_trace(Path(folder), run) for run in numbers]
    with _readers_ahead(traces) as wait_for:
        for place, (run, trace) in enumerate(
            each(list(zip(numbers, traces)), "reading traces", "runs")
        ):
            if trace is None:
                raise _no_trace(Path(folder), run)
            wait_for(place)
            yield _read(trace, run)


def stolen_times(
    folder: str | Path, runs: pd.DataFrame, method: str = "auto", shortest_us: float = SHORTEST_US
) -> pd.DataFrame:
    """`stolen_time` of all finished runs of a campaign, one below the other; `away_share` is their
    mean.

    Only a recording of tracepoints shows the hypervisor: of other traces the table is empty and its
    `method` "not recorded".

    Raises
    ------
    InputError
        Some runs have such a recording and others do not.
    """
    finished = map(int, _finished(runs)["run"])
    paths = {run: _file(Path(folder), run, "tracepoints") for run in finished}
    missing = [run for run, path in paths.items() if not path.exists()]
    if len(missing) == len(paths):
        return _not_recorded()
    if missing:
        raise InputError(
            f"run {missing[0]} has no recording of tracepoints",
            where=folder,
            why="its stolen time would count as none",
            fix="pass the runs that were traced",
        )
    if (method, shortest_us) == ("auto", SHORTEST_US):
        tables = [_read(("tracepoints", path), run, STOLEN) for run, path in paths.items()]
    else:
        tables = [stolen_time(path, method, shortest_us, run) for run, path in paths.items()]
    joined = join_events(tables).assign(
        slack_ns=np.concatenate([table["slack_ns"].to_numpy() for table in tables])
    )
    joined.attrs["away_share"] = float(np.mean([table.attrs["away_share"] for table in tables]))
    joined.attrs["all_ns"] = (
        None
        if any(table.attrs["all_ns"] is None for table in tables)
        else sum(table.attrs["all_ns"] for table in tables)
    )
    return joined


def _not_recorded() -> pd.DataFrame:
    empty = empty_events().assign(slack_ns=np.array([], np.int64))
    empty.attrs = {
        "lost": 0,
        "tracer": "hypervisor",
        "method": "not recorded",
        "away_share": 0.0,
        "all_ns": None,
    }
    return empty


def recording_of(folder: str | Path, run: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Noise events of a run's recording of tracepoints, and what the hypervisor took.

    Raises
    ------
    LostEvents
        The kernel dropped events.
    InputError
        There is no such recording, or a damaged one.
    """
    trace = "tracepoints", _file(Path(folder), run, "tracepoints")
    return _read(trace, run), _read(trace, run, STOLEN)


def _finished(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[runs["status"] == "ok"] if "status" in runs else runs


def _file(folder: Path, run: int, source: str) -> Path:
    return folder / f"run-{run:06d}.{source}.gz"


def _trace(folder: Path, run: int) -> tuple[str, Path] | None:
    """Source and file of a run's trace."""
    for source in _READERS:
        path = _file(folder, run, source)
        if path.exists():
            return source, path
    return None


def _no_trace(folder: Path, run: int) -> InputError:
    return InputError(
        f"run {run} has no trace",
        where=folder,
        why="its noise would count as none",
        fix="pass the runs that were traced, or the right folder",
    )


def _read(trace: tuple[str, Path], run: int, which: str = EVENTS) -> pd.DataFrame:
    source, path = trace
    try:
        return table_of(path, _READERS[source], run, which)
    except LostEvents as error:
        raise LostEvents(
            f"run {run}: {error.what}", where=error.where, why=error.why, fix=error.fix
        ) from None


@contextmanager
def _readers_ahead(traces: Sequence[tuple[str, Path] | None]) -> Iterator[Callable[[int], None]]:
    """Processes, one a CPU, that read the traces so that their events are kept; what is given
    waits for the trace at a place.
    """
    known = [trace for trace in traces if trace is not None]
    cpus = len(os.sched_getaffinity(0))
    many = sum(path.stat().st_size for _, path in known) >= _MANY_BYTES
    if cpus < 2 or len(known) < len(traces) or not many or is_cached(known[0][1]):
        yield lambda place: None
        return
    readers = [_reader(known[number::cpus]) for number in range(cpus)]
    try:
        yield lambda place: _wait(readers[place % cpus])
    finally:
        for reader in readers:
            reader.kill()
            reader.communicate()


def _reader(traces: Sequence[tuple[str, Path]]) -> subprocess.Popen:
    reader = subprocess.Popen(
        [sys.executable, "-c", _READ_AHEAD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        text=True,
    )
    assert reader.stdin is not None
    json.dump([(source, str(path.absolute())) for source, path in traces], reader.stdin)
    reader.stdin.close()
    reader.stdin = None  # so that `communicate` does not close it again
    return reader


def _wait(reader: subprocess.Popen) -> None:
    """Until the next trace of a reader is read, or the reader has ended."""
    assert reader.stdout is not None
    reader.stdout.readline()


def read_ahead() -> None:
    """Read the traces that standard input names; a line of output a trace. Errors are left to who
    reads the trace after it.
    """
    for source, path in json.load(sys.stdin):
        with suppress(NoisebookError):
            table_of(Path(path), _READERS[source], 0)
        sys.stdout.write("\n")
        sys.stdout.flush()
