"""What is measured one time and cached with the runs: detours of the machine, length of a run, cost
of recording an event.

Owns the files; the measurements are next door.
"""

import statistics
from pathlib import Path

import pandas as pd

from ..errors import RunError
from ..measurement import run_once
from ..measurement.cache import cached_value
from ..workloads import Workload
from .detours import record_detours

_LENGTH_RUNS = 5
_DETOURS = ["cpu", "start_ns", "duration_ns", "end_ns"]  # columns


def cached_detours(path: str | Path, seconds: float, recorded_only: bool = False) -> pd.DataFrame:
    """Record the detours of this machine (`record_detours`) one time, and cache them as JSON.

    Raises
    ------
    InputError
        They were not recorded yet and `recorded_only` is True.
    """
    cached = cached_value(
        path,
        lambda: _as_columns(record_detours(seconds)),
        "machine's detours",
        recorded_only,
        indent=None,
    )
    table = pd.DataFrame(cached["detours"], columns=_DETOURS)
    table.attrs = cached["attrs"]
    return table


def _as_columns(detours: pd.DataFrame) -> dict:
    columns = {name: detours[name].tolist() for name in _DETOURS}
    return {"attrs": detours.attrs | {"cpus": int(detours["cpu"].nunique())}, "detours": columns}


def cached_seconds(workload: Workload, path: str | Path, recorded_only: bool = False) -> float:
    """Length of an undisturbed run of a workload, the median of five, cached: a campaign
    that goes on must find the same.

    Raises
    ------
    InputError
        It was not measured yet and `recorded_only` is True.
    RunError
        The workload failed.
    """
    command = " ".join((Path(workload.command[0]).name, *workload.command[1:], workload.config))
    return float(
        cached_value(
            path,
            lambda: statistics.median(_seconds(workload) for _ in range(_LENGTH_RUNS)),
            f"length of a run of {workload.name}",
            recorded_only,
            key=command,
        )
    )


def _seconds(workload: Workload) -> float:
    run = run_once(workload)
    if run["status"] != "ok":
        raise RunError(
            f"'{workload.name}' failed: {run['status']}",
            where=" ".join(workload.command),
            why=run["message"],
        )
    return float(run["region_seconds"])
