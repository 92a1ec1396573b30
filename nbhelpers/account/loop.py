"""The detour loop on every CPU while the kernel's tracepoints are recorded: one campaign.

Owns its cell and its files; who wants the way in and out of the kernel reads both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from ..empty import because
from ..measurement import Attachment, Campaign, Cell, finished, metrics
from ..tracing.campaign import recording_of
from ..tracing.detours import DetourTracer, detour_workload, read_detours_run
from ..tracing.tracer import Tracer

NO_TRACEPOINTS = (
    "the loop needs tracepoints recorded at the same time, and this machine or user has none; make"
    " doctor says why"
)


@dataclass(frozen=True)
class LoopRun:
    """One run of the loop: what it saw, and what was recorded.

    Attributes
    ----------
    run
        Number of the run.
    folder
        The campaign's folder.
    """

    run: int
    folder: Path

    @cached_property
    def detours(self) -> pd.DataFrame:
        """Gaps that the loop saw, as events (`read_detours_run`)."""
        return read_detours_run(self.folder / f"run-{self.run:06d}.detours.gz")

    @property
    def events(self) -> pd.DataFrame:
        """Noise events of the kernel."""
        return self._recording[0]

    @property
    def stolen(self) -> pd.DataFrame:
        """What the hypervisor took (`stolen_time`)."""
        return self._recording[1]

    @property
    def watched(self) -> dict[int, tuple[int, int]]:
        """When each CPU's loop began and ended, cpu -> (ns, ns)."""
        return self.detours.attrs["watched"]

    @property
    def loop_ns(self) -> int:
        """How long the loops looked, all CPUs together."""
        return sum(last - first for first, last in self.watched.values())

    def while_watched(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of a table (`cpu`, `start_ns`, `end_ns`) that lie within the loop's time."""
        first, last = (
            table["cpu"].map({cpu: ends[at] for cpu, ends in self.watched.items()}) for at in (0, 1)
        )
        return table[(table["start_ns"] >= first) & (table["end_ns"] <= last)]

    @cached_property
    def _recording(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        return recording_of(self.folder / "traces", self.run)


def run_traced_loop(
    folder: str | Path,
    runs: int,
    seconds: float,
    recorded_only: bool = False,
    attachments: Sequence[Attachment] = (),
) -> pd.DataFrame:
    """Run the detour loop on every CPU with the kernel's tracepoints recorded.

    Parameters
    ----------
    folder
        Folder for runs, gaps and traces.
    runs
        Number of runs of the loop.
    seconds
        Undisturbed time that a loop needs.
    recorded_only
        True: read what was recorded.
    attachments
        What else accompanies the loop, such as hogs.

    Returns
    -------
    The finished runs; none, with the reason, where tracepoints cannot be recorded.

    Raises
    ------
    InputError
        Not measured yet, and `recorded_only` is True.
    """
    folder = Path(folder)
    workload = detour_workload(seconds, folder)
    cell = Cell("loop", workload)
    if not recorded_only:
        tracer = Tracer(folder / "traces")
        if tracer.source != "tracepoints":
            return because(pd.DataFrame({"run": np.array([], np.int64)}), NO_TRACEPOINTS)
        recorders = (tracer, DetourTracer(folder, prefix="loop"))
        cell = Cell("loop", workload, attachments=(*recorders, *attachments, *metrics("kernel")))
    return finished(Campaign(folder, [cell], runs=runs, recorded_only=recorded_only).run())
