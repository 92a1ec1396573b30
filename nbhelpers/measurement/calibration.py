"""Calibration: the problem size for which a program runs as long as wanted on this machine.

Owns `calibration.json`, the file in which a campaign caches the size with its data.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..errors import InputError
from ..files import put_aside, write_json
from ..machine import measuring
from ..workloads import Workload
from ..workloads.sizes import SIZE_MODELS, size_model
from ._identity import command_identity
from ._problem_size import find_size, undisturbed_seconds
from ._store import Store
from .cache import cached_value, read_cached

DEFAULT_TARGET_S = 0.4
DEFAULT_EXPONENT = 2.0
# share by which a run may be shorter than the target, or the runs of a campaign may be off
TOLERANCE = 0.15
# times the target: a run that takes less may be disturbed by others, and its size still be right
SLOWEST = 2.0
FRESH_S = 300  # a size found less than this ago is not checked again


def calibrate(
    make: str | Callable[..., Workload],
    size: int | None = None,
    target_seconds: float | None = None,
    exponent: float | None = None,
    *,
    threads: int = 0,
    file: str | Path | None = None,
    recorded_only: bool = False,
    runs: int = 3,
    tolerance: float = 0.05,
    **options: object,
) -> Workload:
    """Return a program in the problem size whose undisturbed run takes `target_seconds` here.

    Other load on the machine only makes a run longer, for a moment or for seconds. Therefore the
    time that threads waited for a CPU does not count, where the program reports it. A quick search
    by the fastest of a few runs is followed by a check: eight runs of the size found, spread over
    two seconds, of which the lower quartile counts. Where it is off by more than 8 %, the size is
    corrected and checked again, at most three times in all.

    Parameters
    ----------
    make
        Name of one of our programs ("nbody", "stream", "minife", "schedbench", "syncbench"), or a
        function that returns the workload of a size.
    size
        Where the search begins; None: known for our programs.
    target_seconds
        Length of the timed region. None: with a file the size cached there, whatever its target;
        without one 0.4 s.
    exponent
        Run time grows as size**exponent; None: known for our programs, otherwise 2.
    threads
        Passed to `make` as the keyword `threads`; 0: not passed, the program takes one a CPU.
    file
        Caches the size as JSON, usually ``calibration.json`` in the folder of the runs.
    recorded_only
        True: never measure, the file must hold the size.
    runs
        Runs in each step of the quick search.
    tolerance
        Relative; the quick search stops within it.
    options
        Passed to `make`, for example compiler="clang"; they are no part of the cached size.

    Returns
    -------
    Workload
        Of the size found.

    Raises
    ------
    InputError
        Target, exponent, size or runs is not positive; the program refuses the first size;
        `recorded_only` is True and the file is missing or was calibrated for another target or
        number of threads.
    RunError
        A run fails.

    Notes
    -----
    The file is put aside, and the size found anew, when it is of another target or number of
    threads. Before anything is measured with a size, its run time is checked: it is found anew if a
    run takes less than 0.85 of the target (it was found in a slow moment) or more than twice the
    target. A size of which there are runs stays; where they are off by more than 15 %, the file's
    `notes` and the page hold what they take.

    Examples
    --------
    >>> from nbhelpers.workloads import program
    >>> def sleep(milliseconds):
    ...     return program(["sleep", f"{milliseconds / 1000}"])
    >>> found = calibrate(sleep, size=5, target_seconds=0.02, exponent=1)
    >>> 0.01 < float(found.command[1]) < 0.03
    True
    """
    problem = _problem(make, size, exponent, threads, options)
    if file is not None:
        return _cached_workload(problem, Path(file), target_seconds, recorded_only, runs, tolerance)
    if recorded_only:
        raise InputError("recorded_only=True needs the file that caches the size", fix="add file=")
    target = DEFAULT_TARGET_S if target_seconds is None else target_seconds
    return problem.workload(problem.find_size(target, runs, tolerance))


@dataclass(frozen=True)
class _Problem:
    """A program whose size is to be found."""

    make: Callable[..., Workload]
    size: int | None
    exponent: float
    threads: int

    def workload(self, size: int) -> Workload:
        if self.threads:
            return self.make(size, threads=self.threads)
        return self.make(size)

    def find_size(self, target_seconds: float, runs: int, tolerance: float) -> int:
        if self.size is None:
            raise InputError("the size at which the search begins is missing", fix="add size=")
        if min(target_seconds, self.exponent, self.size, runs) <= 0:
            raise InputError(
                f"target_seconds={target_seconds}, exponent={self.exponent}, size={self.size},"
                f" runs={runs}: all must be above 0"
            )
        return find_size(self.workload, self.size, target_seconds, self.exponent, runs, tolerance)


def _problem(
    make: str | Callable[..., Workload],
    size: int | None,
    exponent: float | None,
    threads: int,
    options: dict,
) -> _Problem:
    """What was passed to `calibrate`, completed by what is known of our programs."""
    if isinstance(make, str):
        make = size_model(make).make
    known = next((model for model in SIZE_MODELS.values() if model.make is make), None)
    if known is not None:
        size = known.start if size is None else size
        exponent = known.exponent if exponent is None else exponent
    return _Problem(
        partial(make, **options), size, DEFAULT_EXPONENT if exponent is None else exponent, threads
    )


def _cached_workload(
    problem: _Problem,
    path: Path,
    target_seconds: float | None,
    recorded_only: bool,
    runs: int,
    tolerance: float,
) -> Workload:
    """The workload of the size in a file, which is found first where it is missing or wrong."""
    may_measure = not recorded_only and target_seconds is not None
    cached = read_cached(path, "problem size", not may_measure)
    mismatch = _mismatch(cached, target_seconds, problem.threads) if path.exists() else ""
    if mismatch and not may_measure:
        raise InputError(
            f"not the problem size that is needed: {mismatch}",
            where=path,
            why="runs of different sizes must not be mixed",
            fix=(
                "use the values it was calibrated for, or measure them here: make paper"
                " PROFILE=quick"
            ),
        )
    if may_measure and cached and not mismatch:
        mismatch, cached = _checked(problem.workload(cached["size"]), cached, path)
    notes = [_dated(put_aside(path, mismatch))] if mismatch else []

    def find() -> dict:
        assert target_seconds is not None  # only then it may be measured
        size = problem.find_size(target_seconds, runs, tolerance)
        found = {
            "size": size,
            "target_seconds": target_seconds,
            "threads": problem.threads,
            "command": command_identity(problem.workload(size)),
        }
        return {**found, "notes": notes} if notes else found

    cached = cached_value(path, find, "problem size", not may_measure)
    recorded = _Problem(problem.make, problem.size, problem.exponent, cached["threads"])
    return recorded.workload(cached["size"])


def _mismatch(cached: dict, target_seconds: float | None, threads: int) -> str:
    """Why a file does not hold the size for a target and number of threads; empty if it does."""
    if not {"size", "target_seconds", "threads"} <= set(cached):
        return "size, target_seconds and threads are expected in a calibration"
    if target_seconds is None:
        return ""
    if (cached["target_seconds"], cached["threads"]) == (target_seconds, threads):
        return ""
    return (
        f"calibrated for {cached['target_seconds']} s with {cached['threads'] or 'all'} threads,"
        f" needed for {target_seconds} s with {threads or 'all'}"
    )


def _checked(workload: Workload, cached: dict, path: Path) -> tuple[str, dict]:
    """Why a size must be found anew, or empty; and what is cached, with a note where the runs are
    not as long as wanted.

    Only the very command that was calibrated is checked: others of the same size may take longer
    or shorter.
    """
    recently = time.time() - path.stat().st_mtime < FRESH_S
    if cached.get("command") != command_identity(workload) or recently:
        return "", cached
    times = _measured_seconds(path.parent, workload)
    if not times:
        return _checked_by_runs(workload, cached["target_seconds"]), cached
    return "", _with_note(workload, cached, path, statistics.median(times))


def _checked_by_runs(workload: Workload, target: float) -> str:
    with measuring(doing="checking the problem size"):
        seconds = undisturbed_seconds(workload)
    if 1 - TOLERANCE <= seconds / target <= SLOWEST:
        return ""
    return (
        f"a run takes {seconds:.3g} s, the target is {target:g} s, and nothing was measured with"
        " it yet"
    )


def _with_note(workload: Workload, cached: dict, path: Path, median: float) -> dict:
    """What is cached, with a note where the median of the runs is off."""
    target = cached["target_seconds"]
    noted = any("in the median" in note for note in cached.get("notes", ()))
    if noted or abs(median / target - 1) <= TOLERANCE:
        return cached
    note = _dated(
        f"the runs of {workload.name} take {median:.2g} s in the median, the target is"
        f" {target:g} s; the size stays, since there are runs of it"
    )
    cached = {**cached, "notes": [*cached.get("notes", []), note]}
    write_json(path, cached)
    return cached


def _measured_seconds(folder: Path, workload: Workload) -> list[float]:
    """Run times of a workload, undisturbed and in this very placement, in the campaigns below a
    folder.
    """
    times = []
    for path in sorted(folder.rglob("campaign.json")):
        if "aside" in path.relative_to(folder).parts:
            continue
        store = Store(path.parent)
        names = store.cells_of(workload)
        times += [
            row["seconds"] for row in store.rows() if row["cell"] in names and row["status"] == "ok"
        ]
    return times


def _dated(sentence: str) -> str:
    return f"{time.strftime('%Y-%m-%d %H:%M')}: {sentence}"
