"""Metric layers as data: data/knowledge/metrics/*.yml, or a user's file, a layer each.

Owns the records `Layer`, `Source` and `Metric`, and how they are checked; how a counter is read is
in the `_readers_*` modules.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ..errors import InputError, check_choice
from ..places import knowledge
from ..reading import read_json, read_yaml
from ..schemas import place_of, schema_error

FOLDER = knowledge() / "metrics"
SCHEMA = FOLDER / "layer.schema.json"
TOTAL, LEVEL = "total", "level"
_PLAIN = ("title", "cost_us", "needs", "in_all")
# what a process's folder has of counters; root, cwd, fd and exe lead to files of any kind
_OF_A_PROCESS = "io|net|numa_maps|sched|schedstat|smaps_rollup|stat|status"
_NOT_COUNTERS = r"self|thread-self|kmsg|kcore|vmcore|\d+"
_COUNTERS = re.compile(
    r"/sys/(?!kernel/(debug|tracing)(/|$))[^/*]+(/.*)?"
    rf"|/proc/(?!({_NOT_COUNTERS})(/|$))[^*{{]+"
    rf"|/proc/\{{pid\}}/({_OF_A_PROCESS})(/[^*]*)?"
    r"|\{cgroup:[a-z_]+\}/[^/]+"
)
# layers of the user that were used in this process: their columns are known, too
_user_layers: dict[str, "Layer"] = {}


@dataclass(frozen=True)
class Metric:
    """One counter, or with a `*` in its id a family of them.

    Attributes
    ----------
    id
        Its column; a `*` stands for what distinguishes the members.
    title
        What it counts, in a few words.
    unit
        "", ns, us, s, bytes, ….
    kind
        Total (grows with the run: how far it moved), level (does not), time (of the run itself).
    at
        Which reading of a level counts: start, end, mean or change.
    lower_is_better
        None: neither.
    consequence
        Why it merely follows from a longer run; "" if it can be a cause.
    factor
        Id in data/knowledge/factors, or "".
    where
        Where the reader finds it: key, column, event, and so on; as the schema has it.
    """

    id: str
    title: str
    unit: str = ""
    kind: str = TOTAL
    at: str = "mean"
    lower_is_better: bool | None = True
    consequence: str = ""
    factor: str = ""
    where: dict = field(default_factory=dict, compare=False)

    def covers(self, column: str) -> bool:
        """Whether a column is this metric, or of this family."""
        if "*" not in self.id:
            return column == self.id
        head, _, tail = self.id.partition("*")
        return column.startswith(head) and column.endswith(tail) and len(column) > len(head + tail)


@dataclass(frozen=True)
class Source:
    """What one reader reads: a file, a set of events, a device."""

    reader: str
    metrics: tuple[Metric, ...]
    options: dict = field(default_factory=dict, compare=False)


class MetricReader:
    """Reads the metrics of one source of a layer; this one stands for a reader that is not
    installed, and reads nothing.

    Parameters
    ----------
    source
        What it reads.
    root
        Folder of a recorded tree of /proc and /sys; "/" is this machine.
    """

    def __init__(self, source: Source, root: str | Path = "/"):
        self.source = source

    def lacking(self) -> str:
        """Why nothing, or not all, can be read here; "" if all can."""
        return f"its reader '{self.source.reader}' comes with an extra: make doctor names it"

    def open(self, pid: int) -> None:
        """A run is about to start."""

    def read(self) -> dict[str, float]:
        """Column: value, as it is now."""
        return {}

    def shut(self) -> None:
        """The run is over."""

    def close(self) -> None:
        """No further run follows; safe to call at any time."""


@dataclass(frozen=True)
class Layer:
    """A metric layer: counters that are switched on together.

    Attributes
    ----------
    name, title
        What it is called, and what it is about.
    cost_us
        CPU time that it takes a run, outside the timed region, on the machine where it was measured
        (2 CPUs, virtual); None: not measured.
    needs
        What a machine must have for it.
    in_all
        Whether "all" means it too; not those that disturb the run, such as tracepoints.
    sources
        What is read.
    derived
        Metrics that are worked out of others of the layer: `ratio: [a, b]`, or `minus_own_cpu: a`.
    """

    name: str
    title: str
    sources: tuple[Source, ...]
    cost_us: float | None = None
    needs: str = ""
    in_all: bool = True
    derived: tuple[Metric, ...] = ()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics, in the order of the file."""
        return tuple(metric for source in self.sources for metric in source.metrics) + self.derived

    def metric_of(self, column: str) -> Metric | None:
        """The metric that a column is of."""
        return next((metric for metric in self.metrics if metric.id == column), None) or next(
            (metric for metric in self.metrics if metric.covers(column)), None
        )

    def __repr__(self) -> str:
        return f"Layer({self.name}: {self.title}, {len(self.metrics)} metrics)"


def read_layer(path: str | os.PathLike) -> Layer:
    """Read a metric layer from its file.

    Raises
    ------
    InputError
        No such file, not YAML, or not as data/knowledge/metrics/layer.schema.json has it; the
        message names the field.
    """
    path = Path(path)
    content = read_yaml(path, "metric layer", fast=True)
    _check(content, path)
    layer = Layer(
        content["layer"],
        sources=tuple(map(_source, content["sources"])),
        derived=tuple(map(_metric, content.get("derived", ()))),
        **{key: content[key] for key in _PLAIN if key in content},
    )
    ids = [metric.id for metric in layer.metrics]
    if repeated := {name for name in ids if ids.count(name) > 1}:
        raise InputError(
            f"the metric layer has '{min(repeated)}' twice",
            where=path,
            why="two counters cannot share a column",
        )
    _check_files(layer, path)
    return layer


def _source(entry: dict) -> Source:
    options = {key: value for key, value in entry.items() if key not in ("reader", "metrics")}
    return Source(entry["reader"], tuple(map(_metric, entry["metrics"])), options)


def _metric(entry: dict) -> Metric:
    known = {key: entry[key] for key in Metric.__dataclass_fields__ if key in entry}
    if known.get("consequence") is True:
        known["consequence"] = "grows with the run time by definition"
    return Metric(**known, where={key: entry[key] for key in entry if key not in known})


def _check(content: object, path: Path) -> None:
    if error := schema_error(_schema(), content):
        raise InputError(
            f"not a metric layer: {error.message}",
            where=f"{path}, at {place_of(error)}",
            fix=f"compare with {SCHEMA.name} and the files in its folder",
        )


@cache
def _schema() -> dict:
    return read_json(SCHEMA)


def _check_files(layer: Layer, path: Path) -> None:
    """Only counters of the kernel are read: a layer from elsewhere names no other file."""
    for source in layer.sources:
        wanted = source.options.get("path", "") if source.reader == "file" else ""
        labels = source.options.get("label", ())
        if (wanted and not _is_counter_file(wanted)) or any("/" in name for name in labels):
            raise InputError(
                f"a metric layer may not read {wanted!r} {list(labels) or ''}".rstrip(),
                where=path,
                why="run as root it could put what is secret into a table",
                fix="counters in /sys, /proc, /proc/{pid} or {cgroup:NAME}, without ..",
            )


def _is_counter_file(path: str) -> bool:
    odd = {"", ".", ".."} & set(path.removeprefix("/").split("/")) or set(path) & set("[]?\0")
    return bool(_COUNTERS.fullmatch(path)) and not odd


@cache
def layers() -> dict[str, Layer]:
    """All layers that come with Noisebook, by name; rusage, which every run has, is the first."""
    found = [read_layer(path) for path in sorted(FOLDER.glob("*.yml"))]
    found.sort(key=lambda layer: (layer.name != "rusage", layer.name))
    return {layer.name: layer for layer in found}


def find_layer(name: str | os.PathLike) -> Layer:
    """A layer by name, or by the path of a user's file.

    Raises
    ------
    InputError
        There is no such layer, or the file is none.
    """
    text = os.fspath(name)
    if os.sep in text or text.endswith((".yml", ".yaml")):
        layer = _user_layers[text] = read_layer(text)
        metric_of.cache_clear()
        return layer
    check_choice("metric layer", text, layers(), more="; or all, or the path of a .yml file")
    return layers()[text]


@cache
def metric_of(column: str) -> Metric | None:
    """The metric of a column, over all layers; None: no layer makes it."""
    found = (layer.metric_of(column) for layer in (*layers().values(), *_user_layers.values()))
    return next(filter(None, found), None)


def every_metric() -> Iterator[tuple[Layer, Metric]]:
    """All metrics with their layers."""
    return ((layer, metric) for layer in layers().values() for metric in layer.metrics)
