"""What others do to a program while it runs: a competitor of another nice value, a profiler, a
tracer, a change of its CPUs.

Owns these attachments of a run; the other causes' are in `planting` and `translations`.
"""

import contextlib
import mmap
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Collection
from pathlib import Path

from nbhelpers.errors import RunError, Unavailable
from nbhelpers.injection import Hog
from nbhelpers.injection.hog import Schedule
from nbhelpers.machine import perf_event
from nbhelpers.measurement import Attachment
from nbhelpers.studies.disturbances import Disturbing

_RING_PAGES = 64
_ATTACHED_S = 5.0
_SOFTWARE_CPU_CLOCK = (1, 0)
_IP, _TID, _TIME, _CALL_CHAIN = 1, 2, 4, 32
_BY_FREQUENCY = 1 << 10


class NiceHog(Hog):
    """An ordinary program with a nice value that takes the CPU on a schedule, see `Hog`."""

    def __init__(self, schedule: Schedule, nice: int):
        super().__init__(schedule, priority=0)
        self._nice = nice
        self.identity += f", nice {nice}"

    def _command(self, cpu: int, blocks: tuple[tuple[int, int], ...]) -> list[str]:
        command = super()._command(cpu, blocks)
        at = command.index("--") + 1
        nice = shutil.which("nice") or "/usr/bin/nice"
        return [*command[:at], nice, "-n", str(self._nice), *command[at:]]


def open_sampler(pid: int, hertz: int) -> int:
    """Sample a thread (0: this one) so often in a second of its CPU time: where it is, and who
    called; returns a file descriptor.
    """
    sample = _IP | _TID | _TIME | _CALL_CHAIN
    kind, config = _SOFTWARE_CPU_CLOCK
    attributes = struct.pack("IIQQQQQ", kind, 112, config, hertz, sample, 0, _BY_FREQUENCY)
    return perf_event.opened(attributes, pid)


class Profiler(Attachment):
    """Samples where the program is, by its CPU time, as `perf record -e cpu-clock` does; nobody
    reads the samples.
    """

    def __init__(self, hertz: int):
        self.hertz = hertz
        self.identity = f"{hertz} samples/s"
        self._fd = -1
        self._ring: mmap.mmap | None = None

    @staticmethod
    def check() -> None:
        """Try it on this thread.

        Raises
        ------
        Unavailable
            It is not allowed, or there are no such events.
        """
        profiler = Profiler(1)
        try:
            profiler.armed(0)
        except OSError as error:
            raise Unavailable(
                f"no process can be sampled here: {error.strerror}",
                fix="run as root, or: sysctl kernel.perf_event_paranoid=1",
            ) from None
        finally:
            profiler.close()

    def armed(self, pid: int) -> None:
        self.close()
        self._fd = open_sampler(pid, self.hertz)
        # read-only, so that the kernel overwrites the oldest samples and never stops
        size = (1 + _RING_PAGES) * mmap.PAGESIZE
        self._ring = mmap.mmap(self._fd, size, mmap.MAP_SHARED, mmap.PROT_READ)

    def ended(self, pid: int) -> None:
        self.close()

    def close(self) -> None:
        if self._ring is not None:
            self._ring.close()
            self._ring = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Tracer(Attachment):
    """strace on the program, which stops at each of its system calls.

    Parameters
    ----------
    path
        Path of the program strace.
    of_sleeper
        It traces a program that sleeps in place of ours.
    """

    def __init__(self, path: str, of_sleeper: bool = False):
        self.path, self.of_sleeper = path, of_sleeper
        self.identity = f"strace of {'a sleeper' if of_sleeper else 'the program'}"
        self._children: list[subprocess.Popen] = []

    def armed(self, pid: int) -> None:
        self.close()
        if self.of_sleeper:
            self._children.append(subprocess.Popen(["sleep", "60"]))
            pid = self._children[0].pid
        command = [self.path, "-qq", "-o", os.devnull, "-p", str(pid)]
        self._children.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        self._await(pid)

    def _await(self, pid: int) -> None:
        limit = time.monotonic() + _ATTACHED_S
        while "\nTracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text():
            if time.monotonic() > limit or self._children[-1].poll() is not None:
                raise RunError(
                    "strace did not attach to the program",
                    why="the run would not be disturbed",
                    fix=f"see what it says: {self.path} -p PID",
                )
            time.sleep(0.0005)

    def after(self, run: dict) -> dict:
        self.close()
        return {}

    def close(self) -> None:
        while self._children:
            child = self._children.pop()
            child.terminate()
            child.wait()


class Confined(Disturbing):
    """All threads of the program on some CPUs at first, and on others from a time on.

    Parameters
    ----------
    first, then
        The CPUs.
    until_s
        After the start.
    """

    def __init__(self, first: Collection[int], then: Collection[int], until_s: float):
        super().__init__()
        self.first, self.then, self.until_s = set(first), set(then), until_s
        self.identity = f"on {sorted(self.first)} for {until_s} s, then on {sorted(self.then)}"

    def armed(self, pid: int) -> None:
        super().armed(pid)
        self._place(self.first)

    def _place(self, cpus: Collection[int]) -> None:
        try:
            threads = [int(name) for name in os.listdir(f"/proc/{self._pid}/task")]
        except FileNotFoundError:  # it has ended
            return
        for thread in threads:
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread, cpus)

    def _disturb(self, t0_ns: int) -> None:
        after_s = (t0_ns - time.monotonic_ns()) * 1e-9 + self.until_s
        if not self._stop.wait(max(0.0, after_s)):
            self._place(self.then)
