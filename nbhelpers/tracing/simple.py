"""The simple call: trace a program some times. Owns what belongs together then: the runs and their
noise events.
"""

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from ..measurement import Campaign, Cell, finished
from ..measurement import metrics as metric_layers
from ..workloads import Workload, as_workload
from .campaign import read_traces
from .tracer import Tracer, noise_summary


@dataclass(frozen=True, eq=False)
class TracedRuns:
    """Traced runs of a program: what `trace` returns.

    Attributes
    ----------
    runs
        The finished runs, one row each.
    events
        Their noise events (data/README.md).
    source
        osnoise, tracepoints or detours.
    workload
        What was run; the detour loop where the kernel has no tracer.
    """

    runs: pd.DataFrame = field(repr=False)
    events: pd.DataFrame = field(repr=False)
    source: str
    workload: Workload

    def __repr__(self) -> str:
        return (
            f"TracedRuns({self.workload.name}: {len(self.runs)} runs, {len(self.events)} events by"
            f" {self.source})"
        )

    def summary(self) -> pd.DataFrame:
        """Summarise how much noise of which source there was; see `noise_summary`."""
        return noise_summary(self.events, self.runs)


def trace(
    command: Workload | str | Sequence[str] | None = None,
    runs: int = 10,
    metrics: Sequence[str] | str = (),
    *,
    folder: str | os.PathLike | None = None,
    source: str = "auto",
    **described: object,
) -> TracedRuns:
    """Run a program several times and record the noise events of each run.

    As root the kernel states what interrupted the program. Without root the detour loop runs in the
    program's place: it shows when and for how long something interrupted, but not what.

    Parameters
    ----------
    command
        A workload, a command line, or a list of words; None with `described`. One whose threads are
        placed is `program(…).placed("Rm")`.
    runs
        How many.
    metrics
        Names of metric layers whose columns the runs table is to have.
    folder
        Where runs and traces are stored, so that the same call continues after an interruption;
        None: nowhere.
    source
        Source of events: "auto", "osnoise", "tracepoints" or "detours"; see `Tracer`.
    described
        Further arguments of `nbhelpers.program`, such as `timeout_s`.

    Returns
    -------
    TracedRuns : `runs` (one row a run), `events` (one row a noise event), `source`, `workload`.

    Raises
    ------
    InputError
        An unknown source, or a program that cannot be described so.
    RunError
        The program failed, or is not there.
    LostEvents
        A trace has losses.
    SettingError
        A setting of the machine could not be put back.

    Examples
    --------
    Noise of three runs of a program, and how much of it the worst run had beyond the average:

    >>> from nbhelpers import average_noise, delta_noise, trace
    >>> traced = trace("sleep 0.05", runs=3, source="detours")
    >>> len(traced.runs), traced.source
    (3, 'detours')
    >>> if len(traced.events):
    ...     average = average_noise(traced.events, traced.runs)
    >>> list(traced.summary().columns)[:3]
    ['events', 'events_per_s', 'cpu_share']
    """
    workload = as_workload(command, **described)
    layers = metric_layers(*([metrics] if isinstance(metrics, str) else metrics))
    with ExitStack() as stack:
        place = Path(
            folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="noisebook-trace-"))
        )
        tracer = Tracer(place / "traces", source)
        stack.callback(tracer.close)
        traced = tracer.stand_in(workload)
        campaign = Campaign(
            place / "runs",
            [Cell("traced", traced, attachments=(tracer,))],
            runs,
            attachments=layers,
        )
        table = finished(campaign.run())
        return TracedRuns(table, read_traces(place / "traces", table), tracer.source, traced)
