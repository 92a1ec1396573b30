"""Tables that stages saved, read again, and the findings of a paper as a stage judged them."""

from pathlib import Path
from typing import Any

import pandas as pd

from ..reading import read_csv
from ._grids import MISSING, OURS, PUBLISHED, Grid, Row, number


def saved(path: Path) -> pd.DataFrame:
    """A saved table; without rows where the stage did not run, or had none."""
    from ..report import NO_ROWS

    if not path.is_file():
        return pd.DataFrame()
    table = read_csv(path)
    empty = len(table) == 1 and str(table.iloc[0, 0]).startswith(NO_ROWS)
    return table.iloc[:0] if empty else table


def claims_grid(stage: Path, name: str, author: str) -> Grid:
    """What a paper claims, by its own tables and by our runs, each with its verdict.

    Parameters
    ----------
    stage
        Folder of results with `findings.csv` and `findings-paper.csv`.
    name
        Of the table.
    author
        First author, as the sources name it.
    """
    ours, theirs = saved(stage / "findings.csv"), saved(stage / "findings-paper.csv")
    rows: list[Row] = []
    by_paper = {row["finding"]: row for row in theirs.to_dict("records")}
    for row in ours.to_dict("records"):
        if author not in str(row["source"]):
            continue
        paper = by_paper.get(row["finding"], {})
        rows.append(Row(row["finding"], PUBLISHED, _claim(paper, "paper_", "paper_units")))
        rows.append(Row(row["finding"], OURS, _claim(row, "", "rounds")))
    notes = "n: the paper's traces or programs, and our rounds."
    if not rows:
        notes = f"{MISSING} not measured here: stage {stage.name} has judged no findings."
    caption = "What the paper claims, judged by its own tables and by this study's runs."
    columns = ("effect", "95 % interval", "n", "verdict", "why")
    return Grid(name, caption, columns, tuple(rows), (notes,))


def _claim(row: dict[str, Any], before: str, units: str) -> tuple[str, ...]:
    effect = "effect_percent" if not before else "paper_percent"
    value, low, high = (
        row.get(name, float("nan"))
        for name in (effect, f"{before}low_percent", f"{before}high_percent")
    )
    interval = f"{number(low, '.1f')} to {number(high, '.1f')} %" if low == low else MISSING
    why = row.get(f"{before}why", "")
    count = row.get(units, 0)
    return (
        number(value, "+.1f", " %"),
        interval,
        f"{count:.0f}" if count == count and count else MISSING,
        str(row.get(f"{before}verdict", MISSING)),
        why if isinstance(why, str) else "",
    )
