"""A campaign's folder: what is being measured, the runs so far, and a lock against a second writer.

`campaign.json` says what the runs are runs of; `runs.jsonl` has a line a run, `series.jsonl` one for each that printed series; both are only
ever appended to. In data/recorded they are packed (.gz), and read all the same.
"""

import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from ..errors import InputError
from ..files import append_record, digest, read_json, read_records, to_json, write_json
from ..workloads import Workload, binary_folder, program_path

_FORMAT = "noisebook campaign 1"
_PORTABLE = ("workload", "model", "config", "noise")  # what recorded data must agree in on a machine that did not measure them


class Store:
    """The files of a campaign; without a folder everything stays in memory."""

    def __init__(self, folder: str | os.PathLike | None):
        self.folder = None if folder is None else Path(folder)
        self._rows: list[dict] = []
        self._series: list[dict] = []

    @property
    def mark(self) -> str:
        """What the environment of each run of this campaign carries; known again after a crash."""
        place = f"memory of {os.getpid()} {id(self)}" if self.folder is None else str(self.folder.resolve())
        return digest(place)

    def rows(self) -> list[dict]:
        """All runs so far, failed ones too."""
        return list(self._rows) if self.folder is None else read_records(self.folder / "runs.jsonl")

    def append(self, row: dict) -> None:
        """Add a run; with a folder it is on disk when this returns. Its series, if there are any, go first: no run is without its own."""
        row = dict(row)
        series = row.pop("series", None)
        if series:
            self._append("series.jsonl", self._series, {"run": row["run"], "t0_ns": row["t0_ns"], "series": series})
        self._append("runs.jsonl", self._rows, row)

    def series(self) -> list[dict]:
        """The series of the runs so far; those of a run that a crash kept from being recorded itself are passed over."""
        records = list(self._series) if self.folder is None else read_records(self.folder / "series.jsonl")
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
        InputError : somebody else measures into it, or it cannot be written to.
        """
        if self.folder is None:
            yield
            return
        fd = _open_lock(self.folder)
        try:
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)  # explicitly: an attachment may have forked a process that holds a copy
            os.close(fd)

    def settle(self, identity: dict) -> None:
        """Write down what is measured, or compare it with what was written down before.

        Raises
        ------
        InputError : the folder holds runs of something else; the message lists the differences.
        """
        if self.folder is None:
            return
        path = self.folder / "campaign.json"
        if path.exists():
            _refuse(_differences(self._recorded(), identity), path)
        else:
            write_json(path, identity)

    def agree(self, identity: dict) -> None:
        """Compare names, models, placements and noise only: data recorded elsewhere, by programs that need not exist here.

        Raises
        ------
        InputError : nothing is recorded, or it was recorded for something else.
        """
        if self.folder is None or not (self.folder / "campaign.json").exists():
            raise InputError("no campaign is recorded here", where=self.folder or "a campaign without a folder",
                             mend="measure first: the same campaign with frozen=False")
        recorded = self._recorded()
        _refuse(_differences(_portable(recorded), _portable(identity)), self.folder / "campaign.json")

    def _recorded(self) -> dict:
        path = self.folder / "campaign.json"
        recorded = read_json(path)
        if not isinstance(recorded, dict) or recorded.get("format") != _FORMAT or not isinstance(recorded.get("cells"), dict):
            raise InputError(f"not a campaign: the format is not '{_FORMAT}'", where=path, mend="measure into a new folder")
        return recorded


def _open_lock(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"cannot measure into this folder: {error.strerror}", where=folder, mend="choose another folder") from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise InputError("another campaign is measuring into this folder", where=folder,
                         why="two at once would disturb each other and give two runs the same number",
                         mend="wait for it, or measure into another folder") from None
    return fd


def identity(cells: Mapping[str, tuple[Workload, str]], seed: int, folder: Path | None, with_programs: bool = True) -> dict:
    """What the runs of a campaign are runs of; `cells` maps names to workload and noise. Holds wherever the campaign's `folder` is moved to."""
    return {"format": _FORMAT, "seed": seed,
            "cells": {name: _cell_identity(workload, noise, folder, with_programs) for name, (workload, noise) in cells.items()}}


def _cell_identity(workload: Workload, noise: str, folder: Path | None, with_programs: bool) -> dict:
    program = Path(workload.command[0])
    reader = {} if workload.reader is None else {"reader": json.loads(to_json(workload.reader.as_dict()))}  # as it will be read back
    # marks and process are what `start` says already, and studies were measured before there were others
    region = {} if workload.region.kind in ("marks", "process") else {"region": workload.region.as_dict()}
    return {"workload": workload.name, "model": workload.model, "config": workload.config, "noise": noise,
            "command": [_recorded_name(program), *(_without(word, folder) for word in workload.command[1:])], "env": dict(workload.env),
            "start": workload.start, "cpus": workload.cpus and list(workload.cpus),
            "program_digest": program_digest(program) if with_programs else None, **reader, **region}


def _without(word: str, folder: Path | None) -> str:
    return word if folder is None else word.replace(str(folder.absolute()), "FOLDER")


def _recorded_name(program: Path) -> str:
    """Without the folder that this checkout happens to lie in, for our own programs and for the Python that runs this."""
    if program.is_relative_to(binary_folder()):
        return str(program.relative_to(binary_folder()))
    return "python" if program == Path(sys.executable) else str(program)


def program_digest(program: str | Path) -> str:
    """First 16 hexadecimal digits of the SHA-256 of a program's file.

    Raises
    ------
    RunError : it does not exist.
    """
    path = program_path(program)
    status = path.stat()
    return _digest_of(path, status.st_mtime_ns, status.st_size, status.st_ino)


@cache
def _digest_of(path: Path, *_version: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _portable(campaign: dict) -> dict:
    return {"cells": {name: {key: cell.get(key) for key in _PORTABLE} for name, cell in campaign["cells"].items()}}


def _differences(recorded: dict, asked: dict) -> list[str]:
    """What differs, a line each."""
    lines = [f"{key}: recorded {recorded.get(key)!r}, asked {asked.get(key)!r}"
             for key in sorted((recorded.keys() | asked.keys()) - {"cells"}) if recorded.get(key) != asked.get(key)]
    old, new = recorded["cells"], asked["cells"]
    lines += [f"cell '{name}' was recorded and is not asked for" for name in sorted(old.keys() - new.keys())]
    lines += [f"cell '{name}' is asked for and was not recorded" for name in sorted(new.keys() - old.keys())]
    for name in sorted(old.keys() & new.keys()):
        lines += [f"cell '{name}', {key}: recorded {old[name].get(key)!r}, asked {new[name].get(key)!r}"
                  for key in sorted(old[name].keys() | new[name].keys()) if old[name].get(key) != new[name].get(key)]
    return lines


def _refuse(differences: list[str], path: Path) -> None:
    if differences:
        raise InputError("this folder holds runs of something else:\n    " + "\n    ".join(differences), where=path,
                         why="runs of different things in one table would be compared as if they were the same, and cells that "
                             "are added later would not have been interleaved",
                         mend=f"measure into a new folder, or first keep the old one aside: mv {path.parent} {path.parent}.old; all of a study: make measure-again")
