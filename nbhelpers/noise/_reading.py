"""Noise configs from files: Noisebook's format and the published injector's, checked so that
they can be replayed.

Owns the reading of both. What a file must be like is in `noise_config.schema.json`; here stand the
rules that a schema can't express. An error names file, CPU, event and field.
"""

import json
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import fastjsonschema
import pandas as pd

from ..errors import InputError
from ..reading import in_child, parsed_json, read_bytes
from ._merge import POLICY_NAMES
from ._vocabulary import ALL_KINDS

SCHEMA = Path(__file__).with_name("noise_config.schema.json")
FORMAT = "noisebook noise config 1"
COLUMNS = ("start_ns", "duration_ns", "policy", "priority", "kind", "source")
INTENSITY = "intensity"  # a seventh column, where an event does more than occupy a CPU
CPU_NAME = re.compile(r"(0|[1-9][0-9]{0,4})")

Parts = tuple[tuple[int, ...], int, dict, pd.DataFrame]


def read_config(path: Path) -> Parts:
    """CPUs, window, provenance and events of a config in either format."""
    content = read_bytes(path, "noise config")
    return in_child(partial(_parts, content, path), path, "noise config", len(content))


def _parts(content: bytes, path: Path) -> Parts:
    document = parsed_json(
        content,
        path,
        "noise config",
        object_pairs_hook=_without_doubles,
        parse_constant=_no_number,
    )
    if isinstance(document, dict) and document and all(map(CPU_NAME.fullmatch, document)):
        document = _published(document, path)
    elif not isinstance(document, dict) or not {"format", "cpus"} & set(document):
        raise InputError(
            "not a noise config",
            where=path,
            why="neither Noisebook's format nor the published injector's",
            fix="a noise config is written by NoiseConfig.write; its schema is " + SCHEMA.name,
        )
    _check(document, path)
    cpus, window_ns = tuple(sorted(map(int, document["cpus"]))), int(document["window_ns"])
    events = _table(document["cpus"], document["columns"])
    if not len(events):
        raise InputError(
            "an empty config: no event on any CPU", where=path, why="there is nothing to inject"
        )
    _check_order(events, window_ns, path)
    return cpus, window_ns, document["provenance"], events


def _without_doubles(pairs: list[tuple[str, object]]) -> dict:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} occurs twice in one object")
    return value


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


@cache
def _checker() -> Callable[[object], object]:
    return fastjsonschema.compile(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _check(document: dict, path: Path) -> None:
    """Refuse what the schema does not allow: jsonschema takes 100 times as long for the events."""
    try:
        _checker()(document)
    except fastjsonschema.JsonSchemaValueException as error:
        _, *place = error.path
        if place[:1] == ["cpus"] and place[1:]:
            names = dict(enumerate(document["columns"]))
            place = [f"CPU {place[1]}", *(f"event {at}" for at in place[2:3])] + [
                names.get(int(field), field) for field in place[3:]
            ]
        rule = error.definition if isinstance(error.definition, dict) else {}
        what = error.message.removeprefix(f"{error.name} ")
        raise InputError(
            f"{_shortened(repr(error.value))} {what}",
            where=", ".join([str(path), *place]),
            fix=f"see {SCHEMA.name}: {rule.get('description', 'the events')}",
        ) from None


def _shortened(text: str, length: int = 100) -> str:
    return text if len(text) <= length else text[:length] + " …"


def _table(cpus: dict[str, list[list]], columns: list[str]) -> pd.DataFrame:
    """Events by CPU and start, words as categories."""
    rows = [[int(cpu), *row] for cpu in sorted(cpus, key=int) for row in cpus[cpu]]
    table = pd.DataFrame(rows, columns=["cpu", *columns])
    sources = pd.Index(sorted(set(table["source"])), dtype=str)
    words = {"policy": POLICY_NAMES, "kind": ALL_KINDS, "source": sources}
    for name, known in words.items():
        table[name] = pd.Categorical(table[name], known)
    whole = dict.fromkeys(("start_ns", "duration_ns", "priority"), "int64")
    table = table.assign(intensity=table.get(INTENSITY, float("nan")))
    return table.astype({**whole, INTENSITY: float})


def _check_order(events: pd.DataFrame, window_ns: int, path: Path) -> None:
    """All by start, what occupies the CPU first; events that occupy the CPU don't overlap, nor do
    those of one other kind.
    """
    kind = events["kind"].cat.codes.where(events[INTENSITY].notna(), -1)
    start_ns = events["start_ns"]
    before = pd.DataFrame({"start": start_ns, "kind": kind}).groupby(events["cpu"]).shift()
    ends = (start_ns + events["duration_ns"]).groupby([events["cpu"], kind]).shift()
    unsorted = (start_ns < before["start"]) | (
        (start_ns == before["start"]) & (kind < before["kind"])
    )
    problems = {
        "begins before the event before it; sort the events by start, those that occupy the CPU"
        " first": unsorted,
        "overlaps an event before it; make the config anew with NoiseConfig.from_events": (
            start_ns < ends
        ),
        f"begins after the window of {window_ns} ns": start_ns >= window_ns,
    }
    for problem, bad in problems.items():
        if bad.any():
            cpu, at = events["cpu"][bad.idxmax()], events.groupby("cpu").cumcount()[bad.idxmax()]
            raise InputError(problem, where=f"{path}, CPU {cpu}, event {at}, start_ns")


# The published injector's format
# ----------------------------------------------------------------------------------------


def _published(document: dict, path: Path) -> dict:
    """`[start, duration, priority]` as Noisebook's format: rounded to whole ns, entries of no
    length dropped; the last of a CPU states the window.
    """
    _refuse_without_priorities(document, path)
    entries = {
        cpu: [_entry(row, f"{path}, CPU {cpu}, event {at}") for at, row in enumerate(rows)]
        for cpu, rows in document.items()
    }
    lasts = [rows[-1] for rows in entries.values() if rows]
    window_ns = max((start for start, duration, *_ in lasts if duration == 0), default=0)
    ends = [start + duration for rows in entries.values() for start, duration, *_ in rows]
    return {
        "format": FORMAT,
        "provenance": {"format": "published injector"},
        "window_ns": window_ns or max([1, *ends]),
        "columns": list(COLUMNS),
        "cpus": {cpu: [row for row in rows if row[1] != 0] for cpu, rows in entries.items()},
    }


def _entry(row: object, where: str) -> list:
    """An entry as an event of Noisebook's format; real-time events are interrupts."""
    if not isinstance(row, list) or len(row) != 3:
        raise InputError(_shortened(f"not a list of 3 fields: {row!r}"), where=where)
    for field, value in zip(("start_ns", "duration_ns", "priority"), row):
        if type(value) not in (int, float) or abs(value) == float("inf"):
            raise InputError(_shortened(f"not a number: {value!r}"), where=f"{where}, {field}")
    start, duration, priority = map(round, row)
    if not -99 <= priority <= 0:
        raise InputError(
            f"priority {priority} is unknown",
            where=f"{where}, priority",
            fix="0 = SCHED_OTHER, -1 … -99 = SCHED_FIFO 1 … 99",
        )
    policy, kind = ("SCHED_FIFO", "irq") if priority else ("SCHED_OTHER", "thread")
    return [start, duration, policy, -priority, kind, "published"]


def _refuse_without_priorities(document: dict, path: Path) -> None:
    for cpu, rows in document.items():
        if not isinstance(rows, list):
            raise InputError("not a list of events", where=f"{path}, CPU {cpu}")
        row = rows[0] if rows else None
        if isinstance(row, dict) or (isinstance(row, list) and len(row) == 2):
            raise InputError(
                "an old version of the published injector's format, without priorities",
                where=f"{path}, CPU {cpu}",
                why="whether an event is real-time noise or not decides what it does",
                fix="make it anew from the traces, or add a third field to each event:"
                " 0 = SCHED_OTHER, -1 = SCHED_FIFO 1",
            )
