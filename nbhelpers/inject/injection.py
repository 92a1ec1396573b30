"""One call from a noise config and a command to the disturbed runs, the log and its accuracy."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..measure import Attachment, Campaign, Cell, run_once
from ..noise import NoiseConfig
from ..workloads import Workload, external
from .accuracy import Accuracy, accuracy_of
from .injector import Injector
from .log import join_logs


@dataclass(frozen=True)
class Injection:
    """What `inject` returns.

    `runs`: the runs table, one row a run; `logs`: run -> its injection log; `notes`: what a reader must know.
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
        """The log of the run, without a copy; of several runs the logs below each other, with a column `run`."""
        if len(self.logs) == 1:
            return next(iter(self.logs.values()))
        return join_logs(self.logs)

    def accuracy(self, anomaly_seconds: object = None, undisturbed_seconds: object = None, seed: int = 0) -> Accuracy:
        """How far it was from its plan, over all runs: each event, CPU time by class, and the run times.

        Parameters
        ----------
        anomaly_seconds : run time of the anomaly that was replayed, or of several runs of it; None: nothing is said of run times.
        undisturbed_seconds : run times without noise, as a control. seed : of the resampling.
        """
        seconds = self.runs.loc[self.runs["status"] == "ok", "seconds"]
        return accuracy_of(self.log, anomaly_seconds, seconds, undisturbed_seconds, seed)

    def __repr__(self) -> str:
        return f"Injection({len(self.runs)} run(s), {self.accuracy()!r})" if self.logs else f"Injection({len(self.runs)} run(s), no log)"


def inject(config: NoiseConfig | str | Path, workload: Workload | str | Sequence[str], runs: int = 1, **options) -> Injection:
    """Run a workload under a noise config, as often as wanted.

    Parameters
    ----------
    config : a noise config, or the path of one.
    workload : a workload, or any command line.
    runs : how often; to compare with undisturbed runs use a `Campaign` that interleaves them, with an `Injector` attached.
    options : of `Injector`: placement, lanes, rules, log_folder.

    Raises
    ------
    InputError : a config that this machine cannot, or should not, be given.
    RunError : the program does not exist, or the injector could not be started.
    """
    config = config if isinstance(config, NoiseConfig) else NoiseConfig.read(config)
    workload = workload if isinstance(workload, Workload) else external(workload)
    injector = Injector(config, keep_logs=True, **options)
    try:
        rows = [run_once(workload, [injector], run=run, labels={"noise": config.digest}) for run in range(runs)]
    finally:
        injector.close()
    return Injection(pd.DataFrame(rows), injector.logs, injector.notes)


def injection_campaign(folder: Path, workload: Workload, config: NoiseConfig, runs: int, seed: int = 0, frozen: bool = False,
                       attachments: Sequence[Attachment] = (), **options) -> Campaign:
    """The workload with and without a noise config, in random order: the cells "baseline" and "injected".

    Parameters
    ----------
    folder : of the campaign; logs go to ``logs`` in it.
    runs, seed, frozen, attachments : of the campaign; frozen: nothing is planned or measured.
    options : of `Injector`.
    """
    injector = [] if frozen else [Injector(config, log_folder=Path(folder) / "logs", **options)]
    cells = [Cell("baseline", workload), Cell("injected", workload, noise=config.digest, attachments=injector)]
    return Campaign(folder, cells, runs=runs, seed=seed, frozen=frozen, attachments=attachments)
