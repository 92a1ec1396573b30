"""What a program in user space sees of noise: the detour loop `workloads/detours.c` and its
records.

Owns the loop's file format. It needs no privilege; it shows when and for how long, not what.
"""

import subprocess
import tempfile
from collections.abc import Collection
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InputError, LostEvents, RunError
from ..measurement import Attachment
from ..reading import in_child
from ..workloads import Workload, binary_folder, program_path
from ._files import damaged, header_integer, header_line, parse_header, read_trace, write_trace
from ._table import LARGEST_NS, clip_to_window, hardware_events

FORMAT = "noisebook detours 1"
_FILE = "detours.bin"
_DETOURS_A_SECOND = 20_000  # room for; the noisiest systems measured have some 2000
_MAGIC = b"nbdetour"
_HEADER = np.dtype(  # how the loop's files begin (workloads/detours.c)
    [
        ("magic", "S8"),
        ("version", "u4"),
        ("threads", "u4"),
        ("start_ns", "i8"),
        ("end_ns", "i8"),
        ("quantum_ns", "i8"),
        ("resolution_ns", "i8"),
        ("threshold_ns", "i8"),
    ]
)
_THREAD = np.dtype(
    [
        ("cpu", "i4"),
        ("finished", "i4"),
        ("count", "i8"),
        ("lost", "i8"),
        ("begin_ns", "i8"),
        ("end_ns", "i8"),
        ("undisturbed_ns", "i8"),
        ("samples", "i8"),
    ]
)
_DETOUR = np.dtype([("start_ns", "i8"), ("duration_ns", "i8")])


def record_detours(
    seconds: float,
    threshold_ns: int | None = None,
    fixed: str = "work",
) -> pd.DataFrame:
    """Record interruptions of a program in user space: detours.

    A loop on each CPU that this process may use reads the clock and records where two readings lie
    too far apart. It needs no privilege. It shows when and for how long something interrupted, but
    not what.

    Parameters
    ----------
    seconds
        Undisturbed time on each CPU; the loop takes this and the noise. With `fixed="time"`: how
        long it takes.
    threshold_ns
        Two readings further apart are a detour; None: ten times the length of a reading, at least
        200 ns, which excludes the jitter of the loop on slow clocks of virtual machines, too.
    fixed
        "work" or "time": which of the two is fixed.

    Returns
    -------
    One row a detour: `cpu`, `start_ns` (from the loop's start), `duration_ns`, `end_ns`. attrs:
    `resolution_ns` (length of a reading), `threshold_ns`, `overhead` (share of time lost to
    detours), `seconds` (a CPU), `cpus` (list), `clock` (tsc or monotonic).

    Raises
    ------
    RunError
        The program is not built, or failed.
    LostEvents
        More detours than the loop has room for.
    InputError
        `fixed` is neither "work" nor "time".

    Notes
    -----
    The "selfish detour" benchmark of Beckman et al. (Cluster 2006), with a fixed amount of work or
    a fixed time instead of a fixed number of detours. The length of a reading is the least of the
    medians of 64 blocks: neither a disturbed block nor an impossible step of a virtual machine's
    clock changes it.

    Examples
    --------
    >>> from nbhelpers import record_detours
    >>> detours = record_detours(seconds=0.05)
    >>> list(detours.columns), detours.attrs["overhead"] < 1
    (['cpu', 'start_ns', 'duration_ns', 'end_ns'], True)
    """
    if fixed not in ("work", "time"):
        raise InputError(
            f"fixed={fixed!r}", fix='choose fixed="work" (so long undisturbed) or fixed="time"'
        )
    capacity = int(min(max(1 << 18, _DETOURS_A_SECOND * seconds), 1 << 26))
    options = ["--capacity", str(capacity)]
    options += ["--threshold", str(int(threshold_ns))] if threshold_ns is not None else []
    content, words = _run_loop(seconds, fixed, options)
    header, threads, detours = _parse(content, "the detour loop")
    spent_ns = int((threads["end_ns"] - threads["begin_ns"]).sum())
    detours.attrs = {
        "resolution_ns": float(words["resolution_ns"]),
        "threshold_ns": int(header["threshold_ns"]),
        "overhead": float(detours["duration_ns"].sum() / max(spent_ns, 1)),
        "seconds": spent_ns * 1e-9 / max(len(threads), 1),
        "cpus": sorted(threads["cpu"].tolist()),
        "clock": words["clock"],
    }
    return detours


def _command(seconds: float, fixed: str, path: Path) -> list[str]:
    """The loop, which writes a file; without an option its work is fixed."""
    command = [str(binary_folder() / "detours"), "--seconds", repr(float(seconds))]
    return [*command, *(["--for", "time"] if fixed == "time" else []), "--out", str(path)]


def _run_loop(seconds: float, fixed: str, options: Collection[str]) -> tuple[bytes, dict[str, str]]:
    """The bytes that the loop wrote, and the words of the line that it printed."""
    with tempfile.TemporaryDirectory(prefix="noisebook-") as folder:
        path = Path(folder) / _FILE
        program_path(binary_folder() / "detours")  # or an error that says how to build it
        command = [*_command(seconds, fixed, path), *options]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=60 + 30 * seconds
            )
        except subprocess.TimeoutExpired as error:
            raise RunError(
                f"the loop did not end within {error.timeout:.0f} s",
                where=" ".join(command),
                why="the machine gave it no CPU",
            ) from None
        if done.returncode:
            raise RunError(
                "the detour loop failed",
                where=" ".join(command),
                why=(done.stderr or done.stdout).strip()[-300:],
            )
        return path.read_bytes(), dict(
            word.split("=", 1) for word in done.stdout.splitlines()[-1].split() if "=" in word
        )


def detour_workload(seconds: float, folder: str | Path, fixed: str = "work") -> Workload:
    """Describe the detour loop as a workload of a campaign, for users without a kernel tracer.

    Parameters
    ----------
    seconds
        Undisturbed time a CPU, that is the length of an undisturbed run.
    folder
        Where `DetourTracer` of the same folder finds the detours of the loop.
    fixed
        "work", or "time": then `seconds` is how long the loop takes, whatever it loses.
    """
    path = Path(folder).absolute() / _FILE
    command = tuple(_command(seconds, fixed, path))
    return Workload("detours", "external", command, timeout_s=60 + 30 * seconds)


class DetourTracer(Attachment):
    """Saves the detours of each run, one file a run; for `detour_workload` of the same folder.

    Any other workload is refused, because from user space its noise cannot be seen. Adds the
    columns `trace_events`, `trace_lost` and `trace_bytes` (or with another prefix, where a trace is
    recorded in the same run).

    Parameters
    ----------
    folder
        The folder that `detour_workload` has.
    prefix
        Prefix of the names of the columns.
    """

    def __init__(self, folder: str | Path, prefix: str = "trace"):
        self.folder, self.prefix = Path(folder), prefix

    def __repr__(self) -> str:
        return f"DetourTracer({self.folder})"

    def before(self, workload: Workload) -> None:
        if str(self.folder.absolute() / _FILE) not in workload.command:
            raise InputError(
                f"'{workload.name}' cannot be traced without the kernel's tracers",
                why="only the detour loop sees noise from user space",
                fix="run Tracer.stand_in(workload) in its place, or run as root",
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / _FILE).unlink(missing_ok=True)

    def after(self, run: dict) -> dict:
        """Move the loop's file to `run-000123.detours.gz`."""
        path = self.folder / _FILE
        if not path.exists():
            return self._columns(0, 0, 0)
        content = path.read_bytes()
        header = np.frombuffer(content, _HEADER, 1)[0]
        threads = np.frombuffer(content, _THREAD, int(header["threads"]), _HEADER.itemsize)
        saved = write_trace(
            self.folder / f"run-{run['run']:06d}.detours.gz",
            header_line({"format": FORMAT, "run": int(run["run"])}) + content,
        )
        path.unlink()
        lost = int(threads["lost"].sum())
        columns = self._columns(int(threads["count"].sum()) + lost, lost, saved.stat().st_size)
        failed = {
            "status": "lost events",
            "message": (
                f"{lost} detours found no room; give the loop a higher threshold or more capacity"
            ),
        }
        return columns | (failed if lost and run.get("status") == "ok" else {})

    def _columns(self, *counts: int) -> dict[str, int]:
        return {
            f"{self.prefix}_{what}": count
            for what, count in zip(("events", "lost", "bytes"), counts)
        }

    def close(self) -> None:
        """Remove what a run of the loop that was not traced has left."""
        (self.folder / _FILE).unlink(missing_ok=True)


def read_detours_run(path: str | Path) -> pd.DataFrame:
    """Read the detours of a run as noise events.

    A detour may be anything that took the CPU. The loop is the workload, so each interrupted the
    workload.

    Parameters
    ----------
    path
        A file that `DetourTracer` wrote.

    Returns
    -------
    The events table of data/README.md, of kind hardware, source detour, policy SCHED_OTHER. attrs
    also have `watched`: when each CPU's loop began and ended, cpu -> (ns, ns).

    Raises
    ------
    LostEvents
        There were more detours than room for them.
    InputError
        A damaged file, or one of another kind.
    """
    content = read_trace(path)
    return in_child(partial(_detours_run, content, path), path, "trace", len(content))


def _detours_run(content: bytes, path: str | Path) -> pd.DataFrame:
    line, _, body = content.partition(b"\n")
    header = parse_header(line, FORMAT, path)
    loop, threads, detours = _parse(body, path)
    run = header_integer(header, "run", path)
    events = hardware_events(detours, "detour", "SCHED_OTHER", 0, run, "detours")
    events.attrs["cpus"] = sorted(set(threads["cpu"].tolist()))
    events.attrs["watched"] = {
        int(thread["cpu"]): (int(thread["begin_ns"]), int(thread["end_ns"])) for thread in threads
    }
    return clip_to_window(events, 0, int(loop["end_ns"] - loop["start_ns"]))


def _parse(content: bytes, path: str | Path) -> tuple[np.void, np.ndarray, pd.DataFrame]:
    """Header, threads and detours of a file of the loop."""
    if len(content) < _HEADER.itemsize or content[:8] != _MAGIC:
        raise damaged("not a file of the detour loop", path)
    header = np.frombuffer(content, _HEADER, 1)[0]
    begin = _HEADER.itemsize + int(header["threads"]) * _THREAD.itemsize
    if (
        header["version"] != 1
        or len(content) < begin
        or not 0 <= header["start_ns"] < header["end_ns"] < LARGEST_NS
    ):
        raise damaged("a header that makes no sense", path)
    threads = np.frombuffer(content, _THREAD, int(header["threads"]), _HEADER.itemsize)
    counts = [int(count) for count in threads["count"]]
    if any(count < 0 for count in counts) or sum(counts) * _DETOUR.itemsize != len(content) - begin:
        raise damaged(
            f"{len(content) - begin} bytes of detours, the threads claim {sum(counts)} detours",
            path,
        )
    if lost := sum(int(value) for value in threads["lost"]):
        raise LostEvents(
            f"{lost} detours found no room",
            where=path,
            why="the noise would seem smaller than it was",
            fix="give a higher threshold_ns",
        )
    detours = np.frombuffer(content, _DETOUR, -1, begin)
    _check_detours(detours, threads, int(header["end_ns"] - header["start_ns"]), path)
    return header, threads, _as_table(detours, threads)


def _check_detours(
    detours: np.ndarray, threads: np.ndarray, length_ns: int, path: str | Path
) -> None:
    if (
        (threads["cpu"] < 0).any()
        or (threads["samples"] < 0).any()
        or (threads["begin_ns"] < 0).any()
        or (threads["end_ns"] > length_ns).any()
    ):
        raise damaged("a thread that makes no sense", path)
    if (
        (detours["start_ns"] < 0)
        | (detours["duration_ns"] <= 0)
        | (detours["start_ns"] > length_ns - detours["duration_ns"].clip(0, length_ns))
        | (detours["duration_ns"] > length_ns)
    ).any():
        raise damaged("a detour outside of the timed region", path)


def _as_table(detours: np.ndarray, threads: np.ndarray) -> pd.DataFrame:
    table = pd.DataFrame({"cpu": np.repeat(threads["cpu"].astype(np.int64), threads["count"])})
    for name in ("start_ns", "duration_ns"):
        table[name] = detours[name].astype(np.int64)
    return table.assign(end_ns=table["start_ns"] + table["duration_ns"])
