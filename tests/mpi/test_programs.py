"""Our MPI programs: right answers on any number of ranks, the answer of an independent computation,
and the common start.
"""

import subprocess

import numpy as np
import pytest

from nbhelpers.errors import InputError
from nbhelpers.measurement import run_once
from nbhelpers.mpi import installation
from nbhelpers.mpi.programs import PROGRAMS, mpi_program

from . import needs_mpi

SMALL = {
    "collectives": {"calls": 5, "largest": 4096},
    "halo2d": {"nx": 20, "ny": 12, "levels": 3, "steps": 2},
    "halo3d": {"nx": 8, "steps": 10},
    "adaptive": {"blocks": 16, "rows": 16, "steps": 30},
    "sweep": {"nx": 5, "ny": 4, "nz": 6, "planes": 2, "iterations": 3},
    "amg": {"nx": 8, "solves": 1},
}
OPERATIONS = ("allreduce", "bcast", "barrier", "alltoall")


def run(name: str, ranks: int, **options) -> dict:
    row = run_once(mpi_program(name, ranks, **options))
    assert row["status"] == "ok", row["message"]
    return row


@needs_mpi
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "ranks", [2, pytest.param(1, marks=pytest.mark.long), pytest.param(6, marks=pytest.mark.long)]
)
def test_each_program_finds_its_answer_right(name, ranks, nothing_left):
    row = run(name, ranks, **SMALL[name])
    assert row["verified"] == "yes" and row["ranks"] == ranks and row["model"] == "mpi"
    assert row["start_ns"] >= row["t0_ns"] and row["seconds"] == row["region_seconds"]


@needs_mpi
def test_the_iterations_of_the_solver_are_those_of_numpy():
    """Conjugate gradients as halo2d does them, on the whole grid by NumPy."""
    nx, ny = 24, 10  # 2 x 1 ranks of 12 x 10 points
    row = run("halo2d", 2, nx=12, ny=10, levels=1, steps=1)
    x = np.arange(1, nx + 1)[:, None] / (nx + 1)
    y = np.arange(1, ny + 1)[None, :] / (ny + 1)
    wx, wy = (nx + 1) ** 2, (ny + 1) ** 2
    b = 6 * x * (2 * y - 3 * y**2 + y**3) + (x - x**3) * (6 - 6 * y)

    def product(v):
        u = np.pad(v, 1)
        east_west, north_south = u[2:, 1:-1] + u[:-2, 1:-1], u[1:-1, 2:] + u[1:-1, :-2]
        return 2 * (wx + wy) * v - wx * east_west - wy * north_south

    found, r = np.zeros_like(b), b.copy()
    p, square, iterations = r.copy(), (r * r).sum(), 0
    while square**0.5 > 1e-10 * (b * b).sum() ** 0.5:
        q = product(p)
        step = square / (p * q).sum()
        found, r = found + step * p, r - step * q
        square, before = (r * r).sum(), square
        p, iterations = r + square / before * p, iterations + 1
    assert row["iterations"] == pytest.approx(iterations, abs=1)
    assert row["grid"] == "2x1"


@needs_mpi
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_call_of_every_rank_is_in_the_series(operation):
    row = run("collectives", 2, operation=operation, calls=7, smallest=8, largest=100, factor=4)
    sizes = [0] if operation == "barrier" else [8, 32, 96]
    assert set(row["series"]) == {
        f"{operation}_{size}_{rank}" for size in sizes for rank in range(2)
    }
    for one in row["series"].values():
        assert one["unit"] == "us" and len(one["values"]) == 7 and min(one["values"]) > 0


@needs_mpi
def test_the_adaptive_mesh_moves_blocks_to_where_the_work_is():
    row = run("adaptive", 3, blocks=30, rows=16, steps=120)
    assert row["moved"] > 0 and row["refined"] > 0 and row["rerun"] == 1
    assert row["error"] < 1e-12 and row["drift"] < 1e-12


@needs_mpi
def test_the_message_of_the_sweep_has_the_published_size():
    """36,000 bytes a face: 50 cells x 15 planes x 6 angles of 8 bytes."""
    row = run("sweep", 2, iterations=1)
    assert row["ny"] * row["planes"] * row["angles"] * 8 == 36_000
    assert row["nz"] / row["planes"] == 10


@needs_mpi
def test_an_option_that_is_not_possible_is_said_by_one_rank_only():
    here = installation()
    done = subprocess.run(
        [*here.command(2), str(here.programs / "amg"), "--nx", "1"], capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stderr.count("usage: amg") == 1


def test_programs_and_options_that_do_not_exist_are_refused():
    with pytest.raises(InputError, match="there is no MPI program 'pop'"):
        mpi_program("pop")
    with pytest.raises(InputError, match="'bodies' is no option"):
        mpi_program("amg", bodies=3)
    with pytest.raises(InputError, match="at least 1"):
        mpi_program("amg", 0)
