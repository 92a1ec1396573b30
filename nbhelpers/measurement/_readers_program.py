"""Values that a program prints or leaves in a file, as metrics like any other: by a regular
expression, from JSON, from CSV.

Owns the three parsers and the reader of layers with `reader: program`; the file of such a layer is
a user's.
"""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import InputError
from ._knowledge import Metric, Source

_COMBINE: dict[str, Callable[[list[float]], float]] = {
    "last": lambda values: values[-1],
    "first": lambda values: values[0],
    "sum": sum,
    "min": min,
    "max": max,
    "mean": lambda values: sum(values) / len(values),
    "count": len,
}


def by_pattern(text: str, pattern: str, combine: str = "last") -> float | None:
    """The number in the only group, or the group `value`, of a pattern; of several matches one, or
    what `combine` makes of them.
    """
    expression = re.compile(pattern, re.MULTILINE)
    group: str | int = min(expression.groups, 1)
    if "value" in expression.groupindex:
        group = "value"
    return _combined([match[group] for match in expression.finditer(text)], combine)


def from_json(text: str) -> dict[str, float]:
    """All numbers of the last JSON object in a text, by their path: {"a": {"b": [1, 2]}} is a.b.0
    and a.b.1.
    """
    decoder, at, found = json.JSONDecoder(), 0, None
    while (at := text.find("{", at)) >= 0:
        try:
            found, at = decoder.raw_decode(text, at)
        except ValueError:
            at += 1
    return dict(_leaves(found)) if found is not None else {}


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{at}")
    elif isinstance(value, (int, float)) and math.isfinite(value):
        yield path, value


def from_csv(text: str) -> dict[str, list[str]]:
    """The columns of a CSV with a header; lines of another length (what else a program prints) are
    skipped.
    """
    rows = [row for row in csv.reader(io.StringIO(text)) if len(row) > 1]
    if not rows:
        return {}
    header = [name.strip() for name in rows[0]]
    body = [row for row in rows[1:] if len(row) == len(header)]
    return {name: [row[at].strip() for row in body] for at, name in enumerate(header)}


def _combined(words: Sequence[str], combine: str) -> float | None:
    values = []
    for word in words:
        with suppress(TypeError, ValueError):
            values.append(int(word) if re.fullmatch(r"[-+]?\d{1,18}", word) else float(word))
    values = [value for value in values if math.isfinite(value)]
    return _COMBINE[combine](values) if values else None


class ProgramReader:
    """The metrics of a source of what the program prints or writes.

    Parameters
    ----------
    source
        Options `from` (output, errors, or the path of a file that the program writes) and `format`
        (regex, json, csv); a metric has a `pattern`, or the `key` of the JSON or CSV (a `*` in key
        and id: all there are), and `combine` (last, first, sum, mean, min, max, count).

    Raises
    ------
    InputError
        A wrong pattern, or a metric without pattern or key.
    """

    def __init__(self, source: Source, root: object = "/"):
        self._source = source
        self._printed: dict[str, str] = {}
        self._from = source.options.get("from", "output")
        for metric in source.metrics:
            self._check(metric)

    def _check(self, metric: Metric) -> None:
        wanted = "pattern" if self._source.options["format"] == "regex" else "key"
        if wanted not in metric.where:
            raise InputError(
                f"the metric '{metric.id}' has no {wanted}",
                why=f"the format is {self._source.options['format']}",
            )
        try:
            re.compile(metric.where.get("pattern", ""))
        except re.error as error:
            raise InputError(
                f"the pattern of '{metric.id}' is not a regular expression: {error}",
                where=metric.where["pattern"],
            ) from None

    def lacking(self) -> str:
        """Known only when the program has run."""
        return ""

    def open(self, pid: int) -> None:
        """A run is about to start; a file of an earlier run does not count."""
        self._printed = {}
        if self._from not in ("output", "errors"):
            self._before = _stamp(self._from)

    def printed(self, output: str, errors: str) -> None:
        """What the program printed."""
        self._printed = {"output": output, "errors": errors}

    def read(self) -> dict[str, float]:
        """Column: value; nothing before the end of the run."""
        text = self._printed.get(self._from)
        if self._printed and text is None and _stamp(self._from) != self._before:
            with suppress(OSError):
                text = Path(self._from).read_text(errors="replace")
        return self._values(text) if text else {}

    def _values(self, text: str) -> dict[str, float]:
        form = self._source.options["format"]
        if form == "regex":
            found = {
                metric.id: by_pattern(
                    text, metric.where["pattern"], metric.where.get("combine", "last")
                )
                for metric in self._source.metrics
            }
            return {name: value for name, value in found.items() if value is not None}
        known = from_json(text) if form == "json" else from_csv(text)
        columns: dict[str, float] = {}
        for metric in self._source.metrics:
            combine = metric.where.get("combine", "last")
            for name, value in _matching(metric, known).items():
                number = value if form == "json" else _combined(value, combine)
                if number is not None:
                    columns[name] = number
        return columns

    def shut(self) -> None:
        """The run is over."""
        self._printed = {}

    def close(self) -> None:
        """Nothing is open."""


def _matching(metric: Metric, known: dict) -> dict:
    key = metric.where["key"]
    if "*" not in key:
        return {metric.id: known[key]} if key in known else {}
    head, _, tail = key.partition("*")
    return {
        metric.id.replace(
            "*", re.sub(r"\W+", "_", name[len(head) : len(name) - len(tail)]).strip("_")
        ): value
        for name, value in known.items()
        if name.startswith(head) and name.endswith(tail)
    }


def _stamp(path: str) -> tuple[int, int] | None:
    with suppress(OSError):
        status = Path(path).stat()
        return status.st_mtime_ns, status.st_ino
    return None
