"""Wrong MPI programs: each fault is planted in a copy of the sources and built; the program itself
must say verified=no.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from nbhelpers.mpi import installation

from ..planted_faults import SOURCES, Fault
from . import needs_mpi

pytestmark = [pytest.mark.long, needs_mpi]
ATTEMPTS = 5  # ranks that never wait for each other may meet by chance


HALO2D = "halo2d --nx 16 --ny 12 --levels 2 --steps 2"
HALO3D = "halo3d --nx 6 --steps 5"
ADAPTIVE = "adaptive --blocks 16 --rows 16 --steps 40"
SWEEP = "sweep --nx 4 --ny 4 --nz 4 --planes 2 --iterations 2"
AMG = "amg --nx 8 --solves 1"
UNPACK = "copy_side(s, field, levels, which, 0);"
HALF = "c->column + j]) /\n" + 47 * " " + "2;"
ALLREDUCE = "collectives --calls 3 --largest 64"

FAULTS = [
    Fault("a lost message", HALO2D, UNPACK, "(void)which;"),
    Fault("a wrong halo", HALO3D, "(pack ? b->nx : 0)", "(pack ? b->nx - 1 : 0)"),
    Fault("a message left aside", SWEEP, "if (from[axis] == MPI_PROC_NULL)", "if (1)"),
    Fault("a wrong halo", HALO2D, "s->nx + 1 - !!inside, 1", "s->nx + 1 - 2 * !!inside, 1"),
    Fault("a sum of this rank", HALO2D, "next = nb_sum(", "next = ("),
    Fault("a lost message", HALO3D, "        copy_face(b, axis, 0);\n", ""),
    Fault("the first message lost", ADAPTIVE, "  exchange(c);", "  if (step) exchange(c);"),
    Fault("not conserved", ADAPTIVE, HALF, HALF.replace("2;", "2.01;")),
    Fault("a wrong angle", SWEEP, "x[a] = y[a] = z[a] = value", "x[a] = z[a] = value"),
    Fault("a lost message", AMG, "exchange(l, x);", "(void)x;", "levels.h"),
    Fault("a wrong halo", AMG, "vector[link->rows[j]]", "vector[link->rows[0]]", "levels.h"),
    Fault("another sum", ALLREDUCE, "MPI_SUM, MPI_C", "MPI_MAX, MPI_C"),
    Fault(
        "another root",
        ALLREDUCE + " --operation bcast",
        "MPI_DOUBLE, 0, MPI_COMM_WORLD);\n    else if (job->operation == BARRIER",
        "MPI_DOUBLE, 1, MPI_COMM_WORLD);\n    else if (job->operation == BARRIER",
    ),
    Fault(
        "nobody waits",
        "collectives --operation barrier --calls 500 --before nothing",
        "BARRIER)\n        MPI_Barrier(MPI_COMM_WORLD);",
        "BARRIER)\n        ;",
    ),
]


def planted(folder: Path, fault: Fault) -> Path:
    """The program with the fault, built as `make mpi` builds it."""
    for path in SOURCES.glob("*.h"):
        shutil.copy(path, folder)
    shutil.copytree(SOURCES / "mpi", folder / "mpi")
    source = folder / "mpi" / (fault.source or f"{fault.program}.c")
    text = source.read_text()
    assert text.count(fault.right) == 1, f"{source.name} has changed: {fault.right!r}"
    source.write_text(text.replace(fault.right, fault.wrong))
    built = folder / "bin" / fault.program
    make = [
        *("make", "-s", "-C", str(folder / "mpi"), f"BIN={folder}/bin"),
        *(f"MPICC={installation().mpicc}", str(built)),
    ]
    done = subprocess.run(make, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return built


def is_found(program: Path, words: str) -> bool:
    done = subprocess.run(
        [*installation().command(2), program, *words.split()[1:]],
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("noisebook: ")]
    if not lines:
        return done.returncode != 0  # MPI itself found it, and ended all ranks
    said = lines[-1].split()[-1]
    assert (said == "verified=no") == (done.returncode == 1) == ("not verified" in done.stderr)
    return said == "verified=no"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.program}, {fault.name}")
def test_a_planted_fault_is_found(tmp_path, fault):
    program = planted(tmp_path, fault)
    assert any(is_found(program, fault.words) for _ in range(ATTEMPTS))


@pytest.mark.parametrize("words", sorted({one.words for one in FAULTS}))
def test_without_a_fault_the_same_run_is_verified(words):
    assert not is_found(installation().programs / words.split()[0], words)
