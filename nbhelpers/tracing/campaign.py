"""Reading what `Tracer` recorded in a campaign, all runs together or one after the other.

Owns which file of a run is read, and the cache of what was read: in the folder of the results,
never beside data, which may come from others (a pickle can run code).
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import joblib
import numpy as np
import pandas as pd

from ..errors import InputError, LostEvents
from ..measurement.table import region_notes
from ..places import results
from ..progress import each
from . import states
from ._table import empty_events, join_events
from .detours import read_detours_run
from .hypervisor import stolen_time
from .osnoise import read_osnoise
from .tracepoints import events_of_recording, read_recording

EVENTS, STOLEN, STATES, OWNERS = "events", "stolen", "states", "owners"  # tables of a trace
Reader = Callable[[Path], Mapping[str, pd.DataFrame]]


def _read_recording(path: Path) -> Mapping[str, pd.DataFrame]:
    """All tables of a recording of tracepoints, which is decoded one time."""
    header, raw = read_recording(path)
    of_threads, of_cpus = states.tables_of_recording(header, raw, path)
    return {
        EVENTS: events_of_recording(header, raw, path),
        STOLEN: stolen_time(header, raw, path),
        STATES: of_threads,
        OWNERS: of_cpus,
    }


_READERS: dict[str, Reader] = {
    "osnoise": lambda path: {EVENTS: read_osnoise(path)},
    "tracepoints": _read_recording,
    "detours": lambda path: {EVENTS: read_detours_run(path)},
}
_CACHE_LIMIT = "4G"  # of what was read; the oldest goes


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
    The events table of data/README.md, times from each run's `start_ns`. `attrs["cpus"]` are the
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
        Folder of the traces, and the runs table; see `read_traces`.

    Yields
    ------
    The events table of each run, in the order of `runs`.

    Raises
    ------
    LostEvents, InputError
        A trace has losses, is missing or is damaged; see `read_traces`.

    Examples
    --------
    The delta of the slowest of any number of runs, with the events of one run in memory::

        average = average_noise(each_trace(folder, runs), runs)
        slowest = worst_first(runs).head(1)
        delta = delta_noise(read_traces(folder, slowest), average, runs)
    """
    _cache().reduce_size(_CACHE_LIMIT)
    for run in each(_finished(runs)["run"].tolist(), "reading traces", "runs"):
        yield _read(_trace(Path(folder), int(run)), int(run))


def stolen_times(folder: str | Path, runs: pd.DataFrame) -> pd.DataFrame:
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
    tables = [_read(("tracepoints", path), run, STOLEN) for run, path in paths.items()]
    joined = join_events(tables)
    joined.attrs["away_share"] = float(np.mean([table.attrs["away_share"] for table in tables]))
    all_ns = [table.attrs["all_ns"] for table in tables]
    joined.attrs["all_ns"] = None if None in all_ns else sum(all_ns)
    return joined


def read_owners(folder: str | Path, runs: pd.DataFrame) -> pd.DataFrame:
    """Who had each CPU in all finished runs (`tables_of_recording`), one below the other.

    Where they were not recorded by tracepoints the noise events stand for it: `name` is their
    source, and the program is not among them.
    """
    tables = [tables[OWNERS] for tables in each_recording(folder, runs)]
    if tables:
        return pd.concat(tables, ignore_index=True)
    return read_traces(folder, runs).rename(columns={"source": "name"}).assign(is_program=False)


def each_recording(folder: str | Path, runs: pd.DataFrame) -> Iterator[Mapping[str, pd.DataFrame]]:
    """All tables of all finished runs, one run after the other: EVENTS, STOLEN, STATES, OWNERS.

    Parameters
    ----------
    folder, runs
        Folder of the traces, and the runs table; see `read_traces`.

    Yields
    ------
    The tables of a run by name, each with a column `run`; nothing at all where a run was not
    recorded by tracepoints.

    Raises
    ------
    LostEvents, InputError
        A recording has losses, or is damaged.
    """
    numbers = [int(run) for run in _finished(runs)["run"]]
    paths = {run: _file(Path(folder), run, "tracepoints") for run in numbers}
    if all(path.exists() for path in paths.values()):
        for run, path in paths.items():
            yield _tables_of(("tracepoints", path), run)


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


def _trace(folder: Path, run: int) -> tuple[str, Path]:
    """Source and file of a run's trace."""
    for source in _READERS:
        path = _file(folder, run, source)
        if path.exists():
            return source, path
    raise InputError(
        f"run {run} has no trace",
        where=folder,
        why="its noise would count as none",
        fix="pass the runs that were traced, or the right folder",
    )


def _read(trace: tuple[str, Path], run: int, which: str = EVENTS) -> pd.DataFrame:
    return _tables_of(trace, run)[which]


def _tables_of(trace: tuple[str, Path], run: int) -> Mapping[str, pd.DataFrame]:
    try:
        tables = _cached_tables(*trace)
    except LostEvents as error:
        raise LostEvents(
            f"run {run}: {error.what}", where=error.where, why=error.why, fix=error.fix
        ) from None
    return {name: table.assign(run=run) for name, table in tables.items()}


def _cached_tables(source: str, path: Path) -> Mapping[str, pd.DataFrame]:
    """All tables of a trace. They belong to its content and to the code that read it."""
    with open(path, "rb") as file:
        key = hashlib.file_digest(file, "sha256").hexdigest()
    return _cache().cache(_tables, ignore=["path"])(source, key + _code(), path)


def _tables(source: str, key: str, path: Path) -> Mapping[str, pd.DataFrame]:
    return _READERS[source](path)


def _cache() -> joblib.Memory:
    """Where tables are cached; nowhere, where the folder is not this user's own."""
    folder = results() / "events"
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    own = folder.is_dir() and folder.stat().st_uid == os.geteuid() and os.access(folder, os.W_OK)
    return joblib.Memory(folder if own else None, verbose=0)


@cache
def _code() -> str:
    modules = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(module.read_bytes() for module in modules)).hexdigest()
