"""What is done to a program while it runs: shaken affinity, a CPU quota, TLB shootdowns.

Owns these attachments of a run, when each begins, and that it has ended before the program's pid
can be somebody else's. Noise and hogs are of `injection`, whose helpers compete for the CPU.
"""

import contextlib
import ctypes
import errno
import itertools
import math
import mmap
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import Unavailable
from ..measurement import Attachment
from ..mitigation.groups import Group
from ..workloads import Workload

_PERIOD_US = 10_000  # of a quota
_PROCESS_MADVISE, _MADV_COLD = 440, 20  # the call's number is the same on all machines
_UNUSED_BYTES = 512 * 1024
_libc = ctypes.CDLL(None, use_errno=True)


class Disturbing(Attachment):
    """From the common start until the program has ended, a thread runs `_disturb`."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = 0

    def armed(self, pid: int) -> None:
        self.close()
        self._stop.clear()
        self._pid = pid

    def released(self, t0_ns: int) -> None:
        self._thread = threading.Thread(
            target=self._disturb, args=(t0_ns,), name=type(self).__name__, daemon=True
        )
        self._thread.start()

    def _disturb(self, t0_ns: int) -> None:
        """Ends soon after `_stop` is set, or the process `_pid` has ended."""
        raise NotImplementedError

    def ended(self, pid: int) -> None:
        """Stops while the process is not reaped yet, so that its pid cannot be somebody else's."""
        self.close()

    def close(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
            self._thread = None


class ShakenAffinity(Disturbing):
    """Moves the process from CPU to CPU while it runs.

    Parameters
    ----------
    cpus
        Where to, in turn.
    pause_s
        Between two changes.
    """

    def __init__(self, cpus: Sequence[int], pause_s: float):
        super().__init__()
        self.cpus, self.pause_s = tuple(cpus), pause_s
        self.identity = f"on {self.cpus} in turn, every {pause_s} s"

    def _disturb(self, t0_ns: int) -> None:
        self._stop.wait(max(0.0, (t0_ns - time.monotonic_ns()) * 1e-9))
        turn = 0
        with contextlib.suppress(OSError):  # it has ended
            while not self._stop.is_set():
                turn += 1
                os.sched_setaffinity(self._pid, {self.cpus[turn % len(self.cpus)]})
                time.sleep(self.pause_s)


@dataclass(frozen=True)
class CpuQuota(Group):
    """At most a share of one CPU in every 10 ms, by a control group; infinite: no limit."""

    share: float = 0.7
    controller = "cpu"

    def values(self, version: int, parent: Path, workload: Workload | None) -> dict[str, str]:
        free = math.isinf(self.share)
        quota_us = 0 if free else round(self.share * _PERIOD_US)
        if version == 2:
            return {"cpu.max": f"{'max' if free else quota_us} {_PERIOD_US}"}
        quota = "-1" if free else str(quota_us)
        return {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": quota}


class Shootdowns(Disturbing):
    """Another CPU makes that of the program forget translations of the program's memory.

    A thread on the other CPU calls process_madvise(2) with MADV_COLD. The kernel then interrupts
    the CPU that has translations of this memory; nobody else runs there. (A processor that
    broadcasts it, as those of Arm do, needs no interrupt.)

    Parameters
    ----------
    cpu
        CPU on which the thread runs.
    rate
        Calls a second.
    harmless
        The same calls on memory of this process that nobody uses.
    """

    def __init__(self, cpu: int, rate: float, harmless: bool = False):
        super().__init__()
        self.cpu, self.rate, self.harmless = cpu, rate, harmless
        self.identity = f"{rate:g} calls/s on {'unused' if harmless else 'its'} memory"
        self._unused = ctypes.create_string_buffer(b"1" * _UNUSED_BYTES) if harmless else None
        self._fd = -1

    @staticmethod
    def check() -> None:
        """Try it on a program that sleeps.

        Raises
        ------
        Unavailable
            It is not allowed, or this kernel cannot do it.
        """
        with subprocess.Popen(["sleep", "60"]) as sleeper:
            trial = Shootdowns(0, 1)
            try:
                trial.armed(sleeper.pid)
                trial._advise(_memory_of(sleeper.pid))
            except OSError as error:
                raise Unavailable(
                    f"no program's memory can be advised on here: {error.strerror}",
                    fix="run as root, on Linux 5.10 or later",
                ) from None
            finally:
                trial.close()
                sleeper.kill()

    def armed(self, pid: int) -> None:
        super().armed(os.getpid() if self.harmless else pid)
        self._fd = os.pidfd_open(self._pid)

    def _disturb(self, t0_ns: int) -> None:
        begin_s = t0_ns * 1e-9
        os.sched_setaffinity(0, {self.cpu})  # of this thread
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            memory = self._memory()
            for number in itertools.count():
                left_s = begin_s + number / self.rate - time.monotonic()
                if left_s > 0:
                    time.sleep(left_s)
                if self._stop.is_set():
                    return
                try:
                    self._advise(memory)
                except OSError as error:
                    if error.errno != errno.ENOMEM:
                        raise
                    memory = self._memory()  # given back, or of what was before an exec

    def _memory(self) -> "_Memory":
        return _whole_pages(self._unused) if self._unused else _memory_of(self._pid)

    def _advise(self, memory: "_Memory") -> None:
        if _libc.syscall(_PROCESS_MADVISE, self._fd, ctypes.byref(memory), 1, _MADV_COLD, 0) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def close(self) -> None:
        super().close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class _Memory(ctypes.Structure):
    """A struct iovec."""

    _fields_ = (("begin", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _memory_of(pid: int) -> _Memory:
    """The largest writable mapping of a process's own, such as its static arrays or its heap."""
    lines = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    spans = [line[0].split("-") for line in lines if line[1] == "rw-p"]
    if not spans:
        raise ProcessLookupError(f"process {pid} has ended")
    length, begin = max((int(end, 16) - int(begin, 16), int(begin, 16)) for begin, end in spans)
    return _Memory(begin, length)


def _whole_pages(buffer: ctypes.Array) -> _Memory:
    """The whole pages of a buffer."""
    begin = -(-ctypes.addressof(buffer) // mmap.PAGESIZE) * mmap.PAGESIZE
    return _Memory(begin, _UNUSED_BYTES - mmap.PAGESIZE)
