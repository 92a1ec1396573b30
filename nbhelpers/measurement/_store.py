"""A campaign's folder: what is being measured, the runs so far, and a lock against a second writer.

`campaign.json` says what the runs are runs of, and how the campaign grew; `runs.jsonl` has a line a
run, `series.jsonl` one for each that printed series; both are only ever appended to, but for runs
of something else, which go to `aside/DATE`. In data/recorded they are packed (.gz), and read all
the same.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from ..errors import InputError
from ..files import (
    append_record,
    digest,
    new_aside,
    read_json,
    read_records,
    to_json,
    write_json,
    write_records,
)
from ..workloads import Workload, binary_folder, program_path

_FORMAT = "noisebook campaign 1"
_ACCOMPANIED = (  # what a cell's attachments say of themselves; older records do not know it
    "accompanied"
)
_PORTABLE = (
    "workload",
    "model",
    "config",
    "noise",
)  # what recorded data must agree in on a machine that did not measure them


class Store:
    """The files of a campaign; without a folder everything stays in memory."""

    def __init__(self, folder: str | os.PathLike | None):
        self.folder = None if folder is None else Path(folder)
        self._rows: list[dict] = []
        self._series: list[dict] = []

    @property
    def mark(self) -> str:
        """What the environment of each run of this campaign carries; known again after a crash."""
        place = (
            f"memory of {os.getpid()} {id(self)}"
            if self.folder is None
            else str(self.folder.resolve())
        )
        return digest(place)

    def rows(self) -> list[dict]:
        """All runs so far, failed ones too."""
        return list(self._rows) if self.folder is None else read_records(self.folder / "runs.jsonl")

    def append(self, row: dict) -> None:
        """Add a run; with a folder it is on disk when this returns. Its series, if there are any,
        go first: no run is without its own.
        """
        row = dict(row)
        series = row.pop("series", None)
        if series:
            self._append(
                "series.jsonl",
                self._series,
                {"run": row["run"], "t0_ns": row["t0_ns"], "series": series},
            )
        self._append("runs.jsonl", self._rows, row)

    def series(self) -> list[dict]:
        """The series of the runs so far; those of a run that a crash kept from being recorded
        itself are passed over.
        """
        records = (
            list(self._series)
            if self.folder is None
            else read_records(self.folder / "series.jsonl")
        )
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
        fd = _open_lock(self.folder)
        try:
            yield
        finally:
            fcntl.flock(
                fd, fcntl.LOCK_UN
            )  # explicitly: an attachment may have forked a process that holds a copy
            os.close(fd)

    def epoch(self) -> int:
        """How often what was asked for has changed after something was measured."""
        return len(self._epochs()) - 1

    def notes(self) -> list[str]:
        """How the campaign grew, a sentence each."""
        return list(self._campaign().get("notes", []))

    def cells_of(self, workload: Workload) -> set[str]:
        """Names of the cells that are this very workload, undisturbed."""
        own = _cell_identity(workload, "none", [], self.folder, with_programs=False)
        keys = ("command", "env", "cpus", "config", "noise")
        asked = json.loads(to_json([own[key] for key in keys]))
        return {
            name
            for name, cell in self._campaign().get("cells", {}).items()
            if [cell.get(key) for key in keys] == asked
        }

    def next_run(self) -> int:
        """A number that no run has had, neither of those here nor of those put aside."""
        return max((row["run"] for row in (*self.rows(), *self._rows_aside())), default=-1) + 1

    def settle(self, identity: dict) -> None:
        """Write down what is measured from now on; runs of something else under the same name are
        put aside.

        What a crash in the midst leaves undone is done by the next call: `campaign.json` is written
        last.
        """
        if self.folder is None:
            return
        recorded = self._campaign() or {**identity, "cells": {}}
        asked, stale = identity["cells"], _stale(recorded, identity)
        self._put_aside(stale, recorded)
        epochs, names, rows = self._epochs(), sorted(asked), self.rows()
        moved = self._untold_asides(recorded)
        said = moved + _growth(
            set(epochs[-1] if epochs else ()), set(names), {row["cell"] for row in rows}
        )
        notes = [
            *recorded.get("notes", []),
            *(f"{time.strftime('%Y-%m-%d %H:%M')}: {one}" for one in said),
        ]
        if stale or moved or not epochs or names != epochs[-1]:
            unused = not (stale or moved) and not any(
                row.get("epoch", 0) == len(epochs) - 1 for row in rows
            )
            epochs = [*(epochs[:-1] if unused else epochs), names]
        known = recorded["cells"] if recorded["seed"] == identity["seed"] else {}
        settled = {
            **identity,
            "cells": known | asked,
            "epochs": epochs,
            **({"notes": notes} if notes else {}),
        }
        if settled != recorded:
            write_json(self.folder / "campaign.json", settled)

    def _campaign(self) -> dict:
        """What was written down; empty where nothing was yet."""
        return (
            self._recorded()
            if self.folder is not None and (self.folder / "campaign.json").exists()
            else {}
        )

    def _epochs(self) -> list[list[str]]:
        """The names asked for in each epoch; a campaign of before there were any had one."""
        campaign = self._campaign()
        return list(campaign.get("epochs", [sorted(campaign["cells"])] if campaign else []))

    def _put_aside(self, stale: Mapping[str, str], recorded: dict) -> None:
        """Move the runs of some cells, with their series and files, into ``aside/DATE``.

        First they are copied, then they vanish from the logs. A crash in between leaves them in
        both places: those that lie aside already go all the same, whatever is asked for now, and
        are not copied again.
        """
        homes = {
            _key(row): home for home in self._asides() for row in read_records(home / "runs.jsonl")
        }
        rows = self.rows()
        leaving = [row for row in rows if row["cell"] in stale or _key(row) in homes]
        if not leaving:
            return
        fresh = [row for row in leaving if _key(row) not in homes]
        if fresh:
            home = self._copied_aside(fresh, stale, recorded)
            homes |= {_key(row): home for row in fresh}
        self._move_files({row["run"]: homes[_key(row)] for row in leaving})
        gone = {_key(row) for row in leaving}
        write_records(self.folder / "runs.jsonl", [row for row in rows if _key(row) not in gone])
        if self.series():
            write_records(self.folder / "series.jsonl", self.series())

    def _untold_asides(self, recorded: dict) -> list[str]:
        """What lies aside and no note says so, since a crash came between."""
        told = " ".join(recorded.get("notes", []))
        homes = [home for home in self._asides() if f"aside/{home.name})" not in told]
        return [sentence for home in homes for sentence in _about_aside(home, self.folder.name)]

    def _asides(self) -> list[Path]:
        return (
            []
            if self.folder is None
            else sorted(path.parent for path in self.folder.glob("aside/[!.]*/runs.jsonl"))
        )

    def _rows_aside(self) -> list[dict]:
        return [row for home in self._asides() for row in read_records(home / "runs.jsonl")]

    def _copied_aside(self, rows: list[dict], stale: Mapping[str, str], recorded: dict) -> Path:
        home = new_aside(self.folder)
        staging = home.with_name(".unfinished")
        shutil.rmtree(staging, ignore_errors=True)  # of a crash: copies only
        keys = {(row["run"], row.get("t0_ns")) for row in rows}
        write_records(staging / "runs.jsonl", rows)
        series = [one for one in self.series() if (one["run"], one["t0_ns"]) in keys]
        if series:
            write_records(staging / "series.jsonl", series)
        write_json(staging / "campaign.json", {**recorded, "aside": dict(stale)})
        os.replace(staging, home)
        return home

    def _move_files(self, homes: Mapping[int, Path]) -> None:
        """What attachments keep of single runs, such as traces/run-000012.osnoise.gz, goes with
        them.
        """
        for place, folders, names in os.walk(self.folder):
            folders[:] = [
                name
                for name in folders
                if not (Path(place, name) / "campaign.json").exists() and name != "aside"
            ]
            for name in names:
                number = re.fullmatch(r"[a-z]+-(\d{6,})\..+", name)
                if number and int(number[1]) in homes:
                    target = homes[int(number[1])] / Path(place).relative_to(self.folder) / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(Path(place, name), target)

    def agree(self, identity: dict) -> None:
        """Compare names, models, placements and noise only: data recorded elsewhere, by programs
        that need not exist here.

        Raises
        ------
        InputError
            Nothing is recorded, or it was recorded for something else.
        """
        if self.folder is None or not (self.folder / "campaign.json").exists():
            raise InputError(
                "no campaign is recorded here",
                where=self.folder or "a campaign without a folder",
                fix="measure first: the same campaign with recorded_only=False",
            )
        recorded, asked = _portable(self._recorded())["cells"], _portable(identity)["cells"]
        lines = [
            f"cell '{name}' is asked for and was not recorded"
            for name in sorted(asked.keys() - recorded.keys())
        ]
        lines += [
            line
            for name in sorted(asked.keys() & recorded.keys())
            for line in _differences(name, recorded[name], asked[name])
        ]
        if lines:
            raise InputError(
                "something else was recorded here:\n    " + "\n    ".join(lines),
                where=self.folder / "campaign.json",
                why="what was recorded is only read, never measured again",
                fix="ask for what was recorded, or measure: the same campaign with recorded_only=False",
            )

    def _recorded(self) -> dict:
        path = self.folder / "campaign.json"
        recorded = read_json(path)
        if (
            not isinstance(recorded, dict)
            or recorded.get("format") != _FORMAT
            or not isinstance(recorded.get("cells"), dict)
        ):
            raise InputError(
                f"not a campaign: the format is not '{_FORMAT}'",
                where=path,
                fix="measure into another folder",
            )
        return recorded


def _open_lock(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(
            f"cannot measure into this folder: {error.strerror}",
            where=folder,
            fix="choose another folder",
        ) from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise InputError(
            "another campaign is measuring into this folder",
            where=folder,
            why="two at once would disturb each other and give two runs the same number",
            fix="wait for it, or measure into another folder",
        ) from None
    return fd


def identity(
    cells: Mapping[str, tuple[Workload, str, list[str]]],
    seed: int,
    folder: Path | None,
    with_programs: bool = True,
) -> dict:
    """What the runs of a campaign are runs of; `cells` maps names to workload, noise and what
    accompanies it. Holds wherever the campaign's `folder` is moved to.
    """
    return {
        "format": _FORMAT,
        "seed": seed,
        "cells": {
            name: _cell_identity(*cell, folder, with_programs) for name, cell in cells.items()
        },
    }


def _cell_identity(
    workload: Workload, noise: str, accompanied: list[str], folder: Path | None, with_programs: bool
) -> dict:
    program = Path(workload.command[0])
    reader = (
        {}
        if workload.reader is None
        else {"reader": json.loads(to_json(workload.reader.as_dict()))}
    )  # as it will be read back
    # marks and process are what `start` says already, and studies were measured before there were
    # others
    region = (
        {}
        if workload.region.kind in ("marks", "process")
        else {"region": workload.region.as_dict()}
    )
    return {
        "workload": workload.name,
        "model": workload.model,
        "config": workload.config,
        "noise": noise,
        "command": [
            _recorded_name(program),
            *(_without(word, folder) for word in workload.command[1:]),
        ],
        "env": dict(workload.env),
        "start": workload.start,
        "cpus": workload.cpus and list(workload.cpus),
        "program_digest": program_digest(program) if with_programs else None,
        **reader,
        **region,
        _ACCOMPANIED: accompanied,
    }


def _without(word: str, folder: Path | None) -> str:
    return word if folder is None else word.replace(str(folder.absolute()), "FOLDER")


def _recorded_name(program: Path) -> str:
    """Without the folder that this checkout happens to lie in, for our own programs and for the
    Python that runs this.
    """
    if program.is_relative_to(binary_folder()):
        return str(program.relative_to(binary_folder()))
    return "python" if program == Path(sys.executable) else str(program)


def program_digest(program: str | Path) -> str:
    """First 16 hexadecimal digits of the SHA-256 of a program's file.

    Raises
    ------
    RunError
        It does not exist.
    """
    path = program_path(program)
    status = path.stat()
    return _digest_of(path, status.st_mtime_ns, status.st_size, status.st_ino)


@cache
def _digest_of(path: Path, *_version: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _portable(campaign: dict) -> dict:
    return {
        "cells": {
            name: {key: cell.get(key) for key in _PORTABLE}
            for name, cell in campaign["cells"].items()
        }
    }


def _stale(recorded: dict, asked: dict) -> dict[str, str]:
    """Cells whose recorded runs are of something else than what is asked for under their name, and
    what differs.
    """
    old, new = recorded["cells"], asked["cells"]
    if recorded["seed"] != asked["seed"]:
        return dict.fromkeys(old, f"another seed ({recorded['seed']}, now {asked['seed']})")
    found = {name: _differences(name, old[name], new[name]) for name in old.keys() & new.keys()}
    words = {
        name: [_WORDS.get(key, key) for key in _differing(old[name], new[name])]
        for name, lines in found.items()
        if lines
    }
    return {name: f"another {', another '.join(words[name])}" for name in sorted(words)}


_WORDS = {
    "program_digest": "build of the program",
    "cpus": "set of CPUs",
    "env": "environment",
    "config": "placement",
    _ACCOMPANIED: "disturbance, mitigation or tracer",
}


def _differing(old: dict, new: dict) -> list[str]:
    """Keys in which two identities of a cell differ."""
    keys = sorted(old.keys() | new.keys())
    return [
        key
        for key in keys
        if old.get(key) != new.get(key) and not (key == _ACCOMPANIED and key not in old)
    ]


def _differences(name: str, old: dict, new: dict) -> list[str]:
    return [
        f"cell '{name}', {key}: recorded {old.get(key)!r}, asked {new.get(key)!r}"
        for key in _differing(old, new)
    ]


def _about_aside(home: Path, folder: str) -> list[str]:
    """What lies in a folder of runs that were put aside, and why, a sentence for each reason."""
    rows = read_records(home / "runs.jsonl")
    why = read_json(home / "campaign.json")["aside"]
    reasons = {}
    for name in dict.fromkeys(row["cell"] for row in rows):
        reasons.setdefault(why[name], []).append(name)
    return [
        f"{sum(row['cell'] in names for row in rows)} runs of {_listed(names)} were put aside"
        f" ({folder}/aside/{home.name}) and are measured anew: {reason}."
        for reason, names in reasons.items()
    ]


def _growth(before: set[str], now: set[str], measured: set[str]) -> list[str]:
    """What was added to what has been measured, and what is not asked for any more."""
    new = sorted(now - before - measured)
    gone = sorted((before - now) & measured)
    back = sorted((now - before) & measured)
    said = (
        [
            f"{_listed(new)} added: measured in further rounds, beside what it is compared with;"
            " earlier runs are kept."
        ]
        if new and measured
        else []
    )
    said += [f"{_listed(gone)} not asked for any more: the runs are kept."] if gone else []
    return said + ([f"{_listed(back)} asked for again: the runs of before count."] if back else [])


def _listed(names: list[str], most: int = 4) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more cells"


def _key(row: dict) -> tuple:
    """What tells a run from every other."""
    return row["run"], row.get("t0_ns"), row.get("began_unix_s")
