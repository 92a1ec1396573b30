"""One call from a noise config and a command to the disturbed runs and their logs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..measurement import Attachment, Campaign, Cell, run_once
from ..noise import NoiseConfig
from ..workloads import Workload, as_workload
from ._lanes import Placement
from .injector import Injector
from .log import join_logs
from .rules import Rules


@dataclass(frozen=True)
class Injection:
    """Runs of a program under a noise config: what `inject` returns.

    Attributes
    ----------
    runs
        The runs table, one row a run.
    logs
        Run -> its injection log.
    notes
        What a reader of the runs must know, such as what was degraded.
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
        """The log of the run; of several runs the logs one below the other, with a column `run`."""
        if len(self.logs) == 1:
            return next(iter(self.logs.values()))
        return join_logs(self.logs)

    def __repr__(self) -> str:
        if not self.logs:
            return f"Injection({len(self.runs)} run(s), no log)"
        names = ["injected_ns", "injected_planned_ns"]
        taken_ms, planned_ms = self.runs.reindex(columns=names).sum() / 1e6
        return f"Injection({len(self.runs)} run(s), {taken_ms:.3f} of {planned_ms:.3f} ms injected)"


def inject(
    config: NoiseConfig | str | Path,
    command: Workload | str | Sequence[str] | None = None,
    runs: int = 1,
    *,
    placement: Placement = "roam",
    rules: Rules | None = None,
    exclude_cpus: Collection[int] = (),
    scratch: str | Path | None = None,
    log_folder: str | Path | None = None,
    **described: object,
) -> Injection:
    """Run a program several times under a noise config.

    As root real-time noise takes the CPU as an interrupt does. Without root all events are injected
    as ordinary processes, which share the CPU with the program; `notes` states it.

    Parameters
    ----------
    config
        A noise config, or the path of one.
    command
        A workload, a command line, or a list of words; None with `described`.
    runs
        How many. To compare with undisturbed runs use `injection_campaign`, which interleaves them.
    placement
        Where the noise goes: "roam", "origin", "faithful" or a mapping; see `Injector`.
    rules
        How late, how long and how short events may be.
    exclude_cpus
        CPUs that no noise may go to.
    scratch
        Where file noise makes its files; see `Injector`.
    log_folder
        Where the log of each run is written; None: nowhere.
    described
        Further arguments of `nbhelpers.program`: region, seconds, reports, outcome, ….

    Returns
    -------
    Injection : `runs` (one row a run), `logs` (run -> injection log), `notes`.

    Raises
    ------
    InputError
        A config that this machine cannot, or should not, be given.
    RunError
        The program does not exist, or the injector could not be started.

    Examples
    --------
    Two runs with ten interruptions of 1 ms a second on CPU 0:

    >>> from nbhelpers import Signature, inject
    >>> noise = Signature(10, 1000).config(seconds=0.3, cpus=[0])
    >>> injection = inject(noise, "sleep 0.1", runs=2)
    >>> injection.runs["status"].tolist(), len(injection.logs)
    (['ok', 'ok'], 2)
    """
    config = config if isinstance(config, NoiseConfig) else NoiseConfig.read(config)
    workload = as_workload(command, **described)
    injector = Injector(
        config,
        placement,
        rules=rules,
        exclude_cpus=exclude_cpus,
        scratch=scratch,
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
    **options: Any,
) -> Campaign:
    """Plan a campaign of a workload with and without a noise config, in random order.

    Its cells are "baseline" and "injected".

    Parameters
    ----------
    folder
        The campaign's folder; logs go to ``logs`` in it.
    workload
        What is run.
    config
        What is injected.
    runs
        Runs of each cell.
    seed
        Seed of the random order.
    recorded_only
        True: use recorded data, measure nothing.
    attachments
        Further attachments, which accompany the runs of both cells.
    options
        Options of `Injector`.

    Returns
    -------
    Campaign : not yet run; its method `run` runs it.
    """
    injector: tuple[Attachment, ...] = ()
    if not recorded_only:
        injector = (Injector(config, log_folder=Path(folder) / "logs", **options),)
    cells = [
        Cell("baseline", workload),
        Cell("injected", workload, noise=config.digest, attachments=injector),
    ]
    return Campaign(
        folder, cells, runs=runs, seed=seed, recorded_only=recorded_only, attachments=attachments
    )
