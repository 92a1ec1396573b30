"""Noise configs from files: Noisebook's format and the published injector's, checked so that
they can be replayed.

Owns what a file must be like, to the rules of `noise_config.schema.json` (tests hold the two in
agreement) and those that a schema can't express.
"""

import gc
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..reading import parsed_json, read_bytes
from ..schemas import schema_error
from ._events import Events, PublishedEvents, shortened
from ._merge import POLICY_NAMES, Columns
from ._table import COLUMNS, FORMAT, INTENSITY, config_table, plain_provenance
from ._vocabulary import ALL_KINDS, LARGEST_NS

SCHEMA = Path(__file__).with_name("noise_config.schema.json")
CPU_NAME = re.compile(r"(0|[1-9][0-9]{0,4})")

Parts = tuple[tuple[int, ...], int, dict, pd.DataFrame]


def read_config(path: Path) -> Parts:
    """CPUs, window, provenance and table of a config in either format."""
    with _no_collecting():
        document = _parse(read_bytes(path, "noise config"), path)
        if isinstance(document, dict) and ("format" in document or "cpus" in document):
            return _noisebook_config(document, path)
        if (
            isinstance(document, dict)
            and document
            and all(CPU_NAME.fullmatch(name) for name in document)
        ):
            return _published(document, path)
    raise InputError(
        "not a noise config",
        where=path,
        why="neither Noisebook's format nor the published injector's",
        fix=(
            "a noise config is written by NoiseConfig.write; its schema is noise_config.schema.json"
        ),
    )


@contextmanager
def _no_collecting() -> Iterator[None]:
    """No garbage collection: it would walk a million young lists again and find nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _parse(content: bytes, path: Path) -> object:
    return parsed_json(content, path, "noise config", object_pairs_hook=_without_doubles)


def _without_doubles(pairs: list[tuple[str, object]]) -> dict:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"the name {next(name for name in names if names.count(name) > 1)!r} occurs twice in"
            " one object"
        )
    return value


# Noisebook's format
# -------------------------------------------------------------------------------------------------


def _noisebook_config(document: dict, path: Path) -> Parts:
    _check_frame(document, path)
    window_ns = document["window_ns"]
    cpus = sorted(document["cpus"], key=int)
    with_intensity = len(document["columns"]) > len(COLUMNS)
    lists = [
        Events(document["cpus"][cpu], cpu, path).checked(window_ns, with_intensity) for cpu in cpus
    ]
    if not any(map(len, lists)):
        raise InputError(
            "an empty config: no event on any CPU", where=path, why="there is nothing to inject"
        )
    provenance = _plain(document["provenance"], path)
    return tuple(map(int, cpus)), window_ns, provenance, _table(cpus, lists)


def _plain(provenance: dict, path: Path) -> dict:
    try:
        return plain_provenance(provenance)
    except InputError as error:
        raise InputError(error.what, where=f"{path}, provenance") from None


def _check_frame(document: dict, path: Path) -> None:
    """The frame of the document. Only if it is wrong the schema says why: to import its checker
    takes a second.
    """
    if not _frame_is_right(document):
        raise _explained(document, path)


def _frame_is_right(document: dict) -> bool:
    cpus = document.get("cpus")
    return (
        set(document) == {"format", "provenance", "window_ns", "columns", "cpus"}
        and document["format"] == FORMAT
        and isinstance(document["provenance"], dict)
        and document["columns"] in (list(COLUMNS), [*COLUMNS, INTENSITY])
        and type(document["window_ns"]) is int
        and 1 <= document["window_ns"] <= LARGEST_NS
        and isinstance(cpus, dict)
        and len(cpus) > 0
        and all(CPU_NAME.fullmatch(name) for name in cpus)
    )


def _explained(document: dict, path: Path) -> InputError:
    """What the schema says is wrong with the frame (the lists of events left out: these are checked
    by column).
    """
    cpus = document.get("cpus")
    frame = {**document, "cpus": dict.fromkeys(cpus, [])} if isinstance(cpus, dict) else document
    error = schema_error(json.loads(SCHEMA.read_text(encoding="utf-8")), frame)
    if error is None:  # to a schema 1.0 is a whole number, and "0\n" ends after the 0
        odd = "window_ns" if type(document["window_ns"]) is not int else "cpus"
        return InputError(
            f"not a whole number: {shortened(repr(document[odd]))}", where=f"{path}, {odd}"
        )
    meaning = (
        error.schema.get("description", "the frame of the file")
        if isinstance(error.schema, dict)
        else "the file"
    )
    return InputError(
        shortened(error.message),
        where=", ".join(map(str, [path, *error.absolute_path])),
        fix=f"see {SCHEMA.name}: {shortened(meaning)}",
    )


def _table(cpus: list[str], lists: list[list[tuple]]) -> pd.DataFrame:
    columns = [
        [value for events in lists if events for value in events[at]]
        for at in range(max(map(len, lists)))
    ]
    source, sources = _coded(columns[5], sorted(set(columns[5])))
    cpu = np.repeat(
        [int(name) for name in cpus], [len(events[0]) if events else 0 for events in lists]
    )
    intensity = [np.array(values, float) for values in columns[6:]]  # of null: NaN
    return config_table(
        Columns(
            cpu,
            np.array(columns[0], np.int64),
            np.array(columns[1], np.int64),
            _coded(columns[2], POLICY_NAMES)[0],
            np.array(columns[3], np.int64),
            _coded(columns[4], ALL_KINDS)[0],
            source,
            *intensity,
        ),
        list(sources),
    )


def _coded(
    values: list[str], names: list[str] | tuple[str, ...]
) -> tuple[np.ndarray, list[str] | tuple[str, ...]]:
    place = {name: at for at, name in enumerate(names)}
    return np.fromiter(map(place.__getitem__, values), np.int64, len(values)), names


# The published injector's format
# ----------------------------------------------------------------------------------------


def _published(document: dict, path: Path) -> Parts:
    _refuse_without_priorities(document, path)
    cpus = sorted(document, key=int)
    entries = [PublishedEvents(document[cpu], cpu, path) for cpu in cpus]
    windows = [events.window() for events in entries]
    window_ns = max(filter(None, windows), default=None) or max(
        events.last_end() for events in entries
    )
    lists = [events.checked(max(window_ns, 1)) for events in entries]
    if not any(map(len, lists)):
        raise InputError(
            "an empty config: no event on any CPU", where=path, why="there is nothing to inject"
        )
    return tuple(map(int, cpus)), window_ns, {"format": "published injector"}, _table(cpus, lists)


def _refuse_without_priorities(document: dict, path: Path) -> None:
    for cpu, rows in document.items():
        row = rows[0] if isinstance(rows, list) and rows else None
        if isinstance(row, dict) or (isinstance(row, list) and len(row) == 2):
            raise InputError(
                "an old version of the published injector's format, without priorities",
                where=f"{path}, CPU {cpu}",
                why=(
                    "whether an event is real-time noise or not decides what it does to the"
                    " workload"
                ),
                fix=(
                    "make it anew from the traces, or add a third field to each event: 0 ="
                    " SCHED_OTHER, -1 = SCHED_FIFO 1"
                ),
            )
