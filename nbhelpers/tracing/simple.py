"""The simple call: trace a program some times. Owns what belongs together then: the runs and their
noise events.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from ..measurement import Campaign, Cell, finished
from ..measurement import metrics as metric_layers
from ..workloads import Workload, as_workload
from .tracer import Tracer, noise_summary, read_traces


@dataclass(frozen=True, eq=False)
class TracedRuns:
    """Traced runs of a program.

    Attributes
    ----------
    runs
        The finished runs, one row each.
    events
        Their noise events (CONTRIBUTING.md, "Tables").
    source
        Osnoise, tracepoints or detours.
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
        """How much noise of which source; see `noise_summary`."""
        return noise_summary(self.events, self.runs)


def trace(
    command: Workload | str | Sequence[str] | None = None,
    runs: int = 10,
    metrics: Sequence[str] | str = (),
    *,
    folder: str | os.PathLike | None = None,
    source: str = "auto",
    config: str | None = None,
    timeout_s: float | None = None,
    progress: Callable[[int, int, float], object] | None = None,
    **described: object,
) -> TracedRuns:
    """Run a program some times and record the noise of each run.

    Parameters
    ----------
    command, runs, metrics, config, timeout_s, progress, described
        As in `measure.measure`.
    folder
        Keeps runs and traces, so that the same call goes on after an interruption; None: in memory
        only.
    source
        Of events; see `Tracer`.

    Raises
    ------
    InputError, RunError, LostEvents, SettingError
        See `measure.measure`, `Tracer` and `read_traces`.

    Examples
    --------
    >>> found = trace("sleep 0.05", runs=3)  # doctest: +SKIP
    >>> delta = delta_noise(
    ...     found.events, average_noise(found.events, found.runs), found.runs
    ... )  # doctest: +SKIP
    """
    workload = as_workload(command, **described)
    workload = workload if timeout_s is None else replace(workload, timeout_s=timeout_s)
    workload = workload if config is None else workload.placed(config)
    layers = metric_layers(*([metrics] if isinstance(metrics, str) else metrics))
    with ExitStack() as stack:
        place = Path(
            folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="noisebook-trace-"))
        )
        tracer = Tracer(place / "traces", source)
        stack.callback(tracer.close)
        traced = tracer.stand_in(workload)
        campaign = Campaign(
            place / "runs", [Cell("traced", traced, attachments=[tracer])], runs, attachments=layers
        )
        table = finished(campaign.run(progress))
        return TracedRuns(table, read_traces(place / "traces", table), tracer.source, traced)
