"""`SpeedProbe`, the attachment that samples how fast the CPUs are while a program runs.

Owns the memory that the preload library `workloads/nbspeed.c` writes to. It has no name: nothing of
it is left when this process dies.
"""

import mmap
import os
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..measurement import Attachment
from ..workloads import Workload, binary_folder, format_cpu_list, program_path
from ..workloads.binaries import takes_preload
from .samples import MARK, SAMPLE, THREAD, write_samples

_MAGIC = b"noisebook speed 3"
_HEADER_BYTES, _LINE_BYTES = 4096, 64
# magic, capacity, lines of the pool, interval (ns), count, capacity of marks, marks, unmarked,
# threads without samples
_HEADER = struct.Struct("24s8q")
_PLACES = 1024  # of threads that have marks at the same time
_PLACES_BYTES = _PLACES * THREAD.itemsize
_CAPACITY = 1 << 18  # samples of a run that are stored
_POOL_BYTES = 1 << 17  # its lines are taken out of the caches after each use
_BESIDE_NOTE = (
    "The program loads no library of ours: its CPUs were sampled from beside, which cannot see the"
    " CPU time of its threads, when they wait, nor where they are."
)
_TICK_NOTE = "The probe's timers bring the tick back to the CPUs that run without one (nohz_full)."


class SpeedProbe(Attachment):
    """Samples the speed of the CPUs in each thread of a run, at the kernel's ticks.

    Parameters
    ----------
    folder
        Where the files `run-000123.speed.gz` go.
    interval_us
        CPU time of a thread between two samples; the kernel rounds it up to its tick.
    marks
        Marks of a run that are stored: when OpenMP's threads worked and waited (`read_waits`); 0:
        the OpenMP runtime is left alone.

    Notes
    -----
    The timer of a thread counts its CPU time: it expires in the kernel's own tick and never wakes a
    thread. A program that loads no library of ours (linked statically, or set-user-ID) is sampled
    from beside, by a thread a CPU that preempts it for some microseconds. That cannot see the CPU
    time of its threads, when they wait, nor where they are.

    On CPUs without a tick (nohz_full) a timer of CPU time brings the tick back.

    Adds the columns `speed_probe` (inside, beside; none: no sample), `speed_samples`, `speed_lost`
    (samples without room), `speed_unsampled` (threads that were not sampled to their end),
    `wait_marks` and `wait_marks_lost` to the runs table.
    """

    identity = "speed probe"

    def __init__(
        self,
        folder: str | Path,
        interval_us: float = 24_000,
        marks: int = 1 << 17,
    ):
        self.folder = Path(folder)
        self._interval_ns, self._marks = round(interval_us * 1e3), marks
        self._memory: mmap.mmap | None = None
        self._file = -1
        self._beside: subprocess.Popen | None = None
        self._cpus: str | None = None  # of a program that is sampled from beside
        self.notes = (_TICK_NOTE,) * _without_tick()

    def __repr__(self) -> str:
        return f"SpeedProbe({self.folder})"

    @property
    def variables(self) -> Mapping[str, str]:  # type: ignore[override]  # known after before()
        """Where the library finds the memory."""
        return {"NOISEBOOK_SPEED": f"/proc/{os.getpid()}/fd/{self._file}"}

    @property
    def libraries(self) -> tuple[str, ...]:  # type: ignore[override]  # known after before()
        """None for a program that loads none."""
        return () if self._cpus else ("libnbspeed.so",)

    def before(self, workload: Workload) -> None:
        usable = workload.cpus or tuple(sorted(os.sched_getaffinity(0)))
        self._cpus = None if _loads_libraries(workload) else format_cpu_list(usable)
        if self._cpus and _BESIDE_NOTE not in self.notes:
            self.notes += (_BESIDE_NOTE,)
        places = self._places_at
        if self._memory is None:
            size = places + _PLACES_BYTES + self._marks * MARK.itemsize
            self._file = os.memfd_create("noisebook-speed", os.MFD_CLOEXEC)
            os.posix_fallocate(self._file, 0, size)  # or each first touch would cost a page fault
            self._memory = mmap.mmap(self._file, size)
        lines = _POOL_BYTES // _LINE_BYTES
        self._memory[: _HEADER.size] = _HEADER.pack(
            _MAGIC, _CAPACITY, lines, self._interval_ns, 0, self._marks, 0, 0, 0
        )
        self._memory[places : places + _PLACES_BYTES] = bytes(_PLACES_BYTES)

    @property
    def _places_at(self) -> int:
        return _HEADER_BYTES + _CAPACITY * SAMPLE.itemsize + _POOL_BYTES

    def armed(self, pid: int) -> None:
        if self._cpus:
            program = str(program_path(binary_folder() / "nbbeside"))
            words = [program, self.variables["NOISEBOOK_SPEED"], self._cpus]
            self._beside = subprocess.Popen(words, stdin=subprocess.DEVNULL)

    def ended(self, pid: int) -> None:
        if self._beside is not None:
            self._beside.kill()
            self._beside.wait()
        self._beside = None

    def _read(self, kind: np.dtype, count: int, offset: int) -> np.ndarray:
        assert self._memory is not None
        return np.frombuffer(self._memory, kind, count, offset).copy()

    def after(self, run: dict) -> dict:
        assert self._memory is not None
        *_, samples, _, marks, unmarked, unsampled = _HEADER.unpack_from(self._memory)
        stored, stored_marks = min(samples, _CAPACITY), min(marks, self._marks)
        threads = self._read(THREAD, _PLACES, self._places_at)
        write_samples(
            self.folder,
            run,
            self._read(SAMPLE, stored, _HEADER_BYTES),
            self._read(MARK, stored_marks, self._places_at + _PLACES_BYTES),
            threads[threads["thread"] != 0],
        )
        kind = "beside" if self._cpus else "inside"
        return {
            "speed_probe": kind if stored else "none",
            "speed_samples": stored,
            "speed_lost": samples - stored,
            "speed_unsampled": unsampled,
            "wait_marks": stored_marks,
            "wait_marks_lost": marks - stored_marks + unmarked,
        }

    def close(self) -> None:
        self.ended(0)
        if self._memory is not None:
            self._memory.close()
            os.close(self._file)
        self._memory, self._file = None, -1


def _loads_libraries(workload: Workload) -> bool:
    program = program_path(workload.command[0])
    with open(program, "rb") as file:
        script = file.read(2) == b"#!"
    return script or takes_preload(program)


def _without_tick() -> bool:
    try:
        cpus = Path("/sys/devices/system/cpu/nohz_full").read_text().strip()
    except OSError:
        return False
    return cpus not in ("", "(null)")
