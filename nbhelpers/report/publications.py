"""Numbers of the papers, as they were printed.

Owns the reading of data/published; the first lines of each file name its paper, DOI, table and
caption.
"""

import difflib
from pathlib import Path

import pandas as pd

from ..errors import InputError
from ..places import shipped

FOLDER = shipped() / "data" / "published"


def published_table(name: str) -> pd.DataFrame:
    """A table of a paper in long format, one row a cell of the printed table.

    Parameters
    ----------
    name
        Such as ``"persson2025-table3"``.

    Returns
    -------
    DataFrame : `attrs` has paper, doi, licence, table, caption and notes (a list).

    Raises
    ------
    InputError
        There is no such table; the message names the nearest.
    """
    path = FOLDER / f"{name}.csv"
    if not path.is_file():
        known = published_table_names()
        near = difflib.get_close_matches(name, known, 1)
        raise InputError(
            f"no published table {name!r}",
            where=FOLDER,
            fix=f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}",
        )
    frame = pd.read_csv(path, comment="#")
    frame.attrs.update(_header(path))
    return frame


def published_table_names() -> list[str]:
    """Names of all published tables."""
    return sorted(path.stem for path in FOLDER.glob("*.csv"))


def _header(path: Path) -> dict:
    lines = [
        line[1:].strip()
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("#")
    ]
    pairs = [tuple(line.split(": ", 1)) for line in lines if ": " in line]
    fields = {name: value for name, value in pairs if name != "note"}
    return {**fields, "notes": [value for name, value in pairs if name == "note"]}
