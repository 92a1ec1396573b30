"""Tests on real ranks; where no MPI is installed they are skipped with the reason."""

import subprocess
from pathlib import Path

import pytest

from nbhelpers.errors import Unavailable
from nbhelpers.measurement import run_once
from nbhelpers.mpi import Calls, CallTrace, installation, read_calls
from nbhelpers.workloads import Workload


def lacking() -> str:
    try:
        installation()
    except Unavailable as error:
        return str(error)
    return ""


needs_mpi = pytest.mark.skipif(bool(lacking()), reason=lacking().replace("\n", "; "))


def built_program(name: str, folder: Path, here=None) -> Path:
    """One of this folder's C programs, built by an MPI."""
    made = folder / name
    source = Path(__file__).with_name(f"{name}.c")
    words = [(here or installation()).mpicc, "-O1", "-pthread", source, "-o", made]
    subprocess.run(list(map(str, words)), check=True, timeout=60)
    return made


def traced_run(workload: Workload, folder: Path) -> tuple[dict, Calls]:
    """The row of a run and its calls, also of ranks that died."""
    trace = CallTrace(folder)
    try:
        row = run_once(workload, [trace])
    finally:
        trace.close()
    return row, read_calls(folder / f"run-{row['run']:06d}")
