"""One run: started at the barrier, timed, reaped, and recorded as a row of the runs table."""

import itertools
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..outcomes import OUTCOME, REPORTS, as_label
from ..workloads import Workload
from ..workloads.reader import Reader
from ..workloads.same_mpi import check_same_mpi
from ._orphans import as_subreaper, cleaned_up_on_sigterm
from ._output import count_values, parse_line, parse_series, shorten
from ._process import Child
from ._regions import NoRegion, Times
from ._reports import NotReported, Sources, find_reports, snapshot, tables_and_series
from .attachment import Attachment

LEFT = "left_processes"
_counter = itertools.count()
_CLOCKS_AGREE_NS = 1_000_000
_OPEN_TO_ATTACHMENTS = {"status", "message"}


def run_once(
    workload: Workload,
    attachments: Sequence[Attachment] = (),
    run: int = 0,
    lead_ms: float = 5.0,
    labels: Mapping[str, object] | None = None,
    mark: str | None = None,
) -> dict:
    """Run a workload one time and return a row of the runs table.

    CONTRIBUTING.md describes the protocol ("How a run goes") and the columns ("Tables").

    A run that fails is a row as well: `status` and `message` describe the failure, and it has no
    times. No process of it is alive when this returns or raises. If this process is killed, the
    guardian of its campaign ends them; those of a single run end at the next start of any campaign.

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
    mark
        Value of NOISEBOOK_RUN in the environment of the run, by which its descendants are found
        again.

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
    began_ns, began_unix_s = time.monotonic_ns(), time.time()
    row: dict[str, Any] = {
        "run": run,
        "workload": workload.name,
        "model": workload.model,
        "config": workload.config,
        "noise": "none",
        **(labels or {}),
        "seconds": None,
        "region_seconds": None,
        "wall_seconds": None,
        "start_ns": None,
        "end_ns": None,
        "status": "ok",
        "message": "",
        "t0_ns": None,
        "began_unix_s": began_unix_s,
        **_outcome_columns(workload),
    }
    if workload.region.kind == "mpi":
        check_same_mpi(workload.command)
    with cleaned_up_on_sigterm(), as_subreaper():
        for attachment in attachments:
            attachment.before(workload)
        before = snapshot(".", workload.reader)
        mark = mark or f"{os.getpid()}.{next(_counter)}.{began_ns}"
        with Child(workload, mark, *_additions(attachments)) as child:
            armed = _await(child, workload, attachments, lead_ms, row, before)
        if armed:
            _collect(attachments, row)
    row["elapsed_seconds"] = (time.monotonic_ns() - began_ns) * 1e-9
    return row


def _additions(attachments: Sequence[Attachment]) -> tuple[dict[str, str], list[str]]:
    """Variables and preload libraries that the attachments give the run."""
    variables: dict[str, str] = {}
    for attachment in attachments:
        variables |= attachment.variables
    return variables, [name for attachment in attachments for name in attachment.libraries]


def _outcome_columns(workload: Workload) -> dict:
    """The columns of reports, and of an outcome that is not the time."""
    columns = {REPORTS: as_label(workload.reported)} if workload.reported else {}
    return columns if workload.outcome == "seconds" else columns | {OUTCOME: workload.outcome}


def _await(
    child: Child,
    workload: Workload,
    attachments: Sequence[Attachment],
    lead_ms: float,
    row: dict,
    before: dict,
) -> bool:
    """From the barrier to the end; fills the row; returns whether the attachments were armed."""
    if not child.await_barrier(workload.timeout_s):
        _fail_start(row, child, workload)
        return False
    for attachment in attachments:
        attachment.armed(child.pid)
    if attachments:
        child.group.follow(child.pid)
    t0_ns = row["t0_ns"] = child.release(int(lead_ms * 1e6))
    in_time = _await_end(child, workload, attachments, lead_ms, t0_ns)
    left: list[str] = []
    if in_time:
        left = child.clear_leftovers()
    else:
        child.kill()
    assert child.end_ns is not None  # it has ended, by itself or killed
    for attachment in attachments:
        attachment.printed(child.output.text, child.errors.text)
    row["wall_seconds"] = (child.end_ns - t0_ns) / 1e9
    row.update(_usage(child))
    if in_time:
        row.update(_outcome(child, child.end_ns, workload, t0_ns, before))
    else:
        row.update(_failure(child, "timeout", _late(workload, "from its start")))
    _say_what_was_left(row, left)
    return True


def _say_what_was_left(row: dict, names: Sequence[str]) -> None:
    """A run whose processes did not all end by themselves says so, whatever its status is."""
    if names:
        said = f"left {len(names)} process(es) running, killed: {shorten(', '.join(names))}"
        row["message"] = f"{row['message']}; {said}" if row["message"] else said
        row[LEFT] = len(names)


def _await_end(
    child: Child,
    workload: Workload,
    attachments: Sequence[Attachment],
    lead_ms: float,
    t0_ns: int,
) -> bool:
    """Notify the attachments of the start and the end; whether the program ended in time."""
    following = [
        attachment
        for attachment in attachments
        if attachment.follows_region and not workload.region.begins_at_start
    ]

    def release(chosen: Sequence[Attachment], begin_ns: int) -> None:
        for attachment in chosen:
            attachment.released(begin_ns)

    def end() -> None:
        for attachment in reversed(attachments):
            attachment.ended(child.pid)

    release([attachment for attachment in attachments if attachment not in following], t0_ns)
    child.note_children()
    return child.await_end(
        workload.timeout_s + lead_ms / 1e3,
        end,
        (lambda begin_ns: release(following, begin_ns)) if following else None,
    )


def _collect(attachments: Sequence[Attachment], row: dict) -> None:
    for attachment in reversed(attachments):
        columns = attachment.after(row) or {}
        taken = (columns.keys() & row.keys()) - _OPEN_TO_ATTACHMENTS
        if taken:
            raise InputError(
                f"{type(attachment).__name__} returns columns that the run has already:"
                f" {', '.join(sorted(taken))}"
            )
        row.update(columns)


def _fail_start(row: dict, child: Child, workload: Workload) -> None:
    """A process that never came to the barrier; it is dead afterwards."""
    left: list[str] = []
    if child.end_ns is not None:
        child.await_end(0)
        left = child.clear_leftovers()
    row.update(_failed_start(child, workload))
    _say_what_was_left(row, left)


def _failed_start(child: Child, workload: Workload) -> dict:
    """Status and message of such a process."""
    if child.end_ns is not None:
        status = _exit_status(child.wait_status)
        if status != "ok":
            return _failure(child, status, "it ended before it was ready to start")
        return _failure(
            child,
            "no region" if workload.region.armed else "unreadable output",
            _never_waited(workload),
        )
    child.kill()
    return _failure(child, "timeout", _late(workload, "to be ready to start"))


def _never_waited(workload: Workload) -> str:
    kind = workload.region.kind
    fix = {
        "marks": "does it call nb_region_begin()? Otherwise pass region=…",
        "symbols": (
            "it never called noisebook_begin(): is the symbol declared weak, and the program"
            " dynamically linked?"
        ),
        "mpi": (
            "no rank called MPI_Init here: is it an MPI program, dynamically linked, started by"
            " mpirun?"
        ),
    }
    other = {"main": 'use start="exec"'}.get(workload.start, "the launcher is broken: make env")
    return f"it did not wait for the common start; {fix.get(kind, other)}"


def _late(workload: Workload, what: str) -> str:
    return f"it took longer than {workload.timeout_s:g} s {what} and was killed"


def _exit_status(wait_status: int) -> str:
    code = os.waitstatus_to_exitcode(wait_status)
    if code == 0:
        return "ok"
    return f"exit {code}" if code > 0 else f"signal {-code}"


def _failure(child: Child, status: str, reason: str) -> dict:
    printed = shorten(child.errors.text) or shorten(child.output.text)
    return {"status": status, "message": f"{reason}: {printed}" if printed else reason}


def _outcome(child: Child, ended_ns: int, workload: Workload, t0_ns: int, before: dict) -> dict:
    """Status and times of a process that ended by itself, with what it reports."""
    columns = _reported(child, ended_ns, workload, before)
    if columns.get("status", "ok") != "ok":
        return columns
    try:
        times = _region_times(child, ended_ns, columns.pop("marked", None), t0_ns)
    except NoRegion as reason:
        return _failure(child, "no region", f"its timed region is not known: {reason}")
    return columns | times | {"seconds": columns.get("seconds") or times["region_seconds"]}


def _region_times(child: Child, ended_ns: int, marked: Times | None, t0_ns: int) -> dict:
    """Where the timed region began and ended: marked, observed, or the whole process."""
    seen = marked or child.watch.times() or Times(t0_ns, ended_ns)
    end_ns = min(seen.end_ns, ended_ns)
    if (
        not t0_ns - _CLOCKS_AGREE_NS <= seen.start_ns < end_ns
        or seen.end_ns > ended_ns + _CLOCKS_AGREE_NS
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
    if child.watch.region.kind == "roi":
        columns["region_slack_us"] = seen.slack_ns / 1e3
    return columns


def _reported(child: Child, ended_ns: int, workload: Workload, before: dict) -> dict:
    """Columns and series: of the protocol line of our programs, and of the reports of any other."""
    status = _exit_status(child.wait_status)
    reader = workload.reader or Reader(workload.name)
    sources = Sources(Path(child.folder or "."), before, child.output.text, child.errors.text)
    try:
        printed = sources.text(reader, None)
    except NotReported as error:
        return _failure(child, "unreadable output" if status == "ok" else status, str(error))
    line = parse_line(child.output.text) if _prints_line(workload) else None
    if failure := _reported_failure(child, status, line, reader, printed):
        return failure
    times = _marked_times(line or {}, ended_ns)
    if workload.region.kind == "marks" and times is None:
        return _failure(
            child,
            "unreadable output",
            "no line 'noisebook: NAME seconds=… start_ns=… end_ns=…' in its output",
        )
    try:
        reports = find_reports(reader, sources, {"seconds", workload.outcome})
    except NotReported as error:
        return {"status": "unreadable output", "message": str(error)}
    columns, series = tables_and_series(reader, printed)
    columns = _program_columns((line or {}) | columns | reports) | (times or {})
    if "seconds" in reports:
        columns["seconds"] = float(reports["seconds"])
    return _with_series(child, line, columns, series)


def _prints_line(workload: Workload) -> bool:
    """Whether it is one of ours; our MPI programs wait by the symbols, as launchers close pipes."""
    kind = workload.region.kind
    return kind == "marks" or (kind == "symbols" and workload.reader is None)


def _reported_failure(
    child: Child, status: str, line: dict | None, reader: Reader, printed: str
) -> dict:
    """Status and message of a run that failed, or whose result is not right; empty if it is."""
    if not status.startswith("signal") and _found_wrong(line, reader, printed):
        return _failure(child, "unverified", "the program found its result wrong")
    if status != "ok":
        return _failure(child, status, _FAILED.get(status, "the program failed"))
    if reader.passed and not re.search(reader.passed, printed, re.MULTILINE):
        return _failure(
            child,
            "unverified",
            f"the output does not confirm that the result is right (pattern {reader.passed!r})",
        )
    return {}


def _found_wrong(line: dict | None, reader: Reader, printed: str) -> bool:
    return bool(
        line
        and line.get("verified") == "no"
        or reader.failed
        and re.search(reader.failed, printed, re.MULTILINE)
    )


_FAILED = {
    "exit 126": "the program failed; a shell reports 126 for a file that it cannot execute",
    "exit 127": "the program failed; a shell reports 127 for a command that it cannot find",
}


def _with_series(child: Child, line: dict | None, columns: dict, found: dict) -> dict:
    """The columns and the series, which must be as long as the program reports."""
    try:
        series = found | parse_series(child.output.text)
    except ValueError as error:
        return _failure(child, "unreadable output", str(error))
    wanted, count = (line or {}).get("series_values"), count_values(series)
    if wanted is not None and wanted != count:
        return _failure(
            child,
            "unreadable output",
            f"{count} of the {wanted} values of its series were found; fewer repetitions are needed"
            " if it printed too much",
        )
    return columns | {"series": series} if series else columns


def _marked_times(line: dict, ended_ns: int) -> dict | None:
    """The times of the protocol line, if they are sound."""
    seconds, start_ns, end_ns = (line.get(key) for key in ("seconds", "start_ns", "end_ns"))
    if not (isinstance(seconds, (int, float)) and seconds > 0):
        return None
    if not (isinstance(start_ns, int) and isinstance(end_ns, int)):
        return None
    if not 0 < start_ns < end_ns <= ended_ns:
        return None
    return {"seconds": float(seconds), "marked": Times(start_ns, end_ns)}


def _program_columns(line: dict) -> dict:
    """The keys that the program reports; one that is the name of a column of every run gets the
    prefix `program_`.
    """
    return {
        f"program_{key}" if key in _RESERVED else key: value
        for key, value in line.items()
        if key not in ("seconds", "start_ns", "end_ns")
    }


_RESERVED = {
    "outcome",
    "reports",
    "run",
    "cell",
    "round",
    "epoch",
    "workload",
    "model",
    "config",
    "noise",
    "region_seconds",
    "wall_seconds",
    "status",
    "message",
    "t0_ns",
    "began_unix_s",
    "elapsed_seconds",
    LEFT,
    "user_s",
    "system_s",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
}


def _usage(child: Child) -> dict:
    """Resource usage of the process and of the children that it waited for, from its very start."""
    used = child.usage
    assert used is not None  # it was reaped
    # exec() keeps the peak of the process that called it, here of the harness: a smaller peak of
    # the program is not visible. The kernel counts pages per CPU and adds them up now and then, so
    # two readings of one peak differ: hence the margin.
    peak_kb = used.ru_maxrss if used.ru_maxrss > 1.05 * child.harness_peak_kb + 1024 else None
    return {
        "user_s": used.ru_utime,
        "system_s": used.ru_stime,
        "max_rss_kb": peak_kb,
        "minor_faults": used.ru_minflt,
        "major_faults": used.ru_majflt,
        "voluntary_switches": used.ru_nvcsw,
        "involuntary_switches": used.ru_nivcsw,
    }
