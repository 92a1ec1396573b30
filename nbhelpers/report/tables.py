"""Tables that a study has and no single part owns: the cost of looking, the error of a replay,
what a page rests on.

Pure: tables in, tables out. Intervals are 95 % bootstrap intervals.
"""

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path

import pandas as pd

from ..reading import read_json
from ..statistics import Comparison
from ..statistics.robust import error_columns, increase_columns
from .publications import published_table


def overhead_table(comparison: Comparison, benchmark: str, runs: int) -> pd.DataFrame:
    """Table 1 of Persson et al. 2025: average execution time without and with tracing; theirs, then
    ours with the interval.

    Parameters
    ----------
    comparison
        Of untraced (before) with traced runs (after).
    benchmark
        Its name for the table.
    runs
        Of each.

    Returns
    -------
    `benchmark`, `runs`, `off_seconds`, `on_seconds`, `increase_percent` with its 95 % bootstrap
    interval `low_percent` to `high_percent`; `median_percent` and `trimmed_percent` with theirs
    (`median_low_percent` and so on), the increases of median and trimmed mean.
    """
    mean = comparison.table.loc["mean"]
    ours = {
        "benchmark": f"this study: {benchmark}",
        "runs": runs,
        "off_seconds": mean["before"],
        "on_seconds": mean["after"],
        "increase_percent": 100 * (mean["ratio"] - 1),
        "low_percent": 100 * (mean["low"] - 1),
        "high_percent": 100 * (mean["high"] - 1),
        **increase_columns(_robust_ratios(comparison.table)),
    }
    theirs = published_table("persson2025-table1").rename(
        columns={"tracing_off_seconds": "off_seconds", "tracing_on_seconds": "on_seconds"}
    )
    theirs["benchmark"] = "Persson et al. 2025: " + theirs["benchmark"]
    return pd.concat([theirs, pd.DataFrame([ours])], ignore_index=True)[list(ours)].astype(
        {"runs": "Int64"}
    )


def _robust_ratios(table: pd.DataFrame) -> dict[str, list[float]]:
    columns = ["ratio", "low", "high"]
    return {name: table.loc[name, columns].tolist() for name in ("median", "trimmed")}


def accuracy_table(
    anomaly_seconds: float, injected: pd.DataFrame, baseline: pd.DataFrame, label: str
) -> pd.DataFrame:
    """Table 7 of Persson et al. 2025: abs(mean of the replayed runs / anomaly − 1); theirs, then
    ours with the interval and the baseline.

    The row of the baseline is the control: without any noise the program is so far from the anomaly
    already.

    Parameters
    ----------
    anomaly_seconds
        Run time of the run that is replayed.
    injected, baseline
        Finished runs with and without the replay.
    label
        Of the program and its configuration.

    Returns
    -------
    `configuration`, `error_percent`, `runs`, `mean_seconds`, `ratio` (mean / anomaly) with its
    95 % bootstrap interval `low` to `high`; `median_ratio` and `trimmed_ratio` (median and trimmed
    mean / anomaly) with theirs (`median_ratio_low` and so on). The published rows have the first
    two.
    """
    rows = [
        _error(f"this study: {label}, replayed", anomaly_seconds, injected),
        _error(f"this study: {label}, not disturbed", anomaly_seconds, baseline),
    ]
    theirs = published_table("persson2025-table7")
    names = (
        "Persson et al. 2025: "
        + theirs["benchmark"]
        + " "
        + theirs["config"]
        + "-"
        + theirs["model"]
        + theirs["smt"].map({"on": " SMT"}).fillna("")
    )
    return pd.concat(
        [
            pd.DataFrame({"configuration": names, "error_percent": theirs["accuracy_percent"]}),
            pd.DataFrame(rows),
        ],
        ignore_index=True,
    ).astype({"runs": "Int64"})


def _error(label: str, anomaly_seconds: float, runs: pd.DataFrame) -> dict:
    found = error_columns(runs["seconds"], anomaly_seconds)
    return {
        "configuration": label,
        "error_percent": found.pop("error_percent"),
        "runs": len(runs),
        "mean_seconds": runs["seconds"].mean(),
        **found,
    }


def provenance_html(provenance: dict, title: str = "Provenance of the data") -> str:
    """A block that unfolds and shows where the data are from: nested names and values as a table.

    Parameters
    ----------
    provenance
        Names and values (text, numbers, lists, dicts), as `nbhelpers.machine._provenance` gives
        them.
    """
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
        for name, value in _flat(provenance)
    )
    return (
        '<details class="noisebook'
        f' provenance"><summary>{escape(title)}</summary><table>{rows}</table></details>'
    )


def _flat(value: object, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict) and value:
        return [
            pair
            for key, inner in value.items()
            for pair in _flat(inner, f"{name} / {key}" if name else str(key))
        ]
    if isinstance(value, list | tuple):
        return [(name, ", ".join(map(str, value)) or "none")]
    return [(name, "none" if value in (None, "", {}) else str(value))]


class Provenance:
    """What each stage was made from; shows itself in a notebook as blocks that unfold."""

    def __init__(self, folder: str | Path):
        self.stages = {path.stem: read_json(path) for path in sorted(Path(folder).glob("*.json"))}

    def __repr__(self) -> str:
        return f"Provenance of {len(self.stages)} stages"

    def _repr_html_(self) -> str:
        return "".join(
            provenance_html(provenance, title=f"Stage {stage}")
            for stage, provenance in self.stages.items()
        )


def found_html(sentences: Iterable[str]) -> str:
    """Sentences with ``**bold**`` parts as an HTML list."""
    items = (
        re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(sentence)) for sentence in sentences
    )
    return "<ul class='found'>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"
