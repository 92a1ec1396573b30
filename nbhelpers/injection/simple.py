"""One call from a noise config and a command to the disturbed runs, the log and its accuracy."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..measurement import Attachment, Campaign, Cell, run_once
from ..noise import NoiseConfig
from ..workloads import Workload, as_workload
from ._lanes import Placement
from .accuracy import Accuracy, accuracy_of
from .injector import Injector
from .log import join_logs
from .rules import Rules
from .stressor_options import StressorOptions


@dataclass(frozen=True)
class Injection:
    """What `inject` returns.

    `runs`: the runs table, one row a run; `logs`: run -> its injection log; `notes`: what a reader
    must know.
    """

    runs: pd.DataFrame
    logs: dict[int, pd.DataFrame]
    notes: tuple[str, ...]

    @property
    def run(self) -> pd.Series | pd.DataFrame:
        """The row of the run, or the table where there are several."""
        return self.runs.iloc[0] if len(self.runs) == 1 else self.runs

    @property
    def log(self) -> pd.DataFrame:
        """The log of the run, without a copy; of several runs the logs below each other, with a
        column `run`.
        """
        if len(self.logs) == 1:
            return next(iter(self.logs.values()))
        return join_logs(self.logs)

    def accuracy(
        self, anomaly_seconds: object = None, undisturbed_seconds: object = None, seed: int = 0
    ) -> Accuracy:
        """How far it was from its plan, over all runs: each event, CPU time by class, and the run
        times.

        Parameters
        ----------
        anomaly_seconds
            Run time of the anomaly that was replayed, or of several runs of it; None: nothing is
            said of run times.
        undisturbed_seconds
            Run times without noise, as a control.
        seed
            Of the resampling.
        """
        seconds = self.runs.loc[self.runs["status"] == "ok", "seconds"]
        return accuracy_of(self.log, anomaly_seconds, seconds, undisturbed_seconds, seed)

    def __repr__(self) -> str:
        return (
            f"Injection({len(self.runs)} run(s), {self.accuracy()!r})"
            if self.logs
            else f"Injection({len(self.runs)} run(s), no log)"
        )


def inject(
    config: NoiseConfig | str | Path,
    command: Workload | str | Sequence[str] | None = None,
    runs: int = 1,
    *,
    placement: Placement = "roam",
    lanes: int = 2,
    rules: Rules | None = None,
    exclude_cpus: Collection[int] = (),
    stressors: StressorOptions | None = None,
    log_folder: str | Path | None = None,
    **described: object,
) -> Injection:
    """Run a program under a noise config, as often as wanted.

    Parameters
    ----------
    config
        a noise config, or the path of one.
    command
        a `Workload`, or what `workloads.program` makes one of, as in `measure`.
    runs
        How often; to compare with undisturbed runs use a `Campaign` that interleaves them, with an
        `Injector` attached.
    placement, lanes, rules, exclude_cpus, stressors, log_folder
        See `Injector`.
    described
        Keywords of `workloads.program`, the same as in `measure`: region, seconds, reports,
        outcome, ….

    Raises
    ------
    InputError
        a config that this machine cannot, or should not, be given.
    RunError
        The program does not exist, or the injector could not be started.
    """
    config = config if isinstance(config, NoiseConfig) else NoiseConfig.read(config)
    workload = as_workload(command, **described)
    injector = Injector(
        config,
        placement,
        lanes=lanes,
        rules=rules,
        exclude_cpus=exclude_cpus,
        stressors=stressors,
        log_folder=log_folder,
        keep_logs=True,
    )
    try:
        rows = [
            run_once(workload, [injector], run=run, labels={"noise": config.digest})
            for run in range(runs)
        ]
    finally:
        injector.close()
    return Injection(pd.DataFrame(rows), injector.logs, injector.notes)


def injection_campaign(
    folder: Path,
    workload: Workload,
    config: NoiseConfig,
    runs: int,
    seed: int = 0,
    recorded_only: bool = False,
    attachments: Sequence[Attachment] = (),
    **options,
) -> Campaign:
    """The workload with and without a noise config, in random order: the cells "baseline" and
    "injected".

    Parameters
    ----------
    folder
        Of the campaign; logs go to ``logs`` in it.
    runs, seed, recorded_only, attachments
        Of the campaign; recorded_only: nothing is planned or measured.
    options
        Of `Injector`.
    """
    injector = (
        [] if recorded_only else [Injector(config, log_folder=Path(folder) / "logs", **options)]
    )
    cells = [
        Cell("baseline", workload),
        Cell("injected", workload, noise=config.digest, attachments=injector),
    ]
    return Campaign(
        folder, cells, runs=runs, seed=seed, recorded_only=recorded_only, attachments=attachments
    )
