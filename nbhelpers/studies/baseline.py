"""The undisturbed runs that most stages begin with: those that stage 10 measured and traced.

Owns nothing of its own: it reads what the stage wrote, each table once.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from ..measurement import calibrate, finished, recorded_runs
from ..noise import average_noise
from ..tracing import each_trace, noise_summary, read_traces, stolen_times
from ..tracing.foreign import read_foreign_traces
from ..workloads import Workload, nbody


@dataclass(frozen=True)
class Baseline:
    """Runs of the N-body program, half of them traced, as stage 10 measured them.

    Parameters
    ----------
    data
        The folder of that stage's data.
    recorded_only
        Use recorded data, measure nothing.
    """

    data: Path
    recorded_only: bool = False

    @property
    def folder(self) -> Path:
        """The campaign's folder."""
        return self.data / "baseline"

    @cached_property
    def workload(self) -> Workload:
        """The program, with the problem size that was calibrated."""
        return calibrate(
            nbody, file=self.data / "calibration.json", recorded_only=self.recorded_only
        )

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Runs table of all runs that finished."""
        return finished(recorded_runs(self.folder))

    @cached_property
    def untraced(self) -> pd.DataFrame:
        """The runs that were not traced."""
        return self.runs[self.runs["cell"] == "untraced"]

    @cached_property
    def traced(self) -> pd.DataFrame:
        """The runs that were traced."""
        return self.runs[self.runs["cell"] == "traced"].reset_index(drop=True)

    @cached_property
    def events(self) -> pd.DataFrame:
        """Noise events of the traced runs."""
        return read_traces(self.folder / "traces", self.traced)

    @cached_property
    def stolen(self) -> pd.DataFrame:
        """What the hypervisor took of the traced runs (`stolen_times`)."""
        return stolen_times(self.folder / "traces", self.traced)

    @cached_property
    def average(self) -> pd.DataFrame:
        """The noise that every traced run meets (`average_noise`), with one run in memory."""
        return average_noise(each_trace(self.folder / "traces", self.traced), self.traced)


def traced_runs(
    baseline: Baseline, folder: str = "", program: str = ""
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Traced runs and their noise events: the baseline's, or those of traces recorded elsewhere.

    Parameters
    ----------
    baseline
        Runs of stage 10.
    folder
        Of osnoise traces recorded elsewhere; empty: none.
    program
        Name of the program in them.

    Returns
    -------
    runs table, noise events table
    """
    if folder:
        return read_foreign_traces(folder, program)
    return baseline.traced, baseline.events


def delta_table(events: pd.DataFrame, delta: pd.DataFrame, traced: pd.DataFrame) -> pd.DataFrame:
    """Noise of the chosen run, and what the subtraction leaves of it.

    Parameters
    ----------
    events, traced
        Noise events and runs table that the delta was made of.
    delta
        Of `delta_noise`.

    Returns
    -------
    DataFrame, index (kind, source): `events`, `cpu_share`, `mean_us`, `max_us` of the run
    (``run_…``) and of the delta (``delta_…``).
    """
    columns = ["events", "cpu_share", "mean_us", "max_us"]
    run = delta.attrs["run"]
    chosen = traced[traced["run"] == run]
    before = noise_summary(events[events["run"] == run], chosen)[columns].add_prefix("run_")
    after = noise_summary(delta, chosen)[columns].add_prefix("delta_")
    return before.join(after)
