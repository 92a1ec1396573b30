"""Noise configs from files: Noisebook's own format and the published injector's, checked so that they can be replayed.

Owns what a file must be like, to the rules of `noise_config.schema.json` (tests hold the two in agreement) and those that a
schema can't express. Events are checked column by column, so that a million take seconds; an error names file, CPU, event and field.
"""

import gc
import gzip
import json
import math
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ._merge import POLICY_NAMES, Columns
from ._table import COLUMNS, FORMAT, config_table, plain_provenance
from ._vocabulary import KINDS, LARGEST_NS, POLICIES

SCHEMA = Path(__file__).with_name("noise_config.schema.json")
CPU_NAME = re.compile(r"(0|[1-9][0-9]{0,4})")

Parts = tuple[tuple[int, ...], int, dict, pd.DataFrame]


def read_config(path: Path) -> Parts:
    """CPUs, window, provenance and table of a config in either format."""
    with _no_collecting():
        document = _parse(_text(path), path)
        if isinstance(document, dict) and ("format" in document or "cpus" in document):
            return _own(document, path)
        if isinstance(document, dict) and document and all(CPU_NAME.fullmatch(name) for name in document):
            return _published(document, path)
    raise InputError("not a noise config", where=path, why="neither Noisebook's format nor the published injector's",
                     mend="a noise config is written by NoiseConfig.write; its schema is noise_config.schema.json")


@contextmanager
def _no_collecting() -> Iterator[None]:
    """No garbage collection: it would walk a million young lists again and again, and find nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError("the file is not UTF-8 text", where=f"{path}, byte {error.start}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"damaged gzip: {error}", where=path, mend="get the file again, it is probably cut short") from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the file: {getattr(error, 'strerror', None) or error}", where=path) from None


def _parse(text: str, path: Path) -> object:
    try:
        return json.loads(text, object_pairs_hook=_without_doubles)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", where=f"{path}, line {error.lineno}, column {error.colno}",
                         mend="get the file again, it is probably damaged or cut short") from None
    except (RecursionError, ValueError) as error:
        raise InputError(f"not usable JSON: {error}", where=path) from None


def _without_doubles(pairs: list[tuple[str, object]]) -> dict:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)!r} occurs twice in one object")
    return value


# Noisebook's own format -------------------------------------------------------------------------------------------------

def _own(document: dict, path: Path) -> Parts:
    _check_frame(document, path)
    window_ns = document["window_ns"]
    cpus = sorted(document["cpus"], key=int)
    lists = [_Events(document["cpus"][cpu], cpu, path).checked(window_ns) for cpu in cpus]
    if not any(map(len, lists)):
        raise InputError("an empty config: no event on any CPU", where=path, why="there is nothing to inject")
    provenance = _plain(document["provenance"], path)
    return tuple(map(int, cpus)), window_ns, provenance, _table(cpus, lists)


def _plain(provenance: dict, path: Path) -> dict:
    try:
        return plain_provenance(provenance)
    except InputError as error:
        raise InputError(error.what, where=f"{path}, provenance") from None


def _check_frame(document: dict, path: Path) -> None:
    """The frame of the document. Only if it is wrong is the schema asked why: to import its checker takes a second."""
    cpus = document.get("cpus")
    right = (set(document) == {"format", "provenance", "window_ns", "columns", "cpus"} and document["format"] == FORMAT
             and isinstance(document["provenance"], dict) and document["columns"] == list(COLUMNS)
             and type(document["window_ns"]) is int and 1 <= document["window_ns"] <= LARGEST_NS
             and isinstance(cpus, dict) and len(cpus) > 0 and all(CPU_NAME.fullmatch(name) for name in cpus))
    if not right:
        raise _explained(document, path)


def _explained(document: dict, path: Path) -> InputError:
    """What the schema says is wrong with the frame (the lists of events left out: these are checked by column)."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    cpus = document.get("cpus")
    frame = {**document, "cpus": dict.fromkeys(cpus, [])} if isinstance(cpus, dict) else document
    error = best_match(Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).iter_errors(frame))
    if error is None:  # to a schema 1.0 is a whole number, and "0\n" ends after the 0
        odd = "window_ns" if type(document["window_ns"]) is not int else "cpus"
        return InputError(f"not a whole number: {_shortened(repr(document[odd]))}", where=f"{path}, {odd}")
    meaning = error.schema.get("description", "the frame of the file") if isinstance(error.schema, dict) else "the file"
    return InputError(_shortened(error.message), where=", ".join(map(str, [path, *error.absolute_path])),
                      mend=f"see {SCHEMA.name}: {_shortened(meaning)}")


def _shortened(text: str, length: int = 300) -> str:
    return text if len(text) <= length else text[:length] + " …"


class _Events:
    """The events of one CPU while they are checked, column by column; an offender is searched for only if there is one."""

    def __init__(self, rows: object, cpu: str, path: Path):
        self.rows, self.place = rows, f"{path}, CPU {cpu}"

    def checked(self, window_ns: int) -> list[tuple]:
        """The six columns, or nothing for a CPU without events."""
        self.check_shape(len(COLUMNS))
        if not self.rows:
            return []
        columns = list(zip(*self.rows))
        for at, name in enumerate(COLUMNS):
            self.check_type(columns[at], name, int if name in ("start_ns", "duration_ns", "priority") else str)
        self.check_range(columns[0], "start_ns", 0)
        self.check_range(columns[1], "duration_ns", 1)
        self.check_word(columns[2], "policy", POLICY_NAMES)
        self.check_word(columns[4], "kind", KINDS)
        self.check_priority(columns[2], columns[3])
        self.check_text(columns[5])
        self.check_order(columns[0], columns[1])
        if columns[0][-1] >= window_ns:
            at = next(at for at, start in enumerate(columns[0]) if start >= window_ns)
            self.refuse(at, "start_ns", f"begins at {columns[0][at]}, after the window of {window_ns} ns")
        return columns

    def refuse(self, event: int, field: str, what: str, mend: str | None = None) -> None:
        raise InputError(_shortened(what), where=f"{self.place}, event {event}, {field}", mend=mend)

    def check_shape(self, length: int) -> None:
        if not isinstance(self.rows, list):
            raise InputError("not a list of events", where=self.place)
        if not self.rows or (set(map(type, self.rows)) == {list} and set(map(len, self.rows)) == {length}):
            return
        at = next(at for at, row in enumerate(self.rows) if type(row) is not list or len(row) != length)
        self.refuse(at, "all fields", f"not a list of {length} fields: {self.rows[at]!r}")

    def check_type(self, column: tuple, name: str, wanted: type) -> None:
        if set(map(type, column)) != {wanted}:
            at = next(at for at, value in enumerate(column) if type(value) is not wanted)
            self.refuse(at, name, f"not a {'whole number' if wanted is int else 'text'}: {column[at]!r}")

    def check_range(self, column: tuple, name: str, lowest: int) -> None:
        if not lowest <= min(column) <= max(column) <= LARGEST_NS:
            at = next(at for at, value in enumerate(column) if not lowest <= value <= LARGEST_NS)
            what = "negative" if column[at] < 0 else "no length" if column[at] < lowest else "huge, beyond 2^62 ns"
            self.refuse(at, name, f"{what}: {column[at]}")

    def check_word(self, column: tuple, name: str, known: tuple[str, ...]) -> None:
        if not set(column) <= set(known):
            at = next(at for at, value in enumerate(column) if value not in known)
            self.refuse(at, name, f"unknown {name} {column[at]!r}", f"known: {', '.join(known)}")

    def check_priority(self, policy: tuple, priority: tuple) -> None:
        for name, value in set(zip(policy, priority)):
            lowest, highest = POLICIES[name]
            if not lowest <= value <= highest:
                at = next(at for at, pair in enumerate(zip(policy, priority)) if pair == (name, value))
                self.refuse(at, "priority", f"priority {value} is none of {name}'s", f"{name} has {lowest} … {highest}")

    def check_text(self, column: tuple) -> None:
        for name in set(column):
            if any("\ud800" <= letter <= "\udfff" for letter in name):
                self.refuse(column.index(name), "source", f"not a text: {name!r}")

    def check_order(self, start: tuple, duration: tuple) -> None:
        starts, durations = np.array(start, np.int64), np.array(duration, np.int64)
        bad = starts[1:] < starts[:-1] + durations[:-1]
        if bad.any():
            at = int(np.argmax(bad)) + 1
            unsorted = starts[at] < starts[at - 1]
            what = "begins before the event before it" if unsorted else "overlaps the event before it"
            self.refuse(at, "start_ns", f"{what}: {start[at]}, after {start[at - 1]} + {duration[at - 1]}",
                        "sort the events by start" if unsorted else "make the config anew with NoiseConfig.from_events")


def _table(cpus: list[str], lists: list[list[tuple]]) -> pd.DataFrame:
    columns = [[value for events in lists if events for value in events[at]] for at in range(len(COLUMNS))]
    source, sources = _coded(columns[5], sorted(set(columns[5])))
    cpu = np.repeat([int(name) for name in cpus], [len(events[0]) if events else 0 for events in lists])
    return config_table(Columns(cpu, np.array(columns[0], np.int64), np.array(columns[1], np.int64),
                                _coded(columns[2], POLICY_NAMES)[0], np.array(columns[3], np.int64),
                                _coded(columns[4], KINDS)[0], source), list(sources))


def _coded(values: list[str], names: list[str] | tuple[str, ...]) -> tuple[np.ndarray, list[str] | tuple[str, ...]]:
    place = {name: at for at, name in enumerate(names)}
    return np.fromiter(map(place.__getitem__, values), np.int64, len(values)), names


# The published injector's format ----------------------------------------------------------------------------------------

def _published(document: dict, path: Path) -> Parts:
    _refuse_without_priorities(document, path)
    cpus = sorted(document, key=int)
    entries = [_PublishedEvents(document[cpu], cpu, path) for cpu in cpus]
    windows = [events.window() for events in entries]
    window_ns = max(filter(None, windows), default=None) or max(events.last_end() for events in entries)
    lists = [events.checked(max(window_ns, 1)) for events in entries]
    if not any(map(len, lists)):
        raise InputError("an empty config: no event on any CPU", where=path, why="there is nothing to inject")
    return tuple(map(int, cpus)), window_ns, {"format": "published injector"}, _table(cpus, lists)


def _refuse_without_priorities(document: dict, path: Path) -> None:
    for cpu, rows in document.items():
        row = rows[0] if isinstance(rows, list) and rows else None
        if isinstance(row, dict) or (isinstance(row, list) and len(row) == 2):
            raise InputError("an old version of the published injector's format, without priorities", where=f"{path}, CPU {cpu}",
                             why="whether an event is real-time noise or not decides what it does to the workload",
                             mend="make it anew from the traces, or add a third field to each event: 0 = SCHED_OTHER, "
                             "-1 = SCHED_FIFO 1")


class _PublishedEvents(_Events):
    """`[start, duration, priority]`; fractions of a ns are rounded, entries of no length dropped."""

    def __init__(self, rows: object, cpu: str, path: Path):
        super().__init__(rows, cpu, path)
        self.check_shape(3)
        columns = list(zip(*rows)) if rows else [()] * 3
        names = ("start_ns", "duration_ns", "priority")
        self.starts, self.durations, self.priorities = map(self.rounded, columns, names)
        if rows:
            self.check_range(self.starts, "start_ns", 0)
            self.check_range(self.durations, "duration_ns", 0)
            self.check_published_priority()

    def rounded(self, column: tuple, name: str) -> tuple[int, ...]:
        types = set(map(type, column))
        if types <= {int}:
            return column
        good = [type(value) is int or (type(value) is float and math.isfinite(value)) for value in column]
        if not all(good):
            at = good.index(False)
            self.refuse(at, name, f"not a number: {column[at]!r}")
        return tuple(map(round, column))

    def check_published_priority(self) -> None:
        if not -99 <= min(self.priorities) <= max(self.priorities) <= 0:
            at = next(at for at, priority in enumerate(self.priorities) if not -99 <= priority <= 0)
            self.refuse(at, "priority", f"priority {self.priorities[at]} is unknown",
                        "0 = SCHED_OTHER, -1 … -99 = SCHED_FIFO 1 … 99")

    def window(self) -> int | None:
        """Start of the sentinel, where there is one."""
        return self.starts[-1] if self.rows and self.durations[-1] == 0 else None

    def last_end(self) -> int:
        return self.starts[-1] + self.durations[-1] if self.rows else 0

    def checked(self, window_ns: int) -> list[tuple]:
        """The six columns of Noisebook's format; of the kind only this is known: real-time means an interrupt."""
        policy = ["SCHED_FIFO" if priority else "SCHED_OTHER" for priority in self.priorities]
        self.check_order(self.starts, self.durations)
        kept = [(start, duration, name, -priority, "irq" if priority else "thread", "published")
                for start, duration, priority, name in zip(self.starts, self.durations, self.priorities, policy) if duration]
        if kept and kept[-1][0] >= window_ns:
            at = next(at for at, start in enumerate(self.starts) if start >= window_ns)
            self.refuse(at, "start_ns", f"begins at {self.starts[at]}, after the window of {window_ns} ns")
        return list(zip(*kept))
