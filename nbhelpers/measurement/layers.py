"""Metric layers: counters that accompany a run, each an attachment that adds its columns to the
runs table.

What a layer counts is data (data/knowledge/metrics/*.yml); all count from the barrier, when the
process waits with its threads running, to its end, and are per `wall_seconds`. `python -m
nbhelpers.measurement` prints which of them this machine has, with a reading of each.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pandas as pd

from ..errors import InputError
from ..workloads import Workload
from ._knowledge import LEVEL, Layer, Metric, every_metric, find_layer, layers
from ._perf import PerfReader
from ._readers_files import FileReader
from ._readers_nsys import NsysReader, nsys_command
from ._readers_nvml import NvmlReader
from ._readers_program import ProgramReader
from ._readers_taskstats import TaskstatsReader
from .attachment import Attachment
from .campaign import Cell

READERS = {
    "file": FileReader,
    "perf": PerfReader,
    "taskstats": TaskstatsReader,
    "nvml": NvmlReader,
    "program": ProgramReader,
    "nsys": NsysReader,
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
        self.layer, self._root = layer, root
        self.readers = [
            READERS[source.reader](source, root)
            for source in layer.sources
            if source.reader != _WITH_EVERY_RUN
        ]
        self._start, self._end, self._said, self._own_start_s = {}, None, {}, 0.0
        self._known, self._notes = {}, None

    @property
    def notes(self) -> tuple[str, ...]:
        if (
            self._notes is None
        ):  # what a machine lacks does not change, and to ask a GPU's driver takes milliseconds
            self._notes = tuple(
                dict.fromkeys(
                    f"{self.layer.name}: {reason}"
                    for reader in self.readers
                    if (reason := reader.lacking())
                )
            )
        return self._notes

    def armed(self, pid: int) -> None:
        self._end, self._said, self._own_start_s = None, {}, _cpu_time_s(pid)
        for reader in self.readers:
            reader.open(pid)
        self._start = self._read()

    def ended(self, pid: int) -> None:
        self._end = self._read()

    def printed(self, output: str, errors: str) -> None:
        for reader in self.readers:
            if isinstance(reader, ProgramReader):
                reader.printed(output, errors)
                self._said |= reader.read()

    def after(self, run: dict) -> dict:
        end = (
            self._read() if self._end is None else self._end
        ) | self._said  # a run that was killed was not seen ending
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
            if (value := _derived(metric, end | columns, run, self._own_start_s)) is not None
        }
        self._end = None
        return columns

    def _read(self) -> dict[str, float]:
        values: dict[str, float] = {}
        for reader in self.readers:
            values.update(reader.read())
        return values

    def _moved(self, column: str, end: float) -> float | None:
        """What a column says of the run: how far a total moved, the reading of a level that counts;
        None: that reading is not there.
        """
        if column not in self._known:
            self._known[column] = self.layer.metric_of(column)
        metric = self._known[column]
        start = self._start.get(column)
        if metric.kind != LEVEL:
            moved = end - (start or 0)
        elif metric.at == "end" or (start is None and metric.at == "mean"):
            moved = end
        else:
            moved = (
                None
                if start is None
                else {"start": start, "mean": (start + end) / 2, "change": end - start}[metric.at]
            )
        return round(moved, 6) if isinstance(moved, float) else moved

    def close(self) -> None:
        for reader in self.readers:
            reader.close()

    def __repr__(self) -> str:
        return f"MetricLayer({self.layer.name})"


def _derived(metric: Metric, columns: dict, run: dict, own_start_s: float) -> float | None:
    """A metric worked out of others: a ratio, or the CPU time of all less the run's own."""
    ratio, of = metric.where.get("ratio"), metric.where.get("minus_own_cpu")
    if of is not None and of in columns and run.get("user_s") is not None:
        return round(columns[of] - (run["user_s"] + run["system_s"] - own_start_s), 6)
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


class _Layers(Mapping):
    """Layer name: what makes its attachment, None for the columns that every run has; the files are
    read at the first use.
    """

    def __getitem__(self, name: str) -> partial | None:
        layer = layers()[name]
        return (
            partial(MetricLayer, layer)
            if any(source.reader != _WITH_EVERY_RUN for source in layer.sources)
            else None
        )

    def __iter__(self) -> Iterator[str]:
        return iter(layers())

    def __len__(self) -> int:
        return len(layers())

    def __repr__(self) -> str:
        return f"LAYERS({', '.join(self)})"


LAYERS: Mapping[str, partial | None] = _Layers()


def metrics(*names: str | os.PathLike) -> tuple[Attachment, ...]:
    """Metric layers, ready to be given to a campaign.

    Parameters
    ----------
    names
        Names of layers (see `available_layers`); "all": every layer that doesn't disturb the run; or the
        path of a .yml file of one's own.

    Raises
    ------
    InputError
        There is no such layer, or the file is none, or two layers have a column in common.
    """
    wanted = dict.fromkeys(
        expanded for name in names for expanded in (_all() if name == "all" else [os.fspath(name)])
    )
    found = [find_layer(name) for name in wanted]
    _check_columns(found)
    return tuple(
        MetricLayer(layer)
        for layer in found
        if any(source.reader != _WITH_EVERY_RUN for source in layer.sources)
    )


def _check_columns(chosen: Sequence[Layer]) -> None:
    made: dict[str, str] = {}
    for layer in chosen:
        for metric in layer.metrics:
            if made.setdefault(metric.id, layer.name) != layer.name:
                raise InputError(
                    f"two metric layers have a column '{metric.id}'",
                    where=f"{made[metric.id]} and {layer.name}",
                    fix="give it another id in your own layer",
                )


def _all() -> list[str]:
    return [name for name, layer in layers().items() if layer.in_all]


def layer_cells(workload: Workload, *names: str | os.PathLike) -> tuple[Cell, Cell]:
    """The workload without metric layers and with them, for a campaign that interleaves the two: do
    the layers change what they measure?

    Parameters
    ----------
    names
        As of `metrics`.

    Returns
    -------
    Cell "without", Cell "with". The verdict on their runs is
    `nbhelpers.attribution.layer_effect`.
    """
    return Cell("without", workload), Cell("with", workload, attachments=metrics(*names))


def profile_with_nsys(workload: Workload, folder: str | os.PathLike) -> tuple[Workload, Attachment]:
    """The workload under the profiler nsys, and what makes columns `cuda_*` of its report; they
    belong together in a `Cell`.

    Parameters
    ----------
    folder
        Where the report of the last run lies.

    Raises
    ------
    Unavailable
        There is no nsys here.
    """
    report, attachment = Path(folder).resolve() / "cuda", MetricLayer(find_layer("cuda"))
    for reader in attachment.readers:
        reader.report = report.with_suffix(".nsys-rep")
    return nsys_command(workload, report), attachment


def consequences() -> dict[str, str]:
    """Columns that merely follow from a longer run, and why: not to be offered as causes."""
    return {metric.id: metric.consequence for _, metric in every_metric() if metric.consequence}


def available_layers(root: str | Path = "/") -> pd.DataFrame:
    """Which metric layers this machine has, by a real reading of each on this process.

    Parameters
    ----------
    root
        Folder of a recorded tree of /proc and /sys.

    Returns
    -------
    DataFrame, index layer: title, available, reason (what is lacking, in part or whole), columns
    (how many), cost_us (CPU time a run where the layer was described; NaN: never measured), here_us
    (a start and an end, here and now), needs.
    """
    rows = [{"layer": name, **_tried(layer, root)} for name, layer in layers().items()]
    return pd.DataFrame(rows).set_index("layer")


def _tried(layer: Layer, root: str | Path) -> dict:
    columns, here_us, attachment = reading(layer, root)
    opt_in = all(source.reader in ("nsys", _WITH_EVERY_RUN) for source in layer.sources)
    available = not attachment.notes if opt_in else bool(columns)
    reason = "; ".join(note.removeprefix(f"{layer.name}: ") for note in attachment.notes)
    return {
        "title": layer.title,
        "available": available,
        "reason": (
            reason or ("" if available else "its files are here, and hold none of its counters")
        ),
        "columns": len(columns),
        "cost_us": float("nan") if layer.cost_us is None else layer.cost_us,
        "here_us": here_us,
        "needs": layer.needs,
    }


def reading(layer: Layer, root: str | Path = "/") -> tuple[dict, float, MetricLayer]:
    """A reading of a layer on this process: its columns, what the reading took (us, the second
    time), the attachment (closed).
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
