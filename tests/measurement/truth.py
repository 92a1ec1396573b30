"""Programs that know when their timed region began and ended, and how far off the times of a run
are.

Shared by tests/measurement/test_regions.py and benchmarks/regions.py.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

from nbhelpers.workloads import Workload, binary_folder
from nbhelpers.workloads.region import as_region

SOURCES = Path(__file__).parent / "regions"
LINES = ("^Starting", r"^Solver took .*")
COMPILERS = {".c": "gcc", ".cpp": "g++", ".f90": "gfortran"}
MPIS = {
    "openmpi": ("mpicc.openmpi", "mpirun.openmpi", "--oversubscribe", "--allow-run-as-root"),
    "mpich": ("mpicc.mpich", "mpirun.mpich"),
}
# name: (kind of region, source, further words)
CASES = {
    "symbols, C": ("symbols", "symbols.c"),
    "symbols, Fortran": ("symbols", "symbols.f90"),
    "symbols, Python": ("symbols", "python_program.py"),
    "lines, C": ("lines", "lines.c"),
    "lines, C++": ("lines", "lines.cpp"),
    "lines, Fortran": ("lines", "lines.f90"),
    "lines, Python": ("lines", "python_program.py"),
    "lines, script": ("lines", "script.sh"),
    "mpi, Open MPI": ("mpi", "mpi.c", "openmpi"),
    "mpi, MPICH": ("mpi", "mpi.c", "mpich"),
    "mpi, Fortran": ("mpi", "mpi.f90", "openmpi"),
}


def lacking(name: str) -> str:
    """Which program, or path, a case needs and this machine lacks; "" if none."""
    kind, source, *words = CASES[name]
    needed = [COMPILERS[Path(source).suffix]] if Path(source).suffix in COMPILERS else []
    if kind == "mpi":
        needed += [*MPIS[words[0]][:2], *(["mpif90.openmpi"] if source.endswith(".f90") else [])]
    return next((program for program in needed if not shutil.which(program)), "")


def case(name: str, folder: Path, *arguments: str) -> Workload:
    """The program of a case, built in a folder, as a workload; the truth goes to `truth` there."""
    kind, source, *words = CASES[name]
    path = SOURCES / source
    command = {
        ".py": [sys.executable, path, *(words or [kind])],
        ".sh": ["bash", path, *(words or [kind])],
    }
    built = command.get(path.suffix) or [built_from(path, folder, kind, words)]
    if kind == "mpi":
        _, launcher, *options = MPIS[words[0]]
        built = [launcher, *options, "-n", "2", *built]
    armed = kind in ("symbols", "mpi")
    start = "mark" if armed else "exec" if path.suffix == ".sh" else "main"
    return Workload(
        name,
        "external",
        tuple(map(str, [*built, *arguments])),
        start=start,
        env={"TRUTH": str(folder / "truth")},
        region=as_region(LINES if kind == "lines" else kind),
    )


def built_from(path: Path, folder: Path, kind: str, words: list[str]) -> Path:
    """Compile a source; Fortran, which has no weak symbols, is linked with the library itself."""
    program, library = folder / path.name.replace(".", "_"), binary_folder()
    compiler = COMPILERS[path.suffix]
    if kind == "mpi":
        compiler = MPIS[words[0]][0] if path.suffix == ".c" else "mpif90.openmpi"
    fortran = path.suffix == ".f90"
    helpers = [folder / "truth.o"] if fortran else []
    if fortran:
        _run("gcc", "-O1", "-c", SOURCES / "truth.c", "-o", helpers[0])
    linked = (
        [f"-L{library}", "-lnbstart", f"-Wl,-rpath,{library}"]
        if fortran and kind == "symbols"
        else []
    )
    _run(compiler, "-O1", path, *helpers, *linked, "-o", program)
    return program


def _run(*words: object) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def errors_us(row: dict, truth: Path) -> tuple[float, float]:
    """How much later than the truth a run says that its region began, and ended; the file is
    removed.
    """
    stamps = [line.split() for line in truth.read_text().splitlines()]
    truth.unlink()
    begin = min(_nanoseconds(words[0]) for words in stamps)
    end = max(_nanoseconds(words[1]) for words in stamps)
    return (row["start_ns"] - begin) / 1e3, (row["end_ns"] - end) / 1e3


def _nanoseconds(word: str) -> int:
    """Of CLOCK_MONOTONIC; bash has the time of day only."""
    if "." in word or "," in word:
        seconds, fraction = word.replace(",", ".").split(".")
        return int(seconds) * 10**9 + int(fraction) * 1000 + time.monotonic_ns() - time.time_ns()
    return int(word)
