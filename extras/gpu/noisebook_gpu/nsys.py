"""The overhead of CUDA in a run, by NVIDIA's profiler nsys: time of initialisation, of launching
kernels, of copies.

Owns the command that profiles a workload and the parser of its summary. It wraps the program, so it
disturbs the run: for single runs, by hand.
"""

import csv
import io
import re
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from nbhelpers.errors import Unavailable
from nbhelpers.measurement import Attachment
from nbhelpers.measurement._knowledge import Source, find_layer
from nbhelpers.measurement.layers import MetricLayer
from nbhelpers.workloads import Region, Workload

# Calls of the driver and the runtime API by what they are for; a name may end in a version, _v2,
# and _ptsz for per-thread streams.
KINDS = {
    "initialisation": (
        r"cuInit|cuCtxCreate|cuDevicePrimaryCtxRetain|cudaSetDevice|cudaFree"
        r"|cuModuleLoad\w*|cuLibraryLoad\w*|cudaDeviceReset"
    ),
    "launch": r"cudaLaunch\w*|cuLaunch\w*|cudaGraphLaunch|cuGraphLaunch",
    "copy": r"cudaMemcpy\w*|cuMemcpy\w*",
    "synchronisation": r"cuda\w*Synchronize|cu\w*Synchronize",
    "allocation": r"cudaMalloc\w*|cuMemAlloc\w*|cudaHostAlloc|cudaFreeHost",
}


def profile_with_nsys(workload: Workload, folder: str | Path) -> tuple[Workload, Attachment]:
    """Return the workload under NVIDIA's profiler nsys, and the attachment that reads its report
    into columns `cuda_*`; put both into one `Cell`.

    Parameters
    ----------
    workload
        What is profiled.
    folder
        Where the report of the last run lies.

    Returns
    -------
    tuple of Workload and Attachment
        For ``Cell(name, workload, attachments=[attachment])``.

    Raises
    ------
    Unavailable
        There is no nsys here.
    """
    report = Path(folder).resolve() / "cuda"
    attachment = MetricLayer(find_layer("cuda"))
    for reader in attachment.readers:
        if isinstance(reader, NsysReader):
            reader.report = report.with_suffix(".nsys-rep")
    return nsys_command(workload, report), attachment


def nsys_command(workload: Workload, report: str | Path) -> Workload:
    """The workload under nsys, which writes `report`.nsys-rep; it waits for the common start before
    nsys itself starts.

    Raises
    ------
    Unavailable
        There is no nsys here.
    """
    program = _nsys()
    words = (
        program,
        "profile",
        "--trace=cuda",
        "--sample=none",
        "--cpuctxsw=none",
        "--force-overwrite=true",
        f"--output={report}",
        *workload.command,
    )
    return replace(
        workload,
        name=f"{workload.name} under nsys",
        command=words,
        start="exec",
        model="external",
        region=Region("process"),
    )


def nsys_summary(report: str | Path) -> dict[str, float]:
    """Columns of a report: cuda_<kind>_ns, cuda_<kind>_calls for the kinds of calls, and their sum
    cuda_api_ns.

    Raises
    ------
    Unavailable
        There is no nsys here, or it cannot read the report.
    """
    command = [
        _nsys(),
        "stats",
        "--report",
        "cuda_api_sum",
        "--format",
        "csv",
        "--force-export=true",
        str(report),
    ]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise Unavailable(
            "nsys cannot read its report",
            where=report,
            why=(done.stderr or done.stdout).strip()[-500:],
        )
    return parse_api_summary(done.stdout)


def parse_api_summary(text: str) -> dict[str, float]:
    """The report cuda_api_sum as CSV: names in the last column, times in ns; what nsys prints
    before the header is skipped.
    """
    lines = text.splitlines()
    first = next(
        (at for at, line in enumerate(lines) if "Total Time" in line and "Name" in line), None
    )
    if first is None:
        return {}
    columns: dict[str, float] = {"cuda_api_ns": 0}
    for row in csv.DictReader(io.StringIO("\n".join(lines[first:]))):
        if not (row.get("Name") and row.get("Total Time (ns)")):
            continue
        spent_ns = int(float(row["Total Time (ns)"]))
        calls = int(float(row.get("Num Calls") or row["Calls"]))
        columns["cuda_api_ns"] += spent_ns
        for kind, pattern in KINDS.items():
            if re.fullmatch(rf"({pattern})(_v\d+)*(_ptsz|_ptds)?", row["Name"].strip()):
                columns[f"cuda_{kind}_ns"] = columns.get(f"cuda_{kind}_ns", 0) + spent_ns
                columns[f"cuda_{kind}_calls"] = columns.get(f"cuda_{kind}_calls", 0) + calls
                break
    return columns


def _nsys() -> str:
    found = shutil.which("nsys")
    if not found:
        raise Unavailable(
            "there is no nsys on the path",
            fix="install Nsight Systems (package nsight-systems-cli of NVIDIA's repository)",
        )
    return found


class NsysReader:
    """The layer of a workload of `nsys_command`: `report` is set by `profile_with_nsys`; without
    one it has no columns.
    """

    report: Path | None = None
    by_hand = True  # it is there without columns

    def __init__(self, source: Source, root: object = "/"):
        self._wanted = {metric.id for metric in source.metrics}

    def lacking(self) -> str:
        """Why nothing can be read here; "" if something can."""
        return "" if shutil.which("nsys") else "there is no nsys on the path (Nsight Systems)"

    def open(self, pid: int) -> None:
        """A run is about to start; the report of an earlier run does not count."""
        if self.report is not None:
            self.report.unlink(missing_ok=True)

    def read(self) -> dict[str, float]:
        """Columns of the report, if there is one."""
        if self.report is None or not self.report.exists():
            return {}
        found = nsys_summary(self.report)
        return {name: value for name, value in found.items() if name in self._wanted}

    def shut(self) -> None:
        """The run is over."""

    def close(self) -> None:
        """Nothing is open."""
