"""The simple call: measure a program several times."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ..workloads import Workload, as_workload
from .attachment import Attachment
from .campaign import Campaign, Cell
from .layers import metrics as metric_layers


def measure(
    command: str | Sequence[str] | Workload | None = None,
    runs: int = 10,
    metrics: Sequence[str] | str = (),
    *,
    config: str | None = None,
    folder: str | os.PathLike | None = None,
    timeout_s: float | None = None,
    attachments: Sequence[Attachment] = (),
    progress: Callable[[int, int, float], object] | None = None,
    **keywords: Any,
) -> pd.DataFrame:
    """Run a program several times and return the runs table.

    Parameters
    ----------
    command
        A `Workload`, or a command for `nbhelpers.program`: a command line or its words.
    runs
        How many finished runs.
    metrics
        Names of metric layers, or "all"; see `nbhelpers.measurement.metrics`.
    config
        A placement; see `Workload.placed`.
    folder
        Stores the runs, so that the same call goes on after an interruption; None: in memory only.
    timeout_s
        Of each run.
    attachments
        Further attachments; closed at the end.
    progress
        See `Campaign.run`.
    keywords
        Of `nbhelpers.program`: region, seconds, reports, outcome, description, shell, ….

    Returns
    -------
    DataFrame
        One row a run: `seconds` (run time, s), `status`, and further columns; see
        `nbhelpers.measurement.describe_columns`.

    Raises
    ------
    InputError
        See `Campaign.run`, `program` and `metrics`.
    RunError
        See `Campaign.run` and `program`.

    Examples
    --------
    >>> runs = measure("sleep 0.01", runs=3, metrics=["software"])
    >>> len(runs), (runs.seconds >= 0.01).all()
    (3, np.True_)
    """
    workload = as_workload(command, **keywords)
    workload = workload if timeout_s is None else replace(workload, timeout_s=timeout_s)
    workload = workload if config is None else workload.placed(config)
    layers = metric_layers(*([metrics] if isinstance(metrics, str) else metrics))
    return Campaign(
        folder, [Cell(workload.name, workload)], runs, attachments=(*attachments, *layers)
    ).run(progress)
