"""The events of one CPU of a config file, checked column by column so that a million take seconds.

Owns what makes a list of events one that can be replayed; an error names file, CPU, event and
field.
"""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ._merge import POLICY_NAMES
from ._table import COLUMNS
from ._vocabulary import ALL_KINDS, KINDS, LARGEST_NS, POLICIES, STRESSOR_KINDS, STRESSORS


def shortened(text: str, length: int = 300) -> str:
    return text if len(text) <= length else text[:length] + " …"


class Events:
    """The events of one CPU while they are checked, column by column.

    The event at fault is searched for only if there is one.
    """

    def __init__(self, rows: object, cpu: str, path: Path):
        self.rows: Any = rows
        self.place = f"{path}, CPU {cpu}"

    def checked(self, window_ns: int, with_intensity: bool = False) -> list[tuple]:
        """The six columns, or seven with intensities; nothing for a CPU without events."""
        self.check_shape(len(COLUMNS) + with_intensity)
        if not self.rows:
            return []
        columns = list(zip(*self.rows))
        for name, column in zip(COLUMNS, columns):
            wanted = int if name in ("start_ns", "duration_ns", "priority") else str
            self.check_type(column, name, wanted)
        self.check_range(columns[0], "start_ns", 0)
        self.check_range(columns[1], "duration_ns", 1)
        self.check_word(columns[2], "policy", POLICY_NAMES)
        self.check_word(columns[4], "kind", ALL_KINDS if with_intensity else KINDS)
        self.check_priority(columns[2], columns[3])
        self.check_text(columns[5])
        if with_intensity:
            self.check_intensity(columns[4], columns[6])
            self.check_stressors(columns[0], columns[1], columns[4])
        else:
            self.check_order(columns[0], columns[1])
        if columns[0][-1] >= window_ns:
            at = next(at for at, start in enumerate(columns[0]) if start >= window_ns)
            self.refuse(
                at, "start_ns", f"begins at {columns[0][at]}, after the window of {window_ns} ns"
            )
        return columns

    def refuse(self, event: int, field: str, what: str, fix: str | None = None) -> None:
        raise InputError(shortened(what), where=f"{self.place}, event {event}, {field}", fix=fix)

    def check_shape(self, length: int) -> None:
        if not isinstance(self.rows, list):
            raise InputError("not a list of events", where=self.place)
        if not self.rows or (
            set(map(type, self.rows)) == {list} and set(map(len, self.rows)) == {length}
        ):
            return
        at = next(
            at for at, row in enumerate(self.rows) if type(row) is not list or len(row) != length
        )
        self.refuse(at, "all fields", f"not a list of {length} fields: {self.rows[at]!r}")

    def check_type(self, column: tuple, name: str, wanted: type) -> None:
        if set(map(type, column)) != {wanted}:
            at = next(at for at, value in enumerate(column) if type(value) is not wanted)
            self.refuse(
                at, name, f"not a {'whole number' if wanted is int else 'text'}: {column[at]!r}"
            )

    def check_range(self, column: tuple, name: str, lowest: int) -> None:
        if not lowest <= min(column) <= max(column) <= LARGEST_NS:
            at = next(at for at, value in enumerate(column) if not lowest <= value <= LARGEST_NS)
            what = (
                "negative"
                if column[at] < 0
                else "no length"
                if column[at] < lowest
                else "huge, beyond 2^62 ns"
            )
            self.refuse(at, name, f"{what}: {column[at]}")

    def check_word(self, column: tuple, name: str, known: tuple[str, ...]) -> None:
        if not set(column) <= set(known):
            at = next(at for at, value in enumerate(column) if value not in known)
            self.refuse(at, name, f"unknown {name} {column[at]!r}", f"known: {', '.join(known)}")

    def check_priority(self, policy: tuple, priority: tuple) -> None:
        for name, value in set(zip(policy, priority)):
            lowest, highest = POLICIES[name]
            if not lowest <= value <= highest:
                at = next(
                    at for at, pair in enumerate(zip(policy, priority)) if pair == (name, value)
                )
                self.refuse(
                    at,
                    "priority",
                    f"priority {value} is none of {name}'s",
                    f"{name} has {lowest} … {highest}",
                )

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
            what = (
                "begins before the event before it" if unsorted else "overlaps the event before it"
            )
            self.refuse(
                at,
                "start_ns",
                f"{what}: {start[at]}, after {start[at - 1]} + {duration[at - 1]}",
                (
                    "sort the events by start"
                    if unsorted
                    else "make the config anew with NoiseConfig.from_events"
                ),
            )

    def check_intensity(self, kind: tuple, intensity: tuple) -> None:
        """Events that do more than occupy the CPU have a positive number, others null."""
        for at, (name, value) in enumerate(zip(kind, intensity)):
            if name not in STRESSORS and value is not None:
                self.refuse(
                    at, "intensity", f"{name} noise has no intensity: {value!r}", "write null"
                )
            if name in STRESSORS and not (
                type(value) in (int, float) and 0 < value <= sys.float_info.max
            ):
                self.refuse(
                    at,
                    "intensity",
                    f"not a positive number: {value!r}",
                    f"{name} noise has an intensity in {STRESSORS[name].unit}",
                )

    def check_stressors(self, start: tuple, duration: tuple, kind: tuple) -> None:
        """All by start, what occupies the CPU first; events that occupy it don't overlap, nor do
        those of one other kind.
        """
        ends: dict[int, int] = {}
        before = (0, -1)
        for at, (begin, length, name) in enumerate(zip(start, duration, kind)):
            stressor = STRESSOR_KINDS.index(name) if name in STRESSORS else -1
            if begin < ends.get(stressor, 0):
                self.refuse(
                    at,
                    "start_ns",
                    f"overlaps an event before it: {begin}, before {ends[stressor]}",
                    "make the config anew with NoiseConfig.from_events",
                )
            if (begin, stressor) < before:
                self.refuse(
                    at,
                    "start_ns",
                    f"begins before the event before it: {begin} ({name})",
                    "sort the events by start, those that occupy the CPU first",
                )
            ends[stressor], before = begin + length, (begin, stressor)


class PublishedEvents(Events):
    """`[start, duration, priority]`: rounded to whole ns, entries of no length dropped."""

    def __init__(self, rows: object, cpu: str, path: Path):
        super().__init__(rows, cpu, path)
        self.check_shape(3)
        columns = list(zip(*self.rows)) if self.rows else [()] * 3
        names = ("start_ns", "duration_ns", "priority")
        self.starts, self.durations, self.priorities = map(self.rounded, columns, names)
        if self.rows:
            self.check_range(self.starts, "start_ns", 0)
            self.check_range(self.durations, "duration_ns", 0)
            self.check_published_priority()

    def rounded(self, column: tuple, name: str) -> tuple[int, ...]:
        types = set(map(type, column))
        if types <= {int}:
            return column
        good = [
            type(value) is int or (type(value) is float and math.isfinite(value))
            for value in column
        ]
        if not all(good):
            at = good.index(False)
            self.refuse(at, name, f"not a number: {column[at]!r}")
        return tuple(map(round, column))

    def check_published_priority(self) -> None:
        if not -99 <= min(self.priorities) <= max(self.priorities) <= 0:
            at = next(at for at, priority in enumerate(self.priorities) if not -99 <= priority <= 0)
            self.refuse(
                at,
                "priority",
                f"priority {self.priorities[at]} is unknown",
                "0 = SCHED_OTHER, -1 … -99 = SCHED_FIFO 1 … 99",
            )

    def window(self) -> int | None:
        """Start of the sentinel, where there is one."""
        return self.starts[-1] if self.rows and self.durations[-1] == 0 else None

    def last_end(self) -> int:
        return self.starts[-1] + self.durations[-1] if self.rows else 0

    def checked(self, window_ns: int, with_intensity: bool = False) -> list[tuple]:
        """The six columns of Noisebook's format; real-time events are interrupts."""
        policy = ["SCHED_FIFO" if priority else "SCHED_OTHER" for priority in self.priorities]
        self.check_order(self.starts, self.durations)
        rows = [
            (start, duration, name, -priority, "irq" if priority else "thread", "published")
            for start, duration, priority, name in zip(
                self.starts, self.durations, self.priorities, policy
            )
            if duration
        ]
        if rows and rows[-1][0] >= window_ns:
            at = next(at for at, start in enumerate(self.starts) if start >= window_ns)
            self.refuse(
                at, "start_ns", f"begins at {self.starts[at]}, after the window of {window_ns} ns"
            )
        return list(zip(*rows))
