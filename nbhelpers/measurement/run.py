"""One run: started at the barrier, timed, reaped, and recorded as a row of the runs table."""

import itertools
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..machine import run_groups
from ..outcomes import OUTCOME, REPORTS, as_label
from ..workloads import Workload
from ..workloads.mpi import check_same_mpi
from ..workloads.reader import Reader
from ._orphans import as_subreaper, cleaned_up_on_sigterm
from ._output import Excluded, NoRegion, NotReported, parse_line, parse_series, shorten
from ._process import Child
from ._regions import Times
from ._reports import Sources, find_reports, snapshot, tables_and_series
from .attachment import Attachment
from .table import known_columns

LEFT = "left_processes"
_counter = itertools.count()
_CLOCKS_AGREE_NS = 1_000_000
_TIMES = ("seconds", "region_seconds", "wall_seconds", "start_ns", "end_ns")
_OPEN_TO_ATTACHMENTS = {"status", "message"}


def run_once(
    workload: Workload,
    attachments: Sequence[Attachment] = (),
    run: int = 0,
    lead_ms: float = 5.0,
    labels: Mapping[str, object] | None = None,
    group: str | None = None,
) -> dict:
    """Run a workload one time and return a row of the runs table.

    CONTRIBUTING.md describes the protocol ("How a run goes"), data/README.md the columns.

    A run that fails is a row as well: `status` and `message` describe the failure, and it has no
    times. No process of it is alive when this returns or raises. If this process is killed, the
    guardian of its campaign ends its control group; that of a single run ends at the next start of
    any campaign.

    Parameters
    ----------
    workload
        What to run.
    attachments
        Accompany the run; they are not closed here.
    run
        Number of the row.
    lead_ms
        Time between the writing of the start time and the start itself.
    labels
        Further columns that are known before the run: cell, round, noise.
    group
        Folder of a control group for it, or ""; None: it makes one, where it can.

    Returns
    -------
    dict
        A row of the runs table: column to value; times in the unit of the column's name.

    Raises
    ------
    RunError
        The program, or the launcher, does not exist.
    InputError
        An MPI program is linked with another MPI than its launcher's.
    """
    began_ns = time.monotonic_ns()
    row: dict[str, Any] = {
        "run": run,
        "workload": workload.name,
        "model": workload.model,
        "config": workload.config,
        "noise": "none",
        **(labels or {}),
        **dict.fromkeys(_TIMES),
        "status": "ok",
        "message": "",
        "t0_ns": None,
        "began_unix_s": time.time(),
    }
    if workload.reported:
        row[REPORTS] = as_label(workload.reported)
    if workload.outcome != "seconds":
        row[OUTCOME] = workload.outcome
    if workload.region.kind == "mpi":
        check_same_mpi(workload.command)
    with cleaned_up_on_sigterm(), as_subreaper(), ExitStack() as stack:
        for attachment in attachments:
            attachment.before(workload)
        before = snapshot(".", workload.reader)
        if group is None:
            group = stack.enter_context(run_groups.group(f"run-{next(_counter)}"))
        child = Child(workload, attachments, group)
        stack.callback(child.close)
        try:
            if not child.await_barrier(workload.timeout_s):
                raise _failed_start(child, workload)
            in_time = _awaited(child, workload, attachments, lead_ms, row)
            if not in_time:
                raise Excluded(_late(workload, "from its start"), "timeout")
            row |= _outcome(child, workload, row["t0_ns"], before)
        except Excluded as excluded:
            printed = shorten(child.errors.text) or shorten(child.output.text)
            row["status"] = excluded.status
            row["message"] = f"{excluded}: {printed or 'it printed nothing'}"
        if child.left:
            count = row[LEFT] = len(child.left)
            said = f"left {count} process(es) running, killed: {shorten(', '.join(child.left))}"
            row["message"] = f"{row['message']}; {said}" if row["message"] else said
        if row["t0_ns"] is not None:
            stack.close()  # what is read now, is read when nothing of the run lives
            _collect(attachments, row)
    row["elapsed_seconds"] = (time.monotonic_ns() - began_ns) * 1e-9
    return row


def _awaited(
    child: Child, workload: Workload, attachments: Sequence[Attachment], lead_ms: float, row: dict
) -> bool:
    """From the barrier to the end, with the attachments; whether the program ended in time."""
    for attachment in attachments:
        attachment.armed(child.pid)
    if attachments:
        child.follow()
    # a process that died meanwhile shows at its end
    t0_ns = row["t0_ns"] = time.monotonic_ns() + int(lead_ms * 1e6)
    child.watch.release(t0_ns)
    sees_begin = workload.region.begins_at_start
    following = [one for one in attachments if one.follows_region and not sees_begin]
    for attachment in attachments:
        if attachment not in following:
            attachment.released(t0_ns)
    child.note_children()
    in_time = child.await_end(workload.timeout_s + lead_ms / 1e3, following)
    if in_time:
        for attachment in reversed(attachments):
            attachment.ended(child.pid)
        child.reap()
    else:
        child.kill()
    for attachment in attachments:
        attachment.printed(child.output.text, child.errors.text)
    assert child.end_ns is not None  # it has ended, by itself or killed
    row["wall_seconds"] = (child.end_ns - t0_ns) / 1e9
    printed = child.output
    row |= {"output_bytes": printed.size, "output_lines": printed.lines}
    row |= {"output_digest": printed.digest} | _usage(child)
    return in_time


def _collect(attachments: Sequence[Attachment], row: dict) -> None:
    for attachment in reversed(attachments):
        columns = attachment.after(row) or {}
        taken = (columns.keys() & row.keys()) - _OPEN_TO_ATTACHMENTS
        if taken:
            raise InputError(
                f"{type(attachment).__name__} returns columns that the run has already:"
                f" {', '.join(sorted(taken))}"
            )
        row |= {
            key: value.item() if isinstance(value, np.generic) else value
            for key, value in columns.items()
        }


def _failed_start(child: Child, workload: Workload) -> Excluded:
    """Why a process never came to the barrier; it is dead afterwards."""
    if child.end_ns is None:
        child.kill()
        return Excluded(_late(workload, "to be ready to start"), "timeout")
    child.reap()
    status = _exit_status(child.wait_status)
    if status != "ok":
        return Excluded("it ended before it was ready to start", status)
    status = "no region" if workload.region.armed else "unreadable output"
    other = {"main": 'use start="exec"'}.get(workload.start, "the launcher is broken: make env")
    fix = _NEVER_WAITED.get(workload.region.kind, other)
    return Excluded(f"it did not wait for the common start; {fix}", status)


_NEVER_WAITED = {
    "marks": "does it call nb_region_begin()? Otherwise pass region=…",
    "symbols": (
        "it never called noisebook_begin(): is the symbol declared weak, and the program"
        " dynamically linked?"
    ),
    "mpi": (
        "no rank called MPI_Init here: is it an MPI program, dynamically linked, started by mpirun?"
    ),
}


def _late(workload: Workload, what: str) -> str:
    return f"it took longer than {workload.timeout_s:g} s {what} and was killed"


def _exit_status(wait_status: int) -> str:
    code = os.waitstatus_to_exitcode(wait_status)
    if code < 0:
        return f"signal {-code}"
    return f"exit {code}" if code else "ok"


def _outcome(child: Child, workload: Workload, t0_ns: int, before: dict) -> dict:
    """Times and reports of a process that ended by itself: of the protocol line of our programs,
    and of the reports of any other.
    """
    status, reader = _exit_status(child.wait_status), workload.reader or Reader(workload.name)
    sources = Sources(Path(child.folder or "."), before, child.output.text, child.errors.text)
    try:
        printed = sources.text(reader, None)
        # our MPI programs, which have no reader, wait by the symbols: launchers close pipes
        kind = workload.region.kind
        ours = kind == "marks" or (kind == "symbols" and workload.reader is None)
        line = (ours and parse_line(child.output.text)) or {}
        _check_verdict(status, line, reader, printed)
        reports = find_reports(reader, sources, {"seconds", workload.outcome})
    except NotReported as error:
        raise NotReported(str(error), "" if status == "ok" else status) from None
    assert child.end_ns is not None  # it has ended
    marked = _marked_times(line, child.end_ns)
    if workload.region.kind == "marks" and marked is None:
        lacking = "no line 'noisebook: NAME seconds=… start_ns=… end_ns=…' in its output"
        raise NotReported(lacking)
    columns, series = tables_and_series(reader, printed)
    reserved = known_columns("every_run").keys() | _USAGE.keys()
    columns = {
        f"program_{key}" if key in reserved else key: value
        for key, value in (line | columns | reports).items()
        if key not in ("seconds", "start_ns", "end_ns")
    }
    times = _region_times(child, marked, t0_ns)
    seconds = reports.get("seconds") or (marked and line["seconds"]) or times["region_seconds"]
    series |= _printed_series(child.output.text, line, series)
    return columns | times | {"seconds": float(seconds)} | ({"series": series} if series else {})


def _region_times(child: Child, marked: Times | None, t0_ns: int) -> dict:
    """Where the timed region began and ended: marked, observed, or the whole process."""
    assert child.end_ns is not None  # it has ended
    seen = marked or child.watch.times() or Times(t0_ns, child.end_ns)
    end_ns = min(seen.end_ns, child.end_ns)
    if (
        not t0_ns - _CLOCKS_AGREE_NS <= seen.start_ns < end_ns
        or seen.end_ns > child.end_ns + _CLOCKS_AGREE_NS
    ):
        raise NoRegion(
            "it lies outside of the run; a time that a program gives must be CLOCK_MONOTONIC in ns"
        )
    columns: dict[str, float] = {
        "start_ns": seen.start_ns,
        "end_ns": end_ns,
        "region_seconds": (end_ns - seen.start_ns) / 1e9,
    }
    if child.watch.region.kind not in ("process", "marks"):
        columns["paused_seconds"] = seen.paused_ns * 1e-9
    return columns


def _check_verdict(status: str, line: dict, reader: Reader, printed: str) -> None:
    """Whether the program ended well, and its result is right."""
    verified = line.get("verified") != "no"
    failed = reader.failed and re.search(reader.failed, printed, re.MULTILINE)
    if not status.startswith("signal") and (failed or not verified):
        raise Excluded("the program found its result wrong", "unverified")
    if status != "ok":
        raise Excluded(_FAILED.get(status, "the program failed"), status)
    if reader.passed and not re.search(reader.passed, printed, re.MULTILINE):
        unsaid = "the output does not confirm that the result is right"
        raise Excluded(f"{unsaid} (pattern {reader.passed!r})", "unverified")


_FAILED = {
    "exit 126": "the program failed; a shell reports 126 for a file that it cannot execute",
    "exit 127": "the program failed; a shell reports 127 for a command that it cannot find",
}


def _printed_series(output: str, line: dict, found: dict) -> dict:
    """The series that it printed; with those that were found there must be as many values as the
    program reports.
    """
    series = parse_series(output)
    wanted = line.get("series_values")
    count = sum(len(one["values"]) for one in (found | series).values())
    if wanted is not None and wanted != count:
        raise NotReported(
            f"{count} of the {wanted} values of its series were found; fewer repetitions are needed"
            " if it printed too much"
        )
    return series


def _marked_times(line: dict, ended_ns: int) -> Times | None:
    """The times of the protocol line, if they are sound."""
    seconds, start_ns, end_ns = (line.get(key) for key in ("seconds", "start_ns", "end_ns"))
    sound = isinstance(seconds, (int, float)) and seconds > 0
    if not sound or not (isinstance(start_ns, int) and isinstance(end_ns, int)):
        return None
    return Times(start_ns, end_ns) if 0 < start_ns < end_ns <= ended_ns else None


_USAGE = {
    "user_s": "ru_utime",
    "system_s": "ru_stime",
    "minor_faults": "ru_minflt",
    "major_faults": "ru_majflt",
    "voluntary_switches": "ru_nvcsw",
    "involuntary_switches": "ru_nivcsw",
}


def _usage(child: Child) -> dict:
    """Resource usage of the process and of the children that it waited for, from its very start."""
    used = child.usage
    assert used is not None  # it was reaped
    # exec() keeps the peak of the process that called it, here of the harness: a smaller peak of
    # the program is not visible. The kernel counts pages per CPU and adds them up now and then, so
    # two readings of one peak differ: hence the margin.
    peak_kb = used.ru_maxrss if used.ru_maxrss > 1.05 * child.harness_peak_kb + 1024 else None
    columns = {column: getattr(used, name) for column, name in _USAGE.items()}
    return columns | {"max_rss_kb": peak_kb}
