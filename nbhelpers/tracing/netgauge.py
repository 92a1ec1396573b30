"""Detours as files that other tools read and write: Netgauge's selfish format, which is LogGOPSim's
noise trace; and their summary.

Owns the text format, nothing of how detours are recorded.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..files import write_atomically
from ._files import read_trace
from .ftq import one_cpu

# What a comment line is about, by the first of these words in it (its wording has changed between
# versions), and what its last number is called.
_COMMENTS = {
    "threshold": "threshold_percent",
    "overhead": "overhead_percent",
    "period": "seconds",
    "cycle": "resolution_ns",
    "resolution": "resolution_ns",
}


def write_netgauge(detours: pd.DataFrame, path: str | Path, cpu: int | None = None) -> Path:
    """Write the detours of a CPU as Netgauge's selfish benchmark does: start, tab, duration, both
    ns, between comment lines.

    Parameters
    ----------
    detours
        Of `record_detours` or `read_netgauge`; times count from the first detour of a file of
        Netgauge, here from the loop's start.
    cpu
        Whose; None: the only one.

    Notes
    -----
    Netgauge's duration is what the gap took beyond one reading of the clock; ours is the whole gap,
    so `resolution_ns` is taken off here.

    Raises
    ------
    InputError
        Several CPUs and none chosen, or no detour of that CPU.
    """
    chosen, attrs = one_cpu(detours, cpu), detours.attrs
    reading_ns = 0 if attrs.get("net") else int(round(attrs.get("resolution_ns", 0)))
    durations_ns = np.maximum(chosen["duration_ns"] - reading_ns, 1)
    resolution_ns = attrs.get("resolution_ns")
    seconds = attrs.get("seconds", float(chosen["end_ns"].max()) / 1e9)
    threshold = (
        attrs["threshold_ns"] / resolution_ns * 100
        if resolution_ns and "threshold_ns" in attrs
        else None
    )
    head = [
        "# selfish detour, recorded by Noisebook",
        resolution_ns and f"# minimal cycle length [ns]: {resolution_ns:.6f}",
        threshold and f"# threshold [% min cycle]: {threshold:.0f}",
        "# start_ns\tduration_ns",
    ]
    tail = [
        f"# CPU overhead due to noise: {durations_ns.sum() / seconds / 1e7:.4f}%",
        f"# Measurement period: {seconds:.6f} s",
    ]
    body = [f"{start}\t{duration}" for start, duration in zip(chosen["start_ns"], durations_ns)]
    return write_atomically(
        path, "\n".join([*(line for line in head if line), *body, *tail]) + "\n"
    )


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
    comments, rows = [], []
    for number, line in enumerate(read_trace(path).decode(errors="replace").splitlines(), start=1):
        if line.startswith("#"):
            comments.append(line)
        elif line.strip():
            rows.append(_row(line, path, number))
    if not rows:
        raise InputError("no detour in the trace", where=path, fix="record for longer")
    times_ns = np.rint(np.array(rows)).astype(np.int64)
    backwards = np.flatnonzero(np.diff(times_ns[:, 0]) < 0)
    if backwards.size:
        raise InputError(
            "a detour starts before the one above it",
            where=f"{path}, detour {backwards[0] + 2}",
            why="a trace is a course of time",
            fix="sort it by its first column: sort -n",
        )
    table = pd.DataFrame(
        {
            "cpu": np.full(len(rows), cpu),
            "start_ns": times_ns[:, 0],
            "duration_ns": times_ns[:, 1],
            "end_ns": times_ns.sum(axis=1),
        }
    )
    if not table["end_ns"].max():
        raise InputError(
            "all detours are of 0 ns at 0", where=path, why="so the trace has no length"
        )
    table.attrs = _attributes(table, comments)
    return table


def _row(line: str, path: str | Path, number: int) -> tuple[float, float]:
    words = line.split()
    try:
        start, duration = (float(word) for word in words)
    except ValueError:
        raise InputError(
            f"expected two numbers, found {line[:60]!r}",
            where=f"{path}, line {number}",
            why="it is not a detour trace",
        ) from None
    if not (0 <= start < 2**62 and 0 <= duration < 2**62):
        raise InputError(
            f"a time that makes no sense: {line[:60]!r}", where=f"{path}, line {number}"
        )
    return start, duration


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
