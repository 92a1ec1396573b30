"""Noise events from the text of the kernel's osnoise tracer, exactly as tracefs prints it.

Owns the traps of that text: see `read_osnoise`. Kernel sources: kernel/trace/trace_osnoise.c,
include/trace/events/osnoise.h.
"""

import re
from collections.abc import Collection
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError
from ..reading import in_child
from ._clock import clock_offsets, clock_points
from ._files import (
    checked_window,
    damaged,
    header_integers,
    header_window,
    lost,
    parse_header,
    read_trace,
    refuse_recorded_loss,
)
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
    rb"sched_process_fork: comm=.{0,16} pid=(\d{1,10}) child_comm=.{0,16} child_pid=(\d{1,10})\s*",
    re.DOTALL,
)
_LOST = re.compile(rb"CPU:\d+ \[LOST (?:(\d+) )?EVENTS\]")
_WRITTEN = re.compile(rb"# entries-in-buffer/entries-written: (\d+)/(\d+)")
_KIND = {kind.encode(): code for code, kind in enumerate(KINDS)}
_COLUMNS = (
    *("line", "cpu", "kind", "source", "pid"),
    *("start_ns", "duration_ns", "stamp_ns", "context_pid"),
)  # of a line; times as the kernel printed them
_HARDWARE = KINDS.index("hardware")


def read_osnoise(
    path: str | Path,
    window: tuple[int, int] | None = None,
    workload: str | Collection[int] | None = None,
    run: int = 0,
) -> pd.DataFrame:
    """Read a trace of the kernel's osnoise tracer as noise events.

    Parameters
    ----------
    path
        Text of tracefs' `trace`, plain or gzip. Files of `Tracer` hold window, clock and the
        workload's process ids; for them the other arguments are optional.
    window
        Begin and end of the timed region, ns, in the clock of the events' start
        (`trace_clock_local`). None: times count from the first event and nothing is clipped.
    workload
        Whose threads are not noise: process ids, or a name (comm) where no ids are known. Ids are
        better for a program that starts others or renames its threads. Children are added, as far
        as the trace holds the forks (ours does).
    run
        Number of the run, for the column `run`.

    Returns
    -------
    The events table of data/README.md. Policies of threads are unknown ("") to osnoise, and
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
    ignored. The windows of `Tracer`'s files are in the `trace_clock` of the lines' time stamps;
    their starts are moved to that clock, CPU by CPU (see `_clock`).
    """
    header, text, first_line = _split_header(read_trace(path), path)
    if header:
        window = window or header_window(header, path)
        if workload is None:
            workload = header_integers(header, "workload_pids", path)
        refuse_recorded_loss(header, path)
    columns = _parse(text, path, first_line)
    columns = _one_clock(columns, header.get("clock") == "mono", path)
    excluded = header_integers(header, "excluded_pids", path) if header else []
    return _events(columns, window and checked_window(window, path), workload, excluded, run)


def lines_of_noise(path: str | Path) -> dict:
    """All noise lines of a trace, a column a field; times as the kernel printed them."""
    _, text, first_line = _split_header(read_trace(path), path)
    return _parse(text, path, first_line)


def _split_header(text: bytes, path: str | Path) -> tuple[dict, bytes, int]:
    if not text.startswith(HEADER):
        return {}, text, 1
    line, _, rest = text.partition(b"\n")
    return parse_header(line[len(HEADER) :], FORMAT, path), rest, 2


def _parse(text: bytes, path: str | Path, first_line: int) -> dict:
    """All noise lines of a trace, a column a field; refuses what cannot be trusted."""
    return in_child(partial(_columns, text, path, first_line), path, "trace", len(text))


def _columns(text: bytes, path: str | Path, first_line: int) -> dict:
    if text and not text.endswith(b"\n"):
        last = f"{path}, line {first_line + text.count(10)}"
        raise damaged("a truncated last line (no end of line)", last)
    rows: list[tuple] = []
    forks: list[tuple[int, int]] = []  # (parent, child), in the order of the lines
    seen = False
    for number, line in enumerate(text.split(b"\n")[:-1], first_line):
        seen |= _parse_line(line, rows, forks, path, number)
    if not seen:
        raise InputError(
            "not a trace: neither a tracer's header nor an event",
            where=path,
            fix="give the text of tracefs' file `trace`",
        )
    columns = dict(zip(_COLUMNS, zip(*rows))) if rows else dict.fromkeys(_COLUMNS, ())
    source = unite_texts([pd.Categorical(columns.pop("source"))])
    arrays = {name: np.array(column, np.int64) for name, column in columns.items()}
    return arrays | {"source": source, "forks": forks}


def _parse_line(row: bytes, rows: list, forks: list, path: str | Path, number: int) -> bool:
    """Take one line in; true if it shows that this is a trace."""
    found = _PREFIX.fullmatch(row)
    if found is None:
        return _parse_remark(row, path, number)
    if noise := _NOISE.fullmatch(found[7]):
        named = _kind_and_source(noise)
        if named is None:
            raise _damaged(row, path, number)
        _append(rows, found, named, noise.groups()[2:], path, number)
    elif sample := _SAMPLE.fullmatch(found[7]):
        if sample[4] == b"0":  # otherwise the events that caused it are in the trace themselves
            hardware = _HARDWARE, "hardware", NO_PID
            _append(rows, found, hardware, sample.groups()[:3], path, number)
    elif fork := _FORK.fullmatch(found[7]):
        forks.append((int(fork[1]), int(fork[2])))
    elif b"_noise:" in found[7][:15] or found[7].startswith(b"sample_threshold:"):
        raise _damaged(row, path, number)
    else:
        _refuse_taint(row, path, number)
    return True


def _parse_remark(row: bytes, path: str | Path, number: int) -> bool:
    where = f"{path}, line {number}"
    if gap := _LOST.search(row):
        raise lost(f"the kernel lost {(gap[1] or b'').decode() or 'some'} events", where)
    _refuse_taint(row, path, number)
    if row.startswith(b"#"):
        written = _WRITTEN.match(row)
        if written and int(written[1]) < int(written[2]):
            left, all_ = written[1].decode(), written[2].decode()
            raise lost(f"only {left} of {all_} events are left in the buffer", where)
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


def _kind_and_source(noise: re.Match) -> tuple[int, str, int] | None:
    """Code of the kind, name of the source, process id; None: the name is damaged. It goes to the
    last ':', because names hold ':' and ' ' and '/' themselves; NMIs have none.
    """
    name, colon, ident = noise[2].strip().rpartition(b":")
    if noise[1] == b"nmi":
        name, ident = b"nmi", b"0"
    elif not colon or not name or not ident.isdigit():
        return None
    pid = int(ident) if noise[1] == b"thread" else NO_PID
    return _KIND[noise[1]], name.decode(errors="replace"), pid


def _append(
    rows: list,
    prefix: re.Match,
    named: tuple[int, str, int],
    times: tuple[bytes, ...],
    path: str | Path,
    number: int,
) -> None:
    """Take one event in, if its numbers can be."""
    (kind, source, pid), (seconds, nanoseconds, duration) = named, times
    lengths = len(seconds), len(duration) - 9, len(prefix[5]), len(prefix[2])
    if max(lengths) > 10 or pid >= LARGEST_NS:
        raise _impossible(prefix[0], duration, path, number)
    start_ns, duration_ns = int(seconds) * 1_000_000_000 + int(nanoseconds), int(duration)
    if start_ns == 0:
        return
    if max(start_ns, duration_ns) >= LARGEST_NS or len(prefix[5]) > 9:
        raise _impossible(prefix[0], duration, path, number)
    stamp_ns = int(prefix[5]) * 1_000_000_000 + int(prefix[6]) * 1000
    on = int(prefix[3]), kind, source, pid
    rows.append((number, *on, start_ns, duration_ns, stamp_ns, int(prefix[2])))


def _impossible(row: bytes, duration: bytes, path: str | Path, number: int) -> InputError:
    return InputError(
        f"an impossible time: {_shown(row)}",
        where=f"{path}, line {number}",
        why="kernels before 6.1.192 and 6.2 let durations over 2.147 s wrap to negative values",
        fix="discard the run; a newer kernel has this fixed",
    )


def _damaged(row: bytes, path: str | Path, number: int) -> InputError:
    return damaged(f"a damaged line: {_shown(row)}", f"{path}, line {number}")


def _shown(row: bytes) -> str:
    text = row.decode(errors="replace").strip()
    return repr(text if len(text) <= 120 else text[:117] + "...")


def _one_clock(columns: dict, of_stamps: bool, path: str | Path) -> dict:
    """Add `end_ns`, and bring start and end to the clock of the stamps or of the starts.

    The end is the line's time stamp, rounded to 1 µs and a probe late, hence never before start +
    net duration.
    """
    start_ns, stamp_ns = columns["start_ns"], columns["stamp_ns"]
    points = clock_points(columns)
    if points and of_stamps:
        start_ns = start_ns + clock_offsets(points, columns["cpu"], start_ns)
    elif points:
        stamp_ns = stamp_ns - clock_offsets(points, columns["cpu"], start_ns)
    elif of_stamps and len(start_ns):
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
