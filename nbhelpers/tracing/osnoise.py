"""Noise events from the text of the kernel's osnoise tracer, exactly as tracefs prints it.

Owns the traps of that text: see `read_osnoise`. Kernel sources: kernel/trace/trace_osnoise.c,
include/trace/events/osnoise.h.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError, LostEvents
from ._clock import StartClock
from ._files import (
    header_integer,
    header_integers,
    parse_header,
    read_trace,
    refuse_recorded_loss,
)
from ._osnoise_columns import NUMBERS, Lines, blocks_of_lines
from ._table import (
    INTERRUPTED,
    KINDS,
    LARGEST_NS,
    NO_PID,
    POLICIES,
    REPLAY_PRIORITY,
    clip_to_window,
    noise_events,
    rows_by_cpu,
    unite_texts,
)

FORMAT = "noisebook osnoise 1"
HEADER = b"# noisebook: "

# COMM-PID (TGID) [CPU] flags TIMESTAMP: the rest. COMM has at most 16 characters, any of them; the
# CPU field is at least
# three digits wide; TGID and flags are there or not, by trace options.
_PREFIX = re.compile(
    rb"\s*(.{1,16}?)-(\d+)\s+(?:\(\s*[-\d]+\)\s+)?"
    rb"\[(\d{1,9})\]\s+(?:([^\s:]{4,8})\s+)?(\d+)\.(\d{6}):"
    rb" (.*)",
    re.DOTALL,
)
_NOISE = re.compile(
    rb"(nmi|irq|softirq|thread)_noise:(.*) start (\d+)\.(\d{9}) duration (\d+) ns\s*"
)
_SAMPLE = re.compile(
    rb"sample_threshold: start (\d+)\.(\d{9}) duration (\d+) ns interferences? (\d+)\s*"
)
_FORK = re.compile(
    rb"sched_process_fork: comm=.* pid=(\d{1,10}) child_comm=.* child_pid=(\d{1,10})\s*", re.DOTALL
)
_LOST = re.compile(rb"CPU:\d+ \[LOST (?:(\d+) )?EVENTS\]")
_WRITTEN = re.compile(rb"# entries-in-buffer/entries-written: (\d+)/(\d+)")
_TOTAL = re.compile(r"Total Duration:\s*([0-9.eE+-]+)\s*seconds")
_KIND = {kind.encode(): code for code, kind in enumerate(KINDS)}
_NUMBERS = (*NUMBERS, "kind", "pid")
_HARDWARE = KINDS.index("hardware")


@dataclass
class _Lines:
    """What was read line by line: one list a column; times as the kernel printed them."""

    line: list = field(default_factory=list)  # number of the line
    cpu: list = field(default_factory=list)
    kind: list = field(default_factory=list)
    source: list = field(default_factory=list)
    pid: list = field(default_factory=list)
    start_ns: list = field(default_factory=list)
    duration_ns: list = field(default_factory=list)
    stamp_ns: list = field(default_factory=list)
    context_pid: list = field(default_factory=list)
    forks: list = field(default_factory=list)  # (parent, child), in the order of the lines


def read_osnoise(
    path: str | Path,
    window: tuple[int, int] | None = None,
    workload: str | Collection[int] | None = None,
    run: int = 0,
    window_clock: str = "start",
) -> pd.DataFrame:
    """Read a trace of the kernel's osnoise tracer as noise events.

    Parameters
    ----------
    path
        Text of tracefs' `trace`, plain or gzip. Files of `Tracer` hold window, clock and the
        workload's process ids; for them the other arguments are optional.
    window
        Begin and end of the timed region, ns. None: times count from the first event and nothing is
        clipped.
    workload
        Whose threads are not noise: process ids, or a name (comm) where no ids are known. Ids are
        better for a program that starts others or renames its threads. Children are added, as far
        as the trace holds the forks (ours does).
    run
        Number of the run, for the column `run`.
    window_clock
        "start" if the window is in the clock of the events' start (`trace_clock_local`),
        "timestamp" if it is in the `trace_clock` of the lines' time stamps; then starts are moved
        to that clock, CPU by CPU (see `StartClock`).

    Returns
    -------
    The events table of CONTRIBUTING.md. Policies of threads are unknown ("") to osnoise, and
    priorities 0. A `sample_threshold` that no counted event explains is of kind hardware. `end_ns`
    is the line's time stamp, because start + duration is not the end: the duration is net of nested
    noise.

    Raises
    ------
    LostEvents
        The kernel lost events (`[LOST n EVENTS]`, or fewer entries in the buffer than were
        written).
    InputError
        Anything else that is wrong, with file and line: an unreadable or truncated line, a duration
        that wrapped to a negative value, a trace that the kernel itself calls tainted.

    Examples
    --------
    >>> import tempfile
    >>> from nbhelpers import read_osnoise
    >>> lines = [
    ...     "nbody-7 [000] d.h.. 10.000005: irq_noise: local_timer:236"
    ...     " start 10.000001000 duration 2000 ns",
    ...     "kworker/0:1-9 [000] d.... 10.000030: thread_noise: kworker/0:1:9"
    ...     " start 10.000020000 duration 9000 ns",
    ... ]
    >>> with tempfile.NamedTemporaryFile("w", suffix=".trace") as file:
    ...     print(*lines, sep=chr(10), file=file, flush=True)
    ...     events = read_osnoise(file.name)
    >>> events[["kind", "source", "start_ns", "duration_ns"]].values.tolist()
    [['irq', 'local_timer', 0, 2000], ['thread', 'kworker/0:1', 19000, 9000]]

    Notes
    -----
    Left out: the idle task (pid 0), and events with start 0, which the tracer prints once a CPU
    when it is switched on, with the time since boot as duration. Lines of other events are
    ignored.
    """
    if window_clock not in ("start", "timestamp"):
        raise InputError(f"window_clock must be 'start' or 'timestamp', not {window_clock!r}")
    header, text, first_line = _split_header(read_trace(path), path)
    if header:
        window = window or (
            header_integer(header, "start_ns", path),
            header_integer(header, "end_ns", path),
        )
        workload = (
            workload if workload is not None else header_integers(header, "workload_pids", path)
        )
        window_clock = "timestamp" if header.get("clock") == "mono" else "start"
        refuse_recorded_loss(header, path)
    columns = _parse(text, path, first_line)
    columns = _one_clock(columns, window_clock, path)
    excluded = header_integers(header, "excluded_pids", path) if header else []
    return _events(columns, _checked_window(window, path), workload, excluded, run)


def window_from_workload(
    path: str | Path, workload: str, seconds: float | None = None
) -> tuple[int, int]:
    """The timed region as the published method finds it (Persson et al. 2025, their released
    scripts): ns, in the events' clock.

    It begins at the earliest start of a `thread_noise` that carries the workload's name and lasts
    what the program printed. So it includes the start of the process: the window lies early by that
    time. With process ids and a marked region (our traces) nothing of this is needed.

    Parameters
    ----------
    path
        The trace; next to it may be `NAME.benchout` or `NAME.out` with a line `Total Duration: 2.17
        seconds`.
    workload
        Name (comm) of the workload, at most 15 characters of it are in a trace.
    seconds
        Length of the region, if there is no such file.

    Raises
    ------
    InputError
        The workload is not in the trace, or its length is nowhere.
    """
    _, text, first_line = _split_header(read_trace(path), path)
    columns = _parse(text, path, first_line)
    of_workload = (columns["kind"] == KINDS.index("thread")) & (columns["source"] == workload[:15])
    if not of_workload.any():
        names = sorted(
            {
                name
                for name, kind in zip(columns["source"], columns["kind"])
                if kind == KINDS.index("thread")
            }
        )
        raise InputError(
            f"no thread named '{workload[:15]}' in the trace",
            where=path,
            why="its first event shows when the workload began",
            fix=f"threads seen: {', '.join(names[:20])}",
        )
    start_ns = int(columns["start_ns"][of_workload].min())
    return start_ns, start_ns + round(
        1e9 * (_printed_seconds(Path(path)) if seconds is None else seconds)
    )


def _printed_seconds(path: Path) -> float:
    base = path.with_suffix("") if path.suffix == ".gz" else path
    for candidate in (base.with_suffix(".benchout"), base.with_suffix(".out")):
        if candidate.exists() and (found := _TOTAL.search(candidate.read_text(errors="replace"))):
            return _positive_seconds(found[1], candidate)
    raise InputError(
        "how long the workload ran is nowhere",
        where=path,
        why="the window of the trace needs its end",
        fix=(
            "give seconds=, or write 'Total Duration: X seconds' into"
            f" {base.with_suffix('.benchout')}"
        ),
    )


def _positive_seconds(text: str, path: Path) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e9:
        raise InputError(f"'Total Duration: {text} seconds' is no duration", where=path)
    return seconds


def _split_header(text: bytes, path: str | Path) -> tuple[dict, bytes, int]:
    if not text.startswith(HEADER):
        return {}, text, 1
    line, _, rest = text.partition(b"\n")
    return parse_header(line[len(HEADER) :], FORMAT, path), rest, 2


def _parse(text: bytes, path: str | Path, first_line: int) -> dict:
    """All noise lines of a trace, a column a field; refuses what cannot be trusted."""
    if text and not text.endswith(b"\n"):
        raise InputError(
            "a truncated last line (no end of line)",
            where=f"{path}, line {first_line + text.count(10)}",
            why="the end of the trace is missing",
            fix="record the run again",
        )
    others, usual, seen = _Lines(), _UsualLines(), False
    for block in blocks_of_lines(text):
        unusual = usual.take(block, first_line)
        seen |= len(unusual) < len(block)
        for line in unusual.tolist():
            seen |= _parse_line(block.row(line), others, path, first_line + line)
        first_line += len(block)
    if not seen:
        raise InputError(
            "not a trace: neither a tracer's header nor an event",
            where=path,
            fix="give the text of tracefs' file `trace`",
        )
    return _in_order(_columns(others), usual.columns()) | {"forks": others.forks}


class _UsualLines:
    """What was read of lines as the kernel prints them, a block at a time."""

    def __init__(self) -> None:
        self._sources: dict[str, int] = {}  # name -> code
        self._meanings: dict[bytes, tuple[int, int, int] | None] = {}  # kind, code of source, pid
        self._parts: list[dict] = []

    def take(self, block: Lines, first_line: int) -> np.ndarray:
        """Take the noise lines of a block in; returns the other ones."""
        meanings = [self._meaning(body) for body in block.bodies]
        kind, source, pid = (
            np.array([meaning or (-1, -1, -1) for meaning in meanings], dtype=np.int64)
            .reshape(-1, 3)[block.body]
            .T
        )
        noise = kind >= 0
        event = noise & (block.numbers["start_ns"] > 0)
        columns = block.numbers | {"kind": kind, "source": source, "pid": pid}
        columns["line"] = block.line + first_line
        self._parts.append({name: column[event] for name, column in columns.items()})
        return np.union1d(block.others, block.line[~noise])

    def _meaning(self, body: bytes) -> tuple[int, int, int] | None:
        if body not in self._meanings:
            noise = _NOISE.fullmatch(body + b" start 0.000000000 duration 0 ns")
            found = _kind_and_source(noise) if noise else None
            if found is None or found[2] >= LARGEST_NS:
                self._meanings[body] = None
            else:
                code = self._sources.setdefault(found[1], len(self._sources))
                self._meanings[body] = found[0], code, found[2]
        return self._meanings[body]

    def columns(self) -> dict:
        """All that was taken in."""
        names = (*_NUMBERS, "line", "source")
        columns = {
            name: np.concatenate([np.zeros(0, np.int64), *(part[name] for part in self._parts)])
            for name in names
        }
        columns["source"] = pd.Categorical.from_codes(
            columns["source"], categories=pd.Index(list(self._sources), dtype="str")
        )
        return columns


def _in_order(others: dict, usual: dict) -> dict:
    """Both in the order of their lines."""
    if not len(others["line"]):
        return usual
    order = np.argsort(np.concatenate([usual["line"], others["line"]]), kind="stable")
    columns = {
        name: np.concatenate([usual[name], others[name]])[order] for name in (*_NUMBERS, "line")
    }
    source = unite_texts([usual["source"], pd.Categorical(others["source"])])
    return columns | {"source": source[order]}


def _parse_line(row: bytes, lines: _Lines, path: str | Path, number: int) -> bool:
    """Take one line in; true if it shows that this is a trace."""
    found = _PREFIX.fullmatch(row)
    if found is None:
        return _parse_remark(row, path, number)
    if noise := _NOISE.fullmatch(found[7]):
        _take(lines, found, noise, path, number)
    elif sample := _SAMPLE.fullmatch(found[7]):
        if sample[4] == b"0":  # otherwise the events that caused it are in the trace themselves
            _append(
                lines,
                found,
                _HARDWARE,
                "hardware",
                NO_PID,
                sample[1],
                sample[2],
                sample[3],
                path,
                number,
            )
    elif fork := _FORK.fullmatch(found[7]):
        lines.forks.append((int(fork[1]), int(fork[2])))
    elif b"_noise:" in found[7][:15] or found[7].startswith(b"sample_threshold:"):
        raise _damaged(row, path, number)
    else:
        _refuse_taint(row, path, number)
    return True


def _parse_remark(row: bytes, path: str | Path, number: int) -> bool:
    where = f"{path}, line {number}"
    if lost := _LOST.search(row):
        raise LostEvents(
            f"the kernel lost {(lost[1] or b'').decode() or 'some'} events",
            where=where,
            why="durations around each gap would be wrong",
            fix="record again with a larger buffer (buffer_size_kb)",
        )
    _refuse_taint(row, path, number)
    if row.startswith(b"#"):
        written = _WRITTEN.match(row)
        if written and int(written[1]) < int(written[2]):
            raise LostEvents(
                f"only {written[1].decode()} of {written[2].decode()} events are left in the"
                " buffer",
                where=where,
                why="the oldest were overwritten",
                fix="record again with a larger buffer (buffer_size_kb)",
            )
        return row.startswith((b"# tracer:", b"# entries-in-buffer"))
    if row.strip() and not row.startswith(
        b"Total Duration:"
    ):  # the published traces may end with what the program printed
        raise _damaged(row, path, number)
    return False


def _refuse_taint(row: bytes, path: str | Path, number: int) -> None:
    if b"is tainted" in row or row.rstrip().endswith(b": Negative duration!"):
        raise InputError(
            f"the kernel distrusts this trace: {_shown(row)}",
            where=f"{path}, line {number}",
            fix="discard the run and record it again",
        )


def _take(lines: _Lines, prefix: re.Match, noise: re.Match, path: str | Path, number: int) -> None:
    """One *_noise line. The name goes to the last ':', because names hold ':' and ' ' and '/'
    themselves; NMIs have none.
    """
    found = _kind_and_source(noise)
    if found is None:
        raise _damaged(prefix[0], path, number)
    kind, source, pid = found
    _append(lines, prefix, kind, source, pid, noise[3], noise[4], noise[5], path, number)


def _kind_and_source(noise: re.Match) -> tuple[int, str, int] | None:
    """Code of the kind, name of the source, process id; None: the name is damaged."""
    name, colon, ident = noise[2].strip().rpartition(b":")
    if noise[1] == b"nmi":
        name, ident = b"nmi", b"0"
    elif not colon or not name or not ident.isdigit():
        return None
    pid = int(ident) if noise[1] == b"thread" else NO_PID
    return _KIND[noise[1]], name.decode(errors="replace"), pid


def _append(
    lines: _Lines,
    prefix: re.Match,
    kind: int,
    source: str,
    pid: int,
    seconds: bytes,
    nanoseconds: bytes,
    duration: bytes,
    path: str | Path,
    number: int,
) -> None:
    if (
        len(seconds) > 10
        or len(duration) > 19
        or len(prefix[5]) > 10
        or len(prefix[2]) > 10
        or pid >= LARGEST_NS
    ):
        raise _impossible(prefix[0], duration, path, number)
    start_ns, duration_ns = int(seconds) * 1_000_000_000 + int(nanoseconds), int(duration)
    if start_ns == 0:
        return
    if duration_ns >= LARGEST_NS or start_ns >= LARGEST_NS or len(prefix[5]) > 9:
        raise _impossible(prefix[0], duration, path, number)
    lines.line.append(number)
    lines.cpu.append(int(prefix[3]))
    lines.kind.append(kind)
    lines.source.append(source)
    lines.pid.append(pid)
    lines.start_ns.append(start_ns)
    lines.duration_ns.append(duration_ns)
    lines.stamp_ns.append(int(prefix[5]) * 1_000_000_000 + int(prefix[6]) * 1000)
    lines.context_pid.append(int(prefix[2]))


def _impossible(row: bytes, duration: bytes, path: str | Path, number: int) -> InputError:
    return InputError(
        f"an impossible time: {_shown(row)}",
        where=f"{path}, line {number}",
        why="kernels before 6.1.192 and 6.2 let durations over 2.147 s wrap to negative values",
        fix="discard the run; a newer kernel has this fixed",
    )


def _damaged(row: bytes, path: str | Path, number: int) -> InputError:
    return InputError(
        f"a damaged line: {_shown(row)}",
        where=f"{path}, line {number}",
        why="an event would silently be missing",
        fix="record the run again",
    )


def _shown(row: bytes) -> str:
    text = row.decode(errors="replace").strip()
    return repr(text if len(text) <= 120 else text[:117] + "...")


def _columns(lines: _Lines) -> dict:
    names = (*_NUMBERS, "line")
    arrays = {name: np.array(getattr(lines, name), dtype=np.int64) for name in names}
    return arrays | {"source": np.array(lines.source, dtype=object)}


def _checked_window(window: tuple[int, int] | None, path: str | Path) -> tuple[int, int] | None:
    if window is not None and not 0 <= window[0] < window[1] < LARGEST_NS:
        raise InputError(
            f"the window {window} is empty or negative",
            where=path,
            why="times count from its begin",
            fix="give (begin_ns, end_ns)",
        )
    return window


def _one_clock(columns: dict, window_clock: str, path: str | Path) -> dict:
    """Add `end_ns`, and bring start and end to the wanted clock.

    The end is the line's time stamp, rounded to 1 µs and a probe late, hence never before start +
    net duration.
    """
    start_ns, stamp_ns = columns["start_ns"], columns["stamp_ns"]
    clock = StartClock.fit(columns)
    if clock.points:
        offset_ns = clock.offsets(columns["cpu"], start_ns)
        start_ns, stamp_ns = (
            (start_ns + offset_ns, stamp_ns)
            if window_clock == "timestamp"
            else (start_ns, stamp_ns - offset_ns)
        )
    elif window_clock == "timestamp" and len(start_ns):
        raise InputError(
            "no interrupt in the trace",
            where=path,
            why="start times and time stamps cannot be brought to one clock",
            fix="record with trace_clock=local, or a longer run",
        )
    else:
        stamp_ns = start_ns
    return columns | {
        "start_ns": start_ns,
        "end_ns": np.maximum(stamp_ns, start_ns + columns["duration_ns"]),
    }


def _events(
    columns: dict,
    window: tuple[int, int] | None,
    workload: str | Collection[int] | None,
    excluded: list[int],
    run: int,
) -> pd.DataFrame:
    kind, pid = columns["kind"], columns["pid"]
    thread = kind == KINDS.index("thread")
    workload_pids = _workload_pids(columns, thread, workload)
    priority = np.array([REPLAY_PRIORITY.get(name, 0) for name in KINDS])
    policy = np.where(thread, POLICIES.index(""), POLICIES.index("SCHED_FIFO"))
    noise = ~(thread & np.isin(pid, [0, *workload_pids, *excluded]))
    events = noise_events(
        {
            "cpu": columns["cpu"][noise],
            "kind": pd.Categorical.from_codes(kind[noise], categories=KINDS),
            "source": columns["source"][noise],
            "start_ns": columns["start_ns"][noise],
            "duration_ns": columns["duration_ns"][noise],
            "end_ns": columns["end_ns"][noise],
            "policy": pd.Categorical.from_codes(policy[noise], categories=POLICIES),
            "priority": priority[kind[noise]],
            "pid": pid[noise],
            "interrupted": pd.Categorical.from_codes(
                _interrupted(columns, thread, workload_pids)[noise], categories=INTERRUPTED
            ),
            "run": run,
        },
        clock="trace_clock_local",
        tracer="osnoise",
        cpus=np.unique(columns["cpu"]).tolist(),
    )
    if window is None and len(events):
        window = int(events["start_ns"].min()), 2 * LARGEST_NS - 1
    return clip_to_window(events, *window) if window else events


def _interrupted(columns: dict, thread: np.ndarray, workload_pids: np.ndarray) -> np.ndarray:
    """Code of who was running. Interrupts: the line's context. Threads: the workload or the
    idle task, whichever left the CPU last; osnoise does not say whether the workload gave the CPU
    up by itself.
    """
    role = np.select(
        [np.isin(columns["context_pid"], workload_pids), columns["context_pid"] == 0], [0, 1], 2
    )
    role[thread] = np.select(
        [np.isin(columns["pid"][thread], workload_pids), columns["pid"][thread] == 0], [0, 1], 2
    )
    threads = np.flatnonzero(thread)
    for _, rows in rows_by_cpu(columns["cpu"][threads]):
        mine = threads[rows]
        mine = mine[np.argsort(columns["end_ns"][mine], kind="stable")]
        anchor = np.maximum.accumulate(np.where(role[mine] < 2, np.arange(len(mine)), -1))
        role[mine] = np.where(anchor >= 0, role[mine][anchor], 2)
    return role


def _workload_pids(
    columns: dict, thread: np.ndarray, workload: str | Collection[int] | None
) -> np.ndarray:
    """Process ids of the workload; by its name (the first 15 characters: the kernel keeps no more)
    only if there are no ids.
    """
    if isinstance(workload, str):
        return np.unique(columns["pid"][thread & (columns["source"] == workload[:15])])
    pids = set(workload or ())
    for parent, child in columns["forks"]:
        if parent in pids:
            pids.add(child)
    return np.array(sorted(pids), dtype=np.int64)
