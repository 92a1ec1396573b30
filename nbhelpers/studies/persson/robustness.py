"""What the tables of Persson et al. 2025 say by medians and trimmed means, and which of their means
one run decides.

Owns the columns that stand beside a mean, and the sentences where the two do not agree.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ...empty import because
from ...statistics.robust import robust_summary
from ..design import BENCHMARKS, PRINTED_MODELS
from .campaigns import KEYS

NONE_DECIDED = "no mean lies outside the 95 % interval of its trimmed mean"
_MOST_NAMED = 3  # cases that a sentence names; the table has all


def decided_table(*tables: pd.DataFrame) -> pd.DataFrame:
    """Cells whose mean lies outside the 95 % interval of the trimmed mean, and the run behind it.

    Parameters
    ----------
    tables
        Runs of `baseline_campaign` and `injected_campaign`, through `label_runs`.

    Returns
    -------
    One row a cell, the largest gap between mean and trimmed mean first: `benchmark`, `model`,
    `config`, `trace`, `mode`, `mean_seconds`, `trimmed_seconds` with its interval
    (`trimmed_low_seconds`, `trimmed_high_seconds`), `far_run` and `far_seconds` (the run farthest
    out), `gap_share` (what goes of the gap when that run is left out), `runs`. `attrs` has
    `cells`: how many there were.
    """
    rows = [row for runs in tables for row in _cell_rows(runs)]
    table = pd.DataFrame(rows, columns=list(_cell_row((), {})))
    chosen = table[table.pop("decided").astype(bool)]
    gap = (chosen["mean_seconds"] / chosen["trimmed_seconds"] - 1).astype(float).abs()
    chosen = chosen.loc[gap.sort_values(ascending=False, kind="stable").index]
    chosen = because(chosen.reset_index(drop=True), NONE_DECIDED)
    chosen.attrs["cells"] = len(table)
    return chosen


def _cell_rows(runs: pd.DataFrame) -> list[dict]:
    groups = runs.groupby([*KEYS, "trace", "mode"], sort=False)
    return [_cell_row(key, robust_summary(cell)) for key, cell in groups if len(cell) > 1]


def _cell_row(key: tuple, found: dict) -> dict:
    """A row of the table; without a cell its columns."""
    program, model, config, trace, mode = key or ("",) * 5
    return {
        "benchmark": BENCHMARKS.get(program),
        "model": PRINTED_MODELS.get(model),
        "config": config,
        "trace": trace,
        "mode": mode,
        "mean_seconds": found.get("mean"),
        "trimmed_seconds": found.get("trimmed"),
        "trimmed_low_seconds": found.get("trimmed_low"),
        "trimmed_high_seconds": found.get("trimmed_high"),
        "far_run": found.get("far_run"),
        "far_seconds": found.get("far"),
        "gap_share": found.get("gap_share"),
        "runs": found.get("runs"),
        "decided": found.get("decided"),
    }


def robust_sentences(decided: pd.DataFrame, *tables: pd.DataFrame) -> list[str]:
    """How many means a few runs decide, and where mean and trimmed mean show different things.

    Parameters
    ----------
    decided
        Of `decided_table`.
    tables
        Of `tracing_table`, `slowdown_table`, `resilience_table`.
    """
    return [_decided_sentence(decided), _other_verdicts(tables)]


def _decided_sentence(decided: pd.DataFrame) -> str:
    count = f"In **{len(decided)} of {decided.attrs['cells']}** cells"
    where = "the mean lies outside the 95 % interval of the trimmed mean"
    if not len(decided):
        return f"{count} {where}."
    cases = ", ".join(
        f"{_name(row)} (run {row['far_run']}, {row['far_seconds']:.3f} s: {row['gap_share']:.0%})"
        for row in decided.head(_MOST_NAMED).to_dict("records")
    )
    return f"{count} {where}. Farthest apart, with the part of it that one run makes: {cases}."


def _other_verdicts(tables: Sequence[pd.DataFrame]) -> str:
    """The rows whose increase is shown by one of mean and trimmed mean, and not by the other."""
    rows = [row for table in tables for row in table.to_dict("records")]
    others = [row for row in rows if _sign(row, "") != _sign(row, "trimmed_")]
    said = (
        f"In **{len(others)} of {len(rows)}** rows of the tables of increases only one of mean and"
        " trimmed mean shows a change (its interval excludes 0)"
    )
    if not others:
        return f"{said}."
    cases = ", ".join(f"{_name(row)} ({_by_either(row)})" for row in others[:_MOST_NAMED])
    return f"{said}: {cases}{' and others' if len(others) > _MOST_NAMED else ''}."


def _by_either(row: dict) -> str:
    numbers = f"{row['increase_percent']:+.1f} % and {row['trimmed_percent']:+.1f} %"
    return f"{numbers}, shown by the {'mean' if _sign(row, '') else 'trimmed mean'}"


def _sign(row: dict, name: str) -> int:
    """1: the whole interval is above 0, -1: below, 0: it holds 0, or there is none."""
    low, high = (row.get(f"{name}{end}_percent", np.nan) for end in ("low", "high"))
    return int(low > 0) - int(high < 0)


def _name(row: dict) -> str:
    """Of a cell or row, by what it has of its keys."""
    keys = ("noise", "benchmark", "model", "config", "trace", "mode")
    return " ".join(str(row[key]) for key in keys if row.get(key))
