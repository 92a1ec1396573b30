"""TLB shootdowns of a program's memory: another CPU makes the program's CPU forget translations.

Owns this attachment of a run; the injector's own shootdowns are of a helper's memory, and the
helper would compete for the program's CPU.
"""

import contextlib
import ctypes
import itertools
import mmap
import os
import subprocess
import time
from pathlib import Path

from ...errors import Unavailable
from .disturbing import Disturbing

_PROCESS_MADVISE, _MADV_COLD = 440, 20  # the call's number is the same on all machines
_UNUSED_BYTES = 512 * 1024
_libc = ctypes.CDLL(None, use_errno=True)


class Shootdowns(Disturbing):
    """Another CPU makes that of the program forget translations of the program's memory.

    A thread on the other CPU calls process_madvise(2) with MADV_COLD. The kernel then interrupts
    the CPU that has translations of this memory; nobody else runs there. (A processor that
    broadcasts it, as those of Arm do, needs no interrupt.)

    Parameters
    ----------
    cpu
        Of the thread.
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
            memory = _whole_pages(self._unused) if self._unused else _memory_of(self._pid)
            for number in itertools.count():
                left_s = begin_s + number / self.rate - time.monotonic()
                if left_s > 0:
                    time.sleep(left_s)
                if self._stop.is_set():
                    return
                self._advise(memory)

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
