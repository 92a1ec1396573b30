"""Detours in files of other tools: Netgauge's selfish format, which is LogGOPSim's noise trace.

Owns the text format, nothing of how detours are recorded.
"""

import io
import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..reading import in_child
from ._files import read_trace

_PERIOD = re.compile(r"^#.{0,200}?period\D{0,40}(\d+(?:\.\d+)?)", re.MULTILINE | re.IGNORECASE)


def read_netgauge(path: str | Path) -> pd.DataFrame:
    """Read a trace of Netgauge's selfish benchmark, or any text of lines "start ns, duration ns";
    plain or .gz.

    Returns
    -------
    One row a detour: `cpu` (0, since the file has none), `start_ns`, `duration_ns` (beyond one
    reading of the clock), `end_ns`. attrs: `seconds` (as the file states, else until the end of the
    last detour).

    Raises
    ------
    InputError
        Unreadable, no detour, a line that is not two non-negative numbers, or starts that run
        backwards.
    """
    content = read_trace(path)
    return in_child(partial(_detours, content, path), path, "trace", len(content))


def _detours(content: bytes, path: str | Path) -> pd.DataFrame:
    text = content.decode(errors="replace")
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
    table.insert(0, "cpu", 0)
    table["end_ns"] = table["start_ns"] + table["duration_ns"]
    last_s = float(table["end_ns"].max()) / 1e9
    if not last_s:
        raise InputError(
            "all detours are of 0 ns at 0", where=path, why="so the trace has no length"
        )
    stated = _PERIOD.search(text)
    table.attrs = {"seconds": (float(stated[1]) if stated else 0.0) or last_s}
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
