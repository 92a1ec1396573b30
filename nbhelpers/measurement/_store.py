"""A campaign's folder: what is being measured, the runs so far, and a lock against a second writer.

`campaign.json` holds what the runs are runs of, and how the campaign grew; `runs.jsonl` has a line
for each run, `series.jsonl` one for each run that printed series. Both are only ever appended to,
except that runs of something else move to `aside/DATE`. In data/recorded they are packed (.gz) and
read alike.
"""

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..errors import InputError
from ..files import write_json
from ..reading import read_json
from ..records import append_record, read_records, write_records
from ._aside import aside_notes, listed, put_runs_aside, run_key
from ._identity import FORMAT, portable_differences, stale_cells
from .seal import break_seal, first_free_run, release, repaired


class Store:
    """The files of a campaign; without a folder everything stays in memory."""

    def __init__(self, folder: str | os.PathLike | None):
        self.folder = None if folder is None else Path(folder)
        self._rows: list[dict] = []
        self._series: list[dict] = []

    def rows(self) -> list[dict]:
        """All runs so far, failed ones too."""
        return list(self._rows) if self.folder is None else read_records(self.folder / "runs.jsonl")

    def append(self, row: dict) -> None:
        """Add a run; with a folder it is on disk when this returns. Its series, if there are any,
        go first: no run is without its series.
        """
        row = dict(row)
        series = row.pop("series", None)
        if series:
            record = {"run": row["run"], "t0_ns": row["t0_ns"], "series": series}
            self._append("series.jsonl", self._series, record)
        self._append("runs.jsonl", self._rows, row)

    def series(self) -> list[dict]:
        """The series of the runs so far; those whose run was not recorded because of a crash are
        skipped.
        """
        if self.folder is None:
            records = list(self._series)
        else:
            records = read_records(self.folder / "series.jsonl")
        recorded = {(row["run"], row["t0_ns"]) for row in self.rows()} if records else set()
        return [record for record in records if (record["run"], record["t0_ns"]) in recorded]

    def _append(self, name: str, memory: list[dict], record: dict) -> None:
        if self.folder is None:
            memory.append(record)
        else:
            append_record(self.folder / name, record)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for writing.

        Raises
        ------
        InputError
            Somebody else measures into it, or it cannot be written to.
        """
        if self.folder is None:
            yield
            return
        with ExitStack() as stack:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise InputError(
                    f"cannot measure into this folder: {error.strerror}",
                    where=self.folder,
                    fix="choose another folder",
                ) from None
            stack.callback(os.close, lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    "another campaign is measuring into this folder",
                    where=self.folder,
                    why=(
                        "two at the same time would disturb each other and give two runs the same"
                        " number"
                    ),
                    fix="wait for it, or measure into another folder",
                ) from None
            # explicitly: an attachment may have forked a process that holds a copy
            stack.callback(fcntl.flock, lock, fcntl.LOCK_UN)
            yield

    def epoch(self) -> int:
        """How often the cells of the campaign have changed after something was measured."""
        return len(self._campaign().get("epochs", ())) - 1

    def notes(self) -> list[str]:
        """How the campaign grew, a sentence each."""
        return list(self._campaign().get("notes", []))

    def next_run(self) -> int:
        """A number that no run has had, neither of those here nor of those put aside."""
        free = 0 if self.folder is None else first_free_run(self.folder)
        return max((free, *(row["run"] + 1 for row in self.rows())))

    def settle(self, identity: dict) -> None:
        """Write down what is measured from now on; runs of something else under the same name are
        put aside.

        What a crash leaves undone in between is done by the next call: `campaign.json` is written
        last.
        """
        if self.folder is None:
            return
        recorded = self._campaign() or {**identity, "cells": {}}
        damage = repaired(self.folder)
        stale = stale_cells(recorded, identity)
        rows = self._put_aside(self.folder, stale, recorded)
        moved = aside_notes(self.folder, recorded.get("notes", []))
        epochs, names = list(recorded.get("epochs", [])), sorted(identity["cells"])
        growth = _growth(
            set(epochs[-1] if epochs else ()), set(names), {row["cell"] for row in rows}
        )
        if stale or moved or not epochs or names != epochs[-1]:
            unused = not any(row.get("epoch", 0) == len(epochs) - 1 for row in rows)
            if unused and not stale and not moved:
                epochs = epochs[:-1]  # nothing was measured in it
            epochs.append(names)
        date = time.strftime("%Y-%m-%d %H:%M")
        new = (*damage, *moved, *growth)
        notes = [*recorded.get("notes", []), *(f"{date}: {one}" for one in new)]
        known = recorded["cells"] if recorded["seed"] == identity["seed"] else {}
        settled = {**identity, "cells": known | identity["cells"], "epochs": epochs}
        if notes:
            settled["notes"] = notes
        if settled != recorded:
            release(self.folder, "campaign.json")
            write_json(self.folder / "campaign.json", settled)

    def _campaign(self) -> dict:
        """What was written down; empty where nothing was yet."""
        if self.folder is None or not (path := self.folder / "campaign.json").exists():
            return {}
        recorded = read_json(path)
        if (
            not isinstance(recorded, dict)
            or recorded.get("format") != FORMAT
            or not isinstance(recorded.get("cells"), dict)
        ):
            raise InputError(
                f"not a campaign: the format is not '{FORMAT}'",
                where=path,
                fix="measure into another folder",
            )
        return recorded

    def _put_aside(self, folder: Path, stale: Mapping[str, str], recorded: dict) -> list[dict]:
        """Move the runs of some cells, with their series and files, into ``aside/DATE``; returns
        those that remain.
        """
        rows = self.rows()
        leaving = put_runs_aside(folder, rows, self.series(), stale, recorded)
        if leaving:
            break_seal(folder)
            rows = [row for row in rows if run_key(row) not in leaving]
            write_records(folder / "runs.jsonl", rows)
            if series := self.series():
                write_records(folder / "series.jsonl", series)
        return rows

    def agree(self, identity: dict) -> None:
        """Compare names, models, placements and noise only: data recorded elsewhere, by programs
        that need not exist here.

        Raises
        ------
        InputError
            Nothing is recorded, or it was recorded for something else.
        """
        recorded = self._campaign()
        if not recorded:
            raise InputError(
                "no campaign is recorded here",
                where=self.folder or "a campaign without a folder",
                fix="measure: profile here or quick in a notebook, or recorded_only=False",
            )
        lines = portable_differences(recorded, identity)
        if lines:
            raise InputError(
                "something else was recorded here:\n    " + "\n    ".join(lines),
                where=f"{self.folder}/campaign.json",
                why="recorded data are only read, never measured again",
                fix=(
                    "request what was recorded, or measure: profile here or quick in a notebook,"
                    " recorded_only=False in a campaign"
                ),
            )


def _growth(before: set[str], now: set[str], measured: set[str]) -> list[str]:
    """Which cells were added to what has been measured, left the campaign or came back."""
    new = sorted(now - before - measured)
    gone = sorted((before - now) & measured)
    back = sorted((now - before) & measured)
    sentences = []
    if new and measured:
        sentences.append(
            f"{listed(new)} added: measured in further rounds, together with what it is compared"
            " with; earlier runs stay."
        )
    if gone:
        sentences.append(f"{listed(gone)} no longer in the campaign: the runs stay.")
    if back:
        sentences.append(f"{listed(back)} back in the campaign: the earlier runs count.")
    return sentences
