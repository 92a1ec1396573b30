"""Metric layers: counters that accompany a run, each an attachment that adds its columns to the
runs table.

What a layer counts is data (data/knowledge/metrics/*.yml); all count from the barrier, when the
process waits with its threads running, to its end, and are per `wall_seconds`. `available_layers`
says which of them this machine has, by a reading of each.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path

import pandas as pd

from .. import extras
from ..errors import InputError
from ._knowledge import LEVEL, Layer, Metric, MetricReader, every_metric, find_layer, layers
from ._perf import PerfReader
from ._readers_files import FileReader
from ._readers_taskstats import TaskstatsReader
from .attachment import Attachment

READERS: dict[str, Callable] = {
    "file": FileReader,
    "perf": PerfReader,
    "taskstats": TaskstatsReader,
}
_WITH_EVERY_RUN = "run"


class MetricLayer(Attachment):
    """A metric layer at work: its readers are read when the process waits and when it has ended.

    Parameters
    ----------
    layer
        What is read.
    root
        Folder of a recorded tree of /proc and /sys; "/" is this machine.
    """

    def __init__(self, layer: Layer, root: str | Path = "/"):
        self.layer = layer
        self._root = root
        self.readers: list[MetricReader] = [
            (READERS | extras.readers()).get(source.reader, MetricReader)(source, root)
            for source in layer.sources
            if source.reader != _WITH_EVERY_RUN
        ]
        self._start: dict[str, float] = {}
        self._end: dict[str, float] | None = None
        self._cpu_time_at_start_s = 0.0
        self._metric = cache(layer.metric_of)

    @cached_property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]  # found when first read
        # what a machine lacks does not change
        reasons = dict.fromkeys(reader.lacking() for reader in self.readers)
        return tuple(f"{self.layer.name}: {reason}" for reason in reasons if reason)

    def armed(self, pid: int) -> None:
        self._end = None
        self._cpu_time_at_start_s = _cpu_time_s(pid)
        for reader in self.readers:
            reader.open(pid)
        self._start = self._read()

    def ended(self, pid: int) -> None:
        self._end = self._read()

    def after(self, run: dict) -> dict:
        # a run that was killed was not seen ending
        end = self._read() if self._end is None else self._end
        for reader in self.readers:
            reader.shut()
        columns = {
            name: moved
            for name, value in end.items()
            if "@" not in name and (moved := self._moved(name, value)) is not None
        }
        columns |= {
            metric.id: value
            for metric in self.layer.derived
            if (value := _derived(metric, end | columns, run, self._cpu_time_at_start_s))
            is not None
        }
        self._end = None
        return columns

    def _read(self) -> dict[str, float]:
        values: dict[str, float] = {}
        for reader in self.readers:
            values.update(reader.read())
        return values

    def _moved(self, column: str, end: float) -> float | None:
        """The value of a column for the run: how far a total moved, the reading of a level that
        counts; None: that reading is not there.
        """
        metric = self._metric(column)
        assert metric is not None  # a reader returns columns of its metrics only
        start = self._start.get(column)
        if metric.kind != LEVEL:
            value = end - (start or 0)
        elif metric.at == "end" or (start is None and metric.at == "mean"):
            value = end
        elif start is None:
            return None
        else:
            value = {"start": start, "mean": (start + end) / 2, "change": end - start}[metric.at]
        return round(value, 6) if isinstance(value, float) else value

    def close(self) -> None:
        for reader in self.readers:
            reader.close()

    def __repr__(self) -> str:
        return f"MetricLayer({self.layer.name})"


def _derived(metric: Metric, columns: dict, run: dict, cpu_start_s: float) -> float | None:
    """A metric computed from others: a ratio, or the CPU time of all less that of the run."""
    ratio, of = metric.where.get("ratio"), metric.where.get("minus_own_cpu")
    if of is not None and of in columns and run.get("user_s") is not None:
        return round(columns[of] - (run["user_s"] + run["system_s"] - cpu_start_s), 6)
    if ratio is not None and all(name in columns for name in ratio) and columns[ratio[1]]:
        return columns[ratio[0]] / columns[ratio[1]] * metric.where.get("scale", 1)
    return None


def _cpu_time_s(pid: int) -> float:
    """CPU time of another process so far, through its CPU clock (clock_getcpuclockid(3): the pid's
    complement, shifted, | 2).
    """
    with suppress(OSError):
        return time.clock_gettime(((~pid) << 3) | 2)
    return 0.0


def metrics(*names: str | os.PathLike) -> tuple[Attachment, ...]:
    """Return metric layers as attachments of a campaign or a cell.

    Parameters
    ----------
    names
        Names of layers (see `available_layers`); "all": every layer that does not disturb the run;
        or the path of a user's .yml file.

    Returns
    -------
    tuple of Attachment
        One for each layer, in the order of the names; they add columns to the runs table.

    Raises
    ------
    InputError
        There is no such layer, or the file is none, or two layers have a column in common.
    """
    wanted: dict[str, None] = {}
    for name in names:
        every = [one for one, layer in layers().items() if layer.in_all] if name == "all" else ()
        wanted |= dict.fromkeys(every or [os.fspath(name)])
    found = [find_layer(name) for name in wanted]
    made: dict[str, str] = {}
    for layer in found:
        for metric in layer.metrics:
            if made.setdefault(metric.id, layer.name) != layer.name:
                raise InputError(
                    f"two metric layers have a column '{metric.id}'",
                    where=f"{made[metric.id]} and {layer.name}",
                    fix="use another id in your layer",
                )
    return tuple(
        MetricLayer(layer)
        for layer in found
        if any(source.reader != _WITH_EVERY_RUN for source in layer.sources)
    )


def consequences() -> dict[str, str]:
    """Return the columns that merely follow from a longer run, which are no causes.

    Returns
    -------
    dict
        Column to the reason, a sentence.
    """
    return {metric.id: metric.consequence for _, metric in every_metric() if metric.consequence}


def available_layers(root: str | Path = "/") -> pd.DataFrame:
    """List the metric layers and whether this machine has them, by a real reading of each.

    Parameters
    ----------
    root
        Folder of a recorded tree of /proc and /sys; "/" is this machine.

    Returns
    -------
    DataFrame
        Index `layer`; columns `title`, `available`, `reason` (what is lacking, in part or whole),
        `columns` (how many), `cost_us` (CPU time a run, µs, where the layer was described; NaN: not
        measured), `here_us` (one reading at the start and one at the end, µs, here) and `needs`.
    """
    rows = [{"layer": name, **_tried(layer, root)} for name, layer in layers().items()]
    return pd.DataFrame(rows).set_index("layer")


def _tried(layer: Layer, root: str | Path) -> dict:
    columns, here_us, attachment = reading(layer, root)
    opt_in = all(getattr(reader, "by_hand", False) for reader in attachment.readers)
    available = not attachment.notes if opt_in else bool(columns)
    reason = "; ".join(note.removeprefix(f"{layer.name}: ") for note in attachment.notes)
    if not reason and not available:
        reason = "its files are here, and hold none of its counters"
    return {
        "title": layer.title,
        "available": available,
        "reason": reason,
        "columns": len(columns),
        "cost_us": float("nan") if layer.cost_us is None else layer.cost_us,
        "here_us": here_us,
        "needs": layer.needs,
    }


def reading(layer: Layer, root: str | Path = "/") -> tuple[dict, float, MetricLayer]:
    """A reading of a layer on this process: its columns, how long the second reading took (µs), the
    attachment (closed).
    """
    attachment = MetricLayer(layer, root)
    run = {"user_s": time.process_time(), "system_s": 0.0}
    try:
        for _ in range(2):
            began_ns = time.perf_counter_ns()
            attachment.armed(os.getpid())
            attachment.ended(os.getpid())
            columns = attachment.after(run)
            took_us = (time.perf_counter_ns() - began_ns) / 1e3
    finally:
        attachment.close()
    return columns, round(took_us, 1), attachment
