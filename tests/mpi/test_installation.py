"""The MPI that `make mpi` installed: what is written down about it, and ranks that find each
other."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nbhelpers import places, promise
from nbhelpers.errors import Unavailable
from nbhelpers.machine import doctor
from nbhelpers.mpi import installation
from nbhelpers.mpi.programs import mpi_program
from nbhelpers.workloads.mpi import launcher_kind

from . import lacking, needs_mpi

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*words, **options):
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=60, **options
    )


@needs_mpi
def test_what_is_written_down_is_what_the_launcher_says():
    here = installation()
    assert here.version in run(here.launcher, "--version").stdout
    assert launcher_kind(str(here.launcher)) == here.kind
    assert str(here) == f"{here.kind} {here.version}"


@needs_mpi
@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=pytest.mark.long), 4])
def test_all_ranks_find_each_other(ranks):
    here = installation()
    done = run(*here.command(ranks), here.programs / "hello")
    assert done.returncode == 0, done.stderr
    assert f"ranks={ranks} sum={ranks * (ranks + 1) // 2} verified=yes" in done.stdout


@needs_mpi
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks share the one CPU")
def test_each_rank_is_bound_to_a_cpu_of_its_own():
    """By the masks of the running ranks: options can overrule the variable that binds them."""
    cpus = tuple(sorted(os.sched_getaffinity(0)))[:2]
    placed = mpi_program("amg", 2).placed("TP", cpus)
    words = [*placed.command[:-1], "grep", "Cpus_allowed_list", "/proc/self/status"]
    done = run(*words, env={**os.environ, **dict(placed.env)})
    assert sorted(line.split()[-1] for line in done.stdout.splitlines()) == [*map(str, cpus)]


def test_without_an_installation_the_message_says_what_to_do(tmp_path):
    with pytest.raises(Unavailable, match="make mpi"):
        installation(tmp_path)
    gone = "mpicc=/nowhere/mpicc\nlauncher=/nowhere/mpirun\nkind=MPICH\nversion=5.0.2\n"
    (tmp_path / ".installation").write_text(gone)
    with pytest.raises(Unavailable, match="has no /nowhere/mpicc"):
        installation(tmp_path)


@pytest.mark.long
@needs_mpi
def test_a_moved_folder_still_works(tmp_path):
    """Programs and runtime are found relative to each other."""
    here = installation()
    if here.python is None:
        pytest.skip("this MPI is the site's own and stays where it is")
    there = tmp_path / "a folder"
    shutil.copytree(here.programs, there / "bin/mpi")
    os.makedirs(there / "mpi")
    shutil.copytree(here.mpicc.parents[1], there / "mpi/runtime", symlinks=True)
    moved = installation(there / "bin/mpi")
    assert moved.mpicc == there / "mpi/runtime/bin/mpicc"
    env = {name: value for name, value in os.environ.items() if name != "OPAL_PREFIX"}
    done = run(*moved.command(2), moved.programs / "hello", env=env)
    assert "verified=yes" in done.stdout, done.stderr


def test_the_doctor_says_which_mpi_is_here_or_how_to_get_one(tmp_path, monkeypatch):
    found = doctor()
    if not lacking():
        assert re.search(rf"^  MPI: {installation()}$", promise.text("smoke", found), re.M)
    monkeypatch.setenv("NOISEBOOK_BIN", str(tmp_path))
    assert places.programs() == tmp_path
    assert "make mpi" in promise.text("smoke", found)
