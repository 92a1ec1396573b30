"""Which marks the figures of a published table have, theirs and ours.

Owns how `drawn` in `data/published/beside.yml` is read.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

_GROUP = ["panel", "case", "whose"]
_ENDS = ["value", "low", "high"]


def drawn_marks(frame: pd.DataFrame, drawn: Mapping[str, Any]) -> pd.DataFrame:
    """The marks of one figure, as `nbhelpers.report.figure_marks` takes them.

    Parameters
    ----------
    frame
        Published table with ours beside or beneath it.
    drawn
        `published` and `ours`: columns of a number, and perhaps of its ends; `panel`, `case`, and
        `whose` (what ours are called): texts made from a row; `own_case`: the case of ours, where
        it is made from other columns (else a case without a published number is not drawn).

    Returns
    -------
    One row a mark; of several rows that are one mark the median and the range. Empty where there
    are no numbers of both.
    """
    rows = frame.to_dict("records")
    texts = {"panel": drawn.get("panel", ""), "case": drawn["case"]}
    theirs = [_mark(row, drawn["published"], texts | {"whose": "published"}) for row in rows]
    texts |= {"whose": drawn.get("whose", "ours"), "case": drawn.get("own_case", drawn["case"])}
    ours = [_mark(row, drawn["ours"], texts) for row in rows]
    marks = pd.DataFrame([*theirs, *ours], columns=[*_GROUP, *_ENDS])
    marks = marks.astype(dict.fromkeys(_ENDS, float)).dropna(subset="value")
    for end in ("low", "high"):
        marks[end] = marks[end].fillna(marks["value"])
    marks = marks.groupby(_GROUP, sort=False, as_index=False).agg(
        value=("value", "median"), low=("low", "min"), high=("high", "max")
    )
    marks.loc[marks["low"] == marks["high"], ["low", "high"]] = np.nan
    published = set(marks["case"][marks["whose"] == "published"])
    if "own_case" not in drawn:
        marks = marks[marks["case"].isin(published)]
    both = published and (marks["whose"] != "published").any()
    return marks if both else marks.iloc[:0]


def _mark(
    row: Mapping[str, Any], columns: Sequence[str], texts: Mapping[str, str]
) -> dict[str, Any]:
    ends = dict(zip(_ENDS, _numbers([row[name] for name in columns])))
    return {name: text.format(**row) for name, text in texts.items()} | ends


def _numbers(cells: Sequence[Any]) -> list[float]:
    """A number and its ends; of a printed range its middle and its ends, of a bound the bound."""
    if not isinstance(cells[0], str):
        return [float(cell) for cell in cells]
    printed = [float(text) for text in re.findall(r"[\d.]+", cells[0])]
    return [float(np.mean(printed)), *printed] if len(printed) > 1 else printed
