"""One call from a noise config and a command to the disturbed runs, the log and its accuracy."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..measure import run_once
from ..noise import NoiseConfig
from ..workloads import Workload, external
from .injector import Injector
from .log import Accuracy, accuracy_of


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
        return pd.concat(self.logs, names=["run"]).reset_index(level="run").reset_index(drop=True)

    def accuracy(self) -> Accuracy:
        """Bias, spread and 99th percentile of start and duration, and CPU time injected over planned, over all runs."""
        return accuracy_of(self.log)

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
