"""The critical path of a run, walked back by who woke whom.

Owns the walk. Pure: tables in, tables out. The path is that of Böhme et al. 2010 ("Identifying the
root causes of wait states"): a wait is passed on to what delayed the thread that ended it.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

_INTEGERS = ("run", "start_ns", "end_ns", "thread", "cpu")
PATH = dict.fromkeys(_INTEGERS, "int64") | {"part": "str", "owner": "str"}
PROGRAM, TIMER, STOP, DISK = "the program", "own timer", "stop signal", "disk"
BARRIER, UNSEEN, STARTED = "barrier", "not recorded", "its start"
# states that say themselves why a thread did not compute
_ITSELF = {"runnable": ("runnable", ""), "disk": ("disk", DISK), "stopped": ("stopped", STOP)}
# what ends a wait for a disk and has its name: its interrupt, or the thread of its journal
_DEVICE = re.compile(r"irq:([a-z]+\d+)(?:q\d+|-req\S*)?|jbd2/(.+)-\d+")
_BUSY = 0.5  # share of an interval of marks from which on its thread worked


def critical_path(states: pd.DataFrame, waits: pd.DataFrame | None = None) -> pd.DataFrame:
    """The critical path of each run: one thread's state at each moment, from the end back.

    The walk begins with the thread that ran last. Where it meets the end of a sleep that another
    thread of the program ended, it goes on with that one; so does it at a barrier, with the thread
    that came last. What it meets on its way is what the run waited for.

    Parameters
    ----------
    states
        What threads did (`nbhelpers.tracing.states.tables_of_recording`) in one or more runs.
    waits
        When OpenMP threads worked and waited (`nbhelpers.speed.read_waits`), for those that wait
        without leaving the CPU; None or no rows: by wake-ups alone.

    Returns
    -------
    One row a piece, sorted, without gaps from the begin of the region to its end: `run`,
    `start_ns`, `end_ns`, `thread`, `cpu`, `part` (computing, runnable, stopped, disk, asleep,
    waiting) and `owner` (its name where this table knows it).
    """
    marks = {} if waits is None else dict(iter(waits.groupby("run")))
    pieces = [
        (run, *piece)
        for run, table in states.groupby("run")
        for piece in _Walk.of(table, marks.get(run)).pieces()
    ]
    table = pd.DataFrame(pieces, columns=list(PATH)).astype(PATH)
    return table.sort_values(["run", "start_ns"], kind="stable", ignore_index=True)


@dataclass(frozen=True)
class _Thread:
    """The intervals of a thread, as lists."""

    start: list[int]
    end: list[int]
    state: list[str]
    cpu: list[int]
    woken_by: list[int]
    woken_by_name: list[str]

    @classmethod
    def of(cls, table: pd.DataFrame) -> "_Thread":
        columns = ("start_ns", "end_ns", "state", "cpu", "woken_by", "woken_by_name")
        return cls(*(table[name].tolist() for name in columns))

    def at(self, moment: int) -> int | None:
        """The row of the interval that ends at the moment or holds it."""
        row = bisect_left(self.end, moment)
        return row if row < len(self.end) and self.start[row] < moment else None

    def itself(self, row: int, else_: tuple[str, str]) -> tuple[str, str]:
        """Part and owner of a state that says itself why the thread did not compute.

        A stopped thread is woken by who continued it, mostly the one who stopped it.
        """
        part, owner = _ITSELF.get(self.state[row], else_)
        name = self.woken_by_name[row]
        if part == "stopped" and name:
            owner = f"{STOP} of {name}"
        if part == "disk" and (device := _DEVICE.fullmatch(name)):
            owner = f"{DISK} {device[1] or device[2]}"
        return part, owner


@dataclass(frozen=True)
class _Walk:
    """The threads of one run, and their marks: thread → (begins, ends) of its work."""

    threads: dict[int, _Thread]
    work: dict[int, tuple[list[int], list[int]]]

    @classmethod
    def of(cls, states: pd.DataFrame, marks: pd.DataFrame | None) -> "_Walk":
        threads = {int(one): _Thread.of(table) for one, table in states.groupby("thread")}
        return cls(threads, {} if marks is None else _worked(marks))

    def pieces(self) -> Iterator[tuple]:
        """(start, end, thread, cpu, part, owner), from the last to the first."""
        if not self.threads:
            return
        now = max(thread.end[-1] for thread in self.threads.values())
        thread = self._last(now)
        passed: set[int] = set()  # threads from which the walk went on at this moment
        while now > 0:
            came, when = self._came_last(thread, now)
            if when < now:
                yield from self._leaves(thread, when, now)
                passed.clear()
            thread, now = came, when
            step = self._step(thread, now)
            if step is None:
                return
            piece, other = step
            if piece is None and thread in passed:  # it waits for one that waits for it
                piece, other = next(self._leaves(thread, 0, now, STARTED)), thread
            passed.add(thread)
            thread = other
            if piece:
                yield piece
                now = piece[0]
                passed.clear()

    def _last(self, now: int) -> int:
        """Who ran last; of several the first."""
        ends = {
            number: thread.state[-1] == "running"
            for number, thread in sorted(self.threads.items())
            if thread.end[-1] == now
        }
        return next((number for number, runs in ends.items() if runs), next(iter(ends)))

    def _came_last(self, thread: int, now: int) -> tuple[int, int]:
        """Where the walk goes on of who waits by its marks: with the thread that worked last, at
        the end of its work; else here and now.
        """
        if not self.work or thread not in self.work or self._works(thread, now):
            return thread, now
        begins, ends = self.work[thread]
        before = bisect_right(begins, now - 1) - 1
        since = ends[before] if before >= 0 else 0
        middle = (begins[before] + since) / 2 if before >= 0 else 0
        best, last = thread, since
        for other, (of_begins, of_ends) in self.work.items():
            row = bisect_right(of_begins, now - 1) - 1
            if row >= 0 and of_begins[row] > middle and of_ends[row] >= now:
                row -= 1  # it has left the barrier; who has a lock began with this one's work
            if other != thread and row >= 0 and min(of_ends[row], now) > last:
                best, last = other, min(of_ends[row], now)
        return (best, last) if best != thread else (thread, now)

    def _leaves(self, thread: int, since: int, now: int, unknown: str = BARRIER) -> Iterator[tuple]:
        """The way out of a barrier, from the last arrival on; who has no CPU can't leave it."""
        known = self.threads.get(thread)
        while now > since:
            row = known.at(now) if known else None
            start, cpu, why = since, -1, ("waiting", unknown)
            if known is not None and row is not None:
                start, cpu = max(since, known.start[row]), known.cpu[row]
                why = known.itself(row, ("waiting", BARRIER))
            yield (start, now, thread, cpu, *why)
            now = start

    def _works(self, thread: int, now: int) -> bool:
        begins, ends = self.work.get(thread, ([], []))
        row = bisect_right(begins, now - 1) - 1
        return row >= 0 and ends[row] >= now

    def _step(self, thread: int, now: int) -> tuple[tuple | None, int] | None:
        """The piece that ends now, and whose turn it is before; None: nothing is known before."""
        known = self.threads.get(thread)
        row = known.at(now) if known else None
        if known is None or row is None:
            return self._before_its_life(thread, now)
        start, state, cpu = known.start[row], known.state[row], known.cpu[row]
        begins, ends = self.work.get(thread, ([], []))
        at = bisect_left(begins, now) - 1
        if at >= 0 and ends[at] < now and state == "running":
            return self._spins(thread, max(start, ends[at]), now, cpu)
        if at >= 0:  # the walk looks at the marks again where its work began
            start = max(start, begins[at])
        if state == "sleeping":
            return self._slept(known, row, thread, now)
        why = known.itself(row, ("computing", PROGRAM))
        return (start, now, thread, cpu, *why), thread

    def _spins(self, thread: int, start: int, now: int, cpu: int) -> tuple[tuple | None, int]:
        """Who waits at a barrier on its CPU waits for those who are ready and have none, if any."""
        for number, other in sorted(self.threads.items()):
            row = other.at(now)
            is_ready = row is not None and other.state[row] == "runnable"
            if is_ready and number != thread and not self._works(number, now):
                return None, number
        return (start, now, thread, cpu, "waiting", BARRIER), thread

    def _slept(self, known: _Thread, row: int, thread: int, now: int) -> tuple[tuple | None, int]:
        start, waker = known.start[row], known.woken_by[row]
        name = known.woken_by_name[row]
        if waker == -1 and known.end[row] == now:
            waker = self._running_alone(thread, now)
        if waker in self.threads and waker != thread and self._runs(waker, now):
            return None, waker
        if name == "timer":
            part, owner = "asleep", TIMER
        else:
            part, owner = "waiting", name or UNSEEN
        return (start, now, thread, -1, part, owner), thread

    def _runs(self, thread: int, now: int) -> bool:
        row = self.threads[thread].at(now)
        return row is not None and self.threads[thread].state[row] != "sleeping"

    def _running_alone(self, thread: int, now: int) -> int:
        """The one other thread that ran then; −1: none, or several."""
        rows = {number: known.at(now) for number, known in self.threads.items() if number != thread}
        ran = [
            number
            for number, row in rows.items()
            if row is not None and self.threads[number].state[row] == "running"
        ]
        return ran[0] if len(ran) == 1 else -1

    def _before_its_life(self, thread: int, now: int) -> tuple[tuple | None, int] | None:
        """Before a thread was forked its parent's time counts; else that of who ran."""
        known = self.threads.get(thread)
        parent = known.woken_by[0] if known and known.state[0] == "runnable" else -1
        for number in (parent, *sorted(self.threads)):
            if number != thread and number in self.threads and self._runs(number, now):
                return None, number
        return (0, now, thread, -1, "waiting", STARTED), thread


def _worked(marks: pd.DataFrame) -> dict[int, tuple[list[int], list[int]]]:
    """When each thread worked: intervals of its marks that follow each other are one."""
    length = marks["end_ns"] - marks["start_ns"]
    busy = marks[marks["busy_ns"] >= _BUSY * length].sort_values(["thread", "start_ns"])
    work = {}
    for thread, rows in busy.groupby("thread"):
        start, end = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()
        new = np.append(True, start[1:] > end[:-1])
        work[int(thread)] = (start[new].tolist(), end[np.append(new[1:], True)].tolist())
    return work
