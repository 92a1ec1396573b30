"""`SpeedProbe`, the attachment that samples how fast the CPUs are while a program runs.

Owns the memory that the preload library `workloads/nbspeed.c` writes to. It has no name: nothing of
it is left when this process dies.
"""

import mmap
import os
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..measurement import Attachment
from ..workloads import Workload
from .samples import MARK, SAMPLE, THREAD, write_samples

_MAGIC = b"noisebook speed 2"
_HEADER_BYTES, _LINE_BYTES = 4096, 64
# magic, capacity, lines of the pool, interval (ns), count, capacity of marks, marks, unmarked
_HEADER = struct.Struct("24s7q")
_PLACES = 1024  # of threads that have marks at the same time
_PLACES_BYTES = _PLACES * THREAD.itemsize
_POOL_BYTES = 64 << 20  # the caches do not hold what is touched once in a while


class SpeedProbe(Attachment):
    """Samples the speed of the CPUs in each thread of a run, at the kernel's ticks.

    Parameters
    ----------
    folder
        Where the files `run-000123.speed.gz` go.
    interval_us
        CPU time of a thread between two samples; the kernel rounds it up to its tick.
    capacity
        Samples of a run that are stored.
    marks
        Marks of a run that are stored: when OpenMP's threads worked and waited (`read_waits`); 0:
        the OpenMP runtime is left alone.

    Notes
    -----
    The timer of a thread counts its CPU time: it expires in the kernel's own tick and never wakes a
    thread. The program must be dynamically linked.

    Adds the columns `speed_samples`, `speed_lost` (samples without room), `wait_marks` and
    `wait_marks_lost` to the runs table.
    """

    libraries = ("libnbspeed.so",)
    identity = "speed probe"

    def __init__(
        self,
        folder: str | Path,
        interval_us: float = 16_000,
        capacity: int = 1 << 18,
        marks: int = 1 << 17,
    ):
        if interval_us <= 0 or capacity <= 0 or marks < 0:
            raise InputError(
                f"interval_us={interval_us}, capacity={capacity}, marks={marks}",
                fix="the first two must be above 0, marks at least 0",
            )
        self.folder = Path(folder)
        self._capacity, self._interval_ns = int(capacity), round(interval_us * 1e3)
        self._marks = int(marks)
        self._memory: mmap.mmap | None = None
        self._file = -1

    def __repr__(self) -> str:
        return f"SpeedProbe({self.folder})"

    @property
    def variables(self) -> Mapping[str, str]:  # type: ignore[override]  # known after before()
        """Where the library finds the memory."""
        return {"NOISEBOOK_SPEED": f"/proc/{os.getpid()}/fd/{self._file}"}

    def before(self, workload: Workload) -> None:
        if self._memory is None:
            self._make_memory()
        assert self._memory is not None
        lines = _POOL_BYTES // _LINE_BYTES
        self._memory[: _HEADER.size] = _HEADER.pack(
            _MAGIC, self._capacity, lines, self._interval_ns, 0, self._marks, 0, 0
        )
        places = self._places_at
        self._memory[places : places + _PLACES_BYTES] = bytes(_PLACES_BYTES)

    @property
    def _places_at(self) -> int:
        return _HEADER_BYTES + self._capacity * SAMPLE.itemsize + _POOL_BYTES

    def _make_memory(self) -> None:
        size = self._places_at + _PLACES_BYTES + self._marks * MARK.itemsize
        self._file = os.memfd_create("noisebook-speed", os.MFD_CLOEXEC)
        os.posix_fallocate(self._file, 0, size)  # or each first touch would cost a page fault
        self._memory = mmap.mmap(self._file, size)

    def _read(self, kind: np.dtype, count: int, offset: int) -> np.ndarray:
        assert self._memory is not None
        return np.frombuffer(self._memory, kind, count, offset).copy()

    def after(self, run: dict) -> dict:
        assert self._memory is not None
        *_, samples, _, marks, unmarked = _HEADER.unpack_from(self._memory)
        stored, stored_marks = min(samples, self._capacity), min(marks, self._marks)
        threads = self._read(THREAD, _PLACES, self._places_at)
        write_samples(
            self.folder,
            run,
            self._read(SAMPLE, stored, _HEADER_BYTES),
            self._read(MARK, stored_marks, self._places_at + _PLACES_BYTES),
            threads[threads["thread"] != 0],
        )
        return {
            "speed_samples": stored,
            "speed_lost": samples - stored,
            "wait_marks": stored_marks,
            "wait_marks_lost": marks - stored_marks + unmarked,
        }

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()
            os.close(self._file)
        self._memory, self._file = None, -1
