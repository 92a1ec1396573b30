"""Calibration: the problem size for which a program runs as long as wanted on this machine, and the
steps of a delay.

Owns `calibration.json`, the file in which a campaign caches the size with its data.
"""

import math
import re
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..errors import InputError, RunError
from ..files import put_aside
from ..workloads import Workload, binary_folder, program_path
from ..workloads.sizes import SIZE_MODELS, size_model
from ._identity import cell_identity
from .cache import cached_value, read_cached
from .run import run_once

DEFAULT_TARGET_S = 0.4
DEFAULT_EXPONENT = 2.0
# runs of a check, and the time they are spread over: a slow moment is rarely as long
CHECK_RUNS = 8
SPREAD_S = 2.0
CHECK_TOLERANCE = 0.08
# the quick search: its steps, the runs of each, and the distance at which it stops
QUICK_STEPS, QUICK_RUNS, QUICK_TOLERANCE = 5, 3, 0.05
# a run of it ends after so long, or 20 times the target: beside other load, threads that wait for
# each other may take minutes
QUICK_S = 5.0


def calibrate(
    make: str | Callable[..., Workload],
    size: int | None = None,
    target_seconds: float | None = None,
    exponent: float | None = None,
    *,
    threads: int = 0,
    file: str | Path | None = None,
    recorded_only: bool = False,
    **options: object,
) -> Workload:
    """Return a program in the problem size whose undisturbed run takes `target_seconds` here.

    Other load on the machine only makes a run longer, for a moment or for seconds. Therefore the
    time that threads waited for a CPU does not count, where the program reports it. A quick search
    by the fastest of a few runs is followed by a check: eight runs of the size found, spread over
    two seconds, of which the lower quartile counts. Where it is off by more than 8 %, the size is
    corrected.

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
    options
        Passed to `make`, for example compiler="clang"; they are no part of the cached size.

    Returns
    -------
    Workload
        The program in the size found.

    Raises
    ------
    InputError
        Target, exponent or size is not positive; the program refuses the first size;
        `recorded_only` is True and the file is missing or was calibrated for another target or
        number of threads.
    RunError
        A run fails.

    Notes
    -----
    The file is put aside, and the size found anew, when it is of another target or number of
    threads. A size found in a slow moment stays; put the file aside to have it found again.

    Examples
    --------
    >>> from nbhelpers.workloads import program
    >>> def sleep(milliseconds):
    ...     return program(["sleep", f"{milliseconds / 1000}"])
    >>> found = calibrate(sleep, size=5, target_seconds=0.02, exponent=1)
    >>> 0.01 < float(found.command[1]) < 0.03
    True
    """
    if isinstance(make, str):
        make = size_model(make).make
    known = next((model for model in SIZE_MODELS.values() if model.make is make), None)
    if known is not None:
        size = known.start if size is None else size
        exponent = known.exponent if exponent is None else exponent
    made = partial(make, **options)

    def of(size: int, threads: int) -> Workload:
        return made(size, threads=threads) if threads else made(size)

    def found(seconds: float) -> int:
        return find_size(partial(of, threads=threads), size, seconds, exponent or DEFAULT_EXPONENT)

    if file is not None:
        cached = _cached(Path(file), target_seconds, threads, recorded_only, found, of)
        return of(cached["size"], cached["threads"])
    if recorded_only:
        raise InputError("recorded_only=True needs the file that caches the size", fix="add file=")
    return of(found(DEFAULT_TARGET_S if target_seconds is None else target_seconds), threads)


def _cached(
    path: Path,
    target_seconds: float | None,
    threads: int,
    recorded_only: bool,
    found: Callable[[float], int],
    of: Callable[[int, int], Workload],
) -> dict:
    """What the file holds; the size is found first where it is missing or of something else."""
    may_measure = not recorded_only and target_seconds is not None
    cached = read_cached(path, "problem size", not may_measure)
    mismatch = _mismatch(cached, target_seconds, threads) if path.exists() else ""
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
    about: dict[str, object] = {"target_seconds": target_seconds, "threads": threads}
    if mismatch:
        about["notes"] = [f"{time.strftime('%Y-%m-%d %H:%M')}: {put_aside(path, mismatch)}"]

    def find() -> dict:
        assert target_seconds is not None  # only then it may be measured
        size = found(target_seconds)
        return about | {"size": size, "command": cell_identity(of(size, threads))["command"]}

    return cached_value(path, find, "problem size", not may_measure)


def _mismatch(cached: dict, target_seconds: float | None, threads: int) -> str:
    """Why a file does not hold the size for a target and number of threads; empty if it does."""
    if not {"size", "target_seconds", "threads"} <= set(cached):
        return "size, target_seconds and threads are expected in a calibration"
    wanted = (target_seconds, threads)
    if target_seconds is None or (cached["target_seconds"], cached["threads"]) == wanted:
        return ""
    return (
        f"calibrated for {cached['target_seconds']} s with {cached['threads'] or 'all'} threads,"
        f" needed for {target_seconds} s with {threads or 'all'}"
    )


def find_size(
    make: Callable[[int], Workload], size: int | None, target_seconds: float, exponent: float
) -> int:
    """Return the size for which a run takes about `target_seconds`: a quick search by the fastest
    of a few runs, then a check with runs that are spread over `SPREAD_S` seconds.
    """
    if size is None or min(target_seconds, exponent, size) <= 0:
        raise InputError(
            f"target_seconds={target_seconds}, exponent={exponent}, size={size}: all must be"
            " above 0",
            fix="add size=, where the search begins",
        )

    def corrected(workload: Workload, size: int, seconds: float) -> tuple[Workload, int]:
        factor = (target_seconds / seconds) ** (1 / exponent)
        after = max(1, round(size * min(10.0, max(0.1, factor))))
        try:
            return make(after), after
        except InputError:  # smaller, or larger, than the program takes
            return workload, size

    workload, limit_s = make(size), max(QUICK_S, 20 * target_seconds)
    tried = []
    for _ in range(QUICK_STEPS):
        seconds = min(_seconds(workload, limit_s) for _ in range(QUICK_RUNS))
        tried.append((abs(seconds / target_seconds - 1), size))
        workload, after = corrected(workload, size, seconds)
        if tried[-1][0] <= QUICK_TOLERANCE or after == size:
            break
        size = after
    size = min(tried)[1]
    workload = make(size)
    seconds = undisturbed_seconds(workload)
    if abs(seconds / target_seconds - 1) <= CHECK_TOLERANCE:
        return size
    return corrected(workload, size, seconds)[1]


def undisturbed_seconds(workload: Workload) -> float:
    """What a run takes when nothing disturbs it: the lower quartile of `CHECK_RUNS` runs that are
    spread over `SPREAD_S` seconds.
    """
    began = time.monotonic()
    times = []
    for number in range(CHECK_RUNS):
        time.sleep(max(0.0, began + number * SPREAD_S / CHECK_RUNS - time.monotonic()))
        times.append(_seconds(workload))
    return statistics.quantiles(times, n=4)[0]


def _seconds(workload: Workload, limit_s: float = math.inf) -> float:
    """The time of a run, less what its threads waited for a CPU on average; at most the limit."""
    limited = workload.timeout_s > limit_s
    row = run_once(replace(workload, timeout_s=limit_s) if limited else workload)
    if limited and row["status"] == "timeout":
        return limit_s
    if row["status"] != "ok":
        raise RunError(
            f"a run to find the size of '{workload.name}' ended with status '{row['status']}'",
            where=" ".join(workload.command),
            why=row["message"],
        )
    waited = (row.get("runqueue_wait_ns") or 0) * 1e-9 / (row.get("threads") or 1)
    return row["seconds"] - waited if waited < row["seconds"] else row["seconds"]


def delay_steps(delay_us: float, path: str | Path | None = None) -> int:
    """Return how many steps the delay of schedbench and syncbench needs for a time on this machine.

    Parameters
    ----------
    delay_us
        Length of the delay, µs; at most 1e6.
    path
        A file that caches the measured step, so that all runs of a campaign do the same work;
        None: measure (0.05 s).

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    InputError
        A delay that is not possible.
    RunError
        The program is not built, or failed.
    """
    if not 0 < delay_us <= 1e6:
        raise InputError(f"delay_us is {delay_us}; above 0 and at most 1e6 is possible")
    step_ns = (
        _measured_step_ns()
        if path is None
        else cached_value(path, _measured_step_ns, "length of a delay's step", key="step_ns")
    )
    return max(1, round(delay_us * 1e3 / step_ns))


def _measured_step_ns() -> float:
    program = program_path(binary_folder() / "syncbench")
    done = subprocess.run([program, "--calibrate", "1"], capture_output=True, text=True, timeout=60)
    found = re.search(r"^noisebook-delay: .*\bstep_ns=([\d.]+)", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        raise RunError(
            "the length of a delay could not be measured",
            where=f"{program} --calibrate 1",
            why=done.stderr.strip() or done.stdout.strip(),
        )
    return float(found[1])
