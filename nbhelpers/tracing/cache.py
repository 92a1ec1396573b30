"""What is measured one time and cached with the runs: detours of the machine, length of a run, cost
of recording an event.

Owns the files; the measurements are next door.
"""

import statistics
from pathlib import Path

import numpy as np
import pandas as pd

from ..empty import because
from ..errors import RunError
from ..measurement import run_once
from ..measurement.cache import cached_value
from ..statistics import bootstrap_interval
from ..workloads import Workload
from .cost import event_costs_ns
from .detours import record_detours

_LENGTH_RUNS = 5
_DETOURS = ["cpu", "start_ns", "duration_ns", "end_ns"]  # columns
NO_KERNEL_EVENTS = (
    "the kernel recorded no event for this user, so there is no cost of recording; run as root:"
    " sudo -E make paper"
)


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


def recording_cost(
    runs: pd.DataFrame, path: str | Path, cpus: int, recorded_only: bool = False, seed: int = 0
) -> pd.DataFrame:
    """What recording costs a CPU directly: events a second × cost of an event.

    Parameters
    ----------
    runs
        Traced runs, with `trace_events` and `wall_seconds`.
    path
        File of the cache of the measured costs of an event.
    cpus
        How many CPUs were traced.
    recorded_only
        True: use recorded data, measure nothing.
    seed
        Of the bootstrap.

    Returns
    -------
    One row: `events_per_s` (a CPU), `event_cost_ns` with its 95 % bootstrap interval (`low_ns`,
    `high_ns`), `cpu_share`, `blocks`. Empty where events were not recorded by the kernel.
    """
    if "trace_events" not in runs or not runs["trace_events"].notna().any() or "detours" in runs:
        columns = ["events_per_s", "event_cost_ns", "low_ns", "high_ns", "cpu_share", "blocks"]
        return because(pd.DataFrame(columns=columns), NO_KERNEL_EVENTS)
    costs = np.array(
        cached_value(
            path, lambda: {"costs_ns": event_costs_ns().tolist()}, "cost of an event", recorded_only
        )["costs_ns"]
    )
    rate = float(runs["trace_events"].sum() / runs["wall_seconds"].sum() / cpus)
    low, high = bootstrap_interval(costs, "median", seed)
    return pd.DataFrame(
        [
            {
                "events_per_s": rate,
                "event_cost_ns": np.median(costs),
                "low_ns": low,
                "high_ns": high,
                "cpu_share": rate * np.median(costs) * 1e-9,
                "blocks": costs.size,
            }
        ]
    )
