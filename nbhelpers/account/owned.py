"""The account of traced runs by owners, from the files that were recorded."""

from pathlib import Path

import pandas as pd

from ..tracing import read_cpu_owners, read_states, read_traces, stolen_times
from .owners import critical_path, owners_of_path


def owned_ms(
    folder: str | Path, runs: pd.DataFrame, waits: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Who had the time of each run's critical path, in ms.

    Parameters
    ----------
    folder
        Where `Tracer` put the traces.
    runs
        Finished runs.
    waits
        When OpenMP threads worked and waited (`read_waits`); None: by wake-ups alone.

    Returns
    -------
    A row a run, columns (part, owner), see `owners_of_path`; the sum of a row is the length of the
    run's timed region. No column where the runs were not recorded by tracepoints.

    Raises
    ------
    LostEvents, InputError
        A recording has losses, is missing or damaged.
    """
    states = read_states(folder, runs)
    if states.empty:
        nobody = pd.MultiIndex.from_arrays([[], []], names=["part", "owner"])
        return pd.DataFrame(index=pd.Index(runs["run"], name="run"), columns=nobody, dtype=float)
    owned = owners_of_path(
        critical_path(states, waits),
        read_cpu_owners(folder, runs),
        read_traces(folder, runs),
        stolen_times(folder, runs),
        _throttled_ns(runs),
    )
    wide = owned.pivot_table("ns", "run", ["part", "owner"], "sum", fill_value=0.0) / 1e6
    return wide.reindex(runs["run"]).fillna(0.0)


def _throttled_ns(runs: pd.DataFrame) -> dict[int, float]:
    """How long each run's quota had run out, by either version of control groups."""
    for name, unit_ns in (("cgroup_throttled_us", 1e3), ("cgroup_throttled_ns", 1.0)):
        if name in runs and runs[name].notna().any():
            return dict(zip(runs["run"], unit_ns * runs[name]))
    return {}
