"""Our SYCL programs as workloads: nbody, stream and minife on the CPU device, an optional extra
(`make sycl`).

Owns whether they are here, and their constructors.
"""

import os
from dataclasses import dataclass

from ..errors import InputError, Unavailable
from .programs import binary_folder
from .sycl_env import PLACES, ROAMING, THREADS
from .workload import Workload

PROGRAMS = ("nbody", "stream", "minife")
INSTALL = "make sycl ACCEPT_LICENCE=yes"


@dataclass(frozen=True)
class Availability:
    """Whether something can be used here; true or false itself.

    Parameters
    ----------
    reason
        One sentence, why not; empty where it can.
    fix
        The command that helps.
    """

    reason: str = ""
    fix: str = ""

    def __bool__(self) -> bool:
        return not self.reason


def available() -> Availability:
    """Whether the SYCL programs are built and their runtime, if they need one, is where they look
    for it; nothing is started.
    """
    folder = binary_folder() / "sycl"
    missing = [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]
    if missing or not (folder / ".runtime").is_file():
        return Availability(
            f"the SYCL programs are not built (no {', '.join(missing) or '.runtime'} in {folder})",
            INSTALL
            + "    (an optional extra: without ACCEPT_LICENCE=yes it shows the licence and its"
            " size)",
        )
    libraries = (folder / ".runtime").read_text().strip()
    lost = [
        name
        for name in ("libsycl.so", "libsycl-jit.so", "libintelocl.so")
        if libraries and not (folder / libraries / name).exists()
    ]
    if lost:
        return Availability(
            f"the SYCL runtime is not where the programs look for it (no {', '.join(lost)} in"
            f" {(folder / libraries).resolve()})",
            INSTALL,
        )
    return Availability()


def require() -> None:
    """Nothing where the SYCL programs can run.

    Raises
    ------
    Unavailable
        They cannot; the message has the reason and the fix.
    """
    here = available()
    if not here:
        raise Unavailable(here.reason, why="the SYCL columns stay empty", fix=here.fix)


def nbody(
    bodies: int = 6400,
    steps: int = 20,
    *,
    threads: int | None = None,
    timeout_s: float = 60.0,
    local_size: int = 64,
    precision: str = "double",
) -> Workload:
    """N-body with SYCL: the twin of the OpenMP program, of the same bodies, steps and checks.

    Parameters
    ----------
    bodies, steps
        The size; run time grows as bodies² × steps.
    threads
        That work at the same time; None: one a CPU.
    timeout_s
        See `Workload`.
    local_size
        Work-items (bodies) a group, 16 to 1024: the device vectorises within a group.
    precision
        "double" or "single".

    Raises
    ------
    InputError
        A number out of bounds. Whether the extra is installed shows when it runs; see `available`.
    """
    _check(
        "nbody",
        bodies=(bodies, 16, 10**6),
        steps=(steps, 1, 10**6),
        local_size=(local_size, 16, 1024),
    )
    size = {"bodies": bodies, "steps": steps, "local_size": local_size}
    return _workload("nbody", threads, timeout_s, precision, **size)


def stream(
    repeats: int = 20,
    elements: int = 2**22,
    *,
    threads: int | None = None,
    timeout_s: float = 60.0,
    precision: str = "double",
) -> Workload:
    """BabelStream's five kernels with SYCL, each repetition's time a series of the run; the paper's
    arrays have 2**25 elements.

    Parameters
    ----------
    repeats
        Of the five kernels; run time grows with it.
    elements
        Of each of the three arrays.
    threads, timeout_s, precision
        See `nbody`; in single precision at most 1500 repeats.
    """
    most = 10**4 if precision == "double" else 1500
    _check("stream", repeats=(repeats, 1, most), elements=(elements, 1, 2**31))
    return _workload("stream", threads, timeout_s, precision, elements=elements, repeats=repeats)


def minife(
    nx: int = 40,
    *,
    ny: int | None = None,
    nz: int | None = None,
    threads: int | None = None,
    timeout_s: float = 60.0,
) -> Workload:
    """Finite-element assembly and conjugate gradients with SYCL, both on the device; each
    iteration's time is a series of the run.

    Parameters
    ----------
    nx, ny, nz
        Elements in each direction; ny and nz default to nx. Run time grows as nx⁴.
    threads, timeout_s
        See `nbody`.
    """
    sizes = {"nx": nx, "ny": ny, "nz": nz}
    chosen = {name: size for name, size in sizes.items() if size is not None}
    _check("minife", **{name: (size, 2, 400) for name, size in chosen.items()})
    return _workload("minife", threads, timeout_s, "double", **chosen)


def _check(program: str, **bounds: tuple[int, int, int]) -> None:
    for name, (value, low, high) in bounds.items():
        if int(value) != value or not low <= value <= high:
            raise InputError(
                f"{name} is {value}; it must be a whole number of {low} to {high}",
                where=f"the SYCL program {program}",
            )


def _workload(
    program: str, threads: int | None, timeout_s: float, precision: str, **options: int
) -> Workload:
    if threads is not None:
        _check(program, threads=(threads, 1, 8192))
    if precision not in ("double", "single"):
        raise InputError(
            f"there is no precision '{precision}'",
            where=f"the SYCL program {program}",
            fix="choose one of double, single",
        )
    words = [
        word
        for name, value in options.items()
        for word in ("--" + name.replace("_", "-"), str(int(value)))
    ]
    words += ["--precision", precision] if precision != "double" else []
    env = {PLACES: ROAMING} | ({} if threads is None else {THREADS: str(int(threads))})
    return Workload(
        program,
        "sycl",
        (str(binary_folder() / "sycl" / program), *words),
        env=tuple(env.items()),
        timeout_s=timeout_s,
    )
