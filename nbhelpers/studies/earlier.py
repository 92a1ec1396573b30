"""Findings beside those of an earlier recording of ours, as they were judged then and are now.

Owns the reading of data/knowledge/earlier-findings.csv.
"""

import numpy as np
import pandas as pd

from ..errors import InputError
from ..places import knowledge
from ..reading import read_csv

_FILE = "earlier-findings.csv"


def with_earlier(table: pd.DataFrame, stage: str) -> pd.DataFrame:
    """What an earlier recording of ours says of the same findings.

    Parameters
    ----------
    table
        Of `findings_table`.
    stage
        Whose page it is, such as ``"40-mitigations"``.

    Returns
    -------
    DataFrame, a row a finding that was judged before: `finding`; `earlier_verdict` (by the rule of
    that time; empty: it was not judged), `verdict_before`, `before_percent`, `before_low_percent`,
    `before_high_percent` (the same runs by the rule of today; per cent, 95 % interval); `verdict`,
    `effect_percent`, `low_percent`, `high_percent` (this page).

    Raises
    ------
    InputError
        The knowledge lacks the file.

    Examples
    --------
    >>> now = pd.DataFrame({"finding": ["more threads vary more (CV, TP / one thread)"]})
    >>> now = now.assign(verdict="reproduced", effect_percent=54, low_percent=37, high_percent=73)
    >>> with_earlier(now, "60-openmp-variability")["verdict_before"].item()
    'reproduced'
    """
    path = knowledge() / _FILE
    if not path.is_file():
        raise InputError(
            "the earlier findings are not here", where=path, fix="unset NOISEBOOK_KNOWLEDGE"
        )
    before = read_csv(path, comment="#").fillna({"earlier_verdict": ""})
    before = before[before["stage"] == stage].drop(columns="stage")
    now = table[["finding", "verdict", "effect_percent", "low_percent", "high_percent"]]
    return before.merge(now, on="finding", how="inner")


def earlier_sentences(compared: pd.DataFrame) -> list[str]:
    """How many verdicts the rule of today changed, and how many these runs change.

    Parameters
    ----------
    compared
        Of `with_earlier`.
    """
    if compared.empty:
        return []
    judged = compared[compared["earlier_verdict"] != ""]
    lost = judged[
        judged["earlier_verdict"].isin(["supported", "contradicted"])
        & ~judged["verdict_before"].isin(["reproduced", "reversed"])
    ]
    other = compared[compared["verdict"] != compared["verdict_before"]]
    changes = [
        f"{row['finding']}: {_verdict(row, 'verdict_before', 'before_percent')} then,"
        f" {_verdict(row, 'verdict', 'effect_percent')} here"
        for row in other.to_dict("records")
    ]
    changed = f" Otherwise: {'; '.join(changes)}." if changes else ""
    return [
        f"In an earlier recording of ours {len(lost)} of {len(judged)} findings were called"
        " supported or contradicted which the same runs do not settle by today's rule, or whose"
        f" treatment is another. Of {len(compared)} verdicts by today's rule on those runs"
        f" {len(compared) - len(other)} are the same here." + changed
    ]


def _verdict(row: dict, verdict: str, effect: str) -> str:
    return row[verdict] + (f" ({row[effect]:+.1f} %)" if np.isfinite(row[effect]) else "")
