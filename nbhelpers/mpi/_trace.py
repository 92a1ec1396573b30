"""Tracing the MPI calls of a run: the attachment, and the run of a single workload.

Owns where a run's traces are written and kept.
"""

import os
import shutil
from pathlib import Path

from ..errors import InputError, RunError, Unavailable
from ..machine.leftovers import RunFolder
from ..measurement import Attachment
from ..measurement.run import run_once
from ..workloads import Workload, binary_folder
from ..workloads.mpi import check_same_mpi
from ._calls import Calls, read_calls
from ._installation import installation

LIBRARY = "libnbtrace.so"


class CallTrace(Attachment):
    """Records every MPI call of the ranks that a run starts on this machine.

    Traces are written in memory and moved when the run is over, to `FOLDER/run-000012`.

    Parameters
    ----------
    folder
        For the traces, a folder a run.
    mib
        Room in memory that each rank makes ready before its region begins, 16384 calls a MiB; a
        rank that calls more often gets more, a MiB at a time.

    Raises
    ------
    Unavailable
        There is no trace library: `make mpi`.
    """

    def __init__(self, folder: str | Path, mib: int = 16):
        self._folder, self._mib = Path(folder), mib
        self._written: RunFolder | None = None
        here = installation()
        library = here.programs / LIBRARY
        if not library.is_file():
            raise Unavailable(f"there is no {LIBRARY}", where=here.programs, fix="make mpi")
        self.libraries = (os.path.relpath(library, binary_folder()),)

    def before(self, workload: Workload) -> None:
        """An empty folder in memory; and the program is linked with the launcher's MPI."""
        check_same_mpi(workload.command)
        self.close()
        self._written = RunFolder("calls")
        self.variables = {"NBTRACE": str(self._written.path), "NBTRACE_MIB": str(self._mib)}

    def after(self, run: dict) -> dict:
        """Keeps the traces; a run whose ranks did not find each other failed."""
        kept = self.keep(run["run"])
        try:
            calls = read_calls(kept)
        except InputError as error:
            return {"status": "no trace", "message": str(error)} if run["status"] == "ok" else {}
        return {"mpi_calls": len(calls.table)}

    def keep(self, run: int) -> Path:
        """Move what was written to its place, if that was not done; the folder of that run."""
        kept = self._folder / f"run-{run:06d}"
        if self._written is not None:
            shutil.rmtree(kept, ignore_errors=True)
            self._folder.mkdir(parents=True, exist_ok=True)
            shutil.move(self._written.path, kept)
            self.close()
        return kept

    def close(self) -> None:
        """Remove what a run that failed left in memory."""
        if self._written is not None:
            self._written.close()
            self._written = None


def trace_calls(workload: Workload, folder: str | Path, mib: int = 16) -> tuple[dict, Calls]:
    """Run an MPI program one time and record its calls.

    Parameters
    ----------
    workload
        Its command begins with a launcher, as `[*installation().command(2), program]`; its region
        may be of any kind.
    folder, mib
        As of `CallTrace`.

    Returns
    -------
    The row of the run, and its `Calls`. Of ranks that died the calls until then, and the row has
    their status.

    Raises
    ------
    InputError
        The program is linked with another MPI than the launcher's, or no call was recorded.
    RunError
        There is no such launcher or program, or it failed before any rank ended its MPI_Init.
    """
    trace = CallTrace(folder, mib)
    try:
        row = run_once(workload, [trace])
        kept = trace.keep(row["run"])
        if row["status"] != "ok" and not any(kept.glob("calls.*")):
            raise RunError(
                f"no rank came to the end of MPI_Init ({row['status']})",
                where=" ".join(workload.command),
                why=row["message"],
                fix="start the same words by hand",
            )
        return row, read_calls(kept)
    finally:
        trace.close()
