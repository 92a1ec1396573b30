"""A campaign: runs of several configurations, interleaved in a recorded random order, that survives
anything and may grow.

Each finished run is on disk before the next begins; the same call goes on where a crash, a Ctrl-C
or an earlier call stopped.

The plain way runs one configuration after the other. Where the machine drifts, Welch's test then
finds a difference between equal ones in 200 of 200 sets, in turn and by rounds in 7. In recorded
runs, which drift little, the two find it in 3 and 2 (benchmarks/rivals.py turns).
"""

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError, RunError, SettingError
from ..machine import measuring, run_groups, settings
from ..progress import task
from ..workloads import Workload, as_workload
from ._identity import FORMAT, cell_identity
from ._orphans import cleaned_up_on_sigterm
from ._plan import first_rounds, missing_runs
from ._store import Store
from .attachment import Attachment
from .layers import metrics as metric_layers
from .run import run_once
from .seal import seal_folder
from .table import WITHOUT_LOCK, finished, run_notes, runs_table, series_table

UNGUARDED = "what runs started goes on if this process is killed, until the next campaign begins"
_numbers = itertools.count(1)


def measure(
    command: str | Sequence[str] | Workload | None = None,
    runs: int = 10,
    metrics: Sequence[str] | str = (),
    *,
    config: str | None = None,
    folder: str | os.PathLike | None = None,
    timeout_s: float | None = None,
    attachments: Sequence[Attachment] = (),
    progress: Callable[[int, int, float], object] | None = None,
    **keywords: Any,
) -> pd.DataFrame:
    """Run a program several times and return the runs table.

    Parameters
    ----------
    command
        A `Workload`, or a command for `nbhelpers.program`: a command line or its words.
    runs
        How many finished runs.
    metrics
        Names of metric layers, or "all"; see `nbhelpers.measurement.metrics`.
    config
        A placement; see `Workload.placed`.
    folder
        Stores the runs, so that the same call goes on after an interruption; None: in memory only.
    timeout_s
        Time limit of each run, in seconds.
    attachments
        Further attachments; closed at the end.
    progress
        Called after each run with finished runs, all runs, and seconds left; see `Campaign.run`.
    keywords
        Keywords of `nbhelpers.program`: region, seconds, reports, outcome, description, shell, ….

    Returns
    -------
    DataFrame
        One row a run: `seconds` (run time, s), `status`, and further columns; see
        `nbhelpers.measurement.describe_columns`.

    Raises
    ------
    InputError
        An argument that cannot be used; see `Campaign.run`, `program` and `metrics`.
    RunError
        The program does not exist, or failed repeatedly; see `Campaign.run` and `program`.

    Examples
    --------
    >>> runs = measure("sleep 0.01", runs=3, metrics=["software"])
    >>> len(runs), (runs.seconds >= 0.01).all()
    (3, np.True_)
    """
    workload = as_workload(command, **keywords)
    workload = workload if timeout_s is None else replace(workload, timeout_s=timeout_s)
    workload = workload if config is None else workload.placed(config)
    layers = metric_layers(*([metrics] if isinstance(metrics, str) else metrics))
    return Campaign(
        folder, [Cell(workload.name, workload)], runs, attachments=(*attachments, *layers)
    ).run(progress)


@dataclass(frozen=True)
class Cell:
    """One configuration of a campaign: what is run, under which name, with what noise.

    Parameters
    ----------
    name
        The value of the column `cell`, unique in the campaign.
    workload
        What is run.
    noise
        "none", or the digest of the noise config that one of the attachments injects.
    attachments
        Accompany the runs of this cell only.
    compared_with
        Names of the cells that it is compared with; None: all of the campaign. When cells are added
        to a measured campaign, those that are compared with them are measured again together with
        them, and the others are not.

    Examples
    --------
    >>> from nbhelpers.workloads import program
    >>> Cell("short", program("sleep 0.01")).is_compared_with(Cell("long", program("sleep 0.02")))
    True
    """

    name: str
    workload: Workload
    noise: str = "none"
    attachments: tuple[Attachment, ...] = ()
    compared_with: tuple[str, ...] | None = None

    def __post_init__(self):
        object.__setattr__(self, "attachments", tuple(self.attachments))

    def is_compared_with(self, other: "Cell") -> bool:
        """Whether this cell needs runs of another one in the same rounds."""
        return self.compared_with is None or other.name in self.compared_with


class Campaign:
    """Runs of cells in randomised blocks: each round has one run of every cell, in an order drawn
    from (seed, round).

    A campaign grows. Cells that its folder does not hold yet are measured in further rounds,
    together with those that they are compared with (`Cell.compared_with`). The earlier runs stay,
    and the column `epoch` distinguishes them. A cell that leaves the campaign leaves its runs in
    the folder. Runs of something else under the same name (another command, build, size,
    placement) are put aside into ``FOLDER/aside/DATE``, and the cell is measured anew. `notes` has
    a sentence for each such event.

    Parameters
    ----------
    folder
        Where the runs are stored; None: in memory only.
    cells
        The configurations.
    runs
        Number of rounds in which every cell was measured together with those that it is compared
        with; more than last time means more rounds.
    seed
        Seed of the random order.
    recorded_only
        Never measure; `run()` returns the first `runs` rounds of what was recorded.
    attachments
        Accompany every run; armed after those of the cell, and read before them.
    max_failures
        Failures of a cell in a row after which the campaign gives up; each failed run is recorded
        and tried again.

    Raises
    ------
    InputError
        An argument that cannot be used.

    Examples
    --------
    >>> from nbhelpers.workloads import program
    >>> cells = [Cell("short", program("sleep 0.01")), Cell("long", program("sleep 0.03"))]
    >>> runs = Campaign(None, cells, runs=2).run()
    >>> sorted(runs["cell"]), bool((runs["seconds"] >= 0.01).all())
    (['long', 'long', 'short', 'short'], True)
    """

    def __init__(
        self,
        folder: str | os.PathLike | None,
        cells: Sequence[Cell],
        runs: int,
        seed: int = 1,
        recorded_only: bool = False,
        attachments: Sequence[Attachment] = (),
        max_failures: int = 5,
    ):
        self.cells = tuple(cells)
        self.seed = int(seed)
        self.recorded_only = recorded_only
        self.attachments = tuple(attachments)
        self.max_failures = int(max_failures)
        self.wanted_runs = int(runs)
        self._store = Store(folder)
        self._beside = ""  # who kept the lock of all users
        self._group: str | None = None  # that holds the runs; None: each makes its own
        self._machine_notes: list[str] = []  # what dead processes had left; a guardian's absence
        names = [cell.name for cell in self.cells]
        if not names or len(set(names)) < len(names):
            raise InputError(
                "a campaign needs at least one cell, and no two cells of one name",
                where=", ".join(names) or "no cells",
            )
        for value, low, field in (
            (self.wanted_runs, 1, "runs"),
            (self.seed, 0, "seed"),
            (self.max_failures, 1, "max_failures"),
        ):
            if value < low:
                raise InputError(f"{field} is {value}; it must be at least {low}")

    def __repr__(self) -> str:
        rows = self._store.rows()
        done = sum(self._finished(rows).values())
        total = done + len(self._missing(rows))
        return f"Campaign({self._store.folder or 'in memory'}: {done} of {total} runs)"

    def _finished(self, rows: list[dict]) -> dict[str, int]:
        """Finished runs of each cell."""
        counts = Counter(row["cell"] for row in rows if row["status"] == "ok")
        return {cell.name: counts[cell.name] for cell in self.cells}

    def order(self, round_number: int) -> list[Cell]:
        """The cells in the order of a round; the same for the same seed, always."""
        random = np.random.default_rng([self.seed, round_number])
        return [self.cells[at] for at in random.permutation(len(self.cells))]

    def runs(self) -> pd.DataFrame:
        """All runs so far of the campaign's cells, failed ones too (`finished` drops them); see
        `recorded_runs` for those of all cells.

        `attrs["notes"]` : how the campaign grew, which settings were restored that dead processes
        had left changed, a guardian that did not start, the notes of the attachments, of failed
        runs, of processes that runs left, and of a region that is not known.
        """
        names = {cell.name for cell in self.cells}
        table = runs_table([row for row in self._store.rows() if row["cell"] in names])
        attached = [note for attachment in self._all_attachments() for note in attachment.notes]
        table.attrs["notes"] = self.notes + self._machine_notes + attached + run_notes(table)
        return table

    @property
    def notes(self) -> list[str]:
        """Which cells were added, put aside or removed since the first run, a sentence each."""
        return self._store.notes()

    def series(self) -> pd.DataFrame:
        """The values of all repetitions within the runs so far, for programs that print them: run,
        name, unit, index, value.
        """
        return series_table(self._store.series())

    def run(
        self,
        progress: Callable[[int, int, float], object] | None = None,
        enough: Callable[[pd.DataFrame], bool] | None = None,
        most_runs: int = 0,
    ) -> pd.DataFrame:
        """Measure what is missing and return all runs, as `runs` does.

        Parameters
        ----------
        progress
            Called after each run with the number of finished runs, the number of all, and the
            estimated seconds left.
        enough
            Called with the finished runs when there are `runs` of each cell; while it returns
            False, another round is measured.
        most_runs
            Bound of `enough`: no further round when each cell has so many runs.

        Returns
        -------
        DataFrame
            All runs, as `runs` returns them.

        Raises
        ------
        InputError
            The folder is in use, or (recorded_only) holds runs of something else, or too few.
        RunError
            A program does not exist, or failed `max_failures` times in a row.
        """
        if self.recorded_only:
            return self._first_recorded(max(self.wanted_runs, most_runs))
        with cleaned_up_on_sigterm(), self._store.locked(), ExitStack() as stack:
            for attachment in self._all_attachments():
                stack.callback(attachment.close)
            self._store.settle(self._identity())
            shown = None
            while True:
                rows = self._store.rows()
                if missing := self._missing(rows):
                    if shown is None:
                        self._hold_machine(stack)
                        shown = stack.enter_context(self._task(missing, enough is None))
                    self._measure(rows, missing, shown, progress)
                if not enough or self.wanted_runs >= most_runs or enough(finished(self.runs())):
                    break
                self.wanted_runs += 1
            if shown is None:
                self._repair()  # what was killed after its last run has nothing to measure
            if self._store.folder is not None:
                seal_folder(self._store.folder)  # all that was requested is there
        return self.runs()

    def _hold_machine(self, stack: ExitStack) -> None:
        """Hold the machine to the end of `stack`, with a control group for the runs, which our
        guardian ends if this process is killed. Where there can be none, what has left the process
        group of its run outlives a killed process of ours: the doctor says so.
        """
        self._beside = stack.enter_context(measuring())
        self._group = None
        if path := run_groups.path(f"campaign-{next(_numbers)}"):
            try:
                change = stack.enter_context(settings.make_folder(path))
            except SettingError as error:
                self._machine_notes.append(f"{error.what}; {UNGUARDED}")
            else:
                self._machine_notes += change.repaired
                self._group = path
        if self._group is None:
            self._repair()

    def _repair(self) -> None:
        """Put back what dead processes left; nothing can be left where no journal can be."""
        with suppress(SettingError):
            self._machine_notes += settings.repair()

    def _all_attachments(self) -> list[Attachment]:
        of_cells = [one for cell in self.cells for one in cell.attachments]
        return list({id(one): one for one in (*of_cells, *self.attachments)}.values())

    def _identity(self, with_programs: bool = True) -> dict:
        """What the runs are runs of, as `campaign.json` holds it."""
        cells = {}
        for cell in self.cells:
            accompanied = [one.identity for one in (*cell.attachments, *self.attachments)]
            cells[cell.name] = cell_identity(
                cell.workload,
                cell.noise,
                [*filter(None, accompanied)],
                self._store.folder,
                with_programs,
            )
        return {"format": FORMAT, "seed": self.seed, "cells": cells}

    def _missing(self, rows: list[dict]) -> list[tuple[int, Cell]]:
        """Rounds and cells without a finished run that is needed, in order."""
        epoch = self._store.epoch()
        first = max((row["round"] + 1 for row in rows if row.get("epoch", 0) < epoch), default=0)
        done = [(row["round"], row["cell"]) for row in rows if row["status"] == "ok"]
        return missing_runs(done, self.cells, self.wanted_runs, first, self.order)

    def _seconds_left(self, rows: list[dict], missing: list[tuple[int, Cell]]) -> float:
        """Seconds left, by the median run of each cell; NaN before the first run."""
        seconds = pd.Series([row["elapsed_seconds"] for row in rows], dtype=float)
        medians = seconds.groupby([row["cell"] for row in rows]).median()
        return float(sum(medians.get(cell.name, medians.mean()) for _, cell in missing))

    def _task(self, missing: list[tuple[int, Cell]], is_all: bool) -> AbstractContextManager[Any]:
        """What is shown while runs are missing, and, if these are not all, those that follow."""
        names = list(dict.fromkeys(cell.workload.name for cell in self.cells))
        what = ", ".join(names) if len(names) <= 3 else f"{len(names)} programs"
        total, several = len(missing) if is_all else None, len(missing) > len(self.cells)
        return task(f"measuring {what}", total, "runs", urgent=several)

    def _measure(
        self,
        rows: list[dict],
        missing: list[tuple[int, Cell]],
        shown: Any,
        progress: Callable[[int, int, float], object] | None,
    ) -> None:
        done = sum(self._finished(rows).values())
        total = done + len(missing)
        numbers, epoch = itertools.count(self._store.next_run()), self._store.epoch()
        for at, (round_number, cell) in enumerate(missing, 1):
            labels = {"cell": cell.name, "round": round_number, "epoch": epoch}
            labels["noise"] = cell.noise
            if self._beside:
                labels[WITHOUT_LOCK] = self._beside
            rows += self._until_finished(cell, labels, numbers)
            shown.update(1)
            if progress:
                progress(done + at, total, self._seconds_left(rows, missing[at:]))

    def _until_finished(self, cell: Cell, labels: dict, numbers: Iterator[int]) -> list[dict]:
        """A finished run of a cell, after those that failed; each is on disk."""
        rows: list[dict] = []
        attachments = (*cell.attachments, *self.attachments)
        for number in itertools.islice(numbers, self.max_failures):
            row = run_once(cell.workload, attachments, number, labels=labels, group=self._group)
            self._store.append(row)
            rows.append(row)
            if row["status"] == "ok":
                return rows
        folder = self._store.folder
        raise RunError(
            f"'{cell.name}' failed {self.max_failures} times in a row, at last with status"
            f" '{rows[-1]['status']}'",
            where=" ".join(cell.workload.command),
            why=rows[-1]["message"],
            fix=("a longer timeout_s (--timeout), or " if rows[-1]["status"] == "timeout" else "")
            + "run the command by hand"
            + (f"; the next campaign in {folder} goes on from there" if folder else ""),
        )

    def _first_recorded(self, rounds: int) -> pd.DataFrame:
        """So many rounds of what was recorded, or all that there are."""
        self._store.agree(self._identity(with_programs=False))
        counts = self._finished(self._store.rows())
        short = {name: count for name, count in counts.items() if count < self.wanted_runs}
        if short:
            raise InputError(
                f"fewer runs are recorded than the {self.wanted_runs} requested: "
                + ", ".join(f"'{name}' has {count}" for name, count in short.items()),
                where=self._store.folder,
                fix="request fewer, or measure: the same campaign with recorded_only=False",
            )
        table = self.runs()
        done = table.loc[table["status"] == "ok", ["round", "cell"]].itertuples(index=False)
        taken = table["round"] < first_rounds([*map(tuple, done)], self.cells, rounds)
        return table[taken].reset_index(drop=True)


def recorded_runs(folder: str | Path) -> pd.DataFrame:
    """Return the runs table of a campaign's folder: of all its cells, failed runs too.

    Parameters
    ----------
    folder
        The campaign's folder.

    Returns
    -------
    DataFrame
        One row a run, columns as `describe_columns` lists them; `attrs["notes"]`: how the campaign
        grew, a sentence each.

    Raises
    ------
    InputError
        Nothing was recorded there, or a record is damaged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from nbhelpers.measurement import measure
    >>> with TemporaryDirectory() as folder:
    ...     _ = measure("sleep 0.01", runs=2, folder=folder)
    ...     recorded_runs(folder)["status"].tolist()
    ['ok', 'ok']
    """
    store = _recorded(folder)
    table = runs_table(store.rows())
    table.attrs["notes"] = store.notes()
    return table


def series(folder: str | Path) -> pd.DataFrame:
    """Return the series of a campaign's folder, of all runs that printed any.

    Parameters
    ----------
    folder
        The campaign's folder.

    Returns
    -------
    DataFrame
        One row a value: `run`, `name`, `unit`, `index` (from 0) and `value`; see `Campaign.series`.

    Raises
    ------
    InputError
        Nothing was recorded there, or a record is damaged.
    """
    return series_table(_recorded(folder).series())


def _recorded(folder: str | Path) -> Store:
    """The store of a folder that has runs."""
    store = Store(folder)
    if not store.rows():
        raise InputError(
            "no runs were recorded here",
            where=folder,
            fix=(
                "first run the notebook that measures them, with the same profile (make paper runs"
                ' all in order), or read the recorded campaign: profile = "recorded"'
            ),
        )
    return store
