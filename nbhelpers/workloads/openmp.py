"""Our OpenMP programs as workloads, built by each compiler that is here.

Owns the constructors; the size that fits a machine is found by
`nbhelpers.measurement.calibrate`.
"""

from collections.abc import Mapping
from pathlib import Path

from ..errors import InputError
from . import sycl
from .programs import binary_folder
from .workload import Workload

SCHEDULES = ("static", "dynamic", "guided")
COMPILERS = ("gcc", "clang")
PRECISIONS = ("double", "single")
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
_UNBOUND = {"OMP_PROC_BIND": "false"}


def compilers() -> dict[str, Path]:
    """Return the compilers by which our OpenMP programs are built here.

    Returns
    -------
    dict
        Compiler ("gcc", "clang") to the folder of its programs, the default one first.
    """
    folder = binary_folder()
    found = {_compiler_of(folder) or "gcc": folder}
    for other in sorted(folder.glob("*/.compiler")):
        found.setdefault(_compiler_of(other.parent), other.parent)
    return found


def _compiler_of(folder: Path) -> str:
    try:
        return (folder / ".compiler").read_text().strip()
    except OSError:
        return ""


def _program(name: str, compiler: str | None) -> tuple[str, str]:
    """The name for tables and the file, which need not exist: recorded runs are read where nothing
    is built.
    """
    if compiler is None:
        return name, str(binary_folder() / name)
    _known(name, "compiler", compiler, COMPILERS)
    return f"{name}-{compiler}", str(compilers().get(compiler, binary_folder() / compiler) / name)


def _workload(
    name: str,
    options: Mapping[str, object],
    threads: int | None,
    timeout_s: float,
    compiler: str | None,
) -> Workload:
    if threads is not None and int(threads) < 1:
        raise InputError(f"threads is {threads}; at least 1 is needed", where=name)
    label, program = _program(name, compiler)
    words = [
        word
        for option, value in options.items()
        if value is not None
        for word in (f"--{option}", str(value))
    ]
    env = _UNBOUND | ({} if threads is None else {"OMP_NUM_THREADS": str(int(threads))})
    return Workload(label, "omp", (program, *words), env=tuple(env.items()), timeout_s=timeout_s)


def _known(name: str, what: str, value: str, values: tuple[str, ...]) -> None:
    if value not in values:
        raise InputError(
            f"there is no {what} '{value}'", where=name, fix=f"choose one of {', '.join(values)}"
        )


def _whole(name: str, low: int, high: int, **values: int | None) -> None:
    for field, value in values.items():
        if value is not None and (int(value) != value or not low <= value <= high):
            raise InputError(
                f"{field} is {value}; a whole number of {low} to {high} is needed", where=name
            )


def _model(name: str, model: str, compiler: str | None) -> bool:
    """Whether it is the SYCL twin that is requested."""
    if model not in ("omp", "sycl"):
        raise InputError(f"there is no '{name}' of model '{model}'", fix='choose "omp" or "sycl"')
    if model == "sycl" and compiler is not None:
        raise InputError(
            f"compiler='{compiler}' was requested of a SYCL program",
            where=name,
            why="its kernels are compiled by the SYCL runtime",
        )
    return model == "sycl"


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
        See `Workload`.
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
    if int(bodies) < 16 or int(steps) < 1 or (threads is not None and int(threads) < 1):
        raise InputError(
            f"bodies={bodies}, steps={steps}, threads={threads}: at least 16 bodies, 1 step and 1"
            " thread are needed"
        )
    real = _precision("nbody", precision)
    if _model("nbody", model, compiler):
        return sycl.nbody(
            int(bodies), int(steps), threads=threads, timeout_s=timeout_s, precision=precision
        )
    options = {"bodies": int(bodies), "steps": int(steps)} | real
    return _workload("nbody", options, threads, timeout_s, compiler)


def _precision(name: str, precision: str) -> dict[str, str]:
    """The option; double is the programs' default, and says nothing."""
    _known(name, "precision", precision, PRECISIONS)
    return {} if precision == PRECISIONS[0] else {"precision": precision}


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
        Of the five kernels, 1 to 10,000; run time grows in proportion.
    elements
        Of an array; 2**25 in Cui et al. 2023, sec. 4.2, 805 MB in all.
    threads, timeout_s, compiler, model
        See `nbody`, which raises the same errors.
    precision
        "double" or "single"; single has at most 1500 repeats, as its numbers shrink.
    """
    _whole("stream", 1, 10_000, repeats=repeats)
    _whole("stream", 1, 2**31, elements=elements)
    real = _precision("stream", precision)
    if real:
        _whole("stream", 1, 1500, repeats=repeats)
    if _model("stream", model, compiler):
        return sycl.stream(
            int(repeats), int(elements), threads=threads, timeout_s=timeout_s, precision=precision
        )
    options = {"elements": int(elements), "repeats": int(repeats)} | real
    return _workload("stream", options, threads, timeout_s, compiler)


def minife(
    nx: int = 40,
    threads: int | None = None,
    timeout_s: float = 60.0,
    *,
    ny: int | None = None,
    nz: int | None = None,
    compiler: str | None = None,
    model: str = "omp",
) -> Workload:
    """A small finite-element application after miniFE: hexahedra, conjugate gradients.

    It is verified against the exact solution; the time of each iteration is a series.

    Parameters
    ----------
    nx
        Elements in the first direction, 2 to 400; run time grows as nx⁴.
    ny, nz
        Elements in the other directions; None: as nx.
    threads, timeout_s, compiler, model
        See `nbody`, which raises the same errors.
    """
    _whole("minife", 2, 400, nx=nx, ny=ny, nz=nz)
    if _model("minife", model, compiler):
        return sycl.minife(int(nx), ny=ny, nz=nz, threads=threads, timeout_s=timeout_s)
    return _workload("minife", {"nx": int(nx), "ny": ny, "nz": nz}, threads, timeout_s, compiler)


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
        Of the loop; run time grows in proportion.
    schedule
        "static", "dynamic" or "guided".
    chunk
        Iterations that a thread takes together; 0: the default of the schedule.
    delay
        The work of an iteration, in steps: a count, so that all runs do the same; see
        `delay_steps`.
    inner
        Loops in a repetition.
    outer
        Repetitions.
    references
        Repetitions of one thread alone, before the timed region.
    threads, timeout_s, compiler
        See `nbody`, which raises the same errors.
    """
    _known("schedbench", "schedule", schedule, SCHEDULES)
    _whole("schedbench", 0, 1_000_000, chunk=chunk)
    _whole("schedbench", 1, 1_000_000, iterations_per_thread=iterations_per_thread, inner=inner)
    options = {
        "schedule": schedule,
        "chunk": int(chunk),
        "iterations-per-thread": int(iterations_per_thread),
    } | _repetitions("schedbench", delay, inner, outer, references)
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
        Work within the construct, in steps; see `delay_steps`. 0.1 µs in Cui et al. 2023, Table 1.
    outer, references
        See `schedbench`.
    threads, timeout_s, compiler
        See `nbody`, which raises the same errors.
    """
    _known("syncbench", "construct", construct, CONSTRUCTS)
    _whole("syncbench", 1, 10_000_000, inner=inner)
    options = {"construct": construct} | _repetitions("syncbench", delay, inner, outer, references)
    return _workload("syncbench", options, threads, timeout_s, compiler)


def _repetitions(
    name: str, delay: int, inner: int, outer: int, references: int
) -> dict[str, object]:
    """The options that both programs of EPCC have."""
    _whole(name, 1, 100_000_000, delay=delay)
    _whole(name, 1, 100_000, outer=outer, references=references)
    options = {"delay": delay, "inner": inner, "outer": outer, "references": references}
    return {option: int(value) for option, value in options.items()}
