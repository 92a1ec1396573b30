"""The steps of a study of one program: measure and trace, replay the slowest run, look for the
cause, prove it.

Owns the order of the campaigns and their folders. Every step keeps its data in the study's folder,
so that the same call goes on where it stopped.
"""

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

import pandas as pd

from ...errors import InputError, NoisebookError
from ...files import write_json
from ...injection import injection_campaign
from ...measurement import (
    Campaign,
    Cell,
    finished,
    metrics,
    recorded_runs,
    run_notes,
)
from ...mitigation.loop import autopilot
from ...mitigation.report import Report
from ...mitigation.trials import new_order
from ...noise import NoiseConfig, average_noise, delta_noise
from ...outcomes import Outcome
from ...reading import read_json
from ...speed import SpeedProbe
from ...statistics import Comparison, compare
from ...tracing import Tracer, noise_summary, read_traces
from ...workloads import Workload
from ..cause_proof import CauseProof, prove_cause
from .options import study_folder
from .plan import FEWEST_REPLAYED, TimePlan, plan_study
from .took import Thresholds, Took, took_of

SHORT_S = 5.0  # a run that takes longer is looked at one time only


@dataclass(frozen=True)
class TracedRuns:
    """The runs with and without tracing, their noise, and the config of the slowest one.

    Parameters
    ----------
    runs
        Finished runs; `cell` is untraced or traced.
    events
        Noise events of the traced ones.
    noise
        Noise by source, a table of `nbhelpers.tracing.noise_summary`.
    tracing
        Traced against untraced runs.
    delta
        Noise of the slowest traced run beyond the average.
    config
        `delta` as a noise config; None: nothing was left.
    is_program
        Whether the program itself was traced, and not a loop in its place.
    """

    runs: pd.DataFrame
    events: pd.DataFrame
    noise: pd.DataFrame
    tracing: Comparison
    delta: pd.DataFrame
    config: NoiseConfig | None
    is_program: bool


class Steps:
    """The steps of the study of one program; each is measured when it is first used.

    Parameters
    ----------
    workload, folder, seconds, runs, risk, seed
        Program, cache, time in seconds, rounds, highest risk, and seed; see `ProgramStudy`.
    """

    def __init__(
        self,
        workload: Workload,
        folder: str | Path | None = None,
        seconds: float = 0,
        runs: int = 0,
        risk: str = "none",
        seed: int = 1,
    ):
        self.workload, self.folder = workload, Path(folder or study_folder(workload))
        self.seconds, self.runs, self.risk, self.seed = seconds, runs, risk, seed
        self.thresholds = Thresholds()

    @cached_property
    def command(self) -> str:
        """What is run, as one line."""
        return shlex.join(self.workload.command)

    @cached_property
    def plan(self) -> TimePlan:
        """How the time is divided; one to three runs are made to find out how long one takes, with
        all that watches it.
        """
        path = self.folder / "plan.json"
        if not path.exists():
            runs = self._first_look(1)
            if runs["elapsed_seconds"].iloc[0] < SHORT_S:
                runs = self._first_look(3)
            write_json(path, {"run_seconds": float(runs["elapsed_seconds"].median())})
        cached = cast("dict[str, float]", read_json(path))  # written above
        return plan_study(cached["run_seconds"], self.seconds, self.runs)

    def _first_look(self, runs: int) -> pd.DataFrame:
        folder = self.folder / "first-look"
        tracer = Tracer(folder / "traces")
        recorders = (tracer, SpeedProbe(folder / "speed"))
        cell = Cell("traced", tracer.stand_in(self.workload), attachments=recorders)
        return Campaign(folder, [cell], runs=runs, attachments=metrics("all")).run()

    @cached_property
    def traced(self) -> TracedRuns:
        """Step 1: runs with and without tracing, in turn."""
        folder = self.folder / "traced"
        tracer = Tracer(folder / "traces")
        ran = tracer.stand_in(self.workload)
        recorders = (tracer, SpeedProbe(folder / "speed"))
        cells = [Cell("untraced", ran), Cell("traced", ran, attachments=recorders)]
        runs = finished(
            Campaign(
                folder, cells, runs=self.plan.traced, seed=self.seed, attachments=metrics("all")
            ).run()
        )
        traced = runs[runs["cell"] == "traced"]
        events = read_traces(folder / "traces", traced)
        delta = events
        if len(events):
            delta = delta_noise(events, average_noise(events, traced), traced)
        config = None
        if (delta["duration_ns"] > 0).any():
            config = NoiseConfig.from_events(delta, threads="slices")
        if config is not None:
            config.write(self.folder / "worst-run.json")
        return TracedRuns(
            runs=runs,
            events=events,
            noise=noise_summary(events, traced),
            tracing=compare(runs[runs["cell"] == "untraced"], traced, seed=self.seed),
            delta=delta,
            config=config,
            is_program=ran is self.workload,
        )

    @cached_property
    def took(self) -> Took:
        """What the slow ones of the traced runs lost, by name."""
        runs = self.traced.runs
        if not self.traced.is_program:
            runs = runs[runs["cell"] == "untraced"]
        return took_of(runs, self.folder / "traced", self.outcome, self.seed, self.thresholds)

    def notes(self, step: str = "") -> list[str]:
        """How many runs failed, or left others running: of a step's folder, or of all so far."""
        found = (self.folder / step).rglob("campaign.json")
        own = [path.parent for path in found if "aside" not in path.parts]
        tables = [recorded_runs(folder) for folder in own if (folder / "runs.jsonl").exists()]
        return run_notes(pd.concat(tables).drop(columns="cell")) if tables else []

    @cached_property
    def replayed(self) -> pd.DataFrame:
        """Step 2: runs with the slowest run's noise, and without, in turn; `cell` is injected or
        baseline.

        Raises
        ------
        InputError
            Nothing is left to replay.
        """
        config = self.config
        if not self.plan.replayed:
            few = 0 < self.runs < FEWEST_REPLAYED
            raise InputError(
                f"{self.runs} replays show nothing" if few else "no time is left for replays",
                fix=f"--runs {FEWEST_REPLAYED}, or more"
                if few
                else f"--budget {self.plan.seconds_for_replays()}",
            )
        folder = self.folder / "replayed" / config.digest
        return finished(
            injection_campaign(
                folder, self.workload, config, runs=self.plan.replayed, seed=new_order(self.seed)
            ).run()
        )

    @cached_property
    def treatments(self) -> Report:
        """Steps 3 and 4: what separates slow runs, and what helps."""
        return autopilot(
            self.workload,
            self.plan.treated_seconds,
            folder=self.folder / "treated",
            risk=self.risk,
            seed=self.seed,
            general=True,
        )

    @cached_property
    def proof(self) -> CauseProof:
        """Step 5: what is suspected, injected at graded doses."""
        return prove_cause(
            self.treatments,
            self.workload,
            self.folder / "proof",
            self.plan.proved_seconds,
            self.seed,
        )

    @property
    def config(self) -> NoiseConfig:
        """Noise of the slowest run beyond the average.

        Raises
        ------
        InputError
            Nothing is left.
        """
        if self.traced.config is None:
            raise InputError("the slowest run had no more noise than the average")
        return self.traced.config

    @property
    def slowest_value(self) -> float | None:
        """What the slowest traced run is judged by; None where a loop was traced in its place."""
        if not self.traced.is_program:
            return None
        run = self.traced.delta.attrs["run"]
        return float(self.traced.runs.set_index("run").loc[run, self.outcome.name])

    @property
    def undisturbed(self) -> pd.DataFrame:
        """Runs of the program itself, without tracing and without replayed noise."""
        try:
            if self.traced.is_program:
                return self.traced.runs.query("cell == 'untraced'")
            return self.replayed.query("cell == 'baseline'")
        except NoisebookError:
            return self.treatments.baseline

    @property
    def outcome(self) -> Outcome:
        """What the runs are judged by."""
        return self.workload.judged
