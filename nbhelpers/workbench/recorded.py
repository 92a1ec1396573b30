"""Recorded runs: which there are, and the runs of a folder or a table.

Owns the list of campaigns, and what a table of runs from elsewhere must have.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..measurement import finished, rates, recorded_runs
from ..measurement.other_tools import read_benchmark
from ..places import results, shipped
from ..reading import read_csv, read_parquet

TABLES = (".csv", ".csv.gz", ".parquet", ".json", ".json.gz")
FIRST = "first"
RUNS = "runs.jsonl"


def found_campaigns() -> dict[str, str]:
    """Campaigns among the results and among the recorded data; others are opened by their path.

    A folder of a session counts once, with all that was tried in it.

    Returns
    -------
    Path of the folder → how a list names it.
    """
    made = results()
    roots = [("workbench", made / "workbench")]
    roots += [(folder.parent.name, folder) for folder in sorted(made.glob("*/data"))]
    roots += [("recorded", shipped() / "data" / "recorded")]
    found: dict[str, str] = {}
    for where, root in roots:
        for path in sorted(root.rglob(f"{RUNS}*")):
            whole = path.parents[1]
            place = whole if (whole / FIRST).is_dir() else path.parent
            name = place.relative_to(root)
            if "aside" not in name.parts:
                found.setdefault(str(place.resolve()), f"{where}: {name.as_posix()}")
    return found


def is_table(path: Path) -> bool:
    """Whether a path is that of a table: .csv, .parquet, or JSON of another tool."""
    return path.name.lower().endswith(TABLES)


def runs_of(path: Path) -> pd.DataFrame:
    """The finished runs of a campaign's folder or of a table, with rates where there is the time
    that the totals were counted in.

    Parameters
    ----------
    path
        Folder of a campaign; or a table with a row a run: .csv, .csv.gz or .parquet; or .json of
        hyperfine, pyperf or Google Benchmark.

    Raises
    ------
    InputError
        Nothing is there, it cannot be read, or it has no column of numbers.
    """
    runs = _table(path) if is_table(path) else recorded_runs(path)
    runs = finished(runs) if "status" in runs.columns else runs.reset_index(drop=True)
    return rates(runs) if "wall_seconds" in runs.columns else runs


def _table(path: Path) -> pd.DataFrame:
    is_json = path.name.lower().endswith((".json", ".json.gz"))
    read = read_parquet if path.suffix == ".parquet" else read_benchmark if is_json else read_csv
    runs = read(path)
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
