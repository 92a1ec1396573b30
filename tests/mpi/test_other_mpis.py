"""The same tests with another MPI than ours: MPICH's wheel, and what the system has; and what is
said when two MPIs are mixed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nbhelpers import program
from nbhelpers.errors import InputError
from nbhelpers.measurement import run_once
from nbhelpers.mpi import installation
from nbhelpers.workloads import Region, binary_folder
from nbhelpers.workloads.mpi import MPICH, OPEN_MPI, launcher_kind, linked_mpi

from . import needs_mpi

REPOSITORY = Path(__file__).resolve().parents[2]


def mpich_wheel(folder: Path) -> Path:
    """An mpicc of MPICH in an environment of its own."""
    made = folder / "mpich"
    words = [sys.executable, "-m", "venv", "--without-pip", made]
    subprocess.run(list(map(str, words)), check=True, timeout=100)
    words = [sys.executable, "-m", "pip", "--python", made / "bin/python", "install", "-q", "mpich"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=250)
    if done.returncode:
        pytest.skip("MPICH's wheel cannot be had: " + done.stderr.strip().split("\n")[-1])
    return made / "bin/mpicc"


def compiler(name: str, folder: Path) -> str:
    if name == "MPICH's wheel":
        return str(mpich_wheel(folder))
    return shutil.which(name) or pytest.skip(f"no {name} here")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mpi")


def install(mpicc: str, folder: Path) -> Path:
    """A folder of programs as ours, with the MPI programs by that compiler."""
    programs = folder / "bin"
    programs.mkdir()
    for path in binary_folder().iterdir():
        if path.name != "mpi":
            (programs / path.name).symlink_to(path)
    place = os.path.relpath(programs, REPOSITORY)
    env = {**os.environ, "MPICC": mpicc, "BIN": f"{place}/mpi", "FOLDER": f"{place}/mpi-kept"}
    done = subprocess.run(
        ["sh", "workloads/mpi/install.sh"],
        cwd=REPOSITORY,
        env={**env, "PY": sys.executable},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return programs


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["MPICH's wheel", "mpicc.mpich", "mpicc.openmpi"])
def test_another_mpi_is_traced_as_well(name, tmp_path):
    programs = install(compiler(name, tmp_path), tmp_path)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long"]
    done = subprocess.run(
        [*words, "tests/mpi/test_calls.py", "tests/mpi/test_installation.py"],
        cwd=REPOSITORY,
        env={**os.environ, "NOISEBOOK_BIN": str(programs)},
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout and installation(programs / "mpi").launcher.is_file()


@pytest.mark.long
@needs_mpi
def test_a_program_of_another_mpi_is_refused_before_it_starts(folder):
    mpicc = compiler("MPICH's wheel", folder)
    source, made = REPOSITORY / "workloads/mpi/hello.c", folder / "hello"
    subprocess.run([mpicc, source, "-o", made], check=True, timeout=60)
    assert linked_mpi(str(made))[1] == MPICH
    assert launcher_kind(f"{Path(mpicc).parent}/mpiexec") == MPICH
    workload = program([*installation().command(2), str(made)], region=Region("mpi"))
    with pytest.raises(
        InputError, match="the program is linked with MPICH, and mpirun is Open MPI"
    ):
        run_once(workload)
    words = [f"{Path(mpicc).parent}/mpiexec", "-n", "2", str(installation().programs / "hello")]
    with pytest.raises(InputError, match="linked with Open MPI, and mpiexec is MPICH's"):
        run_once(program(words, region=Region("mpi")))


@needs_mpi
def test_whose_library_and_launcher_it_is():
    here = installation()
    if here.kind != "Open MPI":
        pytest.skip("this MPI is not ours")
    library, kind = linked_mpi(str(here.programs / "hello"))
    assert kind == OPEN_MPI and Path(library).is_file()
    assert launcher_kind(str(here.launcher)) == OPEN_MPI
    assert linked_mpi(sys.executable) is None and linked_mpi("--oversubscribe") is None
    assert linked_mpi(str(Path(__file__))) is None and launcher_kind("env") is None
