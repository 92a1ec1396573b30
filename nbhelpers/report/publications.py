"""Numbers of the papers, as they were printed.

Owns the reading of data/published; the first lines of each file name its paper, DOI, table and
caption.
"""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
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


PUBLISHED_RESULTS = ("hoefler2010-slides1", "beckman2006-text1", "ferreira2008-text1")
_AUTHORS = {
    "hoefler2010": "Hoefler et al. 2010",
    "beckman2006": "Beckman et al. 2006",
    "ferreira2008": "Ferreira et al. 2008",
}


def published_results(
    ours: Mapping[str, Mapping[str, float]], tables: Sequence[str] = PUBLISHED_RESULTS
) -> pd.DataFrame:
    """All published results, what the reference simulator gives for each, and ours.

    Parameters
    ----------
    ours
        By the name of the result (the column `result` of the published tables): a row of a study
        with `median`, `low`, `high`, `seeds`, and perhaps `case`: what was simulated where it is
        not what the statement says (fewer ranks).
    tables
        Names of published tables.

    Returns
    -------
    DataFrame : `source`, `result`, `statement`, `published`, `reference` (as text: a number, a
    range, a bound), `ours`, `low`, `high` (95 %), `seeds`, `case`; a
        result that was not simulated has empty cells.

    Raises
    ------
    InputError
        A name that no published table has.
    """
    rows = []
    for name in tables:
        for row in published_table(name).to_dict("records"):
            found = ours.get(row["result"], {})
            rows.append(
                {
                    "source": _AUTHORS.get(name.split("-")[0], name),
                    "result": row["result"],
                    "statement": row["statement"],
                    "published": _range(row["published_low"], row["published_high"]),
                    "reference": _range(row["reference_low"], row["reference_high"]),
                    "ours": found.get("median", np.nan),
                    "low": found.get("low", np.nan),
                    "high": found.get("high", np.nan),
                    "seeds": found.get("seeds", 0),
                    "case": found.get("case", ""),
                }
            )
    unknown = set(ours) - {row["result"] for row in rows}
    if unknown:
        raise InputError(
            f"nothing was published as '{min(unknown)}'",
            where=", ".join(tables),
            fix="the names stand in the column `result`",
        )
    return pd.DataFrame(rows).astype({"seeds": "Int64"})


def _range(low: float, high: float) -> str:
    if np.isnan(low) and np.isnan(high):
        return ""
    if np.isnan(low) or np.isnan(high):
        return f"> {low:g}" if np.isnan(high) else f"< {high:g}"
    return f"{low:g}" if low == high else f"{low:g}–{high:g}"
