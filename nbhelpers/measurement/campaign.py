"""A campaign: runs of several configurations, interleaved in a recorded random order, that survives
anything and may grow.

Each finished run is on disk before the next begins; the same call goes on where a crash, a Ctrl-C
or an earlier call stopped.
"""

import os
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError, RunError, SettingError
from ..facts import facts_html
from ..machine import measuring, settings
from ..machine.run_guard import guarded_runs
from ..progress import Task, task
from ..workloads import Workload
from ._identity import campaign_identity
from ._orphans import cleaned_up_on_sigterm, kill_marked
from ._plan import missing_runs
from ._series import series_table
from ._store import Store
from .attachment import Attachment
from .run import run_once
from .table import finished, left_notes, region_notes, runs_table

UNGUARDED = "what runs started goes on if this process is killed, until the next campaign begins"


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

    def _repr_html_(self) -> str:
        facts = {
            "program": repr(self.workload),
            "noise": self.noise,
            "accompanied by": [type(one).__name__ for one in self.attachments],
            "compared with": "all cells" if self.compared_with is None else self.compared_with,
        }
        return facts_html(f"Cell {self.name}", facts)

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
        Of the order.
    recorded_only
        Never measure; `run()` returns what was recorded.
    attachments
        Accompany every run; armed after those of the cell, and read before them.
    max_failures
        Failures of a cell in a row after which the campaign gives up; each failed run is recorded
        and tried again.
    lead_ms
        See `run_once`.

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
        lead_ms: float = 5.0,
    ):
        self.cells = tuple(cells)
        self.seed = int(seed)
        self.recorded_only = recorded_only
        self.attachments = tuple(attachments)
        self.max_failures = int(max_failures)
        self.lead_ms = float(lead_ms)
        self.wanted_runs = int(runs)
        self._store = Store(folder)
        self._holds_machine = False
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
            (self.lead_ms, 0, "lead_ms"),
        ):
            if value < low:
                raise InputError(f"{field} is {value}; it must be at least {low}")

    def __repr__(self) -> str:
        return self._how_far(self._store.rows())

    def _how_far(self, rows: list[dict]) -> str:
        finished = sum(self._finished(rows).values())
        return (
            f"Campaign({self._store.folder or 'in memory'}: {finished} of"
            f" {finished + len(self._missing(rows))} runs)"
        )

    def _finished(self, rows: list[dict]) -> dict[str, int]:
        """Finished runs of each cell."""
        counts = Counter(row["cell"] for row in rows if row["status"] == "ok")
        return {cell.name: counts[cell.name] for cell in self.cells}

    def _repr_html_(self) -> str:
        facts = {
            "rounds wanted": self.wanted_runs,
            "seed of the order": self.seed,
            "measures": "no, recorded runs only" if self.recorded_only else "what is missing",
            "accompanied by": [type(one).__name__ for one in self.attachments],
        }
        rows = self._store.rows()
        cells = [
            (cell.name, cell.workload.name, cell.workload.config, cell.noise) for cell in self.cells
        ]
        table = pd.DataFrame(cells, columns=["cell", "program", "placement", "noise"])
        table["finished runs"] = table["cell"].map(self._finished(rows))
        return facts_html(self._how_far(rows), facts, table)

    def order(self, round_number: int) -> list[Cell]:
        """The cells in the order of a round; the same for the same seed, always."""
        return [
            self.cells[at]
            for at in np.random.default_rng([self.seed, round_number]).permutation(len(self.cells))
        ]

    def runs(self) -> pd.DataFrame:
        """All runs so far of the campaign's cells, failed ones too (`finished` drops them); see
        `recorded_runs` for those of all cells.

        `attrs["notes"]` : how the campaign grew, which settings were restored that dead processes
        had left changed, a guardian that did not start, the notes of the attachments, of processes
        that runs left, and of a region that is not known.
        """
        names = {cell.name for cell in self.cells}
        table = runs_table([row for row in self._store.rows() if row["cell"] in names])
        attached = [note for attachment in self._all_attachments() for note in attachment.notes]
        seen = left_notes(table) + region_notes(finished(table))
        table.attrs["notes"] = self.notes + self._machine_notes + attached + seen
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

    @property
    def seconds_left(self) -> float:
        """Estimated time to the end, by the median of each cell; NaN before the first run."""
        rows = self._store.rows()
        return self._seconds_left(rows, self._missing(rows))

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
            estimated seconds left; `nbhelpers.progress` shows the same.
        enough
            Called with the finished runs when there are `runs` of each cell; while it returns
            False, another round is measured.
        most_runs
            Bound of `enough`: no further round when each cell has so many runs.

        Returns
        -------
        DataFrame
            See `runs`.

        Raises
        ------
        InputError
            The folder is in use, or (recorded_only) holds runs of something else, or too few.
        RunError
            A program does not exist, or failed `max_failures` times in a row.
        """
        if self.recorded_only:
            self._check_recorded()
            return self.runs()
        with cleaned_up_on_sigterm(), self._store.locked(), ExitStack() as stack:
            for attachment in self._all_attachments():
                stack.callback(attachment.close)
            self._store.settle(self._identity())
            self._complete(stack, progress)
            while enough and self.wanted_runs < most_runs and not enough(finished(self.runs())):
                self.wanted_runs += 1
                self._complete(stack, progress)
            self._store.seal()
        return self.runs()

    def _complete(
        self, stack: ExitStack, progress: Callable[[int, int, float], object] | None
    ) -> None:
        """Measure the rounds that are missing; the machine is held from the first of them to the
        end of `stack`.
        """
        if not self._missing(self._store.rows()):
            self._repair()  # what was killed after its last run has nothing to measure
            return
        if not self._holds_machine:
            stack.enter_context(measuring(doing=f"measuring {self._store.folder or 'in memory'}"))
            self._holds_machine = True
            stack.callback(setattr, self, "_holds_machine", False)
            kill_marked(self._store.mark)  # what a crash of ourselves left running
            self._repair()
            try:
                stack.enter_context(guarded_runs())
            except SettingError as error:
                self._machine_notes.append(f"{error.what}; {UNGUARDED}")
        self._measure(progress)

    def _repair(self) -> None:
        """Put back what dead processes left; nothing can be left where no journal can be."""
        with suppress(SettingError):
            self._machine_notes += settings.repair()

    def _all_attachments(self) -> list[Attachment]:
        listed = [attachment for cell in self.cells for attachment in cell.attachments] + list(
            self.attachments
        )
        return list({id(attachment): attachment for attachment in listed}.values())

    def _identity(self, with_programs: bool = True) -> dict:
        cells = {
            cell.name: (cell.workload, cell.noise, self._accompanied(cell)) for cell in self.cells
        }
        return campaign_identity(cells, self.seed, self._store.folder, with_programs)

    def _accompanied(self, cell: Cell) -> list[str]:
        """How the attachments of a cell's runs identify themselves."""
        return [one.identity for one in (*cell.attachments, *self.attachments) if one.identity]

    def _missing(self, rows: list[dict]) -> list[tuple[int, Cell]]:
        """Rounds and cells without a finished run that is needed, in order."""
        epoch = self._store.epoch()
        first = max((row["round"] + 1 for row in rows if row.get("epoch", 0) < epoch), default=0)
        done = [(row["round"], row["cell"]) for row in rows if row["status"] == "ok"]
        return missing_runs(done, self.cells, self.wanted_runs, first, self.order)

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
        names = {cell.name for cell in self.cells}
        total = sum(row["status"] == "ok" and row["cell"] in names for row in rows) + len(missing)
        several = len(missing) > len(self.cells)  # `enough` adds rounds one by one
        with task(self._title(), total, "runs", urgent=several) as shown:
            shown.at(total - len(missing), lambda: self._seconds_left(rows, missing))
            self._measure_each(rows, missing, total, shown, progress)

    def _measure_each(
        self,
        rows: list[dict],
        missing: list[tuple[int, Cell]],
        total: int,
        shown: Task,
        progress: Callable[[int, int, float], object] | None,
    ) -> None:
        epoch, number = self._store.epoch(), self._store.next_run()
        for at, (round_number, cell) in enumerate(missing):
            for failures in range(1, self.max_failures + 1):
                row = self._one(number, round_number, cell, epoch)
                rows.append(row)
                number += 1
                if row["status"] == "ok":
                    break
                if failures == self.max_failures:
                    raise self._gave_up(cell, row)
            done = total - len(missing) + at + 1
            seconds_left = partial(self._seconds_left, rows, missing[at + 1 :])
            shown.at(done, seconds_left)
            if progress:
                progress(done, total, seconds_left())

    def _title(self) -> str:
        names = list(dict.fromkeys(cell.workload.name for cell in self.cells))
        return f"measuring {', '.join(names) if len(names) <= 3 else f'{len(names)} programs'}"

    def _one(self, number: int, round_number: int, cell: Cell, epoch: int) -> dict:
        labels = {"cell": cell.name, "round": round_number, "epoch": epoch, "noise": cell.noise}
        row = run_once(
            cell.workload,
            (*cell.attachments, *self.attachments),
            run=number,
            lead_ms=self.lead_ms,
            labels=labels,
            mark=f"{self._store.mark}.{number}",
        )
        plain = {
            key: value.item() if isinstance(value, np.generic) else value
            for key, value in row.items()
        }
        self._store.append(plain)
        return plain

    def _gave_up(self, cell: Cell, row: dict) -> RunError:
        return RunError(
            f"'{cell.name}' failed {self.max_failures} times in a row, at last with status"
            f" '{row['status']}'",
            where=" ".join(cell.workload.command),
            why=row["message"],
            fix=f"run the command by hand{self._goes_on()}",
        )

    def _goes_on(self) -> str:
        folder = self._store.folder
        return f"; the next campaign in {folder} goes on from there" if folder else ""

    def _check_recorded(self) -> None:
        self._store.agree(self._identity(with_programs=False))
        counts = {cell.name: 0 for cell in self.cells}
        for row in self._store.rows():
            if row["cell"] in counts:
                counts[row["cell"]] += row["status"] == "ok"
        short = {name: count for name, count in counts.items() if count < self.wanted_runs}
        if short:
            raise InputError(
                f"fewer runs are recorded than the {self.wanted_runs} requested: "
                + ", ".join(f"'{name}' has {count}" for name, count in short.items()),
                where=self._store.folder,
                fix="request fewer, or measure: the same campaign with recorded_only=False",
            )


def recorded_runs(folder: str | Path) -> pd.DataFrame:
    """Return the runs table of a campaign's folder: of all its cells, failed runs too.

    Parameters
    ----------
    folder
        Of the campaign.

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
    store = Store(folder)
    rows = store.rows()
    if not rows:
        raise InputError(
            "no runs were recorded here",
            where=folder,
            fix="run the stage that measures them first: make paper",
        )
    table = runs_table(rows)
    table.attrs["notes"] = store.notes()
    return table
