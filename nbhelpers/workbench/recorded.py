"""Recorded runs: which there are near this folder, and the runs of a folder or a table.

Owns the search for campaigns, and what a table of runs from elsewhere must have.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..measurement import finished, rates, recorded_runs
from ..places import results, shipped
from ..reading import read_bytes, read_csv, read_parquet

TABLES = (".csv", ".csv.gz", ".parquet")
FIRST = "first"
RUNS = "runs.jsonl"
_MOST_FOLDERS = 2000  # looked through below one root: the current folder may be a home folder
_DEPTH = 6
_NO_CAMPAIGNS = ("aside", "traces", "series", "node_modules", "__pycache__")
_WALL = "wall_seconds"


@dataclass(frozen=True)
class Recorded:
    """A campaign, or a session of the workbench, that was found.

    Attributes
    ----------
    where
        The root below which it lies, in words.
    path
        Its folder.
    name
        Below the root.
    runs
        Lines of its records; of a session, of its first measurement.
    """

    where: str
    path: Path
    name: str
    runs: int

    def __str__(self) -> str:
        return f"{self.where}: {self.name} ({self.runs} runs)"


def found_campaigns(here: Path | None = None) -> list[Recorded]:
    """Campaigns among the results, among the recorded data, and below the current folder.

    A folder of a session counts once, with all that was tried in it.

    Parameters
    ----------
    here
        In place of the current folder.
    """
    made = results()
    roots = [("workbench", made / "workbench")]
    roots += [(folder.parent.name, folder) for folder in sorted(made.glob("*/data"))]
    roots += [("recorded", shipped() / "data" / "recorded"), ("here", here or Path.cwd())]
    found: dict[Path, Recorded] = {}
    for where, root in roots:
        for path in _campaigns_below(root):
            name = "." if path == root else path.relative_to(root).as_posix()
            found.setdefault(path.resolve(), Recorded(where, path, name, _count(path)))
    return list(found.values())


def _campaigns_below(root: Path) -> Iterator[Path]:
    for folder, below, files in islice(os.walk(root), _MOST_FOLDERS):
        path = Path(folder)
        if FIRST in below and _records(path / FIRST):
            below.clear()
            yield path
        elif {RUNS, f"{RUNS}.gz"} & set(files):
            yield path
        deep = len(path.relative_to(root).parts) >= _DEPTH
        below[:] = [] if deep else sorted(filter(_may_hold_campaigns, below))


def _may_hold_campaigns(name: str) -> bool:
    return not name.startswith(".") and name not in _NO_CAMPAIGNS


def _records(folder: Path) -> list[Path]:
    """The file of its runs, packed or not; empty if there is none."""
    return [path for path in (folder / RUNS, folder / f"{RUNS}.gz") if path.exists()]


def _count(folder: Path) -> int:
    files = _records(folder) or _records(folder / FIRST)
    return _lines(files[0], files[0].stat().st_mtime_ns)


@lru_cache(maxsize=1024)
def _lines(path: Path, changed_ns: int) -> int:
    try:
        return read_bytes(path, "record of runs").count(b"\n")
    except InputError:
        return 0  # opening it says what is wrong with it


def is_table(path: Path) -> bool:
    """Whether a path is that of a table: a .csv, .csv.gz or .parquet file."""
    return path.name.lower().endswith(TABLES)


def is_campaign(path: Path) -> bool:
    """Whether a folder is that of one campaign."""
    return (path / "campaign.json").exists() or bool(_records(path))


def runs_of(path: Path) -> pd.DataFrame:
    """The finished runs of a campaign's folder or of a table.

    Parameters
    ----------
    path
        Folder of a campaign; or a table with a row a run: .csv, .csv.gz or .parquet.

    Raises
    ------
    InputError
        Nothing is there, it cannot be read, or it has no column of numbers.
    """
    runs = _table(path) if is_table(path) else recorded_runs(path)
    return finished(runs) if "status" in runs.columns else runs.reset_index(drop=True)


def with_rates(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with totals per second, where the table has the time that they were counted in."""
    return rates(runs) if _WALL in runs.columns else runs


def _table(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise InputError("there is no such file", where=path, fix="give the path of a table")
    runs = (read_parquet if path.suffix == ".parquet" else read_csv)(path)
    runs.columns = runs.columns.map(str)
    numbers = runs.select_dtypes("number")
    if not (np.isfinite(numbers).all() & (numbers.nunique() > 1)).any():
        raise InputError(
            f"no column of numbers that every row has, and that varies ({len(runs)} rows)",
            where=path,
            why="runs are judged by such a column",
            fix="give a table with a row a run and a column a metric",
        )
    return runs


def place_of(text: str) -> Path:
    """Where something lies that a person named: from the current folder, or from the checkout.

    Parameters
    ----------
    text
        A path; "~" is the home folder.

    Raises
    ------
    InputError
        Nothing is there, or it holds no runs.
    """
    written = Path(text.strip()).expanduser()
    places = [Path.cwd() / written, shipped() / written]
    found = next((path for path in places if path.exists()), None)
    if not text.strip() or found is None:
        raise InputError(
            "there is no such folder or file",
            where=text or "an empty path",
            why="runs are read from it",
            fix=f"give a campaign's folder, or a table of runs ({', '.join(TABLES)})",
        )
    if not (is_table(found) or is_campaign(found) or is_campaign(found / FIRST)):
        raise InputError(
            "no runs are recorded here",
            where=found,
            why=f"a campaign's folder has {RUNS}; a table ends with {', '.join(TABLES)}",
            fix="choose a campaign from the list, or give another path",
        )
    return found.resolve()
