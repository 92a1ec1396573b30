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
from .samples import SAMPLE, write_samples

_MAGIC = b"noisebook speed 1"
_HEADER_BYTES, _LINE_BYTES = 4096, 64
_HEADER = struct.Struct("24s4q")  # magic, capacity, lines of the pool, interval (ns), count
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

    Notes
    -----
    The timer of a thread counts its CPU time: it expires in the kernel's own tick and never wakes a
    thread. The program must be dynamically linked.

    Adds the columns `speed_samples` and `speed_lost` (samples without room) to the runs table.
    """

    libraries = ("libnbspeed.so",)
    identity = "speed probe"

    def __init__(self, folder: str | Path, interval_us: float = 16_000, capacity: int = 1 << 18):
        if interval_us <= 0 or capacity <= 0:
            raise InputError(
                f"interval_us={interval_us}, capacity={capacity}", fix="both must be above 0"
            )
        self.folder = Path(folder)
        self._capacity, self._interval_ns = int(capacity), round(interval_us * 1e3)
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
        self._memory[: _HEADER.size] = _HEADER.pack(
            _MAGIC, self._capacity, _POOL_BYTES // _LINE_BYTES, self._interval_ns, 0
        )

    def _make_memory(self) -> None:
        size = _HEADER_BYTES + self._capacity * SAMPLE.itemsize + _POOL_BYTES
        self._file = os.memfd_create("noisebook-speed", os.MFD_CLOEXEC)
        os.posix_fallocate(self._file, 0, size)  # or each first touch would cost a page fault
        self._memory = mmap.mmap(self._file, size)

    def after(self, run: dict) -> dict:
        assert self._memory is not None
        count = _HEADER.unpack_from(self._memory)[4]
        stored = min(count, self._capacity)
        samples = np.frombuffer(self._memory, SAMPLE, stored, _HEADER_BYTES).copy()
        write_samples(self.folder, run, samples)
        return {"speed_samples": stored, "speed_lost": count - stored}

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()
            os.close(self._file)
        self._memory, self._file = None, -1
