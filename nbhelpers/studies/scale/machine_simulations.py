"""The simulations of the page on this machine's noise, each at the size that a profile asks for.

Owns which recording and which number of ranks belong to which table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import pandas as pd

from ...empty import because
from ...simulation.detours import Detours
from ...simulation.machines import Recording, traces_of
from ...tracing import read_traces
from ..baseline import Baseline
from .applications import RED_STORM, application_slowdown, applications_on
from .cache import Cache
from .extremes import (
    BYTES,
    TailTables,
    deciding_table,
    foretold_table,
    recorded_traces,
    spreads_table,
    tail_tables,
)
from .simulations import rank_steps
from .this_machine import this_machine_at_scale, this_machine_recordings


@dataclass(frozen=True)
class MachineSimulations:
    """All simulated tables of the page on this machine's noise, each computed once, when it is
    asked for.

    Parameters
    ----------
    folder
        Where the tables are cached.
    baseline
        Runs of stage 10, whose kernel events are brought to scale.
    detours
        File of this machine's detours, of stage 00.
    ranks, seeds
        Largest number of simulated CPUs, and replicates of each simulation.
    program_ranks, share
        Ranks of the applications; share of their published numbers of collectives.
    traced_runs
        Of stage 10 whose events are used, at most.
    resamples, phases
        Recordings that are drawn anew, and replicates on each.
    """

    folder: Path
    baseline: Baseline
    detours: Path
    ranks: int
    seeds: int
    program_ranks: int
    share: float
    traced_runs: int = 200
    resamples: int = 20
    phases: int = 3

    def _table(
        self, name: str, study: Callable[..., pd.DataFrame], *args: object, **options: object
    ) -> pd.DataFrame:
        return Cache(self.folder, self.baseline.recorded_only).table(name, study, *args, **options)

    @cached_property
    def recordings(self) -> dict[str, Recording]:
        """This machine's noise: the detours of a loop, and kernel events of traced runs."""
        traced = self.baseline.traced.head(self.traced_runs)
        events = read_traces(self.baseline.folder / "traces", traced)
        return this_machine_recordings(self.detours, events, traced)

    @cached_property
    def this_machine(self) -> pd.DataFrame:
        """An all-reduce on many CPUs as noisy as this machine's."""
        return self._table(
            "this-machine",
            this_machine_at_scale,
            self.recordings,
            rank_steps(self.ranks),
            seeds=self.seeds,
            bytes=BYTES,
        )

    @cached_property
    def traces(self) -> dict[str, list[Detours]]:
        """The same, a trace for each CPU and unit (`recorded_traces`)."""
        return recorded_traces(self.recordings)

    @cached_property
    def spreads(self) -> pd.DataFrame:
        """The slow-down on the largest number of CPUs with both its intervals."""
        table = self._table(
            "spreads",
            spreads_table,
            self.traces,
            self.ranks,
            seeds=self.seeds,
            resamples=self.resamples,
            phases=self.phases,
        )
        return because(table, "a single unit of noise was recorded")

    @cached_property
    def deciding(self) -> pd.DataFrame:
        """The same without a source, or without the longest detours."""
        seeds = max(2, self.seeds // 3)
        table = self._table("deciding", deciding_table, self.traces, self.ranks, seeds=seeds)
        return because(table, "too few detours were recorded to take some away")

    @cached_property
    def tails(self) -> TailTables:
        """What a longer recording would have shown."""
        return tail_tables(self.traces)

    @cached_property
    def foretold(self) -> pd.DataFrame:
        """Whether half of the recording foretells the other."""
        return foretold_table(self.traces, splits=min(self.resamples, 20))

    @cached_property
    def applications(self) -> pd.DataFrame:
        """Sweep3D, POP and AMG under the last of the recordings."""
        name, recording = list(self.recordings.items())[-1]
        return self._table(
            "own-applications",
            application_slowdown,
            partial(applications_on, self.program_ranks, self.share),
            {name: traces_of(recording)},
            seeds=self.seeds,
            network=RED_STORM,
        )
