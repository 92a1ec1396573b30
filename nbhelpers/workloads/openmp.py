"""Our programs as workloads: by OpenMP, built by each compiler that is here, or by SYCL.

Owns the constructors; the size that fits a machine is found by
`nbhelpers.measurement.calibrate`.
"""

from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from ..errors import InputError, check_choice
from . import sycl
from .programs import binary_folder
from .workload import Workload

SCHEDULES = ("static", "dynamic", "guided")
COMPILERS = ("gcc", "clang")
CONSTRUCTS = (
    "parallel",
    "for",
    "parallel-for",
    "barrier",
    "single",
    "critical",
    "lock",
    "ordered",
    "atomic",
    "reduction",
)
# what an option may be, of whichever program: one of some words, or a whole number of low to high
_CHOICES = {
    "compiler": COMPILERS,
    "construct": CONSTRUCTS,
    "model": ("omp", "sycl"),
    "precision": ("double", "single"),
    "schedule": SCHEDULES,
}
_LIMITS = {
    "bodies": (16, 10**9),
    "chunk": (0, 1_000_000),
    "delay": (1, 100_000_000),
    "elements": (1, 2**31),
    "inner": (1, 10_000_000),
    "iterations_per_thread": (1, 1_000_000),
    "nx": (2, 400),
    "outer": (1, 100_000),
    "references": (1, 100_000),
    "repeats": (1, 10_000),
    "steps": (1, 10**9),
    "threads": (1, 10**6),
}
_MOST_SINGLE_REPEATS = 1500  # BabelStream's numbers shrink
_LOCAL_SIZE = 64  # bodies of a group: a SYCL device vectorises within it


def compilers() -> dict[str, Path]:
    """Return the compilers by which our OpenMP programs are built here.

    Returns
    -------
    dict
        Compiler ("gcc", "clang") to the folder of its programs, the default one first.
    """
    folder = binary_folder()
    found: dict[str, Path] = {}
    for path in (folder / ".compiler", *sorted(folder.glob("*/.compiler"))):
        name = path.read_text().strip() if path.exists() else ""
        found.setdefault(name or "gcc", path.parent)
    return found


def _check(name: str, field: str, value: Any) -> None:
    choices, (low, high) = _CHOICES.get(field), _LIMITS.get(field, (0, 0))
    if choices:
        check_choice(field, value, choices, name)
    is_number = isinstance(value, Real)  # NumPy's, too
    if high and not (is_number and low <= value <= high and value % 1 == 0):
        raise InputError(
            f"{field} is {value}; a whole number of {low} to {high} is needed", where=name
        )


def _workload(
    name: str,
    options: Mapping[str, object],
    threads: int | None,
    timeout_s: float,
    compiler: str | None,
    model: str = "omp",
    precision: str = "double",
) -> Workload:
    """The program need not exist: recorded runs are read where nothing is built."""
    about = {"threads": threads, "compiler": compiler, "model": model, "precision": precision}
    for field, value in {**options, **about}.items():
        if value is not None:
            _check(name, field, value)
    if model == "sycl" and compiler is not None:
        raise InputError(
            f"compiler='{compiler}' was requested of a SYCL program",
            where=name,
            why="its kernels are compiled by the SYCL runtime",
        )
    folder, label = binary_folder(), name if compiler is None else f"{name}-{compiler}"
    if compiler is not None:
        folder = compilers().get(compiler, folder / compiler)
    env, count = {"OMP_PROC_BIND": "false"}, "OMP_NUM_THREADS"
    if model == "sycl":
        folder, env, count = folder / "sycl", {sycl.PLACES: sycl.ROAMING}, sycl.THREADS
    if threads is not None:
        env[count] = str(int(threads))
    if precision != "double":  # the programs' default is not said
        options = {**options, "precision": precision}
    words = [str(folder / name)]
    for option, value in options.items():
        if value is not None:
            word = value if isinstance(value, str) else f"{value:.0f}"
            words += [f"--{option.replace('_', '-')}", word]
    return Workload(label, model, tuple(words), env=tuple(env.items()), timeout_s=timeout_s)


def nbody(
    bodies: int = 6400,
    steps: int = 20,
    threads: int | None = None,
    timeout_s: float = 60.0,
    *,
    compiler: str | None = None,
    model: str = "omp",
    precision: str = "double",
) -> Workload:
    """N-body: all pairs gravity, verified by its forces and its drift of energy and momentum.

    Parameters
    ----------
    bodies
        Number of bodies; run time grows as bodies² × steps.
    steps
        Time steps.
    threads
        Threads of the program; None: one a CPU.
    timeout_s
        Seconds after which a run is killed; see `Workload`.
    compiler
        "gcc" or "clang", with that compiler's OpenMP runtime; the workload is then called nbody-gcc
        or nbody-clang. None: the default compiler; see `compilers`.
    model
        "omp" or "sycl".
    precision
        "double", vectorised; or "single", that of HeCBench's N-body, which Persson et al. 2025
        ran. By OpenMP it then has that program's layout and order of operations, too.

    Raises
    ------
    InputError
        A size, a number of threads, a compiler or a precision that is not possible.
    """
    options = {"bodies": bodies, "steps": steps}
    options |= {"local_size": _LOCAL_SIZE} if model == "sycl" else {}
    return _workload("nbody", options, threads, timeout_s, compiler, model, precision)


def stream(
    repeats: int = 20,
    elements: int = 2**22,
    threads: int | None = None,
    timeout_s: float = 60.0,
    *,
    compiler: str | None = None,
    model: str = "omp",
    precision: str = "double",
) -> Workload:
    """BabelStream: copy, mul, add, triad and dot (Deakin et al. 2018) on three arrays.

    It is compiled without -ffast-math, as BabelStream is: dot adds in order. The time of each
    repetition is a series.

    Parameters
    ----------
    repeats
        Repetitions of the five kernels, 1 to 10,000; run time grows in proportion.
    elements
        Elements of an array; 2**25 in Cui et al. 2023, sec. 4.2, 805 MB in all.
    threads, timeout_s, compiler, model
        Threads, time limit, compiler and model; see `nbody`, which raises the same errors.
    precision
        "double" or "single"; single has at most 1500 repeats, as its numbers shrink.
    """
    if precision == "single" and repeats > _MOST_SINGLE_REPEATS:
        raise InputError(
            f"repeats is {repeats}; at most {_MOST_SINGLE_REPEATS} in single precision",
            where="stream",
        )
    options = {"elements": elements, "repeats": repeats}
    return _workload("stream", options, threads, timeout_s, compiler, model, precision)


def minife(
    nx: int = 40,
    threads: int | None = None,
    timeout_s: float = 60.0,
    *,
    compiler: str | None = None,
    model: str = "omp",
) -> Workload:
    """A small finite-element application after miniFE: hexahedra, conjugate gradients.

    It is verified against the exact solution; the time of each iteration is a series.

    Parameters
    ----------
    nx
        Elements in each direction, 2 to 400; run time grows as nx⁴.
    threads, timeout_s, compiler, model
        Threads, time limit, compiler and model; see `nbody`, which raises the same errors.
    """
    return _workload("minife", {"nx": nx}, threads, timeout_s, compiler, model)


def schedbench(
    iterations_per_thread: int = 8192,
    schedule: str = "dynamic",
    chunk: int = 1,
    threads: int | None = None,
    timeout_s: float = 60.0,
    *,
    delay: int = 15_000,
    inner: int = 1,
    outer: int = 100,
    references: int = 10,
    compiler: str | None = None,
) -> Workload:
    """The cost of a loop's schedule by the method of EPCC's schedbench (Bull 1999).

    A run measures one schedule; the time of each outer repetition is a series. The defaults are
    those of Cui et al. 2023, Table 1, where a step of the delay takes 1 ns: 12 s a run.

    Parameters
    ----------
    iterations_per_thread
        Iterations of the loop for each thread; run time grows in proportion.
    schedule
        "static", "dynamic" or "guided".
    chunk
        Iterations that a thread takes together; 0: the default of the schedule.
    delay
        The work of an iteration, in steps: a count, so that all runs do the same; see
        `nbhelpers.measurement.calibration.delay_steps`.
    inner
        Loops in a repetition.
    outer
        Repetitions.
    references
        Repetitions of one thread alone, before the timed region.
    threads, timeout_s, compiler
        Threads, time limit and compiler; see `nbody`, which raises the same errors.
    """
    options = {
        "schedule": schedule,
        "chunk": chunk,
        "iterations_per_thread": iterations_per_thread,
        "delay": delay,
        "inner": inner,
        "outer": outer,
        "references": references,
    }
    return _workload("schedbench", options, threads, timeout_s, compiler)


def syncbench(
    inner: int = 1000,
    construct: str = "reduction",
    threads: int | None = None,
    timeout_s: float = 60.0,
    *,
    delay: int = 100,
    outer: int = 100,
    references: int = 10,
    compiler: str | None = None,
) -> Workload:
    """The cost of a construct by the method of EPCC's syncbench (Bull 1999).

    A run measures one construct; the time of each outer repetition is a series.

    Parameters
    ----------
    inner
        Executions in a repetition; run time grows in proportion. EPCC chooses it so that a
        repetition takes 1000 µs (its "test time").
    construct
        One of `CONSTRUCTS`, for example "barrier" or "reduction".
    delay
        Work within the construct, in steps; see `schedbench`. 0.1 µs in Cui et al. 2023, Table 1.
    outer, references
        Repetitions, and those of one thread alone before the timed region; see `schedbench`.
    threads, timeout_s, compiler
        Threads, time limit and compiler; see `nbody`, which raises the same errors.
    """
    options = {
        "construct": construct,
        "delay": delay,
        "inner": inner,
        "outer": outer,
        "references": references,
    }
    return _workload("syncbench", options, threads, timeout_s, compiler)
