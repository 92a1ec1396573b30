"""Numbers of the papers, as they were printed.

Owns the reading of data/published; the first lines of each file name its paper, DOI, table and
caption.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import check_choice
from ..places import shipped
from ..reading import read_csv
from ..statistics.agreement import accepted_range
from ..statistics.claims import REVERSED, VERDICTS, Claim, judge
from ..statistics.contrast import interval_evidence
from ..statistics.evidence import Evidence
from ..statistics.intervals import Interval

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
    check_choice("published table", name, published_table_names(), FOLDER)
    path = FOLDER / f"{name}.csv"
    frame = read_csv(path, comment="#")
    frame.attrs.update(_header(path))
    return frame


def published_table_names() -> list[str]:
    """Names of all published tables."""
    return sorted(path.stem for path in FOLDER.glob("*-*.csv"))


def _header(path: Path) -> dict:
    pairs = re.findall(r"^# (\w+): (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return dict(pairs) | {"notes": [value for name, value in pairs if name == "note"]}


PUBLISHED_RESULTS = ("hoefler2010-slides1", "beckman2006-text1", "ferreira2008-text1")


def published_results(
    ours: Mapping[str, Mapping[str, Any]], tables: Sequence[str] = PUBLISHED_RESULTS
) -> pd.DataFrame:
    """All published results, what the reference simulator gives for each, and ours.

    Parameters
    ----------
    ours
        Name of the result → ours (the column `result` of the published tables): a row of a study
        with `median`, `low`, `high`, `seeds`, and perhaps `case`: what was simulated where it is
        not what the statement says (fewer ranks). `fitted`: a parameter of ours was chosen by this
        row. `single`: one run or system was published; `low` and `high` are the range of ours.
        `exact`: nothing is drawn, without noise. Other names are experiments of a reader, and left
        out.
    tables
        Names of published tables.

    Returns
    -------
    DataFrame : `source`, `result`, `statement`, `published`, `accepted`, `reference` (as text: a
    number, a range, a bound), `ours`, `low`, `high` (95 %), `seeds`, `verdict`, `case`; a result
    that was not simulated has empty cells. The verdict is of `statistics.claims`: whether ours is
    within the accepted range (`statistics.agreement`: of a slow-down, the published one with each
    end widened by 20 % of its excess); empty where nothing was published, or ours has no interval.
    A row that something was fitted to is "fitted". One published run or system is "compatible"
    within the range of ours, and not reproduced outside: more it cannot show. What is exact is in
    the accepted range or not.
    """
    rows: list[dict] = []
    pairs: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
    for name in tables:
        for row in published_table(name).to_dict("records"):
            found = ours.get(row["result"], {})
            pairs.append((row, found))
            rows.append(
                {
                    "source": re.sub(r"(\D+)(\d+)-.*", r"\1 et al. \2", name).capitalize(),
                    "result": row["result"],
                    "statement": row["statement"],
                    "published": _range(row["published_low"], row["published_high"]),
                    "accepted": _range(*_accepted(row)),
                    "reference": _range(row["reference_low"], row["reference_high"]),
                    "ours": found.get("median", np.nan),
                    "low": found.get("low", np.nan),
                    "high": found.get("high", np.nan),
                    "seeds": found.get("seeds", 0),
                    "case": found.get("case", ""),
                }
            )
    table = pd.DataFrame(rows).astype({"seeds": "Int64"})
    table.insert(table.columns.get_loc("case"), "verdict", published_verdicts(pairs))
    return table


def published_verdicts(
    pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
) -> list[str]:
    """Whether each of our numbers is within what is accepted of a published one, judged together.

    Parameters
    ----------
    pairs
        The published number (`statement`, `quantity`, `published_low`, `published_high`), and ours
        (`median`, `low`, `high`, and `seeds`: of how many units); ours may be empty.

    Returns
    -------
    A verdict a pair; "" where nothing was published, or ours has no interval; "fitted" and
    "compatible" as `published_results` has them.

    Examples
    --------
    >>> theirs = {"statement": "x", "quantity": "slow-down"}
    >>> theirs |= {"published_low": 1.3, "published_high": 1.3}
    >>> published_verdicts([(theirs, {"median": 2.0, "low": 1.9, "high": 2.1, "seeds": 9})])
    ['not reproduced']
    """
    known = {i: word for i, one in enumerate(pairs) if (word := _unclaimed(*one))}
    claimed = {
        i: pair for i, one in enumerate(pairs) if i not in known and (pair := _claimed(*one))
    }
    judged = dict(zip(claimed, judge(list(claimed.values())), strict=True))
    known |= {i: _WORDS[one.verdict] for i, one in judged.items()}
    return [known.get(i, "") for i in range(len(pairs))]


def _unclaimed(row: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """The verdict on a row that is no claim: what it is fitted to, or compared as it stands; else
    "".
    """
    if found.get("fitted"):
        return "fitted"
    ends = np.array([row["published_low"], row["published_high"]], float)
    word = "compatible" if found.get("single") else "reproduced" if found.get("exact") else ""
    if not word or np.isnan(ends).all():
        return ""
    low, high = ends if found.get("single") else _accepted(row)
    misses = found["high"] < low or found["low"] > high  # never of a bound that is not there
    return _WORDS[REVERSED] if misses else word


_WORDS = {verdict: verdict for verdict in VERDICTS} | {REVERSED: "not reproduced"}


def _accepted(row: Mapping[str, Any]) -> tuple[float, float]:
    low, high = accepted_range(row["published_low"], row["published_high"], row["quantity"])
    return float(low), float(high)


def _claimed(row: Mapping[str, Any], found: Mapping[str, float]) -> tuple[Claim, Evidence] | None:
    """That ours is not beyond the nearest end of the accepted range, and what the simulations say
    of it. The margin of the claim is the distance from the published end to the accepted one.
    """
    least, most = row["published_low"], row["published_high"]
    ours, low, high = (found.get(name, np.nan) for name in ("median", "low", "high"))
    units = int(found.get("seeds", 0))
    if (np.isnan(least) and np.isnan(most)) or not np.isfinite([low, high]).all() or units < 2:
        return None
    below = np.isnan(most) or (not np.isnan(least) and ours < np.sqrt(least * most))
    bound, limit = (ends[0 if below else 1] for ends in ((least, most), _accepted(row)))
    direction = "not below" if below else "not above"
    claim = Claim(row["statement"], direction, abs(float(limit / bound) - 1))
    ratio = Interval(ours / bound, low / bound, high / bound, units)
    return claim, interval_evidence(ratio, units, "seeds")


def _range(low: float, high: float) -> str:
    if np.isnan(low) and np.isnan(high):
        return ""
    if np.isnan(low) or np.isnan(high):
        return f"> {low:.4g}" if np.isnan(high) else f"< {high:.4g}"
    return f"{low:.4g}" if low == high else f"{low:.4g}–{high:.4g}"
