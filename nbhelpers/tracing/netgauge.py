"""Detours in files of other tools: Netgauge's selfish format, which is LogGOPSim's noise trace; and
their summary.

Owns the text format, nothing of how detours are recorded.
"""

import io
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ._files import read_trace

# What a comment line is about, by the first of these words in it (its wording has changed between
# versions), and what its last number is called.
_COMMENTS = {
    "threshold": "threshold_percent",
    "overhead": "overhead_percent",
    "period": "seconds",
    "cycle": "resolution_ns",
    "resolution": "resolution_ns",
}


def read_netgauge(path: str | Path, cpu: int = 0) -> pd.DataFrame:
    """Read a trace of Netgauge's selfish benchmark, or any text of lines "start ns, duration ns";
    plain or .gz.

    Returns
    -------
    One row a detour: `cpu` (the argument; the file has none), `start_ns`, `duration_ns` (beyond one
    reading of the clock), `end_ns`. attrs: `net` (True), `seconds` (as the file states, else until
    the end of the last detour), `overhead`, and where the file states them `resolution_ns` and
    `threshold_ns`.

    Raises
    ------
    InputError
        Unreadable, no detour, a line that is not two non-negative numbers, or starts that run
        backwards.
    """
    text = read_trace(path).decode(errors="replace")
    try:
        numbers = pd.read_csv(
            io.StringIO(text),
            sep=r"\s+",
            comment="#",
            header=None,
            names=["start_ns", "duration_ns", "more"],
            dtype=float,
        )
    except ValueError as error:
        raise InputError(f"no detour trace: {error}", where=path) from None
    if not len(numbers):
        raise InputError("no detour in the trace", where=path, fix="record for longer")
    table = _checked(numbers, path).round().astype(np.int64)
    table.insert(0, "cpu", cpu)
    table["end_ns"] = table["start_ns"] + table["duration_ns"]
    if not table["end_ns"].max():
        raise InputError(
            "all detours are of 0 ns at 0", where=path, why="so the trace has no length"
        )
    table.attrs = _attributes(table, [line for line in text.splitlines() if line[:1] == "#"])
    return table


def _checked(numbers: pd.DataFrame, path: str | Path) -> pd.DataFrame:
    table = numbers[["start_ns", "duration_ns"]]
    wrong = numbers["more"].notna() | ~((table >= 0) & (table < 2**62)).all(axis=1)
    backwards = table["start_ns"].diff() < 0
    for bad, what in (
        (wrong, "not two times that make sense"),
        (backwards, "a detour starts before the one above it; sort them: sort -n"),
    ):
        if bad.any():
            raise InputError(what, where=f"{path}, detour {int(bad.to_numpy().argmax()) + 1}")
    return table


def _attributes(table: pd.DataFrame, comments: list[str]) -> dict:
    stated = _stated_numbers(comments)
    seconds = stated.get("seconds") or float(table["end_ns"].max()) / 1e9
    attrs = {
        "net": True,
        "seconds": seconds,
        "cpus": sorted(table["cpu"].unique().tolist()),
        "overhead": float(table["duration_ns"].sum()) / 1e9 / seconds,
    }
    if "resolution_ns" in stated:
        attrs["resolution_ns"] = stated["resolution_ns"]
        if "threshold_percent" in stated:
            attrs["threshold_ns"] = stated["resolution_ns"] * stated["threshold_percent"] / 100
    return attrs


def _stated_numbers(comments: list[str]) -> dict[str, float]:
    stated: dict[str, float] = {}
    for line in comments:
        name = next((name for word, name in _COMMENTS.items() if word in line.lower()), None)
        numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?", line)
        if name and numbers:
            stated.setdefault(name, float(numbers[-1]))
    return stated


def detour_summary(recordings: pd.DataFrame | Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The figures by which systems are compared (Hoefler et al. 2010): resolution, overhead, rate
    and size of their detours.

    Parameters
    ----------
    recordings
        Detours (`record_detours`, `read_netgauge`), or several of them by name.

    Returns
    -------
    DataFrame, a row a recording: `resolution_ns`, `overhead_percent`, `detours_per_s` (a CPU),
    `median_us`, `p99_us`, `max_us`, `detours`, `seconds` (a CPU), `cpus`.
    """
    named = {"": recordings} if isinstance(recordings, pd.DataFrame) else recordings
    return pd.DataFrame({name: _summary(detours) for name, detours in named.items()}).T.astype(
        {"detours": int, "cpus": int}
    )


def _summary(detours: pd.DataFrame) -> dict[str, float]:
    durations_us, attrs = detours["duration_ns"].to_numpy() / 1e3, detours.attrs
    cpus = attrs.get("cpus", detours["cpu"].nunique())
    cpus = max(len(cpus) if isinstance(cpus, (list, tuple)) else int(cpus), 1)
    seconds = attrs.get("seconds", float(detours["end_ns"].max()) / 1e9 if len(detours) else 0.0)
    median, p99 = np.quantile(durations_us, [0.5, 0.99]) if len(detours) else (np.nan, np.nan)
    return {
        "resolution_ns": attrs.get("resolution_ns", np.nan),
        "overhead_percent": durations_us.sum() / 1e4 / max(seconds * cpus, 1e-9),
        "detours_per_s": len(detours) / max(seconds * cpus, 1e-9),
        "median_us": median,
        "p99_us": p99,
        "max_us": durations_us.max() if len(detours) else np.nan,
        "detours": len(detours),
        "seconds": seconds,
        "cpus": cpus,
    }
