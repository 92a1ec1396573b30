"""`Tracer`, the attachment that a campaign takes: it chooses the best source of noise events that this machine has.

Owns the choice, and the reading of what was recorded in a campaign.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError, LostEvents, RunError
from ..machine import doctor
from ..measure import Attachment, run_once
from ..workloads import Workload
from ._recorders import OsnoiseRecorder, TracepointRecorder
from ._table import empty_events, join_events
from .detours import DetourTracer, detour_workload, read_detours_run
from .osnoise import read_osnoise
from .tracepoints import read_tracepoints

SOURCES = ("osnoise", "tracepoints", "detours")
_READERS = {"osnoise": read_osnoise, "tracepoints": read_tracepoints, "detours": read_detours_run}


class Tracer(Attachment):
    """Records the noise of each run into one file a run.

    Parameters
    ----------
    folder : where the files `run-000123.osnoise.gz`, `.tracepoints.gz` or `.detours.gz` go.
    source : "osnoise" (the kernel's tracer), "tracepoints" (the same events from ordinary tracepoints, with true policies), "detours" (a
        loop in user space, in place of the workload), or "auto": the first that this machine has.
    buffer_kib : buffer of each CPU; 4 MiB hold some 90 s of a quiet CPU. A run that fills it gets the status "lost events".

    Notes
    -----
    Adds the columns `trace_events`, `trace_lost` and `trace_bytes` to the runs table. The kernel is patched for the tracepoints only
    from `before` to `after`, so that runs without tracing, measured in turn, find it as it was.
    """

    def __init__(self, folder: str | Path, source: str = "auto", buffer_kib: int = 4096):
        if source not in ("auto", *SOURCES):
            raise InputError(f"there is no source of traces '{source}'", mend=f"choose auto, {', '.join(SOURCES)}")
        self.folder = Path(folder)
        self.source = doctor().capabilities.tracer if source == "auto" else source
        makers = {"osnoise": lambda: OsnoiseRecorder(folder, buffer_kib), "tracepoints": lambda: TracepointRecorder(folder, buffer_kib),
                  "detours": lambda: DetourTracer(folder)}
        self._recorder = makers[self.source]()
        self._seconds: dict[Workload, float] = {}

    def __repr__(self) -> str:
        return f"Tracer({self.source}, {self.folder})"

    def before(self, workload: Workload) -> None:
        self._recorder.before(workload)

    def armed(self, pid: int) -> None:
        self._recorder.armed(pid)

    def released(self, t0_ns: int) -> None:
        self._recorder.released(t0_ns)

    def after(self, run: dict) -> dict:
        return self._recorder.after(run)

    def close(self) -> None:
        self._recorder.close()

    def stand_in(self, workload: Workload, seconds: float | None = None) -> Workload:
        """What to run in place of a workload when its noise is wanted: itself, or, at the level detours, the detour loop.

        Parameters
        ----------
        seconds : length of an undisturbed run of the workload; None: it is run once to find out.

        Raises
        ------
        RunError : the workload failed when it was run to find out.
        """
        if self.source != "detours":
            return workload
        if seconds is None:
            if workload not in self._seconds:
                self._seconds[workload] = _measured(workload)
            seconds = self._seconds[workload]
        return replace(detour_workload(seconds, self.folder), config=workload.config, cpus=workload.cpus)


def _measured(workload: Workload) -> float:
    run = run_once(workload)
    if run["status"] != "ok":
        raise RunError(f"'{workload.name}' failed: {run['status']}", where=" ".join(workload.command), why=run["message"])
    return float(run["seconds"])


def read_traces(folder: str | Path, runs: pd.DataFrame) -> pd.DataFrame:
    """Read the traces of all finished runs as one events table.

    Parameters
    ----------
    folder : where `Tracer` put them; of whichever source.
    runs : the runs table; only rows with status "ok" count.

    Returns
    -------
    events : the events table of CONTRIBUTING.md, times from each run's `start_ns`; attrs `cpus`, the CPUs that were traced.

    Raises
    ------
    LostEvents : a run's trace has losses; run and file are named.
    InputError : a run without a trace, or a damaged one.
    """
    finished = runs[runs["status"] == "ok"] if "status" in runs else runs
    tables = [_read_run(Path(folder), int(run)) for run in finished["run"]]
    return join_events(tables) if tables else empty_events()


def _read_run(folder: Path, run: int) -> pd.DataFrame:
    for source, reader in _READERS.items():
        path = folder / f"run-{run:06d}.{source}.gz"
        if path.exists():
            try:
                return reader(path, run=run)
            except LostEvents as error:
                raise LostEvents(f"run {run}: {error.what}", where=error.where, why=error.why, mend=error.mend) from None
    raise InputError(f"run {run} has no trace", where=folder, why="its noise would count as none",
                     mend="pass the runs that were traced, or the right folder")


def summary(events: pd.DataFrame, runs: pd.DataFrame, cpus: int | None = None) -> pd.DataFrame:
    """How much noise of which source: one row a kind and source, the greatest share first.

    Parameters
    ----------
    events, runs : of the same campaign.
    cpus : how many CPUs were traced; None: as `events.attrs` says, or as many as have events.

    Returns
    -------
    DataFrame, index (kind, source): `events`, `events_per_s` (a CPU), `cpu_share` (net noise of all CPU time), `mean_us`, `p50_us`, `p99_us`, `max_us`.
    """
    finished = runs[runs["status"] == "ok"] if "status" in runs else runs
    cpus = cpus or len(events.attrs.get("cpus", ())) or max(events["cpu"].nunique(), 1)
    cpu_seconds = float(finished["seconds"].sum()) * cpus
    if not cpu_seconds > 0:
        raise InputError("no finished run", where="runs table", why="there is no time to relate the noise to")
    events = events[events["run"].isin(finished["run"])]
    grouped = events.groupby(["kind", "source"], observed=True)["duration_ns"]
    table = grouped.agg(events="count", total="sum", mean_us="mean", p50_us="median", p99_us=lambda values: np.quantile(values, 0.99), max_us="max")
    for column in ("mean_us", "p50_us", "p99_us", "max_us"):
        table[column] = table[column] / 1e3
    table.insert(1, "events_per_s", table["events"] / cpu_seconds)
    table.insert(2, "cpu_share", table.pop("total") / 1e9 / cpu_seconds)
    return table.sort_values("cpu_share", ascending=False)
