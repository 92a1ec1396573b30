"""The published tables with this study's numbers beside them: one join a table.

Owns how the rows of `data/published/beside.yml` are read: which of our tables belongs to which of
theirs, by which columns, what is shown of both, and what is judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from ..reading import read_yaml
from ..report import published_results, published_table
from ..report.publications import FOLDER, published_verdicts
from ..report.record import read_table
from ._drawn import drawn_marks

RECORDS = FOLDER / "beside.yml"
NAMES = ("finding", "claim", "statement")  # columns that say what is claimed
_INCREASE = ("increase_percent", "low_percent", "high_percent")


@dataclass(frozen=True)
class JoinedTable:
    """A published table with ours beside it.

    Attributes
    ----------
    name, caption
        Name as a file name, and caption with the number that the paper gives the table.
    frame
        A row a published row and one of ours; published columns end in " (published)".
    cells
        Number of published cells.
    notes
        What no cell says: why cells are empty, what may be compared.
    drawings
        Its figures: the label of the axis, and the marks (`drawn_marks`).
    printed
        The columns that the PDF shows, of rows with a verdict; none, where it shows no table.
    """

    name: str
    caption: str
    frame: pd.DataFrame
    cells: int
    notes: tuple[str, ...]
    drawings: tuple[tuple[str, pd.DataFrame], ...] = ()
    printed: tuple[str, ...] = ()


def publication_records() -> dict[str, dict[str, Any]]:
    """The records of all publications, by name; a table that is `like` another has its fields."""
    found = read_yaml(RECORDS, "record of the published tables")
    known: dict[str, dict[str, Any]] = {}
    for record in found.values():
        for name, spec in record["tables"].items():
            known[name] = known.get(spec.get("like"), {}) | spec
            record["tables"][name] = known[name]
    return found


def joined_tables(record: Mapping[str, Any], results: Path) -> list[JoinedTable]:
    """The tables of one publication, each joined with ours and judged."""
    specs = record["tables"]
    tables = {name: _joined(name, spec, results) for name, spec in specs.items()}
    for family in dict.fromkeys(spec["judged"] for spec in specs.values() if "judged" in spec):
        names = [name for name, spec in specs.items() if spec.get("judged") == family]
        tables |= _judged({name: tables[name] for name in names}, specs[names[0]]["units"])
    return list(tables.values())


def _joined(name: str, spec: Mapping[str, Any], results: Path) -> JoinedTable:
    theirs, caption = _theirs(name, spec, results)
    numbers = {one: f"{one} (published)" for one in spec.get("published", ())}
    left = theirs.reindex(columns=[*spec["by"], *numbers]).rename(columns=numbers)
    worded = theirs.replace(spec.get("words", {})).to_dict("records")
    for key, text in spec.get("key", {}).items():
        left[key] = [text.format(**row) for row in worded]
    ours = saved_table(results, spec.get("ours", ""), spec.get("of", ""))
    frame = _merged(left, ours, spec).drop(columns=list(spec.get("key", ())))
    notes = (*_missing(spec, results, ours), *spec.get("notes", ()))
    cells = int(left[list(numbers.values())].replace("", None).notna().sum().sum())
    drawn = ((one["label"], drawn_marks(frame, one)) for one in spec.get("drawn", ()))
    drawings = tuple((label, marks) for label, marks in drawn if len(marks))
    return JoinedTable(name, caption, frame, cells, notes, drawings, tuple(spec.get("pdf", ())))


def _theirs(name: str, spec: Mapping[str, Any], results: Path) -> tuple[pd.DataFrame, str]:
    """The table whose rows lead, and its caption."""
    if "theirs" in spec:
        return saved_table(results, spec["theirs"], spec.get("rows", "")), spec["caption"]
    table = published_table(name)
    caption, number = table.attrs["caption"], table.attrs["table"]
    if "published_low" in table:
        return published_results({}, (name,)), caption
    return table, f"Table {number}: {caption}" if "-table" in name else caption


def _merged(left: pd.DataFrame, ours: pd.DataFrame, spec: Mapping[str, Any]) -> pd.DataFrame:
    beside, match = spec.get("beside", []), spec.get("match", spec["by"])
    if not len(ours):
        return left.reindex(columns=[*left, *(name for name in beside if name not in left)])
    if not match:
        both = pd.concat([left, ours[beside]], ignore_index=True)
        return both.fillna({spec["by"][0]: "this machine"})
    names = match if isinstance(match, Mapping) else {name: name for name in match}
    ours = ours.rename(columns={name: key for key, name in names.items()})
    return left.merge(ours[[*names, *beside]], on=list(names), how="left")


def saved_table(results: Path, name: str, rows: str = "") -> pd.DataFrame:
    """A table that a stage saved, or some rows of it (a query); without rows where the stage did
    not run, or had none.
    """
    path = results / f"{name}.csv"
    table = read_table(path) if path.is_file() else pd.DataFrame()
    return table.query(rows) if len(table) and rows else table


def _missing(spec: Mapping[str, Any], results: Path, ours: pd.DataFrame) -> list[str]:
    """Why cells are empty, each reason one time, as the stage wrote it down."""
    wanted = spec.get("theirs", spec.get("ours"))
    if wanted and not len(saved_table(results, wanted)):
        return [f"Not measured here: stage {wanted.split('/')[0]} has no table."]
    table = saved_table(results, spec.get("reasons", ""))
    if not len(table):
        return []
    absent = table[~table["measured"].fillna(False).astype(bool)]
    absent = absent.assign(missing=absent["missing"].fillna("it is not part of this profile"))
    reasons = absent.groupby("missing", sort=False)["name"].agg(", ".join)
    return [f"Not measured here: {names}: {why}." for why, names in reasons.items()]


def _judged(tables: Mapping[str, JoinedTable], units: str) -> dict[str, JoinedTable]:
    """The tables with a column `verdict`: whether our increase is the published one."""
    both = pd.concat([one.frame for one in tables.values()], keys=list(tables))
    pairs = [_pair(row, units) for row in both.to_dict("records")]
    both["verdict"] = published_verdicts(pairs)
    return {name: replace(one, frame=both.loc[name]) for name, one in tables.items()}


def _pair(row: Mapping[str, Any], units: str) -> tuple[dict[str, Any], dict[str, float]]:
    """A published increase and ours as slow-downs."""
    factor = 1 + row["increase_percent (published)"] / 100
    theirs = {"statement": str(row["config"]), "quantity": "slow-down"}
    theirs |= {"published_low": factor, "published_high": factor}
    if pd.isna(row["increase_percent"]):
        return theirs, {}
    median, low, high = (1 + row[name] / 100 for name in _INCREASE)
    return theirs, {"median": median, "low": low, "high": high, "seeds": row[units]}
