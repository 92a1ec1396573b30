"""A campaign: runs of several configurations, interleaved in a recorded random order, that survives anything.

Each finished run is on disk before the next begins; the same call goes on where a crash, a Ctrl-C or an earlier call stopped.
"""

import os
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import InputError, RunError
from ..machine import measuring
from ..progress import Task, task
from ..workloads import Workload
from ._process import cleaned_up_on_sigterm, kill_marked
from ._store import Store, identity
from .attachment import Attachment
from .run import run_once
from ._series import series_table
from .table import finished, region_notes, runs_table


@dataclass(frozen=True)
class Cell:
    """One configuration of a campaign.

    Parameters
    ----------
    name : the value of the column `cell`, unique in the campaign.
    workload : what is run.
    noise : "none", or the digest of the noise config that one of the attachments injects.
    attachments : what accompanies the runs of this cell only.
    """

    name: str
    workload: Workload
    noise: str = "none"
    attachments: tuple[Attachment, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "attachments", tuple(self.attachments))


class Campaign:
    """Runs of cells in randomised blocks: in each round every cell once, in an order drawn from (seed, round).

    Parameters
    ----------
    folder : where the runs are kept; None: in memory only.
    cells : the configurations.
    runs : finished runs asked for of each cell; more than last time means more rounds.
    seed : of the order.
    frozen : never measure; `run()` returns what was recorded.
    attachments : what accompanies every run; armed after those of the cell, and read before them.
    max_failures : failures of a cell in a row after which the campaign gives up; each failed run is recorded and tried again.
    lead_ms : see `run_once`.

    Raises
    ------
    InputError : an argument that cannot be used.
    """

    def __init__(self, folder: str | os.PathLike | None, cells: Sequence[Cell], runs: int, seed: int = 1, frozen: bool = False,
                 attachments: Sequence[Attachment] = (), max_failures: int = 5, lead_ms: float = 5.0):
        self.cells, self.seed, self.frozen = tuple(cells), int(seed), frozen
        self.attachments, self.max_failures, self.lead_ms = tuple(attachments), int(max_failures), float(lead_ms)
        self.asked, self._store, self._holds_machine = int(runs), Store(folder), False
        names = [cell.name for cell in self.cells]
        if not names or len(set(names)) < len(names):
            raise InputError("a campaign needs at least one cell, and each cell a name of its own", where=", ".join(names) or "no cells")
        for value, low, field in ((self.asked, 1, "runs"), (self.seed, 0, "seed"), (self.max_failures, 1, "max_failures"),
                                  (self.lead_ms, 0, "lead_ms")):
            if value < low:
                raise InputError(f"{field} is {value}; it must be at least {low}")

    def __repr__(self) -> str:
        finished = sum(row["status"] == "ok" for row in self._store.rows())
        return f"Campaign({self._store.folder or 'in memory'}: {finished} of {self.asked * len(self.cells)} runs)"

    def order(self, round_number: int) -> list[Cell]:
        """The cells in the order of a round; the same for the same seed, always."""
        return [self.cells[at] for at in np.random.default_rng([self.seed, round_number]).permutation(len(self.cells))]

    def runs(self) -> pd.DataFrame:
        """All runs so far, failed ones too (`finished` drops them); notes of the attachments, and of a region that is not known, are in `attrs["notes"]`."""
        table = runs_table(self._store.rows())
        table.attrs["notes"] = [note for attachment in self._all_attachments() for note in attachment.notes] + region_notes(finished(table))
        return table

    def series(self) -> pd.DataFrame:
        """The values of all repetitions within the runs so far, for programs that print them: run, name, unit, index, value."""
        return series_table(self._store.series())

    @property
    def seconds_left(self) -> float:
        """Estimated time to the end, by the median of each cell so far; NaN before the first run."""
        rows = self._store.rows()
        return self._seconds_left(rows, self._missing(rows))

    def run(self, progress: Callable[[int, int, float], object] | None = None, enough: Callable[[pd.DataFrame], bool] | None = None,
            most_runs: int = 0) -> pd.DataFrame:
        """Measure what is missing and return all runs, as `runs` does.

        Parameters
        ----------
        progress : called after each run with the number of finished runs, the number asked for, and the estimated seconds left; what is
            shown by itself (`nbhelpers.progress`) is shown as well.
        enough : of the finished runs, asked when there are as many as asked for; while it says no, another round is measured...
        most_runs : ...until each cell has so many runs.

        Raises
        ------
        InputError : the folder holds runs of something else, is in use, or (frozen) holds fewer runs than are asked for.
        RunError : a program does not exist, or failed `max_failures` times in a row.
        """
        if self.frozen:
            self._check_recorded()
            return self.runs()
        with cleaned_up_on_sigterm(), self._store.locked(), ExitStack() as stack:
            for attachment in self._all_attachments():
                stack.callback(attachment.close)
            self._store.settle(identity({cell.name: (cell.workload, cell.noise) for cell in self.cells}, self.seed, self._store.folder))
            self._complete(stack, progress)
            while enough and self.asked < most_runs and not enough(finished(runs_table(self._store.rows()))):
                self.asked += 1
                self._complete(stack, progress)
        return self.runs()

    def _complete(self, stack: ExitStack, progress: Callable[[int, int, float], object] | None) -> None:
        """Measure the rounds that are missing; the machine is held from the first of them to the end of `stack`."""
        if not self._missing(self._store.rows()):
            return
        if not self._holds_machine:
            stack.enter_context(measuring(doing=f"measuring {self._store.folder or 'in memory'}"))
            self._holds_machine = True
            stack.callback(setattr, self, "_holds_machine", False)
            kill_marked(self._store.mark)  # what a crash of ourselves left running
        self._measure(progress)

    def _all_attachments(self) -> list[Attachment]:
        listed = [attachment for cell in self.cells for attachment in cell.attachments] + list(self.attachments)
        return list({id(attachment): attachment for attachment in listed}.values())

    def _missing(self, rows: list[dict]) -> list[tuple[int, Cell]]:
        """Rounds and cells without a finished run, in order."""
        done = {(row["round"], row["cell"]) for row in rows if row["status"] == "ok"}
        return [(number, cell) for number in range(self.asked) for cell in self.order(number) if (number, cell.name) not in done]

    def _seconds_left(self, rows: list[dict], missing: list[tuple[int, Cell]]) -> float:
        spent: dict[str, list[float]] = {}
        for row in rows:
            spent.setdefault(row["cell"], []).append(row["elapsed_seconds"])
        medians = {name: statistics.median(values) for name, values in spent.items()}
        unknown = statistics.mean(medians.values()) if medians else float("nan")
        return float(sum(medians.get(cell.name, unknown) for _, cell in missing))

    def _measure(self, progress: Callable[[int, int, float], object] | None) -> None:
        rows = self._store.rows()
        missing = self._missing(rows)
        total, number = self.asked * len(self.cells), max((row["run"] for row in rows), default=-1) + 1
        with task(self._title(), total, "runs", urgent=True) as shown:
            shown.at(total - len(missing), lambda: self._seconds_left(rows, missing))
            self._measure_each(rows, missing, number, shown, progress)

    def _measure_each(self, rows: list[dict], missing: list[tuple[int, Cell]], number: int, shown: Task,
                      progress: Callable[[int, int, float], object] | None) -> None:
        total = self.asked * len(self.cells)
        for at, (round_number, cell) in enumerate(missing):
            for failures in range(1, self.max_failures + 1):
                row = self._one(number, round_number, cell)
                rows.append(row)
                number += 1
                if row["status"] == "ok":
                    break
                if failures == self.max_failures:
                    raise self._gave_up(cell, row)
            done, left = total - len(missing) + at + 1, missing[at + 1:]
            shown.at(done, lambda: self._seconds_left(rows, left))
            if progress:
                progress(done, total, self._seconds_left(rows, left))

    def _title(self) -> str:
        names = list(dict.fromkeys(cell.workload.name for cell in self.cells))
        return f"measuring {', '.join(names) if len(names) <= 3 else f'{len(names)} programs'}"

    def _one(self, number: int, round_number: int, cell: Cell) -> dict:
        labels = {"cell": cell.name, "round": round_number, "noise": cell.noise}
        row = run_once(cell.workload, (*cell.attachments, *self.attachments), run=number, lead_ms=self.lead_ms, labels=labels,
                       mark=f"{self._store.mark}.{number}")
        plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in row.items()}
        self._store.append(plain)
        return plain

    def _gave_up(self, cell: Cell, row: dict) -> RunError:
        return RunError(f"'{cell.name}' failed {self.max_failures} times in a row, at last with status '{row['status']}'",
                        where=" ".join(cell.workload.command), why=row["message"],
                        mend="run the command by hand; what was measured is kept, and the same call goes on from there")

    def _check_recorded(self) -> None:
        self._store.agree(identity({cell.name: (cell.workload, cell.noise) for cell in self.cells}, self.seed, self._store.folder, with_programs=False))
        counts = {cell.name: 0 for cell in self.cells}
        for row in self._store.rows():
            counts[row["cell"]] += row["status"] == "ok"
        short = {name: count for name, count in counts.items() if count < self.asked}
        if short:
            raise InputError(f"fewer runs are recorded than the {self.asked} asked for: "
                             + ", ".join(f"'{name}' has {count}" for name, count in short.items()), where=self._store.folder,
                             mend="ask for fewer, or measure: the same campaign with frozen=False")
