"""Which traces and which rows a figure shows: natural and planted ones apart."""

from collections.abc import Sequence

import pandas as pd

from .campaigns import WorstTrace


def first_traced(traces: Sequence[WorstTrace]) -> WorstTrace | None:
    """The first natural trace that was recorded in this study; None: nothing was traced."""
    return next((trace for trace in traces if trace.run >= 0 and not trace.planted), None)


def trace_note(trace: WorstTrace | None) -> str:
    """Which run and program a trace is of; empty, where there is none."""
    return f"Run {trace.run} of {trace.program}." if trace else ""


def natural_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of a table with a column `trace` that are of natural traces."""
    return table[table["trace"].str.startswith("#")]


def planted_rows(table: pd.DataFrame, model: str) -> pd.DataFrame:
    """Rows of a table with a column `trace` that are of the trace planted beside a model; all
    rows, where none was planted.
    """
    planted = table["trace"] == f"planted-{model}"
    return table[planted] if planted.any() else table
