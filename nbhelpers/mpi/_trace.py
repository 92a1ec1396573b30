"""Tracing the MPI calls of a run: the attachment.

Owns where a run's traces are written and kept.
"""

import os
import shutil
from pathlib import Path

from ..errors import InputError, Unavailable
from ..machine.leftovers import RunFolder
from ..measurement import Attachment
from ..workloads import Workload, binary_folder
from ..workloads.mpi import check_same_mpi
from ._calls import read_calls
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
        """Moves the traces to their place; a run whose ranks did not find each other failed."""
        kept = self._folder / f"run-{run['run']:06d}"
        if self._written is not None:
            shutil.rmtree(kept, ignore_errors=True)
            self._folder.mkdir(parents=True, exist_ok=True)
            shutil.move(self._written.path, kept)
            self.close()
        try:
            calls = read_calls(kept)
        except InputError as error:
            return {"status": "no trace", "message": str(error)} if run["status"] == "ok" else {}
        return {"mpi_calls": len(calls.table)}

    def close(self) -> None:
        """Remove what a run that failed left in memory."""
        if self._written is not None:
            self._written.close()
            self._written = None
