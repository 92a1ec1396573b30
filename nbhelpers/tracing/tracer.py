"""`Tracer`, the attachment that a campaign takes: it chooses the best source of noise events that
this machine has.

Owns the choice, and what is said of the noise that was recorded.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..empty import because
from ..errors import InputError, check_choice
from ..machine import doctor
from ..measurement import Attachment, region_seconds
from ..measurement.table import region_notes
from ..workloads import Workload
from ._recorders import OsnoiseRecorder, TracepointRecorder
from .cache import cached_seconds
from .detours import DetourTracer, detour_workload

_KERNELS = {"osnoise": OsnoiseRecorder, "tracepoints": TracepointRecorder}
SOURCES = (*_KERNELS, "detours")
STAND_IN = "stand-in.json"


class Tracer(Attachment):
    """Records the noise of each run into one file a run.

    Parameters
    ----------
    folder
        Where the files `run-000123.osnoise.gz`, `.tracepoints.gz` or `.detours.gz` go.
    source
        "osnoise": the kernel's tracer. "tracepoints": the same events from ordinary tracepoints,
        with true policies. "detours": a loop in user space, in place of the workload. "auto": the
        first of these that this machine has.
    buffer_kib
        Buffer of each CPU; 4 MiB hold some 90 s of a quiet CPU. A run that fills it gets the status
        "lost events", the next one a buffer four times as large, of 64 MiB at most.
    recorded_only
        True: use recorded data, measure nothing; the source is that of the traces in the folder.

    Notes
    -----
    Adds the columns `trace_events`, `trace_lost` and `trace_bytes` to the runs table. The kernel is
    patched for the tracepoints only from `before` to `after`, so that runs without tracing,
    measured in turn, find it as it was.
    """

    def __init__(
        self,
        folder: str | Path,
        source: str = "auto",
        buffer_kib: int = 4096,
        *,
        recorded_only: bool = False,
    ):
        check_choice("source of traces", source, ("auto", *SOURCES))
        self.folder, self._recorded_only = Path(folder), recorded_only
        self._repaired: tuple[str, ...] = ()
        if recorded_only:
            source = _recorded_source(self.folder)
        if source == "auto":
            found = doctor()
            source, self._repaired = found.capabilities.tracer, found.repaired
        self.source = source
        self._recorder: Attachment = (
            DetourTracer(self.folder)
            if self.source == "detours"
            else _KERNELS[self.source](self.folder, buffer_kib)
        )
        self.identity = f"tracer {self.source}"

    def __repr__(self) -> str:
        return f"Tracer({self.source}, {self.folder})"

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]  # the recorder's may grow
        """What dead processes had left on the machine, and what became of it."""
        return (*self._repaired, *self._recorder.notes)

    def before(self, workload: Workload) -> None:
        self._recorder.before(workload)

    def armed(self, pid: int) -> None:
        self._recorder.armed(pid)

    def after(self, run: dict) -> dict:
        return self._recorder.after(run)

    def close(self) -> None:
        self._recorder.close()

    def stand_in(self, workload: Workload, seconds: float | None = None) -> Workload:
        """Return what to run when the noise of a workload is to be traced.

        That is the workload itself, or, where the source is detours, the detour loop.

        Parameters
        ----------
        workload
            Whose noise is to be traced.
        seconds
            Length of an undisturbed run of the workload; None: it is measured, and cached in the
            folder of the traces.

        Raises
        ------
        RunError
            The workload failed when its length was measured.
        """
        if self.source != "detours":
            return workload
        self.folder.mkdir(parents=True, exist_ok=True)  # the loop writes there, traced or not
        seconds = seconds or cached_seconds(
            workload, self.folder / STAND_IN, recorded_only=self._recorded_only
        )
        return replace(
            detour_workload(seconds, self.folder), config=workload.config, cpus=workload.cpus
        )


def _recorded_source(folder: Path) -> str:
    for source in SOURCES:
        if any(folder.glob(f"run-*.{source}.gz")):
            return source
    raise InputError(
        "no traces were recorded here", where=folder, fix="measure first, or give the right folder"
    )


def noise_summary(events: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Summarise how much noise of which source there was.

    Parameters
    ----------
    events
        Noise events of traced runs.
    runs
        The runs table of the same campaign.

    Returns
    -------
    One row a kind and source (the index), the greatest share first: `events`, `events_per_s` (a
    CPU), `cpu_share` (net noise of all CPU time), `mean_us`, `p50_us`, `p99_us`, `max_us`; per time
    of the timed regions, on the CPUs that `events.attrs` states, or else on those that have events.
    `attrs["notes"]` states where the regions are not known.

    Raises
    ------
    InputError
        No finished run.
    """
    finished = runs[runs["status"] == "ok"] if "status" in runs else runs
    cpus = len(events.attrs.get("cpus", ())) or max(events["cpu"].nunique(), 1)
    cpu_seconds = float(region_seconds(finished).sum()) * cpus
    if not cpu_seconds > 0:
        raise InputError(
            "no finished run", where="runs table", why="there is no time to relate the noise to"
        )
    events = events[events["run"].isin(finished["run"])]
    grouped = events.groupby(["kind", "source"], observed=True)["duration_ns"]
    table = grouped.agg(
        events="count",
        total="sum",
        mean_us="mean",
        p50_us="median",
        p99_us=lambda values: np.quantile(values, 0.99),
        max_us="max",
    )
    for column in ("mean_us", "p50_us", "p99_us", "max_us"):
        table[column] = table[column] / 1e3
    table.insert(1, "events_per_s", table["events"] / cpu_seconds)
    table.insert(2, "cpu_share", table.pop("total") / 1e9 / cpu_seconds)
    table.attrs["notes"] = region_notes(finished)
    return because(
        table.sort_values("cpu_share", ascending=False),
        "no noise event lies within the timed regions",
    )
