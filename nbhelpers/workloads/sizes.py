"""The size of a program, and how its run time grows with it; steps of a delay."""

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, RunError
from ..files import put_aside, write_json
from ..reading import read_json
from .openmp import minife, nbody, schedbench, stream, syncbench
from .programs import binary_folder, program_path
from .workload import Workload


@dataclass(frozen=True)
class SizeModel:
    """What the size of a program is, and how its run time grows with it.

    Parameters
    ----------
    make
        Gives the workload of a size; takes `threads` and the options of the program by keyword.
    meaning
        What the size counts.
    start
        Where a search begins.
    exponent
        Run time grows as size**exponent.
    """

    make: Callable[..., Workload]
    meaning: str
    start: int
    exponent: float


PUBLISHED_ELEMENTS = 2**25
_DOUBLE_B = 8

SIZE_MODELS = {
    "nbody": SizeModel(nbody, "bodies", 4000, 2.0),
    "stream": SizeModel(stream, "repeats", 20, 1.0),
    "minife": SizeModel(minife, "nx", 30, 4.0),
    "schedbench": SizeModel(schedbench, "iterations_per_thread", 32, 1.0),
    "syncbench": SizeModel(syncbench, "inner", 100, 1.0),
}


def size_model(program: str) -> SizeModel:
    """Return what the size of one of our programs is, and how its run time grows with it.

    Parameters
    ----------
    program
        "nbody", "stream", "minife", "schedbench" or "syncbench".

    Returns
    -------
    SizeModel

    Raises
    ------
    InputError
        There is no such program.
    """
    if program not in SIZE_MODELS:
        raise InputError(
            f"there is no program '{program}'", fix=f"choose one of {', '.join(SIZE_MODELS)}"
        )
    return SIZE_MODELS[program]


def stream_elements(cache_bytes: int) -> int:
    """Return how many elements BabelStream's arrays need so that memory is measured, not a cache.

    The least power of two of which an array is four times the caches, as STREAM demands, and at
    least the 2**25 of Cui et al. 2023, sec. 4.2.

    Parameters
    ----------
    cache_bytes
        Of all last-level caches that the run uses; 0: unknown.

    Returns
    -------
    int

    Examples
    --------
    >>> stream_elements(512 * 2**20) == 2**28
    True
    """
    return max(PUBLISHED_ELEMENTS, 1 << (-(-4 * cache_bytes // _DOUBLE_B) - 1).bit_length())


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
    step_ns = None if path is None or not Path(path).exists() else _cached_step_ns(Path(path))
    if step_ns is None:
        step_ns = _measured_step_ns()
        if path is not None:
            write_json(path, {"step_ns": step_ns})
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


def _cached_step_ns(path: Path) -> float | None:
    """The cached step; None: the file was damaged, and has been put aside."""
    try:
        cached = read_json(path)
    except InputError:
        cached = None
    value = cached.get("step_ns") if isinstance(cached, dict) else None
    if isinstance(value, (int, float)) and 1e-3 < value < 1e6:
        return float(value)
    put_aside(path, "damaged: not the length of a delay's step")
    return None
