"""Every table, figure and claim of a publication by its number: where it stands here, of how many
runs, and with which verdict, or the reason why not.

Owns how `data/published/numbered.csv` is read; the talk has no numbers, its slides have titles.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

import pandas as pd

from ..empty import why_empty
from ..reading import read_csv
from ..report import published_table
from ..report.publications import FOLDER
from ._joined import NAMES, JoinedTable, saved_table

RECORDS = FOLDER / "numbered.csv"
CLAIMS = "claims"  # number of a row that stands for all claims of a published table
COLUMNS = ["number", "shows", "ours", "n", "verdict"]
UNJUDGED = "not judged: theirs has no number, or ours no interval"
_COUNTS = ("runs", "rounds", "seeds", "rows")


def numbered_records(publication: str) -> list[dict[str, str]]:
    """The rows of a publication: `number`, `shows`, `ours` (STAGE/NAME, several apart by spaces),
    `judged` (the table that has the verdict), `rows` (which of it), `why` there is no verdict.
    """
    found = read_csv(RECORDS, dtype=str, keep_default_na=False)
    rows = found[found["publication"] == publication].drop(columns="publication")
    return [one for row in rows.to_dict("records") for one in _expanded(row)]


def _expanded(row: dict[str, str]) -> Iterator[dict[str, str]]:
    """A row; of `claims` one for each claim, which `is` in a row of the table with the verdicts."""
    if row["number"] != CLAIMS:
        yield row
        return
    table = published_table(row["shows"])
    table = table.query(row["rows"]) if row["rows"] else table
    name = next(name for name in NAMES if name in table)
    for claim in table.drop_duplicates(name).to_dict("records"):
        place = str(claim.get("source", "")).partition(", ")[2] or "text"
        yield row | {"number": place, "shows": claim[name], "is": claim[name]}


def numbered_rows(publication: str, tables: Sequence[JoinedTable], results: Path) -> pd.DataFrame:
    """The index of a publication.

    Parameters
    ----------
    publication
        Such as ``"persson2025"``.
    tables
        Its tables, joined with ours.
    results
        Folder with the results of all stages.

    Returns
    -------
    `number`, `shows`, `ours` (STAGE/NAME …, those that were made), `n`, `verdict` (or the reason
    why there is none).
    """
    joined = {table.name: table.frame for table in tables}
    rows = [_indexed(record, joined, results) for record in numbered_records(publication)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _indexed(
    record: Mapping[str, str], joined: Mapping[str, pd.DataFrame], results: Path
) -> dict[str, str]:
    ours = {name: saved_table(results, name) for name in record["ours"].split()}
    made = {name: table for name, table in ours.items() if len(table)}
    shown = {"number": record["number"], "shows": record["shows"], "ours": " ".join(made)}
    if ours and not made:
        stage, _, item = next(iter(ours)).partition("/")
        why = why_empty(*ours.values()) or f"stage {stage} has no {item}"
        return shown | {"n": "", "verdict": f"not measured here: {why}"}
    judged = _judged(record, joined, results)
    counts = [count for table in (judged, *made.values()) if (count := _count(table))]
    said = "; ".join(filter(None, (_verdict(judged), record["why"])))
    return shown | {"n": next(iter(counts), ""), "verdict": said or UNJUDGED}


def _judged(
    record: Mapping[str, str], joined: Mapping[str, pd.DataFrame], results: Path
) -> pd.DataFrame:
    """The rows that it is judged by; none, where nothing is judged."""
    name = record["judged"]
    table = joined[name] if name in joined else saved_table(results, name)
    if not name or "verdict" not in table:
        return pd.DataFrame()
    text = next((text for text in NAMES if text in table), "")
    if "is" in record:
        table = table[table[text] == record["is"]]
    elif record["rows"]:
        table = table[table[text].str.contains(record["rows"])]
    return table


def _count(table: pd.DataFrame) -> str:
    """How many runs a table's rows are of, such as ``"10 to 30 runs"``."""
    for name in _COUNTS:
        counts = pd.to_numeric(table[name], errors="coerce").dropna() if name in table else []
        if len(counts) and max(counts) > 0:
            low, high = int(min(counts)), int(max(counts))
            many = name.removesuffix("s") if high == 1 else name
            return f"{high} {many}" if low == high else f"{low} to {high} {many}"
    return f"{table['run'].nunique()} runs" if "run" in table else ""


def _verdict(judged: pd.DataFrame) -> str:
    """The verdicts, each with its number of rows, and the reason where they share one."""
    judged = judged[judged["verdict"].fillna("") != ""] if len(judged) else judged
    if not len(judged):
        return ""
    counts = judged["verdict"].value_counts(sort=False).sort_index()
    said = ", ".join(f"{word}: {n}" if len(judged) > 1 else word for word, n in counts.items())
    reasons = set(judged["why"].dropna()) if "why" in judged and len(counts) == 1 else set()
    return f"{said} ({reasons.pop()})" if len(reasons) == 1 else said


def index_html(index: pd.DataFrame) -> str:
    """The index as a table; each of ours is a link to its place on the page of its stage."""
    shown = index[COLUMNS].astype(str).map(escape)
    shown["ours"] = [" ".join(map(_link, names.split())) or "–" for names in index["ours"]]
    shown = shown.rename(columns={"number": "paper", "verdict": "verdict, or why none"})
    return links_html(shown)


def links_html(table: pd.DataFrame) -> str:
    """A table of HTML texts."""
    with pd.option_context("display.max_colwidth", None):
        return table.to_html(index=False, escape=False, border=0, classes="numbered")


def _link(name: str) -> str:
    stage, _, item = name.partition("/")
    return f'<a href="../pages/{stage}.html#{item}">{stage.split("-")[0]} {escape(item)}</a>'
