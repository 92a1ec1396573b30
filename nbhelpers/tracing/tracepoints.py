"""Recorded tracepoints: the file of a run, and its way back into a table.

A file is gzip: one line of JSON (formats, clock, process ids, the timed region, the kernel's
account of each buffer), then the pages of every CPU's ring buffer as the kernel gave them.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..reading import in_child
from ._files import (
    checked_window,
    damaged,
    header_integer,
    header_integers,
    header_line,
    header_window,
    parse_header,
    read_trace,
    refuse_recorded_loss,
    write_trace,
)
from ._formats import EventFormat, integers, texts
from ._missing_switches import RUNTIME, SWITCH, WAKE, WAKING
from ._ringbuffer import PageLayout, Records, decode_pages
from ._table import stacked
from .netduration import FORK, NMI, noise_from_tracepoints

FORMAT = "noisebook tracepoints 1"
_TEXTS = ("event", "name", "prev_comm", "next_comm")
_NUMBERS = (
    "pid",
    "number",
    "prev_pid",
    "prev_prio",
    "prev_state",
    "next_pid",
    "next_prio",
    "delta_ns",
)
# Event -> {column of the table: field of the event}; the interrupt vectors are all alike.
_NUMBER_FIELDS = {
    SWITCH: {name: name for name in _NUMBERS if name.startswith(("prev_", "next_"))},
    FORK: {"prev_pid": "parent_pid", "next_pid": "child_pid"},
    WAKE: {"next_pid": "pid", "number": "target_cpu"},
    WAKING: {"next_pid": "pid", "number": "target_cpu"},
    RUNTIME: {"next_pid": "pid", "delta_ns": "runtime"},
    NMI: {"delta_ns": "delta_ns"},
    "irq_handler_entry": {"number": "irq"},
    "irq_handler_exit": {"number": "irq"},
    "softirq_entry": {"number": "vec"},
    "softirq_exit": {"number": "vec"},
}
_VECTOR_FIELDS = {"number": "vector"}
_TEXT_FIELDS = {SWITCH: ("prev_comm", "next_comm"), "irq_handler_entry": ("name",)}


def write_tracepoints(path: str | Path, header: dict, pages: dict[int, bytes]) -> Path:
    """Save a recording.

    Parameters
    ----------
    header
        `formats` (name to text), `header_page`, `clock`, `on_ns`, `off_ns`, `start_ns`, `end_ns`,
        `workload_pids`, `excluded_pids`, `lost`.
    pages
        The bytes of each CPU's `trace_pipe_raw`.
    """
    sizes = [{"cpu": cpu, "bytes": len(data)} for cpu, data in sorted(pages.items())]
    whole = header | {"format": FORMAT, "buffers": sizes}
    return write_trace(
        path, header_line(whole) + b"".join(data for _, data in sorted(pages.items()))
    )


def read_tracepoints(path: str | Path) -> pd.DataFrame:
    """Read a recording as noise events.

    Parameters
    ----------
    path
        A file that `Tracer` wrote.

    Returns
    -------
    events : the events table of data/README.md, see `noise_from_tracepoints`.

    Raises
    ------
    LostEvents
        The kernel dropped events of this run.
    InputError
        A damaged file, or one of another kind.
    """
    return events_of_recording(*read_recording(path), path)


def events_of_recording(header: dict, raw: pd.DataFrame, path: str | Path) -> pd.DataFrame:
    """`read_tracepoints` of what `read_recording` returned; `path` is for messages."""
    window = checked_window(header_window(header, path), path)
    recorded = header_window(header, path, "on_ns", "off_ns")
    events = noise_from_tracepoints(
        raw,
        header_integers(header, "workload_pids", path),
        header_integers(header, "excluded_pids", path),
        window,
        recorded,
        header_integer(header, "run", path),
    )
    events.attrs["cpus"] = sorted(buffer["cpu"] for buffer in header["buffers"])
    return events


def read_recording(path: str | Path) -> tuple[dict, pd.DataFrame]:
    """Read a recording: its header, and its tracepoints, one row each, as `noise_from_tracepoints`
    takes them.

    Raises
    ------
    LostEvents, InputError
        The recording has losses, or is damaged; see `read_tracepoints`.
    """
    content = read_trace(path)
    grows = 2 * len(content)  # its table takes 10 to 20 times as much
    return in_child(partial(_recording, content, path), path, "trace", grows)


def _recording(content: bytes, path: str | Path) -> tuple[dict, pd.DataFrame]:
    line, _, body = content.partition(b"\n")
    header = parse_header(line, FORMAT, path)
    refuse_recorded_loss(header, path)
    formats = _formats(header, path)
    layout = PageLayout.parse(_text(header, "header_page", path), path)
    tables = [
        _one_cpu(cpu, data, layout, formats, f"{path}, CPU {cpu}")
        for cpu, data in _buffers(header, body, path)
    ]
    return header, _concatenate(tables)


def _text(header: dict, key: str, path: str | Path) -> str:
    if not isinstance(header.get(key), str):
        raise InputError(f"'{key}' must be a text", where=f"{path}, header")
    return header[key]


def _formats(header: dict, path: str | Path) -> dict[int, EventFormat]:
    formats = header.get("formats")
    if not isinstance(formats, dict) or not all(isinstance(text, str) for text in formats.values()):
        raise InputError(
            "'formats' must name the events and their formats", where=f"{path}, header"
        )
    parsed = [
        EventFormat.parse(name.rpartition("/")[2], text, path) for name, text in formats.items()
    ]
    return {known.number: known for known in parsed}


def _buffers(header: dict, body: bytes, path: str | Path) -> list[tuple[int, np.ndarray]]:
    buffers = header.get("buffers")
    if not isinstance(buffers, list) or not all(isinstance(item, dict) for item in buffers):
        raise InputError("'buffers' must list the CPUs and their bytes", where=f"{path}, header")
    places = [
        (
            header_integer(item, "cpu", path, high=1 << 20),
            header_integer(item, "bytes", path, high=1 << 40),
        )
        for item in buffers
    ]
    if sum(size for _, size in places) != len(body):
        said = sum(size for _, size in places)
        raise damaged(f"{len(body)} bytes of pages, the header says {said}", path)
    ends = np.cumsum([size for _, size in places], dtype=np.int64)
    return [
        (cpu, np.frombuffer(body, np.uint8, size, end - size).copy())
        for (cpu, size), end in zip(places, ends.tolist())
    ]


def _one_cpu(
    cpu: int, data: np.ndarray, layout: PageLayout, formats: dict[int, EventFormat], where: str
) -> pd.DataFrame:
    records = decode_pages(data, layout, where)
    if (np.diff(records.time_ns) < 0).any():
        raise damaged("time goes backwards", where)
    table = _CpuTable(data, records, where)
    event_numbers = records.size
    if formats:
        any_format = next(iter(formats.values()))
        event_numbers = table.integers(slice(None), any_format, "common_type")
    for number in np.unique(event_numbers):
        if number not in formats:
            raise damaged(f"an event with number {number}, which has no format", where)
        if _is_noise(formats[number]):
            table.fill(np.flatnonzero(event_numbers == number), formats[number])
    return table.frame(cpu)


def _is_noise(known: EventFormat) -> bool:
    """Whether an event takes part in the algorithm; a buffer may hold others."""
    vector = known.name.endswith(("_entry", "_exit")) and "vector" in known.fields
    return vector or known.name in _NUMBER_FIELDS


class _CpuTable:
    """The tracepoints of one CPU while they are read, all records of an event together."""

    def __init__(self, data: np.ndarray, records: Records, where: str):
        self.data, self.records, self.where = data, records, where
        count = len(records.time_ns)
        self.numbers = {name: np.zeros(count, np.int64) for name in _NUMBERS}
        self.numbers["number"] -= 1
        self.codes = {name: np.zeros(count, np.int64) for name in _TEXTS}
        self.categories = {name: [""] for name in _TEXTS}

    def fill(self, rows: np.ndarray, known: EventFormat) -> None:
        """Put the fields of all records of one event into the columns."""
        event = _codes_in(self.categories["event"], [known.name])
        self.codes["event"][rows] = event[0]
        self.numbers["pid"][rows] = self.integers(rows, known, "common_pid")
        for column, field in _NUMBER_FIELDS.get(known.name, _VECTOR_FIELDS).items():
            self.numbers[column][rows] = self.integers(rows, known, field)
        for column in _TEXT_FIELDS.get(known.name, ()):
            found = self.texts(rows, known, column)
            codes = _codes_in(self.categories[column], list(found.categories))
            self.codes[column][rows] = codes[found.codes]

    def integers(self, rows: np.ndarray | slice, known: EventFormat, field: str) -> np.ndarray:
        at, size = self.records.offset[rows], self.records.size[rows]
        return integers(self.data, at, size, known.field(field, self.where), self.where)

    def texts(self, rows: np.ndarray, known: EventFormat, field: str) -> pd.Categorical:
        at, size = self.records.offset[rows], self.records.size[rows]
        return texts(self.data, at, size, known.field(field, self.where), self.where)

    def frame(self, cpu: int) -> pd.DataFrame:
        """One row a record of an event that takes part in the algorithm."""
        time_ns = self.records.time_ns
        words = {
            name: pd.Categorical.from_codes(codes, categories=self.categories[name])
            for name, codes in self.codes.items()
        }
        table = pd.DataFrame(
            {"cpu": np.full(len(time_ns), cpu), "time_ns": time_ns} | self.numbers | words
        )
        known = self.codes["event"] > 0
        return table if known.all() else table[known]


def _codes_in(values: list[str], texts_: list[str]) -> np.ndarray:
    """Codes of texts in a list of all values, which grows."""
    index = {value: code for code, value in enumerate(values)}
    for text in texts_:
        if text not in index:
            index[text] = len(values)
            values.append(text)
    return np.array([index[text] for text in texts_] or [0])


def _concatenate(tables: list[pd.DataFrame]) -> pd.DataFrame:
    if not tables:
        numbers = {name: pd.Series(dtype=np.int64) for name in ("cpu", "time_ns", *_NUMBERS)}
        return pd.DataFrame(numbers | {name: pd.Series(dtype="category") for name in _TEXTS})
    return stacked(tables)
