"""A mitigation that a person does: measured without it, done, measured with it.

Owns the steps of such a trial, and how their runs become a pair. They were not measured in turn and
have no rounds in common: whatever else changed in between is in the difference, too, and `when`
says when each side was measured.
"""

from collections.abc import Mapping
from datetime import datetime

import pandas as pd

BEFORE, AFTER = "before", "after"  # of a step: "trial.before" measures the untreated side
_CAVEAT = "Undo it, and measure both again: a difference that comes and goes with it is no drift."


def joined(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The runs of both sides as one table, without rounds: they are paired in their order.

    Parameters
    ----------
    parts
        BEFORE and AFTER → runs; in place of both "" → runs in turn.
    """
    if "" in parts:
        return parts[""]
    table = pd.concat([parts[side] for side in (BEFORE, AFTER) if side in parts])
    return table.drop(columns=["round", "epoch"], errors="ignore").reset_index(drop=True)


def when(untreated: pd.DataFrame, treated: pd.DataFrame) -> str:
    """When both sides were measured, and what that means; empty where they were in turn."""
    if "round" in untreated or "began_unix_s" not in untreated:
        return ""
    times = []
    for runs in (untreated, treated):
        began = runs["began_unix_s"]
        first, last = map(datetime.fromtimestamp, (began.min(), began.max()))
        times.append(f"{first:%Y-%m-%d %H:%M:%S} to {last:%H:%M:%S}")
    return f"Untreated runs: {times[0]}; treated ones: {times[1]}. {_CAVEAT}"
